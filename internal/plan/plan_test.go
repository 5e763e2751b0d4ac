package plan

import (
	"net/netip"
	"strings"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
)

func graph(t *testing.T) *blueprint.Graph {
	t.Helper()
	g, err := blueprint.Build(&estate.Estate{
		Name:         "staging",
		Scaleway:     estate.Scaleway{Region: "fr-par", Zones: []string{"fr-par-1"}},
		Network:      estate.Network{CIDR: estate.Prefix{Prefix: netip.MustParsePrefix("172.16.0.0/22")}},
		ControlPlane: estate.ControlPlane{Count: 3, Type: "PLAY2-NANO", Disk: estate.Disk{Size: 20e9, IOPS: 5000}},
		Admin:        estate.Admin{CIDRs: []estate.Prefix{{Prefix: netip.MustParsePrefix("198.51.100.7/32")}}},
	}, nil, []string{"ssh-ed25519 AAAA"})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// live answers every step with exactly what it wants.
func live(g *blueprint.Graph) Live {
	l := Live{Steps: map[string]Observed{}}
	for _, s := range g.Steps {
		l.Steps[s.ID] = Observed{Step: s.ID, CloudID: "id-" + s.ID, Settled: true, Spec: s.Spec}
	}
	return l
}

func change(l Live, id string, f func(*Observed)) Live {
	o := l.Steps[id]
	f(&o)
	l.Steps[id] = o
	return l
}

func action(t *testing.T, p Plan, id string) Action {
	t.Helper()
	for _, a := range p.Actions {
		if a.Step.ID == id {
			return a
		}
	}
	t.Fatalf("no action for %s", id)
	return Action{}
}

func TestDecisions(t *testing.T) {
	for _, c := range []struct {
		name, step string
		change     func(*Observed)
		op         Op
		reason     string
		disruption Disruption
	}{
		{"as wanted", "vpc/staging", func(*Observed) {}, Keep, "", None},
		{"on its way", "load-balancer/staging-api", func(o *Observed) { o.Settled, o.Status = false, "creating" }, Wait, "it is creating", None},
		{"in error", "volume/staging-cp-1", func(o *Observed) { o.Broken = "its status is error" }, Refuse, "its status is error", None},
		{"bastion opened wider by hand", "gateway/staging-gateway", func(o *Observed) {
			s := o.Spec.(blueprint.Gateway)
			s.BastionAllowed = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
			o.Spec = s
		}, Update, "bastion ranges not as in the file", Brief},
		{"powered off by hand", "power/staging-cp-2", func(o *Observed) {
			s := o.Spec.(blueprint.Power)
			s.State = "stopped"
			o.Spec = s
		}, Update, "state not as in the file", None},
		{"a smaller volume grows", "volume/staging-cp-1", func(o *Observed) {
			s := o.Spec.(blueprint.Volume)
			s.Size = 10e9
			o.Spec = s
		}, Update, "size not as in the file", None},
		{"a larger volume cannot shrink", "volume/staging-cp-1", func(o *Observed) {
			s := o.Spec.(blueprint.Volume)
			s.Size = 30e9
			o.Spec = s
		}, Refuse, "its size is 30GB, wanted 20GB, and it can only grow", None},
		{"another type", "server/staging-cp-1", func(o *Observed) {
			s := o.Spec.(blueprint.Server)
			s.Type = "DEV1-S"
			o.Spec = s
		}, Refuse, "its type is DEV1-S, wanted PLAY2-NANO, and cannot change while it lives", None},
		{"a public address was added", "server/staging-cp-1", func(o *Observed) {
			s := o.Spec.(blueprint.Server)
			s.PublicIPs = 1
			o.Spec = s
		}, Refuse, "its public addresses is 1", None},
		{"the provider's address is right whatever it is", "gateway-ip/staging-gateway", func(o *Observed) {
			s := o.Spec.(blueprint.GatewayIP)
			s.Address = netip.MustParseAddr("51.15.0.1")
			o.Spec = s
		}, Keep, "", None},
		{"an old configuration", "machine/staging-cp-1", func(o *Observed) {
			o.Spec = blueprint.Machine{Node: "staging-cp-1", Digest: "old"}
		}, Update, "configuration not as in the file", Restart},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := graph(t)
			if m, ok := g.Step("machine/staging-cp-1"); ok {
				m.Spec = blueprint.Machine{Node: "staging-cp-1", Digest: "new"}
				g.Replace(m)
			}
			a := action(t, Make(g, change(live(g), c.step, c.change)), c.step)
			if a.Op != c.op || !strings.HasPrefix(a.Reason, c.reason) || a.Disruption != c.disruption {
				t.Errorf("got %s (%s, %s), want %s (%s, %s)", a.Op, a.Reason, a.Disruption, c.op, c.reason, c.disruption)
			}
		})
	}
}

func TestAPlanOfWhatIsThereIsEmpty(t *testing.T) {
	g := graph(t)
	for _, s := range g.Steps {
		if m, ok := s.Spec.(blueprint.Machine); ok {
			s.Spec = blueprint.Machine{Node: m.Node, Role: m.Role, Digest: "same"}
			g.Replace(s)
		}
	}
	if p := Make(g, live(g)); !p.Empty() {
		t.Errorf("the plan is not empty: %+v", p.Actions)
	}
	if p := Make(g, Live{}); p.Empty() || len(p.Actions) != len(g.Steps) {
		t.Error("the plan of nothing must create every step")
	}
}

func TestUnreachableIsNotAbsent(t *testing.T) {
	g := graph(t)
	l := live(g)
	delete(l.Steps, "machine/staging-cp-1")
	l.Unreachable = map[string]string{"machine/staging-cp-1": "no answer"}
	if a := action(t, Make(g, l), "machine/staging-cp-1"); a.Op != Unknown {
		t.Errorf("got %s, want unknown: what cannot be read must not be created", a.Op)
	}
}

// Field report 37: a plan says once, whatever it has to do, who filters traffic
// inside the private network.
func TestFieldReport37PlansSayWhoFiltersPrivateTraffic(t *testing.T) {
	g := graph(t)
	for name, l := range map[string]Live{"new": {}, "live": live(g)} {
		if p := Make(g, l); len(p.Notes) != 1 || p.Notes[0] != PrivateTraffic {
			t.Errorf("%s: notes %q", name, p.Notes)
		}
	}
}

// What opens the door is all that the gateway's place in the network stands on, and
// of addresses no other.
func TestWhatOpensTheDoor(t *testing.T) {
	g := graph(t)
	var got []string
	for _, a := range Make(g, Live{}).OpensDoor().Actions {
		if a.Op != Keep {
			got = append(got, a.Step.ID[:strings.Index(a.Step.ID, "/")])
			if a.Step.Kind == blueprint.KindAddress && a.Step.Name != "staging-gateway" {
				t.Errorf("%s opens no door", a.Step.ID)
			}
		}
	}
	if want := "ssh-key gateway-ip gateway address gateway-network"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
