package talos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/protobuf/types/known/emptypb"
)

// holding is the configuration that a node has.
type holding struct {
	active    []byte // running; secret
	persisted []byte // on disk; differs from active after a staged or tried change; secret
	digest    string // of active
	staged    bool   // what is on disk is not what runs
}

// configuration reads back what a node runs and what it would boot with.
func (s *session) configuration(ctx context.Context) (holding, error) {
	var h holding
	active, err := s.machineConfig(ctx, configres.ActiveID)
	if err != nil {
		return h, fmt.Errorf("read machine configuration: %w", err)
	}
	h.active = active
	if h.digest, err = Digest(active); err != nil {
		return h, s.clean(err)
	}
	h.persisted, err = s.machineConfig(ctx, configres.PersistentID)
	switch {
	case state.IsNotFoundError(err):
		h.persisted = active
	case err != nil:
		return h, fmt.Errorf("read persisted machine configuration: %w", err)
	}
	if !bytes.Equal(h.active, h.persisted) {
		other, err := Digest(h.persisted)
		if err != nil {
			return h, s.clean(err)
		}
		h.staged = other != h.digest
	}
	return h, nil
}

func (s *session) machineConfig(ctx context.Context, id string) ([]byte, error) {
	res, err := read(ctx, s, func(ctx context.Context) (*configres.MachineConfig, error) {
		return safe.StateGet[*configres.MachineConfig](ctx, s.cosi,
			resource.NewMetadata(configres.NamespaceName, configres.MachineConfigType, id, resource.VersionUndefined))
	})
	if err != nil {
		return nil, err
	}
	return res.Container().Bytes()
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
