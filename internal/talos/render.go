// Package talos is the cluster layer: it renders the machine configuration of
// every node, applies it, bootstraps etcd once, and reads back what the nodes
// really are. It reaches them only through the way in that it is given.
package talos

import (
	"fmt"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/config"
	documents "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/vault"
)

// MaxConfig is the largest configuration that is sent, in bytes. Talos takes
// gRPC messages of up to 32 MiB and keeps the configuration on a partition of
// 100 MiB; ordinary ones, which carry no comments, are about 12 KiB. A file
// beyond this is a mistake rather than a configuration.
const MaxConfig = 4 << 20

// Addresses are what a configuration has to know of the cloud.
type Addresses struct {
	Gateway netip.Addr            // the public gateway's public address, through which tunnels come
	API     netip.Addr            // the load balancer's address in the private network
	Nodes   map[string]netip.Addr // private address by node name
}

// AddressesOf takes the addresses from a graph; the gateway's public one is
// assigned by Scaleway and is not in it.
func AddressesOf(g *blueprint.Graph, e *estate.Estate, gateway netip.Addr) Addresses {
	a := Addresses{Gateway: gateway, API: blueprint.AddressOf(g, e.Name+"-api"), Nodes: map[string]netip.Addr{}}
	for _, n := range e.Nodes() {
		a.Nodes[n.Name] = blueprint.AddressOf(g, n.Name)
	}
	return a
}

// Endpoint is the cluster endpoint: the Kubernetes API at the load balancer.
func (a Addresses) Endpoint() string {
	return "https://" + netip.AddrPortFrom(a.API, blueprint.APIPort).String()
}

// Config is the machine configuration of one node. Its bytes are secret.
type Config struct {
	Node     string
	Role     estate.Role
	Digest   string
	Warnings []string // what is allowed but probably not meant
	provider config.Provider
	bytes    []byte
}

// Bytes is the configuration as YAML without comments. It is secret.
func (c Config) Bytes() []byte { return slices.Clone(c.bytes) }

// String shows nothing of the configuration.
func (c Config) String() string { return "machine configuration of " + c.Node + " " + c.Digest }

// Format masks every verb.
func (c Config) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(c.String())) }

// Renderer renders configurations of one estate. It holds everything that was
// read from files, so that rendering is a pure function of the addresses.
type Renderer struct {
	estate    *estate.Estate
	bundle    *vault.Bundle
	files     files
	installer string // the image that every node is upgraded from
}

// NewRenderer reads the files that the estate names.
func NewRenderer(e *estate.Estate, bundle *vault.Bundle) (*Renderer, error) {
	f, err := readFiles(e)
	if err != nil {
		return nil, err
	}
	return &Renderer{estate: e, bundle: bundle, files: f, installer: InstallerImage(e.Talos)}, nil
}

// StandIn is an address that nobody has (RFC 5737), for rendering before the
// gateway's is known.
var StandIn = netip.AddrFrom4([4]byte{192, 0, 2, 1})

// Complete fills in the digest of every machine step of a graph, once the
// gateway's public address is known. Before that it only checks that everything
// can be rendered: nothing is bought for a patch that does not fit.
func (r *Renderer) Complete(g *blueprint.Graph, gateway netip.Addr) (warnings []string, err error) {
	known := gateway.IsValid()
	if !known {
		gateway = StandIn
	}
	configs, err := r.All(AddressesOf(g, r.estate, gateway))
	if err != nil {
		return nil, err
	}
	for _, c := range configs {
		for _, w := range c.Warnings {
			warnings = append(warnings, c.Node+": "+w)
		}
		if step, ok := g.Step(string(blueprint.KindMachine) + "/" + c.Node); ok && known {
			step.Spec = blueprint.Machine{Node: c.Node, Role: c.Role, Digest: c.Digest}
			g.Replace(step)
		}
	}
	return warnings, nil
}

// All renders the configurations of all nodes, in the order of the estate.
func (r *Renderer) All(a Addresses) ([]Config, error) {
	nodes := r.estate.Nodes()
	out, errs := make([]Config, len(nodes)), make([]error, len(nodes))
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, n := range nodes {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			out[i], errs[i] = r.Node(n, a)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err // one is enough: the rest most often repeats it
		}
	}
	return out, nil
}

// Node renders the configuration of one node. The same inputs give the same
// bytes.
func (r *Renderer) Node(n estate.Node, a Addresses) (Config, error) {
	if err := a.complete(n); err != nil {
		return Config{}, err
	}
	base, err := r.base(n, a)
	if err != nil {
		return Config{}, fmt.Errorf("render machine configuration of %s: %w", n.Name, err)
	}
	rules := r.rules(n, a)
	// What is sent is what was read back and checked, not what was meant; and it
	// is in canonical form, so that its digest is that of the bytes.
	final, text, err := r.patch(base, n, rules)
	if err != nil {
		return Config{}, err
	}
	if len(text) > MaxConfig {
		return Config{}, outcome.Refuse("the machine configuration of "+n.Name+" is too large",
			fmt.Sprintf("it has %d bytes and at most %d are sent", len(text), MaxConfig), "make its patches smaller, or deliver large manifests another way")
	}
	found, err := final.Validate(cloudMode{}, validation.WithLocal())
	if err != nil {
		return Config{}, outcome.Refuse("the machine configuration of "+n.Name+" is not valid", "", "correct the fields or patches that lead to it").Because(flat(err))
	}
	return Config{Node: n.Name, Role: n.Role, Digest: digestText(text), Warnings: append(rules.warn(final), found...), provider: final, bytes: text}, nil
}

func (a Addresses) complete(n estate.Node) error {
	if !a.Gateway.IsValid() || !a.API.IsValid() || !a.Nodes[n.Name].IsValid() {
		return outcome.CannotTell("the machine configuration of "+n.Name+" cannot be rendered",
			"it holds the addresses of gateway, load balancer and node, and not all are known", "run `bastide up`, which creates them first")
	}
	return nil
}

// base is the configuration before any patch.
func (r *Renderer) base(n estate.Node, a Addresses) (config.Provider, error) {
	contract, err := config.ParseContractFromVersion(r.estate.Talos.Version)
	if err != nil {
		return nil, err
	}
	in, err := generate.NewInput(r.estate.Name, a.Endpoint(), r.estate.Kubernetes.Version,
		generate.WithVersionContract(contract),
		generate.WithSecretsBundle(r.bundle.Machine()),
		generate.WithInstallImage(r.installer),
		generate.WithAdditionalSubjectAltNames(r.sans(n, a)),
		generate.WithClusterDiscovery(false),
		generate.WithKubePrismPort(KubePrismPort),
		generate.WithAllowSchedulingOnControlPlanes(false),
	)
	if err != nil {
		return nil, err
	}
	in.PodNet = []string{r.estate.Network.Pods.String()}
	in.ServiceNet = []string{r.estate.Network.Services.String()}
	role := machine.TypeWorker
	if n.Role == estate.RoleControlPlane {
		role = machine.TypeControlPlane
	}
	made, err := in.Config(role)
	if err != nil {
		return nil, err
	}
	docs := made.Clone().Documents()
	out := make([]documents.Document, 0, len(docs)+2)
	for _, d := range docs {
		if d.Kind() == hostnameKind {
			continue // replaced by one with the node's name
		}
		out = append(out, d)
	}
	out, err = r.shape(out, contract, n, a)
	if err != nil {
		return nil, err
	}
	return container.New(out...)
}

// sans are the names and addresses in a node's certificates: what it is
// reached by directly, through a tunnel that ends on this machine, and through
// gateway and load balancer.
func (r *Renderer) sans(n estate.Node, a Addresses) []string {
	set := map[string]bool{"127.0.0.1": true, a.Gateway.String(): true, a.API.String(): true, a.Nodes[n.Name].String(): true}
	if n.Role == estate.RoleControlPlane {
		for _, name := range r.estate.API.Names {
			set[name] = true
		}
		if name := r.estate.APIName(); name != "" { // clients come by the DNS record too
			set[name] = true
		}
		for _, other := range r.estate.Nodes() {
			if other.Role == estate.RoleControlPlane {
				set[a.Nodes[other.Name].String()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func encode(p config.Provider) ([]byte, error) {
	return p.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
}

// cloudMode is how Talos validates on a platform with ready-made disks.
type cloudMode struct{}

func (cloudMode) String() string        { return "cloud" }
func (cloudMode) RequiresInstall() bool { return false }
func (cloudMode) InContainer() bool     { return false }
