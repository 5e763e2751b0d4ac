package talos

import (
	"context"
	"net/netip"
	"slices"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/plan"
)

// NodeStatus is what one node is now, for people.
type NodeStatus struct {
	Name    string      `json:"name"`
	Role    estate.Role `json:"role"`
	Address netip.Addr  `json:"address"`
	State   State       `json:"state"`
	Stage   string      `json:"stage,omitempty"` // of a configured node: booting, running...
	Version string      `json:"version,omitempty"`
	Staged  bool        `json:"staged"` // a change waits for a reboot
	Problem string      `json:"problem,omitempty"`
}

// machineOff is what is said of a node that the cloud says is off.
const machineOff = "its machine is off"

// Off names the nodes whose machines the cloud says are off: nobody need wait
// for their answer. A machine that is starting or stopping is not off.
func (c *Cluster) Off(cloud plan.Live) []string {
	var out []string
	for _, n := range c.estate.Nodes() {
		if goesOff(cloud, n) && cloud.Steps[string(blueprint.KindPower)+"/"+n.Name].Settled {
			out = append(out, n.Name)
		}
	}
	return out
}

// Nodes looks once at every node, all at the same time; those that are off are
// named, and are not waited for.
func (c *Cluster) Nodes(ctx context.Context, off ...string) []NodeStatus {
	nodes := c.estate.Nodes()
	out := make([]NodeStatus, len(nodes))
	inTurn(len(nodes), atOnce, func(i int) {
		n := nodes[i]
		if slices.Contains(off, n.Name) {
			out[i] = NodeStatus{Name: n.Name, Role: n.Role, Address: c.addresses.Nodes[n.Name], State: Unreachable, Stage: "off", Problem: machineOff}
			return
		}
		out[i] = c.nodeStatus(ctx, n)
	})
	return out
}

func (c *Cluster) nodeStatus(ctx context.Context, n estate.Node) NodeStatus {
	s := sight{node: n}
	c.look(ctx, &s)
	out := NodeStatus{Name: n.Name, Role: n.Role, Address: c.addresses.Nodes[n.Name], State: s.contact.state, Problem: s.contact.why}
	switch s.contact.state {
	case Foreign:
		out.Problem = "it belongs to another cluster, " + s.contact.fingerprint
	case Ours:
		if s.err != nil {
			out.Problem = s.err.Error()
			return out
		}
		var err error
		if out.Staged, err = s.texts.staged(""); err != nil {
			out.Problem = c.clean(err).Error()
			return out
		}
		out.Stage = s.stage.name
		if !s.stage.ready {
			out.Problem = s.stage.String()
		}
		if session, err := c.open(n); err == nil {
			defer session.close()
			if out.Version, err = session.version(ctx); err != nil {
				out.Problem = err.Error()
			}
		}
	}
	return out
}
