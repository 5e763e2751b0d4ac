package node_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"bastide/internal/sim/hardware"
	"bastide/internal/sim/node"
	"bastide/internal/sim/program"
)

// A name that a configuration adds comes into the certificates of both kinds of
// nodes without a restart; a worker has its own signed by a control plane node,
// and until then serves the one that it has.
func TestANewNameComesIntoTheCertificates(t *testing.T) {
	r := newRegion(t, func(o *node.Options) { o.APIServerProgram = program.Need(t, "kube-apiserver") })
	r.balance("172.16.0.11")
	kinds := map[string]machinetype.Type{"172.16.0.11": machinetype.TypeControlPlane, "172.16.0.21": machinetype.TypeWorker}
	r.raise([]hardware.Machine{hardwareOf("cp-1", "172.16.0.11"), hardwareOf("w-1", "172.16.0.21")}, func(m hardware.Machine) []byte {
		return r.machineConfig(kinds[m.NICs[0].Address.Addr().String()], nil)
	})
	r.bootstrap(r.talos("172.16.0.11"))
	const name = "51.15.0.9"
	for addr, kind := range kinds {
		c := r.talos(addr)
		r.until("API of "+addr, func(ctx context.Context) error { _, err := c.Version(ctx); return err })
		if err := r.leafOf(addr).VerifyHostname(name); err == nil {
			t.Fatalf("%s has the name from the start", addr)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		raw := r.machineConfig(kind, func(c *v1alpha1.Config) {
			c.MachineConfig.MachineCertSANs = append(c.MachineConfig.MachineCertSANs, name)
		})
		if _, err := c.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{Data: raw, Mode: machine.ApplyConfigurationRequest_NO_REBOOT}); err != nil {
			t.Fatal(err)
		}
		r.until("the name in the certificate of "+addr, func(context.Context) error {
			if leaf := r.leafOf(addr); leaf.VerifyHostname(name) != nil {
				return fmt.Errorf("it is for %v", leaf.IPAddresses)
			}
			return nil
		})
	}
}

// leafOf is the certificate that a node shows to one contact.
func (r *region) leafOf(addr string) *x509.Certificate {
	r.t.Helper()
	raw, err := r.fabric.Dial(short(r.t), testNetwork, admin, netip.MustParseAddr(addr), 50000)
	if err != nil {
		r.t.Fatal(err)
	}
	defer raw.Close()
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err := conn.Handshake(); err != nil {
		r.t.Fatal(err)
	}
	return conn.ConnectionState().PeerCertificates[0]
}
