package talos

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"
)

// Apply makes one cluster step true. It looks again before it does anything,
// so it can be repeated after a run that was killed at any point.
func (c *Cluster) Apply(ctx context.Context, a plan.Action, known plan.Known) (plan.Observed, error) {
	switch a.Step.Kind {
	case blueprint.KindMachine:
		return c.applyMachine(ctx, a, known)
	case blueprint.KindEtcdBootstrap:
		return c.applyBootstrap(ctx, a)
	case blueprint.KindEtcdMembers:
		return c.applyMembers(ctx, a)
	case blueprint.KindKubernetesNodes:
		return c.applyNodes(ctx, a)
	}
	return plan.Observed{}, fmt.Errorf("%s is not a step of the cluster layer", a.Step.ID)
}

// applyMachine gives a node its configuration, whatever state it is in.
func (c *Cluster) applyMachine(ctx context.Context, a plan.Action, known plan.Known) (plan.Observed, error) {
	n, ok := c.node(a.Step.Node)
	if !ok {
		return plan.Observed{}, fmt.Errorf("%s: the estate has no node %s", a.Step.ID, a.Step.Node)
	}
	addresses := c.addresses
	addresses.Gateway = c.gatewayOf(known)
	config, err := c.renderer.Node(n, addresses)
	if err != nil {
		return plan.Observed{}, err
	}
	m := &machineStep{c: c, node: n, config: config}
	if err := c.until(ctx, c.limits.Node, m.look, m.expired); err != nil {
		return plan.Observed{}, err
	}
	if m.differs {
		if err := c.update(ctx, m); err != nil {
			return plan.Observed{}, err
		}
	}
	return plan.Observed{Step: a.Step.ID, Status: m.status, Settled: true, Spec: blueprint.Machine{Node: n.Name, Role: n.Role, Digest: config.Digest}}, nil
}

// machineStep is one node on its way to its configuration.
type machineStep struct {
	c      *Cluster
	node   estate.Node
	config Config

	pin     string    // of the node in maintenance, from first contact on
	again   time.Time // before which the configuration is not sent once more
	last    string    // what was last seen
	differs bool      // it runs with another configuration
	status  string
}

func (m *machineStep) look(ctx context.Context) error {
	seen := m.c.meet(ctx, m.c.addresses.Nodes[m.node.Name])
	if ctx.Err() != nil {
		return nil // cut short: it says nothing of the node
	}
	m.saw(seen)
	switch seen.state {
	case Unreachable:
		if outcome.CodeOf(seen.hopeless) == outcome.Refused {
			return seen.hopeless
		}
	case Foreign:
		return m.c.stranger(m.node.Name, seen)
	case Maintenance:
		return m.maintained(ctx, seen)
	case Ours:
		return m.configured(ctx)
	}
	return nil
}

func (m *machineStep) saw(seen contact) {
	text := string(seen.state)
	if seen.why != "" {
		text += " (" + seen.why + ")"
	}
	if text != m.last {
		m.last = text
		m.c.note(m.node.Name, text)
	}
}

// maintained sends the configuration to a node that has none.
func (m *machineStep) maintained(ctx context.Context, seen contact) error {
	if m.pin == "" {
		m.pin = seen.pin
	}
	if seen.pin != m.pin {
		return m.changed(&changedError{first: m.pin, now: seen.pin})
	}
	if time.Now().Before(m.again) {
		return nil // it is about to leave maintenance
	}
	s, err := m.c.openPinned(m.node, m.pin)
	if err != nil {
		return err
	}
	defer s.close()
	if told, err := m.rightVersion(ctx, s); err != nil || !told {
		return err
	}
	return m.send(ctx, s)
}

// rightVersion keeps a configuration from a Talos that it was not rendered
// for: a wrong snapshot would otherwise show as a riddle later. A node that does
// not tell its version is looked at again.
func (m *machineStep) rightVersion(ctx context.Context, s *session) (told bool, err error) {
	version, err := s.version(ctx)
	if err != nil {
		return false, m.tolerate(ctx, err)
	}
	if want := m.c.estate.Talos.Version; version != want {
		return false, outcome.Fail(m.node.Name+" runs another Talos", fmt.Sprintf("it runs %s and talos.version is %s: %s", version, want, m.otherImage()),
			"recreate the node with an image of "+want+", or change talos.version")
	}
	return true, nil
}

// otherImage says where a wrong disk comes from.
func (m *machineStep) otherImage() string {
	if named := m.c.estate.Talos.Snapshot; named != "" {
		return "the snapshot " + named + " holds another image"
	}
	return "its volume was made from an image of another version, before the file asked for this one"
}

// send sends the configuration to a node in maintenance. When the answer is
// lost it is not known whether it arrived: the next looks tell, because the
// node leaves maintenance soon, or the same bytes are sent once more.
func (m *machineStep) send(ctx context.Context, s *session) error {
	m.c.note(m.node.Name, "sending the configuration")
	call, cancel := context.WithTimeout(ctx, m.c.limits.Send)
	defer cancel()
	_, err := s.machine.ApplyConfiguration(call, &machine.ApplyConfigurationRequest{Data: m.config.bytes, Mode: machine.ApplyConfigurationRequest_NO_REBOOT})
	switch err = m.c.clean(err); {
	case err == nil:
	case code(err) == codes.InvalidArgument:
		return outcome.Fail(m.node.Name+" refuses its configuration", "", "correct the fields or patches that the message names").Because(err)
	case code(err) == codes.FailedPrecondition:
		return nil // another apply is under way: look again
	default:
		m.again = time.Now().Add(m.c.limits.Leave)
		return m.tolerate(ctx, err)
	}
	m.again = time.Now().Add(m.c.limits.Leave)
	m.c.markFresh(m.node.Name)
	if m.node.Role == estate.RoleWorker {
		// A worker's API comes up only when its kubelet has joined, which needs
		// the cluster that other steps make.
		m.status = "configured"
		return errStop
	}
	return nil
}

// tolerate passes over what happens while a node changes, and over nothing else.
func (m *machineStep) tolerate(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	if strings.Contains(err.Error(), certificateChanged) {
		return m.changed(err)
	}
	if ambiguous(err) {
		m.last = "without a clear answer: " + err.Error()
		m.c.note(m.node.Name, m.last)
		return nil
	}
	return outcome.Fail(m.node.Name+" could not be configured", "", "run `bastide up` again").Because(err)
}

// changed stops before anything is sent to whoever answers now.
func (m *machineStep) changed(err error) error {
	_, keys, _ := strings.Cut(strings.TrimRight(err.Error(), `"`), certificateChanged) // without what the transport says around it
	why := "nobody vouches for the certificate of a node in maintenance, so it must stay the same from first contact on: " + certificateChanged + keys
	return outcome.Fail(m.node.Name+" changed while it was being configured", why,
		"if the node rebooted meanwhile, run `bastide up` again; if not, somebody else answers at its address")
}

// configured compares what a node of ours has, and changes it where it differs.
func (m *machineStep) configured(ctx context.Context) error {
	s, err := m.c.open(m.node)
	if err != nil {
		return err
	}
	defer s.close()
	have, err := s.configuration(ctx)
	if err != nil {
		return m.tolerate(ctx, err)
	}
	if have.digest != m.config.Digest || have.staged {
		m.differs = true
		return errStop
	}
	if m.node.Role == estate.RoleWorker {
		m.status = "configured"
		return errStop
	}
	return m.waitEtcd(ctx, s)
}

// waitEtcd waits until a control plane node can take part in etcd: its service
// prepares to join, or already runs.
func (m *machineStep) waitEtcd(ctx context.Context, s *session) error {
	v, err := s.service(ctx, "etcd")
	if err != nil {
		return m.tolerate(ctx, err)
	}
	switch v.state {
	case "Preparing", "Running":
		m.status = "configured, etcd " + v.state
		return errStop
	}
	m.last = "etcd " + v.String()
	m.c.note(m.node.Name, m.last)
	return nil
}

func (m *machineStep) expired(after time.Duration) error {
	do, last := "look at its console, then run `bastide up` again", "it was last seen "+m.last
	if m.last == "" {
		last = "it has not been seen at all"
	}
	if m.last == string(Refusing)+" (connection refused)" || m.last == "" {
		do = "check that it boots the Talos image and has its default route, then run `bastide up` again"
	}
	return outcome.Fail(fmt.Sprintf("%s was not configured within %s", m.node.Name, after), last, do)
}
