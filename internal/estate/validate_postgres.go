package estate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Limits of managed databases at Scaleway: block storage in whole GB, schedules
// in hours and days.
const (
	smallestDatabaseVolume = 5 * GB
	largestDatabaseVolume  = 10 * TB
	mostBackupHours        = 24 * 7
	mostBackupDays         = 365
	maxPasswordVersion     = 1_000_000 // only keeps the number readable
)

var (
	// postgresEngines are those that Scaleway sells and PostgreSQL still mends,
	// as recorded in the summer of 2026.
	postgresEngines = []string{"PostgreSQL-15", "PostgreSQL-16", "PostgreSQL-17"}

	// databaseTypes are node types that were seen; Scaleway may have others.
	databaseTypes = []string{"DB-DEV-S", "DB-DEV-M", "DB-DEV-L", "DB-DEV-XL", "DB-GP-XS", "DB-GP-S", "DB-GP-M", "DB-GP-L", "DB-GP-XL",
		"DB-PLAY2-PICO", "DB-PLAY2-NANO", "DB-PLAY2-MICRO", "DB-PRO2-XXS", "DB-PRO2-XS", "DB-PRO2-S", "DB-PRO2-M", "DB-PRO2-L",
		"DB-POP2-2C-8G", "DB-POP2-4C-16G", "DB-POP2-8C-32G", "DB-POP2-16C-64G", "DB-POP2-32C-128G"}

	databaseType = regexp.MustCompile(`^DB(-[A-Z0-9]+){2,4}$`)
	// databaseName is what needs no quoting in SQL but for the dash, and can be
	// part of a path and of a tag.
	databaseName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)
	settingName  = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?$`)

	permissions = []string{"all", "readwrite", "readonly", "none"}

	// reservedDatabaseNames belong to PostgreSQL or to Scaleway, which makes a
	// database called rdb on every instance.
	reservedDatabaseNames = []string{"postgres", "rdb", "template0", "template1", "public", "none"}
)

func (s *source) validatePostgres(p *Postgres) {
	if p == nil {
		return
	}
	const at = "services.postgres"
	s.oneOf(at+".engine", p.Engine, postgresEngines, "Scaleway sells these versions: "+strings.Join(postgresEngines, ", "))
	switch {
	case p.Type == "":
	case databaseType.MatchString(strings.ToUpper(p.Type)) && p.Type != strings.ToUpper(p.Type):
		s.refuse(at+".type", fmt.Sprintf("%q is not in capitals", brief(p.Type)), "node types are written in capitals", "write "+strings.ToUpper(p.Type))
	case !databaseType.MatchString(p.Type):
		hint := "write such as DB-DEV-S; see: scw rdb node-type list"
		if near := nearest(p.Type, databaseTypes); near != "" {
			hint = "did you mean " + near + "?"
		}
		s.refuse(at+".type", fmt.Sprintf("%q is not a node type for databases", brief(p.Type)), "their names begin with DB-", hint)
	}
	s.validateDatabaseVolume(at+".volume", p.Volume)
	s.validateDatabaseBackup(at+".backup", p.Backup)
	for _, name := range slices.Sorted(maps.Keys(p.Settings)) {
		here := keyed(at+".settings", name)
		switch {
		case !settingName.MatchString(name):
			s.refuse(here, fmt.Sprintf("%q cannot be a setting's name", brief(name)), "PostgreSQL's are small letters, digits and underscores", "write such as max_connections")
		case strings.TrimSpace(p.Settings[name]) == "":
			s.refuse(here, "is empty", "a setting has a value", "write one, or remove the key")
		}
	}
	for i, name := range p.Databases {
		s.validateDatabaseName(indexed(at+".databases", i), name, "a database")
	}
	s.noRepeat(at+".databases", p.Databases)
	s.validateDatabaseUsers(at+".users", p)
}

func (s *source) validateDatabaseVolume(at string, v DatabaseVolume) {
	switch {
	case v.Size%GB != 0:
		s.refuse(at+".size", v.Size.String()+" is not a whole number of GB", "Scaleway sells volumes by the decimal gigabyte", fmt.Sprintf("write %dGB or %dGB", v.Size/GB, v.Size/GB+1))
	case v.Size < smallestDatabaseVolume || v.Size > largestDatabaseVolume:
		s.refuse(at+".size", "is "+v.Size.String(), fmt.Sprintf("a database's volume has %s to %s", smallestDatabaseVolume, largestDatabaseVolume), "write a size of that range")
	}
	if !slices.Contains(volumeIOPS, v.IOPS) {
		s.refuse(at+".iops", fmt.Sprintf("is %d", v.IOPS), "Scaleway sells volumes of 5000 and of 15000 operations a second", "write 5000 or 15000")
	}
}

func (s *source) validateDatabaseBackup(at string, b DatabaseBackup) {
	if b.EveryHours < 1 || b.EveryHours > mostBackupHours {
		s.refuse(at+".everyHours", fmt.Sprintf("is %d", b.EveryHours), fmt.Sprintf("backups are 1 to %d hours apart", mostBackupHours), "write 24, or disabled: true for none")
	}
	if b.KeepDays < 1 || b.KeepDays > mostBackupDays {
		s.refuse(at+".keepDays", fmt.Sprintf("is %d", b.KeepDays), fmt.Sprintf("a backup is kept for 1 to %d days", mostBackupDays), "write 7, or disabled: true for none")
	}
}

func (s *source) validateDatabaseUsers(at string, p *Postgres) {
	if len(p.Users) == 0 {
		s.refuse("services.postgres", "has no user", "Scaleway makes no instance without one, and nobody could log in", "add users with a name, such as app")
	}
	first := map[string]int{}
	for i, u := range p.Users {
		here := indexed(at, i)
		s.validateDatabaseName(here+".name", u.Name, "a user")
		if before, twice := first[u.Name]; twice && u.Name != "" {
			s.refuse(here+".name", fmt.Sprintf("%q is the name of %s too", brief(u.Name), indexed(at, before)), "a user has one password and one set of rights", "choose another name, or remove one of the two")
		} else {
			first[u.Name] = i
		}
		if u.PasswordVersion < 1 || u.PasswordVersion > maxPasswordVersion {
			s.refuse(here+".passwordVersion", fmt.Sprintf("is %d", u.PasswordVersion), fmt.Sprintf("versions count from 1 to %d", maxPasswordVersion), "write 1, and one more for each new password")
		}
		for _, database := range slices.Sorted(maps.Keys(u.Privileges)) {
			path := keyed(here+".privileges", database)
			if !slices.Contains(p.Databases, database) {
				hint := "add it to services.postgres.databases, or remove it here"
				if near := nearest(database, p.Databases); near != "" {
					hint = "did you mean " + near + "?"
				}
				s.refuse(path, fmt.Sprintf("%q is not a database of the file", brief(database)), "rights are given in services.postgres.databases only", hint)
				continue
			}
			if value := u.Privileges[database]; value == "" {
				s.refuse(path, "is empty", "rights are one of "+strings.Join(permissions, ", "), "write one of them, or remove the key")
			} else {
				s.oneOf(path, value, permissions, "Scaleway gives these rights: "+strings.Join(permissions, ", "))
			}
		}
	}
}

func (s *source) validateDatabaseName(at, name, what string) {
	switch {
	case name == "" && what == "a user": // said already: it is required
	case !databaseName.MatchString(name):
		s.refuse(at, fmt.Sprintf("%q cannot be the name of %s", brief(name), what), "it becomes part of SQL, of addresses and of tags",
			"write at most 63 small letters, digits, dashes and underscores, beginning with a letter")
	case slices.Contains(reservedDatabaseNames, name) || strings.HasPrefix(name, "pg_"):
		s.refuse(at, fmt.Sprintf("%q is reserved", name), "PostgreSQL or Scaleway uses the name itself", "choose another name, such as app")
	}
}
