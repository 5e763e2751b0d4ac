package talos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	cosi "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	configpb "github.com/siderolabs/talos/pkg/machinery/api/resource/config"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// texts are the configurations that a node has, as it sent them.
type texts struct {
	active    []byte // running; secret
	persisted []byte // on disk; differs from active after a staged or tried change; secret
}

// holding is the configuration that a node has.
type holding struct {
	texts
	digest string // of active
	staged bool   // what is on disk is not what runs
}

// configuration reads back what a node runs and what it would boot with.
func (s *session) configuration(ctx context.Context) (holding, error) {
	t, err := s.configurations(ctx)
	if err != nil {
		return holding{}, err
	}
	h, err := t.holding("")
	return h, s.clean(err)
}

// configurations lists both in one request and leaves them as they are: to
// read them takes longer than to fetch them, and most are what was last sent.
func (s *session) configurations(ctx context.Context) (texts, error) {
	list, err := read(ctx, s, func(ctx context.Context) (resource.List, error) {
		return s.cosi.List(ctx, resource.NewMetadata(configres.NamespaceName, configres.MachineConfigType, "", resource.VersionUndefined),
			state.WithListUnmarshalOptions(state.WithSkipProtobufUnmarshal()))
	})
	if err != nil {
		return texts{}, fmt.Errorf("read machine configuration: %w", err)
	}
	var t texts
	for _, r := range list.Items {
		text, err := configText(r)
		if err != nil {
			return t, fmt.Errorf("read machine configuration: %w", err)
		}
		switch r.Metadata().ID() {
		case configres.ActiveID:
			t.active = text
		case configres.PersistentID:
			t.persisted = text
		}
	}
	if t.active == nil {
		return t, errors.New("read machine configuration: the node has none that is active")
	}
	if t.persisted == nil {
		t.persisted = t.active
	}
	return t, nil
}

// configText takes the YAML out of a resource that is still as it was sent.
func configText(r resource.Resource) ([]byte, error) {
	raw, ok := r.(interface {
		Marshal() (*cosi.Resource, error)
	})
	if !ok {
		return nil, fmt.Errorf("it came as %T", r)
	}
	wire, err := raw.Marshal()
	if err != nil {
		return nil, err
	}
	var spec configpb.MachineConfigSpec
	if err := proto.Unmarshal(wire.GetSpec().GetProtoSpec(), &spec); err != nil {
		return nil, err
	}
	if len(spec.GetYamlMarshalled()) == 0 {
		return nil, errors.New("it is empty")
	}
	return spec.GetYamlMarshalled(), nil
}

// holding says what the texts mean. wanted is a digest that active may well
// have, or empty: text that bastide rendered is in canonical form, so that its
// digest is known without reading it.
func (t texts) holding(wanted string) (holding, error) {
	h := holding{texts: t, digest: wanted}
	var err error
	if digestText(t.active) != wanted {
		if h.digest, err = Digest(t.active); err != nil {
			return h, err
		}
	}
	h.staged, err = t.staged(h.digest)
	return h, err
}

// staged says whether what is on disk is not what runs. running is the digest of
// active, or empty while nobody has read it.
func (t texts) staged(running string) (bool, error) {
	if bytes.Equal(t.active, t.persisted) {
		return false, nil
	}
	if running == "" {
		var err error
		if running, err = Digest(t.active); err != nil {
			return false, err
		}
	}
	next, err := Digest(t.persisted)
	return next != running, err
}

// stage is how far a node is, and what keeps it from being ready.
type stage struct {
	name  string // booting, running, rebooting...
	ready bool
	unmet []string
}

func (g stage) String() string {
	if len(g.unmet) == 0 {
		return g.name
	}
	return g.name + ", waiting for " + strings.Join(g.unmet, "; ")
}

func (s *session) stage(ctx context.Context) (stage, error) {
	res, err := read(ctx, s, func(ctx context.Context) (*runtime.MachineStatus, error) {
		return safe.StateGetByID[*runtime.MachineStatus](ctx, s.cosi, runtime.MachineStatusID)
	})
	if err != nil {
		return stage{}, err
	}
	spec := res.TypedSpec()
	g := stage{name: spec.Stage.String(), ready: spec.Status.Ready}
	for _, u := range spec.Status.UnmetConditions {
		g.unmet = append(g.unmet, u.Name+" ("+u.Reason+")")
	}
	return g, nil
}

// service is the state of one Talos service.
type service struct {
	state   string // Preparing, Running...; empty when the node has no such service
	message string // the last thing it said
	healthy bool
}

func (v service) String() string {
	if v.state == "" {
		return "not there yet"
	}
	if v.message == "" {
		return v.state
	}
	return v.state + " (" + v.message + ")"
}

func (s *session) service(ctx context.Context, id string) (service, error) {
	list, err := read(ctx, s, func(ctx context.Context) (*machine.ServiceListResponse, error) {
		return s.machine.ServiceList(ctx, &emptypb.Empty{})
	})
	if err != nil {
		return service{}, err
	}
	for _, m := range list.GetMessages() {
		for _, v := range m.GetServices() {
			if v.GetId() != id {
				continue
			}
			out := service{state: v.GetState(), healthy: v.GetHealth().GetHealthy()}
			if events := v.GetEvents().GetEvents(); len(events) > 0 {
				out.message = events[len(events)-1].GetMsg()
			}
			if !out.healthy && v.GetHealth().GetLastMessage() != "" {
				out.message = v.GetHealth().GetLastMessage()
			}
			return out, nil
		}
	}
	return service{}, nil
}

// version is the Talos version that a node runs, such as v1.13.5.
func (s *session) version(ctx context.Context) (string, error) {
	v, err := read(ctx, s, func(ctx context.Context) (*machine.VersionResponse, error) {
		return s.machine.Version(ctx, &emptypb.Empty{})
	})
	if err != nil {
		return "", err
	}
	if len(v.GetMessages()) == 0 {
		return "", errors.New("the node did not say its version")
	}
	return v.GetMessages()[0].GetVersion().GetTag(), nil
}

// bootID changes with every boot.
func (s *session) bootID(ctx context.Context) (string, error) {
	return read(ctx, s, func(ctx context.Context) (string, error) {
		stream, err := s.machine.Read(ctx, &machine.ReadRequest{Path: "/proc/sys/kernel/random/boot_id"})
		if err != nil {
			return "", err
		}
		var out []byte
		for {
			part, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return strings.TrimSpace(string(out)), nil
			}
			if err != nil {
				return "", err
			}
			out = append(out, part.GetBytes()...)
		}
	})
}

// sameSet compares two lists without regard to order.
func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
