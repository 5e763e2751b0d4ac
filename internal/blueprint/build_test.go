package blueprint

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bastide/internal/estate"
)

func sample(controlPlanes, workers int) *estate.Estate {
	return &estate.Estate{
		Name:     "staging",
		Scaleway: estate.Scaleway{Region: "fr-par", Zones: []string{"fr-par-1"}},
		Network:  estate.Network{CIDR: estate.Prefix{Prefix: netip.MustParsePrefix("172.16.0.0/22")}},
		Talos:    estate.Talos{Snapshot: "talos"},
		ControlPlane: estate.ControlPlane{Count: controlPlanes, Type: "PLAY2-NANO",
			Disk: estate.Disk{Size: 20e9, IOPS: 5000}},
		Pools: []estate.Pool{{Name: "system", Count: workers, Type: "PLAY2-MICRO",
			Disk: estate.Disk{Size: 20e9, IOPS: 5000}, Ephemeral: &estate.Disk{Size: 40e9, IOPS: 15000}}},
	}
}

func TestEveryNeedComesFirst(t *testing.T) {
	g, err := Build(sample(3, 2), nil, []string{"ssh-ed25519 AAAA"})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range g.Steps {
		if seen[s.ID] {
			t.Errorf("%s is there twice", s.ID)
		}
		for _, n := range s.Needs {
			if !seen[n] {
				t.Errorf("%s comes before %s, which it needs", s.ID, n)
			}
		}
		if s.Spec.Kind() != s.Kind {
			t.Errorf("%s carries a spec of kind %s", s.ID, s.Spec.Kind())
		}
		seen[s.ID] = true
	}
}

func TestWhatANodeWaitsFor(t *testing.T) {
	g, err := Build(sample(3, 2), nil, []string{"ssh-ed25519 AAAA"})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{
		"power/staging-cp-1":        "gateway-network/staging-gateway", // no boot before the default route
		"private-nic/staging-cp-1":  "address/staging-cp-1",            // booked before it attaches
		"server/staging-system-1":   "volume/staging-system-1-ephemeral",
		"etcd-bootstrap/staging":    "lb-frontend/staging-api", // how the others find etcd without discovery
		"gateway/staging-gateway":   "ssh-key/" + keyName("staging", "ssh-ed25519 AAAA"),
		"lb-attachment/staging-api": "address/staging-api",
	} {
		s, ok := g.Step(id)
		if !ok {
			t.Errorf("no step %s", id)
			continue
		}
		if !strings.Contains(" "+strings.Join(s.Needs, " ")+" ", " "+want+" ") {
			t.Errorf("%s needs %v, want %s among them", id, s.Needs, want)
		}
	}
}

func TestAddressesAreUniqueInsideTheNetworkAndNeverMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := sample(rapid.SampledFrom([]int{1, 3, 5}).Draw(t, "cp"), rapid.IntRange(0, 20).Draw(t, "workers"))
		booked, err := Assign(before, nil)
		if err != nil {
			t.Fatal(err)
		}
		after := sample(rapid.SampledFrom([]int{1, 3, 5}).Draw(t, "cp2"), rapid.IntRange(0, 20).Draw(t, "workers2"))
		got, err := Assign(after, booked)
		if err != nil {
			t.Fatal(err)
		}
		users := map[netip.Addr]string{}
		for id, addr := range got {
			if other := users[addr]; other != "" {
				t.Fatalf("%s and %s share %s", id, other, addr)
			}
			users[addr] = id
			cidr := after.Network.CIDR.Prefix
			if !cidr.Contains(addr) || addr == cidr.Addr() || addr == cidr.Addr().Next() {
				t.Fatalf("%s got %s, which %s does not give out", id, addr, cidr)
			}
			if was, ok := booked[id]; ok && was != addr {
				t.Fatalf("%s moved from %s to %s", id, was, addr)
			}
		}
	})
}

func TestAssignRefusesWhatDoesNotFit(t *testing.T) {
	small := sample(3, 2)
	small.Network.CIDR.Prefix = netip.MustParsePrefix("172.16.0.0/29")
	if _, err := Assign(small, nil); err == nil || !strings.Contains(err.Error(), "172.16.0.0/29 has no address left") {
		t.Errorf("got %v, want a refusal that names the range", err)
	}
	outside := map[string]netip.Addr{"address/staging-cp-1": netip.MustParseAddr("10.0.0.4")}
	if _, err := Assign(sample(3, 2), outside); err == nil || !strings.Contains(err.Error(), "address/staging-cp-1 is booked as 10.0.0.4") {
		t.Errorf("got %v, want a refusal that names the booking", err)
	}
}
