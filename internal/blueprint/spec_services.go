package blueprint

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"bastide/internal/estate"
)

// Postgres is the managed PostgreSQL instance. Its one endpoint is in the
// private network.
type Postgres struct {
	Name             string
	Network          string // step
	Engine           string
	Type             string
	HighAvailability bool
	Size             estate.Size
	IOPS             int
	Backup           BackupSchedule
	Settings         map[string]string
	PublicEndpoints  int // endpoints outside the private network; none are wanted
	// FirstUser is the user that the instance is made with, because Scaleway
	// makes none without; it only matters then.
	FirstUser string
}

// BackupSchedule is when Scaleway copies a database, and for how long it keeps
// the copy. A schedule that is off has neither.
type BackupSchedule struct {
	Disabled             bool
	EveryHours, KeepDays int
}

func (s BackupSchedule) String() string {
	if s.Disabled {
		return "off"
	}
	return fmt.Sprintf("every %d h, kept %d days", s.EveryHours, s.KeepDays)
}

// PostgresDatabase is one database of the instance.
type PostgresDatabase struct{ Postgres string } // step

// PostgresSecret is the place in Secret Manager that keeps a user's password.
type PostgresSecret struct {
	Name        string // that of the user
	Path        string // such as /bastide/staging/postgres
	Type        string
	Description string
	// Protected secrets cannot be deleted. None is wanted: a destroy that names the
	// database would be stopped half way.
	Protected bool
}

// PostgresUser is one user of the instance, with both halves of its password:
// one in the database and one in Secret Manager. The versions are those of the
// file's passwordVersion that each half has; the password itself is nowhere else.
type PostgresUser struct {
	Postgres   string // step
	Store      string // step of the secret that keeps the password
	Admin      bool
	Database   int               // password version in the database; 0 means none that bastide set
	Secret     int               // password version in Secret Manager; 0 means none
	Doubt      string            // what is wrong with the version in Secret Manager, such as "disabled"
	Privileges map[string]string // by database; none is left out
	// What the secret says beside the password, for whoever connects with it.
	Login   string // database
	Address string // of the instance; empty when it is the one that it has
}

// AccessPrivate is the access of a bucket that is open to nobody but those who
// have rights in its project or are named by its policy.
const AccessPrivate = "private"

// Bucket is one bucket of the application.
type Bucket struct {
	Access     string // AccessPrivate, or how everybody gets in
	Versioning string
	Tags       map[string]string
	Lifecycle  []string // one rule each, in a canonical text form
	CORS       []string // the same
}

// Registry is a namespace of the container registry.
type Registry struct {
	Public      bool
	Description string
}

// Secret is a container in Secret Manager. Its content is never looked at.
type Secret struct {
	Name      string // such as session-key
	Path      string // such as /app
	Type      string
	Tags      []string
	Protected bool
}

// EdgeIP is a public address of the load balancers' family.
type EdgeIP struct {
	Zone string
	// Address is assigned by Scaleway; invalid in a desired spec.
	Address netip.Addr
}

// DNSRecord is one set of records with a name and a type.
type DNSRecord struct {
	Zone   string
	Type   string // A
	TTL    int    // seconds
	Target string // the step whose address it has, while that is not known
	Values []string
}

func (Postgres) Kind() Kind         { return KindPostgres }
func (PostgresDatabase) Kind() Kind { return KindPostgresDatabase }
func (PostgresSecret) Kind() Kind   { return KindPostgresSecret }
func (PostgresUser) Kind() Kind     { return KindPostgresUser }
func (Bucket) Kind() Kind           { return KindBucket }
func (Registry) Kind() Kind         { return KindRegistry }
func (Secret) Kind() Kind           { return KindSecret }
func (EdgeIP) Kind() Kind           { return KindEdgeIP }
func (DNSRecord) Kind() Kind        { return KindDNSRecord }

func (s Postgres) Attributes() []Attribute {
	return []Attribute{
		routine("name", s.Name), inPlace("network", s.Network), fixed("engine", s.Engine), inPlace("type", strings.ToUpper(s.Type)),
		inPlace("high availability", fmt.Sprint(s.HighAvailability)), grow("size", s.Size.String()), inPlace("iops", fmt.Sprint(s.IOPS)),
		inPlace("backup", s.Backup.String()), inPlace("settings", pairs(s.Settings)), inPlace("public endpoints", fmt.Sprint(s.PublicEndpoints)),
	}
}

func (s PostgresDatabase) Attributes() []Attribute {
	return []Attribute{fixed("instance", s.Postgres)}
}

func (s PostgresSecret) Attributes() []Attribute {
	return []Attribute{routine("name", s.Name), inPlace("path", s.Path), fixed("type", s.Type), routine("description", s.Description),
		routine("protected", fmt.Sprint(s.Protected))}
}

func (s PostgresUser) Attributes() []Attribute {
	kept := version(s.Secret)
	if s.Doubt != "" {
		kept += ", " + s.Doubt
	}
	address := s.Address
	if address == "" {
		address = "that of the instance"
	}
	return []Attribute{
		fixed("instance", s.Postgres), inPlace("admin", fmt.Sprint(s.Admin)),
		inPlace("password in the database", version(s.Database)), inPlace("password in the secret", kept),
		inPlace("database in the secret", s.Login), inPlace("address in the secret", address),
		inPlace("privileges", pairs(s.Privileges)),
	}
}

func (s Bucket) Attributes() []Attribute {
	return []Attribute{
		inPlace("access", s.Access), inPlace("versioning", s.Versioning), inPlace("tags", pairs(s.Tags)),
		inPlace("lifecycle", strings.Join(s.Lifecycle, "; ")), inPlace("cors", strings.Join(s.CORS, "; ")),
	}
}

func (s Registry) Attributes() []Attribute {
	return []Attribute{inPlace("public", fmt.Sprint(s.Public)), inPlace("description", s.Description)}
}

func (s Secret) Attributes() []Attribute {
	return []Attribute{
		inPlace("name", s.Name), inPlace("path", s.Path), fixed("type", s.Type), inPlace("tags", strings.Join(slices.Sorted(slices.Values(s.Tags)), " ")),
		inPlace("protected", fmt.Sprint(s.Protected)),
	}
}

func (s EdgeIP) Attributes() []Attribute {
	return []Attribute{fixed("zone", s.Zone), assigned("address", s.Address)}
}

func (s DNSRecord) Attributes() []Attribute {
	values := Attribute{Name: "values", Value: strings.Join(slices.Sorted(slices.Values(s.Values)), " "), Mutable: InPlace}
	if len(s.Values) == 0 {
		values.Unknown = "the address of " + s.Target + " is not known yet"
	}
	return []Attribute{fixed("zone", s.Zone), fixed("type", s.Type), inPlace("ttl", fmt.Sprint(s.TTL)), values}
}

// version writes the version of one half of a password.
func version(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

// pairs writes a map as one line, sorted by key.
func pairs(m map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return strings.Join(out, " ")
}
