package plan

import (
	"fmt"
	"slices"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
)

// Op is what a plan does about a step.
type Op string

// The operations.
const (
	Keep   Op = "keep"   // as wanted
	Create Op = "create" // does not exist
	Update Op = "update" // exists and can be changed where it is
	Wait   Op = "wait"   // exists, on its way to what is wanted
	Refuse Op = "refuse" // cannot be made right by up; a person decides
	Delete Op = "delete" // is taken down; only destroy plans it
	// Unknown could not be read although what it stands on exists. It is never
	// taken for absent, so nothing is done.
	Unknown Op = "unknown"
)

// Disruption says what an action costs what already runs.
type Disruption string

// The disruption classes, mildest first.
const (
	None    Disruption = "none"    // nothing that runs notices
	Brief   Disruption = "brief"   // connections may be cut for seconds
	Restart Disruption = "restart" // a component on the node restarts
	Reboot  Disruption = "reboot"  // the node reboots, one at a time
)

// Change is one attribute that is not as wanted.
type Change struct {
	Attribute string `json:"attribute"`
	Have      string `json:"have"`
	Want      string `json:"want"`
	Unknown   string `json:"unknown,omitempty"` // why Want is not known yet
}

// Action is one line of a plan.
type Action struct {
	Step       blueprint.Step
	Op         Op
	Changes    []Change
	Reason     string
	Disruption Disruption
	Detail     []string // the difference in lines, where Changes cannot show it
}

// Plan is what up would do, in order.
type Plan struct {
	Estate  string
	Actions []Action
	Strays  []Stray
	Notes   []string // what a reader could take for granted and must not
}

// PrivateTraffic is the note about what security groups do not do.
const PrivateTraffic = "traffic inside the private network is filtered by the nodes' own firewall (Talos ingress rules) only; security groups see public traffic alone"

// Make compares.
func Make(g *blueprint.Graph, live Live) Plan {
	p := Plan{Estate: g.Estate, Strays: live.Strays}
	for _, s := range g.Steps {
		p.Actions = append(p.Actions, decide(s, live))
		if s.Kind == blueprint.KindSecurityGroup && len(p.Notes) == 0 {
			p.Notes = append(p.Notes, PrivateTraffic)
		}
	}
	return p
}

// Empty says whether there is nothing to do.
func (p Plan) Empty() bool {
	for _, a := range p.Actions {
		if a.Op != Keep {
			return false
		}
	}
	return true
}

// Having lists the actions with an operation.
func (p Plan) Having(op Op) []Action {
	var out []Action
	for _, a := range p.Actions {
		if a.Op == op {
			out = append(out, a)
		}
	}
	return out
}

// Only is the plan with everything kept but the chosen actions.
func (p Plan) Only(chosen func(Action) bool) Plan {
	out := Plan{Estate: p.Estate}
	for _, a := range p.Actions {
		if !chosen(a) {
			a = Action{Step: a.Step, Op: Keep, Disruption: None}
		}
		out.Actions = append(out.Actions, a)
	}
	return out
}

// OpensDoor is the part of a plan that is about the way to the nodes: the gateway
// with its public address, the keys that its bastion knows, and its place in the
// private network with the address booked for it.
func (p Plan) OpensDoor() Plan {
	var booked []string
	for _, a := range p.Actions {
		if a.Step.Kind == blueprint.KindGatewayNetwork {
			booked = append(booked, a.Step.Needs...)
		}
	}
	return p.Only(func(a Action) bool {
		switch a.Step.Kind {
		case blueprint.KindSSHKey, blueprint.KindGatewayIP, blueprint.KindGateway, blueprint.KindGatewayNetwork:
			return true
		case blueprint.KindAddress:
			return slices.Contains(booked, a.Step.ID)
		}
		return false
	})
}

func decide(s blueprint.Step, live Live) Action {
	a := Action{Step: s, Op: Keep, Disruption: None}
	o, ok := live.Steps[s.ID]
	if !ok {
		a.Op, a.Reason = Create, "it does not exist"
		if why := live.Unreachable[s.ID]; why != "" {
			a.Op, a.Reason = Unknown, "it could not be read: "+why
			return a
		}
		for _, attr := range s.Spec.Attributes() {
			if attr.Routine {
				continue
			}
			a.Changes = append(a.Changes, Change{Attribute: attr.Name, Want: attr.Value, Unknown: attr.Unknown})
		}
		return a
	}
	if o.Broken != "" {
		a.Op, a.Reason = Refuse, o.Broken
		return a
	}
	a.Changes = diff(s.Spec.Attributes(), o.Spec.Attributes())
	for _, c := range a.Changes {
		if why := stuck(s.Spec.Attributes(), c, s, o); why != "" {
			a.Op, a.Reason = Refuse, why
			return a
		}
	}
	switch {
	case len(a.Changes) > 0:
		a.Op = Update
		a.Reason = reasonFor(a.Changes)
		a.Disruption, a.Detail = disruption(s), o.Detail
		if o.Cost != "" {
			a.Disruption = o.Cost
		}
	case !o.Settled:
		a.Op, a.Reason = Wait, fmt.Sprintf("it is %s", o.Status)
	}
	return a
}

func diff(want, have []blueprint.Attribute) []Change {
	seen := map[string]blueprint.Attribute{}
	for _, a := range have {
		seen[a.Name] = a
	}
	var out []Change
	for _, w := range want {
		h := seen[w.Name]
		if w.Unknown != "" && (w.Mutable == blueprint.Fixed || h.Value == "") {
			continue // assigned by the provider: whatever it is, it is right
		}
		if w.Unknown != "" || w.Value != h.Value {
			out = append(out, Change{Attribute: w.Name, Have: h.Value, Want: w.Value, Unknown: w.Unknown})
		}
	}
	return out
}

// stuck explains why a change cannot be made to a live resource.
func stuck(attrs []blueprint.Attribute, c Change, s blueprint.Step, o Observed) string {
	for _, a := range attrs {
		if a.Name != c.Attribute {
			continue
		}
		switch a.Mutable {
		case blueprint.Fixed:
			return fmt.Sprintf("its %s is %s, wanted %s, and cannot change while it lives%s", c.Attribute, orNone(c.Have), orNone(c.Want), replacing(s.Kind))
		case blueprint.GrowOnly:
			if sizeOf(s.Spec) < sizeOf(o.Spec) {
				return fmt.Sprintf("its %s is %s, wanted %s, and it can only grow", c.Attribute, c.Have, c.Want)
			}
		}
	}
	return ""
}

// sizeOf is the size of what can only grow.
func sizeOf(spec blueprint.Spec) estate.Size {
	switch s := spec.(type) {
	case blueprint.Volume:
		return s.Size
	case blueprint.Postgres:
		return s.Size
	}
	return 0
}

// replacing says what it would cost to make a thing anew, where that is not
// plain: the nodes learn the way out by DHCP, and a lease lasts about a day.
func replacing(k blueprint.Kind) string {
	switch k {
	case blueprint.KindGateway, blueprint.KindGatewayNetwork, blueprint.KindGatewayIP:
		return ": with another one every node loses egress until its lease is renewed or it reboots"
	}
	return ""
}

func disruption(s blueprint.Step) Disruption {
	switch s.Kind {
	case blueprint.KindGateway, blueprint.KindGatewayNetwork, blueprint.KindLBBackend, blueprint.KindLBFrontend:
		return Brief
	case blueprint.KindMachine:
		return Restart
	}
	return None
}

func reasonFor(changes []Change) string {
	names := make([]string, 0, len(changes))
	for _, c := range changes {
		names = append(names, c.Attribute)
	}
	return strings.Join(names, ", ") + " not as in the file"
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
