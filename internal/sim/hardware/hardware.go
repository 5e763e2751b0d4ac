// Package hardware is the contract between the simulated Scaleway API and the
// things that it makes: machines that boot, load balancers that forward,
// gateways that let an administrator in, a store that keeps objects. The API room calls these interfaces
// and knows nothing of Talos or SSH; the rooms that implement them know nothing
// of HTTP or of Scaleway's states.
package hardware

import (
	"context"
	"net/netip"
	"time"
)

// Machine is an Instance as its firmware sees it when it is powered on.
type Machine struct {
	ServerID       string
	Name           string // as given at creation
	Hostname       string // derived from the name, what the metadata service tells
	Zone           string
	Project        string
	CommercialType string
	RAMBytes       int64
	CPUs           int
	PublicIPs      []netip.Addr
	NICs           []NIC
	Volumes        []Volume          // in slot order; the first with Boot set, else slot 0, is the boot disk
	UserData       map[string][]byte // key to raw value
}

// NIC is a private network interface with its leased address.
type NIC struct {
	ID        string
	MAC       string
	NetworkID string
	Address   netip.Prefix // with the subnet's mask
	// Gateway is the default route's next hop that DHCP hands out, invalid when
	// the private network has no gateway network that is ready and pushes one.
	Gateway netip.Addr
}

// Volume is a disk. Its contents live as long as the volume does, whichever
// machine it is attached to.
type Volume struct {
	ID        string
	SizeBytes int64
	// Image is what the volume was made from; nil for an empty volume.
	Image *TalosImage
}

// TalosImage describes the Talos disk image behind a snapshot.
type TalosImage struct {
	Version    string   // such as v1.13.5
	Schematic  string   // Image Factory schematic id
	Extensions []string // official extension names of that schematic
	KernelArgs []string // the schematic's own arguments of the kernel
	Platform   string   // what Talos takes the machine for; empty means scaleway
}

// Machines runs the guests. Calls return at once; what a guest does is seen
// through its own network services.
type Machines interface {
	// PowerOn boots a machine from its disks as they are now.
	PowerOn(m Machine)
	// PowerOff ends a machine; its disks stay. It returns when the machine's
	// listeners are closed and its processes are gone.
	PowerOff(serverID string)
	// Reboot restarts a machine with the hardware it is given.
	Reboot(m Machine)
	// Remove ends a machine that was deleted, and forgets it: another one may come
	// under its name. Its disks stay.
	Remove(serverID string)
	// DeleteVolume forgets the contents of a volume.
	DeleteVolume(volumeID string)
}

// Balancer is a load balancer's complete configuration. Source addresses of
// private attachments are those of the balancer.
type Balancer struct {
	ID          string
	PublicIPs   []netip.Addr
	Attachments []Attachment // ready ones only
	Frontends   []Frontend
}

// Attachment is the balancer's leg in a private network.
type Attachment struct {
	NetworkID string
	Address   netip.Addr
}

// Frontend is one listening port and where it leads.
type Frontend struct {
	Port    int
	Backend Backend
	// Allow lists the only ranges that may connect when AllowOnly is set.
	AllowOnly bool
	Allow     []netip.Prefix
}

// Backend is a pool of TCP servers with a health check.
type Backend struct {
	Port           int
	Servers        []netip.Addr
	CheckPort      int
	CheckHTTPS     bool   // else plain TCP
	CheckURI       string // for HTTPS checks
	CheckCode      int    // expected status of an HTTPS check
	CheckDelay     time.Duration
	CheckTimeout   time.Duration
	CheckRetries   int
	ConnectTimeout time.Duration
}

// Balancers runs load balancers.
type Balancers interface {
	// Apply starts the balancer or moves a running one to a new configuration
	// without cutting connections that the change does not concern.
	Apply(b Balancer)
	Remove(id string)
}

// Gateway is a public gateway's complete configuration, as far as packets are
// concerned.
type Gateway struct {
	ID             string
	PublicIP       netip.Addr
	Attachments    []Attachment
	BastionEnabled bool
	BastionPort    int
	// BastionAllowed are the source ranges that the bastion accepts. The
	// simulator's clients all live in 127.0.0.0/8: see docs/fidelity.md for how
	// their source is judged.
	BastionAllowed []netip.Prefix
	// AuthorizedKeys are the project's SSH public keys in authorized_keys
	// form, as last pushed to the gateway.
	AuthorizedKeys []string
}

// Gateways runs the public gateways' bastions.
type Gateways interface {
	Apply(g Gateway)
	Remove(id string)
}

// Database is a managed PostgreSQL's complete configuration.
type Database struct {
	ID string
	// From is the database whose contents this one begins with; empty for none.
	From      string
	Endpoints []DatabaseEndpoint
	// Certificate and Key are what it shows to clients that want TLS, as PEM.
	Certificate, Key []byte
	Roles            []DatabaseRole
	Databases        []string
	Grants           []DatabaseGrant
}

// DatabaseEndpoint is where it is reached: an address in a private network or,
// with no network, a public one that only some ranges may connect to.
type DatabaseEndpoint struct {
	NetworkID string
	Address   netip.Addr
	Port      int
	Allow     []netip.Prefix
}

// DatabaseRole is a user with what a password is checked against, in
// PostgreSQL's own form (SCRAM-SHA-256$...); the password itself is known to
// nobody.
type DatabaseRole struct {
	Name, Verifier string
	Admin          bool
}

// DatabaseGrant is what a role may do in a database: readonly, readwrite, all,
// or none.
type DatabaseGrant struct {
	Database, Role, Permission string
}

// Databases runs managed databases. Calls return when what they ask for holds,
// or cannot be brought about.
type Databases interface {
	Apply(d Database)
	Remove(id string)
}

// NodeEvent is something that happens to a machine from outside: a fault
// script asks for it.
type NodeEvent struct {
	Node   string         `json:"node" yaml:"node"` // machine name
	Event  string         `json:"event" yaml:"event"`
	Params map[string]any `json:"params,omitempty" yaml:"params,omitempty"`
}

// Trouble is implemented by rooms that can act out node events.
type Trouble interface {
	// Event acts on a machine, or on the next boot of a machine of that name
	// when none runs yet.
	Event(ctx context.Context, e NodeEvent) error
	// Check refuses an event that no machine could act out, so that one which
	// is to happen later is found wrong at once.
	Check(e NodeEvent) error
}

// Store is the region's object storage, as far as the API's pages and its reset
// are concerned. Clients talk to it directly.
type Store interface {
	// Reset empties the store.
	Reset()
	// Buckets lists all buckets by name.
	Buckets() []Bucket
}

// Bucket is a bucket and how much is in it.
type Bucket struct {
	Name       string   `json:"name"`
	Region     string   `json:"region"`
	Project    string   `json:"project_id"`
	Versioning string   `json:"versioning,omitempty"` // Enabled, Suspended or empty
	ObjectLock bool     `json:"object_lock"`
	Tags       []string `json:"tags,omitempty"` // key=value
	Objects    int      `json:"objects"`        // keys with a current version
	Versions   int      `json:"versions"`       // delete markers too
	Uploads    int      `json:"uploads"`        // multipart uploads that have not ended
	Bytes      int64    `json:"bytes"`          // all versions and parts
}
