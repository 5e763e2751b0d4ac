package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"

	"bastide/internal/sim/fabric"
)

// Addresses that stand for the callers of the firewall's test.
var (
	otherMember = netip.MustParseAddr("172.16.0.12")
	aWorker     = netip.MustParseAddr("172.16.0.21")
	anOutsider  = netip.MustParseAddr("10.9.0.1") // in no range of any rule, such as one from a routed network
)

// walled adds the firewall's documents to a configuration.
func walled(raw []byte) []byte {
	doc := func(name, ports string, subnets string) string {
		return fmt.Sprintf("---\napiVersion: v1alpha1\nkind: NetworkRuleConfig\nname: %s\nportSelector: {ports: [%s], protocol: tcp}\ningress: [%s]\n", name, ports, subnets)
	}
	const private = "{subnet: 172.16.0.0/22}"
	text := "---\napiVersion: v1alpha1\nkind: NetworkDefaultActionConfig\ningress: block\n" +
		doc("apid", "50000", private) + doc("trustd", "50001", private) + doc("kubelet", "10250", private) + doc("apiserver", "6443", private) +
		doc("etcd", "2379-2380", "{subnet: 172.16.0.11/32}, {subnet: 172.16.0.12/32}") +
		doc("excepted", "7000", "{subnet: 172.16.0.0/22, except: 172.16.0.21/32}")
	return append(bytes.Clone(raw), text...)
}

// knock says what a caller meets at a port: nothing, or what answers there. Silence
// that is wanted is listened to for a moment, an answer is waited for.
func knock(ctx context.Context, f *fabric.Fabric, from netip.Addr, port int, want string) string {
	wait := time.Minute
	if want == "silence" {
		wait = 300 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	c, err := f.Dial(ctx, testNetwork, from, netip.MustParseAddr("172.16.0.11"), port)
	switch {
	case err == nil:
		_ = c.Close()
		return "open"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused" // it got through, and nothing listens
	case errors.Is(err, context.DeadlineExceeded):
		return "silence"
	}
	return err.Error()
}

// A node lets in what its firewall's documents say, by the caller's address, and
// is silent to the rest; a change is in force at once and cuts nothing.
func TestANodeFiltersByItsFirewall(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil)
	m := hardwareOf("cp-1", "172.16.0.11")
	open := r.machineConfig(machinetype.TypeControlPlane, nil)
	r.apply2(m, walled(open))
	c := r.talos("172.16.0.11")
	r.until("normal API", func(ctx context.Context) error { _, err := c.Version(ctx); return err })
	r.until("trustd", func(ctx context.Context) error {
		if got := knock(ctx, r.fabric, otherMember, 50001, "open"); got != "open" {
			return errors.New(got)
		}
		return nil
	})
	for _, k := range []struct {
		from netip.Addr
		port int
		want string
	}{
		{admin, 50000, "open"}, {aWorker, 50000, "open"}, {anOutsider, 50000, "silence"},
		{aWorker, 50001, "open"}, {anOutsider, 50001, "silence"},
		// Nothing listens there before the bootstrap: what gets through is refused.
		{aWorker, 6443, "refused"}, {anOutsider, 6443, "silence"},
		{aWorker, 10250, "refused"}, {anOutsider, 10250, "silence"},
		{otherMember, 2379, "refused"}, {otherMember, 2380, "refused"},
		{aWorker, 2379, "silence"}, {aWorker, 2380, "silence"}, {anOutsider, 2380, "silence"},
		{admin, 7000, "refused"}, {aWorker, 7000, "silence"},
		{admin, 9100, "silence"},
		{netip.MustParseAddr("172.16.0.11"), 9100, "refused"}, // to itself it speaks over lo
		{netip.Addr{}, 50000, "silence"},                      // a caller that is not known
	} {
		if got := knock(t.Context(), r.fabric, k.from, k.port, k.want); got != k.want {
			t.Errorf("port %d from %s: %s, want %s", k.port, k.from, got, k.want)
		}
	}
	resp, err := c.ApplyConfiguration(short(t), &machine.ApplyConfigurationRequest{Data: open, Mode: machine.ApplyConfigurationRequest_NO_REBOOT})
	if err != nil || resp.Messages[0].Mode != machine.ApplyConfigurationRequest_NO_REBOOT {
		t.Fatalf("taking the firewall away: %v, %v", resp, err)
	}
	if got := knock(t.Context(), r.fabric, anOutsider, 50001, "open"); got != "open" {
		t.Errorf("without a firewall: %s", got)
	}
	if _, err := c.ApplyConfiguration(short(t), &machine.ApplyConfigurationRequest{Data: walled(open), Mode: machine.ApplyConfigurationRequest_NO_REBOOT}); err != nil {
		t.Fatal(err)
	}
	if got := knock(t.Context(), r.fabric, anOutsider, 50001, "silence"); got != "silence" {
		t.Errorf("with the firewall back: %s", got)
	}
	if _, err := c.Version(short(t)); err != nil {
		t.Errorf("the connection that was open: %v", err)
	}
}

// With accept as the default, a rule drops what it does not name.
func TestAFirewallThatAccepts(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil)
	raw := r.machineConfig(machinetype.TypeControlPlane, nil)
	raw = append(raw, "---\napiVersion: v1alpha1\nkind: NetworkRuleConfig\nname: etcd\nportSelector: {ports: [2379-2380], protocol: tcp}\ningress: [{subnet: 172.16.0.12/32}]\n"...)
	r.apply2(hardwareOf("cp-1", "172.16.0.11"), raw)
	c := r.talos("172.16.0.11")
	r.until("normal API", func(ctx context.Context) error { _, err := c.Version(ctx); return err })
	for from, want := range map[netip.Addr]string{otherMember: "refused", aWorker: "silence"} {
		if got := knock(t.Context(), r.fabric, from, 2379, want); got != want {
			t.Errorf("from %s: %s, want %s", from, got, want)
		}
	}
	if got := knock(t.Context(), r.fabric, anOutsider, 50000, "open"); got != "open" {
		t.Errorf("a port that no rule is about: %s", got)
	}
}
