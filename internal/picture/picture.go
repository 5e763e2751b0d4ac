// Package picture draws an estate: what a plan does about it, or what there is.
// One model serves all formats, and holds every step and every need. It is pure,
// and the same estate gives the same bytes.
package picture

import (
	"fmt"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/plan"
)

// State says what is the matter with a step: an operation of a plan, or for what
// there is one of the states below.
type State string

// States that no plan has.
const (
	Wanted   State = "wanted"   // in the file; nobody looked whether it exists
	Live     State = "live"     // exists
	Changing State = "changing" // exists, on its way to another state
	Broken   State = "broken"   // exists and can never become what is wanted
	Stray    State = "stray"    // has the estate's mark and is not in the file
)

// Node is one step, or something that is not in the file.
type Node struct {
	ID         string          `json:"id"` // kind/name; unique in the picture
	Kind       blueprint.Kind  `json:"kind"`
	Name       string          `json:"name"`
	Group      string          `json:"group"` // "node NAME", or what of the estate it belongs to
	State      State           `json:"state"`
	Disruption plan.Disruption `json:"disruption,omitempty"` // where it is not none
	Note       string          `json:"note,omitempty"`       // why, or the provider's word
	CloudID    string          `json:"cloudID,omitempty"`
	Depth      int             `json:"depth"` // how many steps have to come before it, at least
}

// Edge says that To needs From.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Picture is the model.
type Picture struct {
	Estate string `json:"estate"`
	Of     string `json:"of"` // file, plan or live
	Nodes  []Node `json:"nodes"`
	Edges  []Edge `json:"edges"`

	at map[string]int
}

// File is the picture of a graph that nobody compared with anything.
func File(g *blueprint.Graph) *Picture {
	p := begin(g.Estate, "file")
	for _, s := range g.Steps {
		p.add(node(s, Wanted), s.Needs)
	}
	return p
}

// Plan is the picture of a plan: every step with what is done about it, and
// what is not in the file.
func Plan(made plan.Plan) *Picture {
	p := begin(made.Estate, "plan")
	for _, a := range made.Actions {
		n := node(a.Step, State(a.Op))
		n.Note = a.Reason
		if a.Disruption != plan.None {
			n.Disruption = a.Disruption
		}
		p.add(n, a.Step.Needs)
	}
	p.strays(made.Strays)
	return p
}

// Reality is the picture of what there is: the steps that exist or could not be
// read, with the needs among them, and what is not in the file.
func Reality(g *blueprint.Graph, live plan.Live) *Picture {
	p := begin(g.Estate, "live")
	for _, s := range g.Steps {
		o, there := live.Steps[s.ID]
		why, unread := live.Unreachable[s.ID]
		switch {
		case there:
			n := node(s, Live)
			n.Note, n.CloudID = o.Status, o.CloudID
			switch {
			case o.Broken != "":
				n.State, n.Note = Broken, o.Broken
			case !o.Settled:
				n.State = Changing
			}
			p.add(n, s.Needs)
		case unread:
			n := node(s, State(plan.Unknown))
			n.Note = "it could not be read: " + why
			p.add(n, s.Needs)
		}
	}
	p.strays(live.Strays)
	return p
}

func begin(estate, of string) *Picture {
	return &Picture{Estate: estate, Of: of, Nodes: []Node{}, Edges: []Edge{}, at: map[string]int{}}
}

func node(s blueprint.Step, state State) Node {
	return Node{ID: s.ID, Kind: s.Kind, Name: s.Name, Group: group(s), State: state}
}

// add puts a node in, after all that it needs. Needs that are not in the picture
// have no edge.
func (p *Picture) add(n Node, needs []string) {
	p.at[n.ID] = len(p.Nodes)
	drawn := map[string]bool{}
	for _, need := range needs {
		i, there := p.at[need]
		if !there || need == n.ID || drawn[need] {
			continue
		}
		drawn[need] = true
		n.Depth = max(n.Depth, p.Nodes[i].Depth+1)
		p.Edges = append(p.Edges, Edge{From: need, To: n.ID})
	}
	p.Nodes = append(p.Nodes, n)
}

// strays have no place in the graph; two may claim one step.
func (p *Picture) strays(all []plan.Stray) {
	for _, s := range all {
		n := Node{ID: fmt.Sprintf("%s/%s", s.Kind, s.Name), Kind: s.Kind, Name: s.Name, Group: groupStrays, State: Stray, Note: s.Why, CloudID: s.CloudID}
		for i := 1; ; i++ {
			if _, taken := p.at[n.ID]; !taken {
				break
			}
			n.ID = fmt.Sprintf("%s/%s %s", s.Kind, s.Name, s.CloudID)
			if i > 1 {
				n.ID += fmt.Sprintf(" (%d)", i)
			}
		}
		p.add(n, nil)
	}
}

// The groups that are not of a node, in the order in which they are drawn. Nodes
// come before the cluster.
const (
	groupNetwork  = "network"
	groupGateway  = "gateway"
	groupShared   = "security and placement"
	groupBalancer = "load balancer"
	groupImage    = "image"
	groupServices = "services"
	groupCluster  = "cluster"
	groupStrays   = "not in the file"
)

func group(s blueprint.Step) string {
	if s.Node != "" {
		return "node " + s.Node
	}
	if s.Kind.Cluster() {
		return groupCluster
	}
	switch s.Kind {
	case blueprint.KindVPC, blueprint.KindPrivateNetwork, blueprint.KindAddress:
		return groupNetwork
	case blueprint.KindSSHKey, blueprint.KindGatewayIP, blueprint.KindGateway, blueprint.KindGatewayNetwork:
		return groupGateway
	case blueprint.KindSecurityGroup, blueprint.KindPlacementGroup:
		return groupShared
	case blueprint.KindLoadBalancer, blueprint.KindLBAttachment, blueprint.KindLBBackend, blueprint.KindLBFrontend:
		return groupBalancer
	case blueprint.KindImageObject, blueprint.KindSnapshot:
		return groupImage
	}
	return groupServices
}

// Group is a part of the picture that is drawn together.
type Group struct {
	Name  string
	Nodes []Node
}

// Groups are the nodes of the picture by group, in the order of drawing.
func (p *Picture) Groups() []Group {
	var out []Group
	place := map[string]int{}
	take := func(chosen func(string) bool) {
		for _, n := range p.Nodes {
			if !chosen(n.Group) {
				continue
			}
			i, there := place[n.Group]
			if !there {
				i = len(out)
				place[n.Group] = i
				out = append(out, Group{Name: n.Group})
			}
			out[i].Nodes = append(out[i].Nodes, n)
		}
	}
	for _, name := range []string{groupNetwork, groupGateway, groupShared, groupBalancer, groupImage} {
		take(func(g string) bool { return g == name })
	}
	take(func(g string) bool { return strings.HasPrefix(g, "node ") })
	for _, name := range []string{groupCluster, groupServices, groupStrays} {
		take(func(g string) bool { return g == name })
	}
	return out
}

// mark is the sign of a state; it is the one that plans are printed with.
func (s State) mark() string {
	switch s {
	case State(plan.Create):
		return "+"
	case State(plan.Update):
		return "~"
	case State(plan.Wait), Changing:
		return "…"
	case State(plan.Refuse), Broken:
		return "!"
	case State(plan.Unknown):
		return "?"
	case State(plan.Delete):
		return "-"
	case Stray:
		return "*"
	}
	return "="
}

// word is the state with its sign, and what it disrupts.
func (n Node) word() string {
	text := n.State.mark() + " " + string(n.State)
	if n.Disruption != "" {
		text += ", " + string(n.Disruption)
	}
	return text
}

// shade is the colour of a state: fill and border. It repeats what the words say.
func (s State) shade() (fill, border string) {
	switch s {
	case State(plan.Create):
		return "#e3f4e5", "#2e7d32"
	case State(plan.Update), State(plan.Wait), Changing:
		return "#fff3d6", "#b26a00"
	case State(plan.Refuse), State(plan.Unknown), State(plan.Delete), Broken:
		return "#fde4e1", "#c62828"
	case Stray:
		return "#efe3f7", "#6a1b9a"
	}
	return "#f2f4f7", "#667085"
}

// states are those that occur, in the order of their first occurrence, with how
// often they do.
func (p *Picture) states() (order []State, count map[State]int) {
	count = map[State]int{}
	for _, n := range p.Nodes {
		if count[n.State] == 0 {
			order = append(order, n.State)
		}
		count[n.State]++
	}
	return order, count
}
