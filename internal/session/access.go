package session

import (
	"context"
	"net/http"
	"net/netip"
	"os"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/door"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/talos"
)

// talosPort is where nodes serve the Talos API.
const talosPort = 50000

// CredentialLife is how long the credentials for a person are valid.
const CredentialLife = 365 * 24 * time.Hour

// doorLife is how long the credentials that a command behind the door gets are
// valid: longer than anybody works in one sitting, and no longer.
const doorLife = 24 * time.Hour

// locate finds the estate's addresses as they are at Scaleway. It refuses while
// there is nothing to reach.
func (s *Session) locate(ctx context.Context) (*Survey, talos.Addresses, error) {
	cloud, err := s.Cloud(ctx)
	if err != nil {
		return nil, talos.Addresses{}, err
	}
	inv, err := cloud.Inventory(ctx)
	if err != nil {
		return nil, talos.Addresses{}, err
	}
	if !inv.GatewayIP().IsValid() && !inv.HasServers() {
		return nil, talos.Addresses{}, outcome.Refuse(s.Estate.Name+" cannot be reached", "it has no gateway at Scaleway", "raise it with bastide up "+s.config.Path)
	}
	g, err := blueprint.Build(s.Estate, inv.Booked(), s.Estate.Admin.PublicKeys)
	if err != nil {
		return nil, talos.Addresses{}, outcome.Refuse("the estate cannot be laid out", err.Error(), "change the file").Because(err)
	}
	v := &Survey{Inventory: inv, Graph: g, Live: inv.Live(g)}
	if !inv.GatewayIP().IsValid() {
		return nil, talos.Addresses{}, s.barred(v)
	}
	return v, talos.AddressesOf(g, s.Estate, inv.GatewayIP()), nil
}

// Kubeconfig is the admin's kubeconfig, made from the bundle and the address of
// the load balancer. It is secret.
func (s *Session) Kubeconfig(ctx context.Context, life time.Duration) ([]byte, error) {
	bundle, err := s.Unlock()
	if err != nil {
		return nil, err
	}
	_, addresses, err := s.locate(ctx)
	if err != nil {
		return nil, err
	}
	return bundle.Kubeconfig(s.Estate.Name, addresses.Endpoint(), time.Now(), life)
}

// Talosconfig is the admin's talosconfig. It is secret. Its endpoints are the
// control plane nodes, which only a machine inside the private network reaches.
func (s *Session) Talosconfig(ctx context.Context, life time.Duration) ([]byte, error) {
	bundle, err := s.Unlock()
	if err != nil {
		return nil, err
	}
	_, addresses, err := s.locate(ctx)
	if err != nil {
		return nil, err
	}
	nodes := s.controlPlaneAddresses(addresses)
	return bundle.Talosconfig(s.Estate.Name, nodes, nodes, time.Now(), life)
}

// Enter runs a command behind the door, with credentials for the time of it,
// and returns its exit code. Signals are the command's business.
func (s *Session) Enter(ctx context.Context, argv []string, in, out, errs *os.File) (int, error) {
	bundle, err := s.Unlock()
	if err != nil {
		return 0, err
	}
	v, addresses, err := s.locate(ctx)
	if err != nil {
		return 0, err
	}
	swept, err := door.Sweep(s.Estate.Name)
	for _, what := range swept {
		s.config.Notice("cleared up after a run that was killed: " + what)
	}
	if err != nil {
		return 0, err
	}
	kubeconfig, err := bundle.Kubeconfig(s.Estate.Name, addresses.Endpoint(), time.Now(), doorLife)
	if err != nil {
		return 0, err
	}
	// Behind the door talosctl has one endpoint, see door.ProxyConfig.Spread.
	front := addresses.API.String()
	talosconfig, err := bundle.Talosconfig(s.Estate.Name, []string{front}, s.controlPlaneAddresses(addresses), time.Now(), doorLife)
	if err != nil {
		return 0, err
	}
	way, err := s.door(ctx, v)
	if err != nil {
		return 0, err
	}
	return way.Run(context.WithoutCancel(ctx), door.Child{
		Estate: s.Estate.Name, Argv: argv, Env: os.Environ(), Stdin: in, Stdout: out, Stderr: errs,
		Kubeconfig: kubeconfig, Talosconfig: talosconfig,
		Proxy: door.ProxyConfig{
			Spread:   map[string][]netip.AddrPort{netip.AddrPortFrom(addresses.API, talosPort).String(): s.talosPorts(addresses)},
			Upstream: http.ProxyFromEnvironment,
		},
	})
}

func (s *Session) controlPlaneAddresses(a talos.Addresses) []string {
	var out []string
	for _, p := range s.talosPorts(a) {
		out = append(out, p.Addr().String())
	}
	return out
}

func (s *Session) talosPorts(a talos.Addresses) []netip.AddrPort {
	var out []netip.AddrPort
	for _, n := range s.Estate.Nodes() {
		if n.Role == estate.RoleControlPlane {
			out = append(out, netip.AddrPortFrom(a.Nodes[n.Name], talosPort))
		}
	}
	return out
}
