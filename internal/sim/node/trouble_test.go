package node_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"google.golang.org/grpc/codes"

	"bastide/internal/sim/hardware"
	"bastide/internal/sim/host"
	"bastide/internal/sim/node"
	"bastide/internal/sim/program"
)

// event makes something happen to a machine.
func (r *region) event(machine, event string, params map[string]any) {
	r.t.Helper()
	if err := r.farm.Event(context.Background(), hardware.NodeEvent{Node: machine, Event: event, Params: params}); err != nil {
		r.t.Fatal(err)
	}
}

// members lists etcd's members as a node sees them.
func members(ctx context.Context, c *client.Client) (map[string]uint64, error) {
	resp, err := c.EtcdMemberList(ctx, &machine.EtcdMemberListRequest{})
	if err != nil {
		return nil, err
	}
	ids := map[string]uint64{}
	for _, m := range resp.Messages[0].Members {
		ids[m.Hostname] = m.Id
	}
	return ids, nil
}

func TestTroubleInAClusterOfThree(t *testing.T) {
	r := newRegion(t, func(o *node.Options) { o.APIServerProgram = program.Need(t, "kube-apiserver") })
	r.balance("172.16.0.11", "172.16.0.12", "172.16.0.13")
	r.raise([]hardware.Machine{hardwareOf("cp-1", "172.16.0.11"), hardwareOf("cp-2", "172.16.0.12"), hardwareOf("cp-3", "172.16.0.13")},
		func(hardware.Machine) []byte { return r.machineConfig(machinetype.TypeControlPlane, nil) })
	c := r.talos("172.16.0.11")
	r.bootstrap(c)
	r.voters(c, 3)
	before, err := members(short(t), c)
	if err != nil {
		t.Fatal(err)
	}

	t.Run("bootstrap again", func(t *testing.T) {
		for _, addr := range []string{"172.16.0.11", "172.16.0.12"} {
			refused(t, addr, r.talos(addr).Bootstrap(short(t), &machine.BootstrapRequest{}), codes.AlreadyExists, "etcd data directory is not empty")
		}
	})

	t.Run("its data can be listed", func(t *testing.T) {
		stream, err := c.MachineClient.List(short(t), &machine.ListRequest{Root: "/var/lib/etcd"})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for {
			info, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, info.RelativeName)
			if info.Modified == 0 {
				t.Errorf("%s was never modified", info.RelativeName)
			}
		}
		if strings.Join(names, " ") != ". member" {
			t.Errorf("etcd's data is %v", names)
		}
	})

	t.Run("power loss keeps the member", func(t *testing.T) {
		r.event("cp-2", "power-loss", nil)
		if _, err := r.talos("172.16.0.12").Version(short(t)); client.StatusCode(err) != codes.Unavailable {
			t.Errorf("a machine without power answers: %v", err)
		}
		r.until("two of three go on", func(ctx context.Context) error {
			_, err := r.talos("172.16.0.13").EtcdMemberList(ctx, &machine.EtcdMemberListRequest{QueryLocal: true})
			return err
		})
		r.event("cp-2", "power-on", nil)
		r.until("the member is back", func(ctx context.Context) error { return etcdUp(ctx, r.talos("172.16.0.12")) })
		after, err := members(short(t), c)
		if err != nil || after["cp-2"] != before["cp-2"] {
			t.Errorf("members %v, then %v: %v", before, after, err)
		}
	})

	t.Run("partition", func(t *testing.T) {
		r.event("cp-3", "partition", nil)
		r.until("the lone member has no leader", func(ctx context.Context) error {
			if etcdUp(ctx, r.talos("172.16.0.13")) == nil {
				return errors.New("still healthy")
			}
			return nil
		})
		r.event("cp-3", "heal", nil)
		r.until("healed", func(ctx context.Context) error { return etcdUp(ctx, r.talos("172.16.0.13")) })
	})

	t.Run("a lost member joins anew", func(t *testing.T) {
		r.event("cp-3", "forget-after-reboot", nil)
		r.event("cp-3", "reboot", nil)
		r.until("a new member of the old name", func(ctx context.Context) error {
			after, err := members(ctx, c)
			if err == nil && (after["cp-3"] == 0 || after["cp-3"] == before["cp-3"]) {
				err = fmt.Errorf("members %v", after)
			}
			return err
		})
		r.voters(c, 3)
	})

	t.Run("leaving and coming back through a reset", func(t *testing.T) {
		err := r.talos("172.16.0.13").ResetGeneric(short(t), &machine.ResetRequest{Graceful: true, Reboot: true, SystemPartitionsToWipe: []*machine.ResetPartitionSpec{
			{Label: "STATE", Wipe: true}, {Label: "EPHEMERAL", Wipe: true},
		}})
		if err != nil {
			t.Fatal(err)
		}
		r.voters(c, 2)
		r.apply("172.16.0.13", r.machineConfig(machinetype.TypeControlPlane, nil))
		r.voters(c, 3)
	})
}

// etcdUp tells whether a node says that its etcd is healthy.
func etcdUp(ctx context.Context, c *client.Client) error {
	defer c.Close()
	info, err := c.ServiceInfo(ctx, "etcd")
	if err != nil {
		return err
	}
	if len(info) != 1 || !info[0].Service.GetHealth().GetHealthy() {
		return errors.New("etcd is not healthy")
	}
	return nil
}

func TestAnUnknownEtcdArgumentFails(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil)
	raw := r.machineConfig(machinetype.TypeControlPlane, func(c *v1alpha1.Config) {
		c.ClusterConfig.EtcdConfig.EtcdExtraArgs = v1alpha1.Args{"no-such-argument": v1alpha1.NewArgValue("1", nil)}
	})
	r.apply2(hardwareOf("cp-1", "172.16.0.11"), raw)
	c := r.talos("172.16.0.11")
	r.bootstrap(c)
	r.until("etcd fails and is restarted", func(ctx context.Context) error {
		info, err := c.ServiceInfo(ctx, "etcd")
		if err != nil || len(info) != 1 {
			return fmt.Errorf("no etcd: %w", err)
		}
		for _, e := range info[0].Service.Events.Events {
			if strings.Contains(e.Msg, "restart forever") {
				return nil
			}
		}
		return errors.New(info[0].Service.State)
	})
}

// A process that ends for want of room on this machine's disk is no trouble of the
// node's: it is told as what it is.
func TestAProcessThatFindsNoRoomIsTold(t *testing.T) {
	t.Parallel()
	h := host.New(t.TempDir(), nil)
	r := newRegion(t, func(o *node.Options) {
		o.Host = h
		o.EtcdProgram = []string{"/bin/sh", "-c", `echo '{"msg":"failed to create WAL","error":"no space left on device"}' >&2; exit 2`}
	})
	r.apply2(hardwareOf("cp-1", "172.16.0.11"), r.machineConfig(machinetype.TypeControlPlane, nil))
	r.bootstrap(r.talos("172.16.0.11"))
	r.until("etcd's end is told", func(context.Context) error {
		if got := h.Trouble(); !strings.Contains(got, "etcd of cp-1") || !strings.Contains(got, "no space left on device") {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

func TestDisks(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil)
	m := hardwareOf("cp-1", "172.16.0.11")
	m.Volumes = append(m.Volumes, hardware.Volume{ID: "data", SizeBytes: 40e9})
	raw := append(r.machineConfig(machinetype.TypeControlPlane, nil), "---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning:\n  diskSelector:\n    match: disk.size >= 30u * GB && !system_disk\n  minSize: 2GB\n  grow: true\n"...)
	where := func(addr string) func(context.Context) (string, uint64) {
		return func(ctx context.Context) (string, uint64) {
			c := r.talos(addr)
			defer c.Close()
			v, err := safe.StateGetByID[*block.VolumeStatus](client.WithNode(ctx, addr), c.COSI, "EPHEMERAL")
			if err != nil {
				return err.Error(), 0
			}
			return v.TypedSpec().ParentLocation, v.TypedSpec().Size
		}
	}
	expect := func(addr, disk string, least, most uint64) {
		t.Helper()
		r.until("EPHEMERAL on "+disk, func(ctx context.Context) error {
			at, size := where(addr)(ctx)
			if at != disk || size < least || size > most {
				return fmt.Errorf("on %s with %d bytes", at, size)
			}
			return nil
		})
	}
	r.apply2(m, raw)
	expect("172.16.0.11", "/dev/vdb", 39e9, 40e9)
	r.event("cp-1", "disk-order", nil)
	r.farm.Reboot(m)
	expect("172.16.0.11", "/dev/vda", 39e9, 40e9)

	r.event("cp-2", "small-ephemeral", map[string]any{"bytes": 3 << 30})
	r.apply2(hardwareOf("cp-2", "172.16.0.12"), r.machineConfig(machinetype.TypeControlPlane, nil))
	expect("172.16.0.12", "/dev/vda", 3<<30, 3<<30)
}

func TestCertificatesThatAreNotWhatTheyShouldBe(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil)
	r.event("cp-1", "maintenance-cert-change", nil)
	r.waitMaintenance(hardwareOf("cp-1", "172.16.0.11"))
	seen := func() [32]byte { return r.keyOf("172.16.0.11") }
	if seen() == seen() {
		t.Error("the maintenance certificate did not change")
	}
	r.event("cp-1", "maintenance-cert-change", map[string]any{"off": true})
	if seen() != seen() {
		t.Error("the maintenance certificate changes although it should not")
	}
	r.event("cp-1", "foreign-certificate", nil)
	r.apply("172.16.0.11", r.machineConfig(machinetype.TypeControlPlane, nil))
	r.until("a stranger's certificate", func(ctx context.Context) error {
		_, err := r.talos("172.16.0.11").Version(ctx)
		if err == nil || !strings.Contains(err.Error(), "certificate signed by unknown authority") {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
}

// What happens to a name after its machine was deleted happens to the machine
// that gets the name, and nothing brings the old one back.
func TestEventsOfADeletedMachine(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil)
	first, second := hardwareOf("cp-1", "172.16.0.11"), hardwareOf("cp-1", "172.16.0.12")
	second.ServerID, second.Volumes[0].ID = "server-again", "volume-again"
	other := hardwareOf("cp-2", "172.16.0.13")
	r.waitMaintenance(first)
	r.waitMaintenance(other)
	r.event("cp-1", "partition", nil)
	r.event("cp-1", "maintenance-cert-change", nil)
	r.event("cp-1", "power-loss", map[string]any{"for": "1s"})
	r.farm.Remove(first.ServerID)
	// These are for whoever comes under the name.
	r.event("cp-1", "slow-apply", map[string]any{"for": "1s"})
	r.event("cp-1", "power-on", nil)
	absent, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if raw, err := r.fabric.Dial(absent, testNetwork, admin, netip.MustParseAddr("172.16.0.11"), 50000); err == nil {
		_ = raw.Close()
		t.Error("a deleted machine answers, or an event gave it power again")
	}
	r.waitMaintenance(second)
	if r.keyOf("172.16.0.12") != r.keyOf("172.16.0.12") {
		t.Error("the new machine has the quirk of the deleted one")
	}
	r.event("cp-1", "maintenance-cert-change", nil)
	if r.keyOf("172.16.0.12") == r.keyOf("172.16.0.12") {
		t.Error("the event did not reach the new machine")
	}
	raw, err := r.fabric.Dial(short(t), testNetwork, netip.MustParseAddr("172.16.0.11"), netip.MustParseAddr("172.16.0.13"), 50000)
	if err != nil {
		t.Errorf("the address of the deleted machine is still cut off: %v", err)
	} else {
		_ = raw.Close()
	}
}

// keyOf is the public key that a node shows to one contact.
func (r *region) keyOf(addr string) [32]byte {
	r.t.Helper()
	return sha256.Sum256(r.leafOf(addr).RawSubjectPublicKeyInfo)
}

func TestUnknownEventsAreRefused(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil)
	for want, e := range map[string]hardware.NodeEvent{
		"power-loss":       {Node: "cp-1", Event: "meteor"},
		"needs bytes":      {Node: "cp-1", Event: "small-ephemeral"},
		"what is etcd":     {Node: "cp-1", Event: "forget-after-reboot", Params: map[string]any{"what": "everything"}},
		"not a duration":   {Node: "cp-1", Event: "power-loss", Params: map[string]any{"for": 3}},
		"invalid duration": {Node: "cp-1", Event: "slow-apply", Params: map[string]any{"for": "soon"}},
	} {
		if err := r.farm.Check(e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v passes the check with %v, want %q", e, err, want)
		}
	}
	if err := r.farm.Check(hardware.NodeEvent{Node: "cp-1", Event: "power-loss", Params: map[string]any{"for": "3s"}}); err != nil {
		t.Error(err)
	}
	err := r.farm.Event(context.Background(), hardware.NodeEvent{Node: "cp-1", Event: "meteor"})
	if err == nil || !strings.Contains(err.Error(), "power-loss") {
		t.Errorf("got %v", err)
	}
}
