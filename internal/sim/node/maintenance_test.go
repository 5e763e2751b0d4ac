package node_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"bastide/internal/sim/hardware"
)

// short is a context for one call.
func short(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// refused expects a call to fail with a code and a text.
func refused(t *testing.T, what string, err error, code codes.Code, text string) {
	t.Helper()
	if client.StatusCode(err) != code || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %v, want %s with %q", what, err, code, text)
	}
}

// waitMaintenance powers a machine on and waits for its API.
func (r *region) waitMaintenance(m hardware.Machine) *client.Client {
	r.farm.PowerOn(m)
	c := r.insecure(m.NICs[0].Address.Addr().String())
	r.until("maintenance API", func(ctx context.Context) error { _, err := c.Version(ctx); return err })
	return c
}

func TestMaintenanceAllowsReadingAndOneConfiguration(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil)
	c := r.waitMaintenance(hardwareOf("cp-1", "172.16.0.11"))
	v, err := c.Version(short(t))
	if err != nil || v.Messages[0].Features != nil || v.Messages[0].Platform.Name != "scaleway" {
		t.Errorf("version in maintenance: %v, %v", v, err)
	}
	if _, err := c.Disks(short(t)); err != nil {
		t.Errorf("disks: %v", err)
	}
	_, err = c.EtcdMemberList(short(t), &machine.EtcdMemberListRequest{})
	refused(t, "etcd members", err, codes.Unimplemented, "machine type is not set, cannot use member list API")
	refused(t, "bootstrap", c.Bootstrap(short(t), &machine.BootstrapRequest{}), codes.PermissionDenied, "not authorized")
	refused(t, "reboot", c.Reboot(short(t)), codes.PermissionDenied, "not authorized")
	_, err = c.Kubeconfig(short(t))
	refused(t, "kubeconfig", err, codes.PermissionDenied, "not authorized")
	_, err = safe.StateGetByID[*configres.MachineConfig](short(t), c.COSI, configres.ActiveID)
	refused(t, "machine configuration", err, codes.PermissionDenied, "not authorized")

	apply := func(raw string, mode machine.ApplyConfigurationRequest_Mode, dry bool) (*machine.ApplyConfigurationResponse, error) {
		return c.ApplyConfiguration(short(t), &machine.ApplyConfigurationRequest{Data: []byte(raw), Mode: mode, DryRun: dry})
	}
	good := string(r.machineConfig(machinetype.TypeControlPlane, nil))
	_, err = apply(strings.Replace(good, "machine:\n", "machine:\n    tuype: x\n", 1), machine.ApplyConfigurationRequest_AUTO, false)
	refused(t, "unknown key", err, codes.InvalidArgument, "tuype")
	_, err = apply("version: v1alpha1\n", machine.ApplyConfigurationRequest_AUTO, false)
	refused(t, "incomplete configuration", err, codes.InvalidArgument, "")
	resp, err := apply(good, machine.ApplyConfigurationRequest_REBOOT, true)
	if err != nil || !strings.HasPrefix(resp.Messages[0].ModeDetails, "Dry run summary:") || resp.Messages[0].Mode != machine.ApplyConfigurationRequest_NO_REBOOT {
		t.Errorf("dry run: %v, %v", resp, err)
	}
	if resp, err = apply(good, machine.ApplyConfigurationRequest_STAGED, false); err != nil || resp.Messages[0].Mode != machine.ApplyConfigurationRequest_STAGED {
		t.Errorf("staged: %v, %v", resp, err)
	}
	if _, err := c.Version(short(t)); err != nil {
		t.Errorf("a staged configuration ended maintenance: %v", err)
	}
	if _, err = apply(good, machine.ApplyConfigurationRequest_AUTO, false); err != nil {
		t.Fatal(err)
	}
	admin := r.talos("172.16.0.11")
	r.until("normal API", func(ctx context.Context) error { _, err := admin.Version(ctx); return err })
	if _, err := r.insecure("172.16.0.11").Version(short(t)); client.StatusCode(err) != codes.Unavailable {
		t.Errorf("without a certificate: %v", err)
	}
}

func TestUserData(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil)
	good := hardwareOf("cp-1", "172.16.0.11")
	good.UserData = map[string][]byte{"cloud-init": r.machineConfig(machinetype.TypeControlPlane, nil)}
	bad := hardwareOf("cp-2", "172.16.0.12")
	bad.UserData = map[string][]byte{"cloud-init": []byte("#cloud-config\nhostname: x\n")}
	foreign := hardwareOf("cp-3", "172.16.0.13")
	foreign.UserData = good.UserData
	foreign.Volumes[0].Image = &hardware.TalosImage{Version: "v1.13.5", Platform: "metal"}
	r.farm.PowerOn(bad)
	r.farm.PowerOn(good)
	r.farm.PowerOn(foreign)
	c := r.talos("172.16.0.11")
	r.until("API of the node with user data", func(ctx context.Context) error { _, err := c.Version(ctx); return err })
	// By now the other one, booted first, would have an API too.
	if _, err := r.insecure("172.16.0.12").Version(short(t)); client.StatusCode(err) != codes.Unavailable {
		t.Errorf("a node with broken user data has an API: %v", err)
	}
	// An image for other machines asks nobody for user data.
	m := r.insecure("172.16.0.13")
	r.until("maintenance of the foreign image", func(ctx context.Context) error { _, err := m.Version(ctx); return err })
	// What is on the disk wins from then on.
	good.UserData = bad.UserData
	r.farm.Reboot(good)
	r.until("API after reboot", func(ctx context.Context) error { _, err := c.Version(ctx); return err })
}

func TestWithoutDefaultRoute(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil)
	m := hardwareOf("cp-1", "172.16.0.11")
	r.apply2(m, r.machineConfig(machinetype.TypeControlPlane, nil))
	c := r.talos("172.16.0.11")
	r.until("normal API", func(ctx context.Context) error { _, err := c.Version(ctx); return err })
	m.NICs = append([]hardware.NIC(nil), m.NICs...)
	m.NICs[0].Gateway = hardware.NIC{}.Gateway
	r.farm.Reboot(m)
	r.until("bootstrap refused for time", func(ctx context.Context) error {
		err := c.Bootstrap(ctx, &machine.BootstrapRequest{})
		if client.StatusCode(err) == codes.FailedPrecondition && strings.Contains(err.Error(), "time is not in sync yet") {
			return nil
		}
		return err
	})
	fresh := hardwareOf("cp-2", "172.16.0.12")
	fresh.NICs[0].Gateway = hardware.NIC{}.Gateway
	r.farm.PowerOn(fresh)
	if _, err := r.insecure("172.16.0.12").Version(short(t)); client.StatusCode(err) != codes.Unavailable {
		t.Errorf("a node that cannot read its user data has an API: %v", err)
	}
}

// apply2 powers a machine on and configures it.
func (r *region) apply2(m hardware.Machine, raw []byte) {
	r.farm.PowerOn(m)
	r.apply(m.NICs[0].Address.Addr().String(), raw)
}

func TestApplyModesOfAConfiguredNode(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil)
	m := hardwareOf("cp-1", "172.16.0.11")
	first := r.machineConfig(machinetype.TypeControlPlane, nil)
	r.apply2(m, first)
	c := r.talos("172.16.0.11")
	r.until("normal API", func(ctx context.Context) error { _, err := c.Version(ctx); return err })
	tryRead := func(id string) (string, error) {
		mc, err := safe.StateGetByID[*configres.MachineConfig](client.WithNode(short(t), "172.16.0.11"), c.COSI, id)
		if err != nil {
			return "", err
		}
		raw, err := mc.Provider().Bytes()
		return string(raw), err
	}
	read := func(id string) string {
		t.Helper()
		text, err := tryRead(id)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if read(configres.ActiveID) != string(first) || read(configres.PersistentID) != string(first) {
		t.Error("the configuration is not kept byte for byte")
	}
	try := 30 * time.Minute // of the region's time, so that it does not end while somebody looks
	apply := func(raw []byte, mode machine.ApplyConfigurationRequest_Mode) (*machine.ApplyConfigurationResponse, error) {
		return c.ApplyConfiguration(short(t), &machine.ApplyConfigurationRequest{Data: raw, Mode: mode, TryModeTimeout: durationpb.New(try)})
	}
	labelled := r.machineConfig(machinetype.TypeControlPlane, func(c *v1alpha1.Config) { c.MachineConfig.MachineNodeLabels = map[string]string{"a": "b"} })
	token := r.machineConfig(machinetype.TypeControlPlane, func(c *v1alpha1.Config) { c.MachineConfig.MachineToken = "other.token" })
	_, err := apply(token, machine.ApplyConfigurationRequest_NO_REBOOT)
	refused(t, "a change that needs a reboot", err, codes.InvalidArgument, "can't be applied in immediate mode")
	if _, err := apply(labelled, machine.ApplyConfigurationRequest_TRY); err != nil {
		t.Fatal(err)
	}
	if read(configres.ActiveID) != string(labelled) || read(configres.PersistentID) != string(first) {
		t.Error("TRY is not active only")
	}
	try = 5 * time.Second
	for _, again := range []struct {
		raw  []byte
		mode machine.ApplyConfigurationRequest_Mode
	}{{first, machine.ApplyConfigurationRequest_NO_REBOOT}, {labelled, machine.ApplyConfigurationRequest_TRY}} {
		if _, err := apply(again.raw, again.mode); err != nil {
			t.Fatal(err)
		}
	}
	r.until("end of TRY", func(context.Context) error {
		if read(configres.ActiveID) != string(first) {
			return status.Error(codes.Unknown, "still active")
		}
		return nil
	})
	if _, err := apply(labelled, machine.ApplyConfigurationRequest_STAGED); err != nil {
		t.Fatal(err)
	}
	if read(configres.ActiveID) != string(first) || read(configres.PersistentID) != string(labelled) {
		t.Error("STAGED is not persistent only")
	}
	resp, err := apply(token, machine.ApplyConfigurationRequest_AUTO)
	if err != nil || resp.Messages[0].Mode != machine.ApplyConfigurationRequest_REBOOT {
		t.Fatalf("AUTO with a change that needs a reboot: %v, %v", resp, err)
	}
	r.until("configuration after reboot", func(context.Context) error {
		text, err := tryRead(configres.ActiveID) // which fails while the node goes down and comes up
		if err == nil && text != string(token) {
			err = status.Error(codes.Unknown, "still the old one")
		}
		return err
	})
}

func TestRolesAndForwarding(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil)
	r.apply2(hardwareOf("cp-1", "172.16.0.11"), r.machineConfig(machinetype.TypeControlPlane, nil))
	r.apply2(hardwareOf("cp-2", "172.16.0.12"), r.machineConfig(machinetype.TypeControlPlane, nil))
	c := r.talos("172.16.0.11")
	r.until("both", func(ctx context.Context) error {
		v, err := c.Version(client.WithNodes(ctx, "172.16.0.11", "172.16.0.12"))
		if err == nil && len(v.Messages) == 2 && v.Messages[0].Metadata.Hostname == "172.16.0.11" && v.Messages[1].Metadata.Hostname == "172.16.0.12" {
			return nil
		}
		return err
	})
	v, err := c.Version(client.WithNode(short(t), "172.16.0.12"))
	if err != nil || v.Messages[0].Metadata != nil {
		t.Errorf("one node: %v, %v", v, err)
	}
	_, err = safe.StateListAll[*configres.MachineConfig](client.WithNodes(short(t), "172.16.0.11", "172.16.0.12"), c.COSI)
	refused(t, "resources of many nodes", err, codes.InvalidArgument, "one-2-many proxying is not supported")
	_, err = c.Version(client.WithNode(short(t), "172.16.0.12:50000"))
	refused(t, "target with a port", err, codes.Internal, "invalid target")

	reader := r.talosAs("172.16.0.11", role.Reader)
	if _, err := reader.Version(client.WithNode(short(t), "172.16.0.12")); err != nil {
		t.Errorf("a reader reads: %v", err)
	}
	refused(t, "a reader reboots", reader.Reboot(client.WithNode(short(t), "172.16.0.12")), codes.PermissionDenied, "not authorized")
	_, err = reader.ApplyConfiguration(short(t), &machine.ApplyConfigurationRequest{Mode: machine.ApplyConfigurationRequest_AUTO})
	refused(t, "a reader applies", err, codes.PermissionDenied, "not authorized")
}
