// Package postgres puts a real PostgreSQL behind the managed databases of the
// simulated region, where Debian's postgresql is installed: a process of its own
// for each database, started when somebody first connects to one of its
// endpoints. Users, logical databases and privileges are those that the API was
// told. Without it a database answers nobody.
package postgres

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"sync"

	"bastide/internal/sim/fabric"
	"bastide/internal/sim/hardware"
)

// Options are what databases run in.
type Options struct {
	Fabric *fabric.Fabric
	// Programs is the folder of initdb, postgres and psql; empty means none,
	// and that nobody can log in.
	Programs string
	Log      *slog.Logger // nil is silent
}

// Servers runs databases. It implements hardware.Databases.
type Servers struct {
	opt Options
	ctx context.Context // ends with Close
	end context.CancelFunc

	mu  sync.Mutex
	all map[string]*server
}

// New returns a room without databases.
func New(o Options) *Servers {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Servers{opt: o, all: map[string]*server{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// Find is the folder of PostgreSQL's programs: that of initdb in PATH, or the
// newest of those that Debian keeps out of PATH. It is empty without any.
func Find() string {
	if file, err := exec.LookPath("initdb"); err == nil {
		if file, err = filepath.EvalSymlinks(file); err == nil {
			return filepath.Dir(file)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is well formed
	sort.Slice(found, func(i, j int) bool {
		return len(found[i]) < len(found[j]) || len(found[i]) == len(found[j]) && found[i] < found[j]
	})
	for n := len(found) - 1; n >= 0; n-- {
		dir := filepath.Dir(found[n])
		_, noServer := os.Stat(filepath.Join(dir, "postgres"))
		_, noClient := os.Stat(filepath.Join(dir, "psql"))
		if errors.Join(noServer, noClient) == nil {
			return dir
		}
	}
	return ""
}

// Apply brings a database into being or to a new configuration. One whose
// engine runs has the new users and privileges when Apply returns.
func (s *Servers) Apply(d hardware.Database) {
	s.mu.Lock()
	one, from := s.all[d.ID], s.all[d.From]
	fresh := one == nil
	if fresh {
		one = newServer(s, d.ID)
		s.all[d.ID] = one
		if s.opt.Programs == "" {
			s.opt.Log.Warn("simulated region: PostgreSQL is not installed, so nobody can log in to a database", "database", d.ID)
		}
	}
	s.mu.Unlock()
	if fresh && from != nil {
		if err := one.inherit(d, from); err != nil {
			one.complain("a database did not get the contents of the one that it was made of", err)
		}
	}
	one.apply(d)
}

// Remove ends a database and forgets what was in it.
func (s *Servers) Remove(id string) {
	s.mu.Lock()
	one := s.all[id]
	delete(s.all, id)
	s.mu.Unlock()
	if one != nil {
		one.close()
	}
}

// Close ends all databases.
func (s *Servers) Close() error {
	s.end()
	s.mu.Lock()
	all := s.all
	s.all = map[string]*server{}
	s.mu.Unlock()
	for _, one := range all {
		one.close()
	}
	return nil
}
