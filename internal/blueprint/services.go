package blueprint

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"bastide/internal/estate"
)

// services are the managed services beside the cluster. None waits for a node
// and no node waits for them.
func (b *builder) services() {
	if p := b.e.Services.Postgres; p != nil {
		b.postgres(p)
	}
	for _, v := range b.e.Services.Buckets {
		b.g.add(Step{Kind: KindBucket, Name: v.Name, Spec: bucketSpec(v)})
	}
	if r := b.e.Services.Registry; r != nil {
		b.g.add(Step{Kind: KindRegistry, Name: r.Name, Spec: Registry{Public: r.Public, Description: r.Description}})
	}
	for _, v := range b.e.Services.Secrets {
		dir, name := path.Split("/" + v.Name)
		b.g.add(Step{Kind: KindSecret, Name: v.Name, Spec: Secret{Name: name, Path: path.Clean(dir), Type: v.Type, Tags: v.Tags, Protected: v.Protected}})
	}
	var edge string
	if b.e.Network.EdgeAddress == "reserved" {
		edge = b.g.add(Step{Kind: KindEdgeIP, Name: b.name("edge"), Spec: EdgeIP{Zone: b.zone}})
	}
	if d := b.e.DNS; d != nil {
		b.records(d, edge)
	}
}

func (b *builder) postgres(p *estate.Postgres) {
	// The instance takes whatever address is free, so all others are booked first.
	needs := []string{b.network_}
	for _, n := range b.e.Nodes() {
		if _, ok := b.g.Step(addressID(n.Name)); !ok {
			b.address(n.Name, n.Name)
		}
	}
	for _, s := range b.g.Steps {
		if s.Kind == KindAddress {
			needs = append(needs, s.ID)
		}
	}
	spec := Postgres{
		Name: PostgresName(b.e.Name), Network: b.network_, Engine: p.Engine, Type: p.Type, HighAvailability: p.HighAvailability,
		Size: p.Volume.Size, IOPS: p.Volume.IOPS, Backup: backup(p.Backup), Settings: p.Settings,
	}
	if len(p.Users) > 0 {
		spec.FirstUser = p.Users[0].Name
	}
	id := b.g.add(Step{Kind: KindPostgres, Name: spec.Name, Needs: needs, Spec: spec})
	needs = []string{id}
	for _, name := range p.Databases {
		needs = append(needs, b.g.add(Step{Kind: KindPostgresDatabase, Name: name, Needs: []string{id}, Spec: PostgresDatabase{Postgres: id}}))
	}
	for _, u := range p.Users {
		store := b.g.add(Step{Kind: KindPostgresSecret, Name: u.Name, Spec: PostgresSecret{
			Name: u.Name, Path: PasswordsPath(b.e.Name), Type: "database_credentials", Description: "made by bastide for the estate " + b.e.Name}})
		// Calls on one instance are made one after the other: Scaleway refuses
		// changes of privileges that overlap.
		needs = append(needs[:len(needs):len(needs)], b.g.add(Step{Kind: KindPostgresUser, Name: u.Name, Needs: append([]string{store}, needs...), Spec: PostgresUser{
			Postgres: id, Store: store, Admin: u.Admin, Database: u.PasswordVersion, Secret: u.PasswordVersion,
			Privileges: privileges(u, p.Databases), Login: login(u, p.Databases),
		}}))
	}
}

// GatewayName is the name of an estate's gateway, of its public address and of its
// place in the private network.
func GatewayName(estate string) string { return estate + "-gateway" }

// PostgresName is the name of an estate's database instance.
func PostgresName(estate string) string { return estate + "-postgres" }

// PasswordsPath is the folder in Secret Manager that has the passwords of an
// estate's database, one secret for each user, and nothing else.
func PasswordsPath(estate string) string { return "/bastide/" + estate + "/postgres" }

// privileges are those that a user is to have, without the databases in which it
// has none.
func privileges(u estate.DatabaseUser, databases []string) map[string]string {
	out := map[string]string{}
	for _, name := range databases {
		permission, said := u.Privileges[name]
		if u.Privileges == nil {
			permission, said = "all", true
		}
		if said && permission != "none" {
			out[name] = permission
		}
	}
	return out
}

// login is the database that a user's secret names: the first of the file that
// it has rights in, or else the one that every instance has.
func login(u estate.DatabaseUser, databases []string) string {
	mine := privileges(u, databases)
	for _, name := range databases {
		if mine[name] != "" {
			return name
		}
	}
	return "rdb"
}

func backup(b estate.DatabaseBackup) BackupSchedule {
	if b.Disabled {
		return BackupSchedule{Disabled: true}
	}
	return BackupSchedule{EveryHours: b.EveryHours, KeepDays: b.KeepDays}
}

func bucketSpec(v estate.Bucket) Bucket {
	spec := Bucket{Access: AccessPrivate, Versioning: v.Versioning, Tags: v.Tags}
	for _, r := range v.Lifecycle {
		spec.Lifecycle = append(spec.Lifecycle, LifecycleText(r))
	}
	for _, r := range v.CORS {
		spec.CORS = append(spec.CORS, CORSText(r))
	}
	slices.Sort(spec.Lifecycle) // their order means nothing
	return spec
}

// LifecycleText is the canonical form of a lifecycle rule.
func LifecycleText(r estate.LifecycleRule) string {
	return fmt.Sprintf("%s %q expire %d, old versions %d, uploads %d days", r.Name, r.Prefix, r.ExpireDays, r.OldVersionDays, r.AbortDays)
}

// CORSText is the canonical form of a CORS rule.
func CORSText(r estate.CORSRule) string {
	return fmt.Sprintf("%s from %s, headers %s, expose %s, %d s", sorted(r.Methods), sorted(r.Origins), sorted(r.Headers), sorted(r.ExposeHeaders), r.MaxAgeSeconds)
}

func (b *builder) records(d *estate.DNS, edge string) {
	zone, targets := canonicalName(d.Zone), map[string]string{}
	if d.API != "" {
		targets[RecordName(d.API, zone)] = addressID(b.name("api"))
	}
	if d.Edge != "" {
		targets[RecordName(d.Edge, zone)] = edge
	}
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		spec := DNSRecord{Zone: zone, Type: "A", TTL: d.TTL, Target: targets[name]}
		if a, known := b.addresses[spec.Target]; known {
			spec.Values = []string{a.String()}
		} else if a, known := b.booked[spec.Target]; known {
			spec.Values = []string{a.String()}
		}
		b.g.add(Step{Kind: KindDNSRecord, Name: name, Needs: []string{spec.Target}, Spec: spec})
	}
}

// RecordName is the full name of a record that the file names relative to its
// zone, in the one form in which names are compared: in small letters, without a
// dot at the end. The zone's own name is written @.
func RecordName(relative, zone string) string {
	zone = canonicalName(zone)
	if name := canonicalName(relative); name != "@" && name != "" {
		return name + "." + zone
	}
	return zone
}

func canonicalName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// sorted is a list whose order means nothing, as one text.
func sorted(words []string) string {
	return strings.Join(slices.Sorted(slices.Values(words)), " ")
}
