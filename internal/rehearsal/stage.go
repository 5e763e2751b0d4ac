// Package rehearsal sets a stage for one environment and plays its life on it:
// a simulated region, a scratch copy of the environment with throwaway secrets,
// and this very program run as a user would run it. Nothing of the user's bundle
// or keys is read, and the program that is rehearsed cannot tell.
package rehearsal

import (
	"crypto/ed25519"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"
	"golang.org/x/crypto/ssh"

	"bastide/internal/door"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/sim"
	"bastide/internal/vault"
)

// Stage is where a rehearsal plays.
type Stage struct {
	Dir    string // everything below is in it
	Env    string // scratch copy of the environment
	Region string // folder of the simulated region
	Seed   string // what exists in the region from the start
	Script string // shell exports for a person who comes in
	Log    string // what the region's process printed

	identity string // age identity file
	sshKey   string // private SSH key file
}

// marker tells a rehearsal's folder from one that merely has its name.
const marker = ".bastide-rehearsal"

// DefaultDir is the stage of an estate when no folder is named.
func DefaultDir(name string) string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("bastide-rehearsal-%d", os.Getuid()), name)
}

// Build makes the stage anew. An earlier one in the same place is replaced
// unless a region still runs on it.
func Build(e *estate.Estate, dir string, now time.Time) (*Stage, error) {
	s := &Stage{
		Dir: dir, Env: filepath.Join(dir, "env"), Region: filepath.Join(dir, "region"), Seed: filepath.Join(dir, "seed.json"),
		Script: filepath.Join(dir, "env.sh"), Log: filepath.Join(dir, "region.log"),
		identity: filepath.Join(dir, "age-identity.txt"), sshKey: filepath.Join(dir, "ssh_ed25519"),
	}
	if err := s.clear(); err != nil {
		return nil, err
	}
	for _, d := range []string{s.Dir, s.Region} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(s.Dir, marker), nil, 0o600); err != nil {
		return nil, err
	}
	if err := s.copyEnvironment(e); err != nil {
		return nil, err
	}
	public, err := s.makeSSHKey()
	if err != nil {
		return nil, err
	}
	if err := s.makeBundle(e, now); err != nil {
		return nil, err
	}
	return s, s.writeSeed(e, public)
}

func (s *Stage) clear() error {
	if _, err := os.Stat(s.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(filepath.Join(s.Dir, marker)); err != nil {
		return outcome.Refuse(s.Dir+" is in the way", "it exists and is no rehearsal's folder", "name another folder with --dir")
	}
	if a, err := sim.ReadAccess(s.Region); err == nil && a.Alive() {
		return outcome.Refuse("a rehearsal is still up in "+s.Dir, fmt.Sprintf("its region runs as process %d", a.PID),
			"end it with bastide sim stop --dir "+s.Region)
	}
	return os.RemoveAll(s.Dir)
}

// copyEnvironment copies the estate file and the files that it names. What else
// lies beside them stays, secrets and what bastide remembers of the real estate
// above all. A file that lies above the environment lies above its copy too.
func (s *Stage) copyEnvironment(e *estate.Estate) error {
	names := e.Beside()
	for depth := depthOf(names); depth > 0; depth-- {
		s.Env = filepath.Join(s.Env, "env")
	}
	if err := copyFile(e.File, filepath.Join(s.Env, estate.FileName)); err != nil {
		return err
	}
	for _, name := range names {
		if err := copyFile(e.Path(name), filepath.Join(s.Env, name)); err != nil {
			return err
		}
	}
	return nil
}

// depthOf is how many folders up relative paths lead at most.
func depthOf(names []string) int {
	depth := 0
	for _, name := range names {
		depth = max(depth, strings.Count(filepath.ToSlash(filepath.Clean(name)), "../"))
	}
	return depth
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

func (s *Stage) makeSSHKey() (public string, err error) {
	pub, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		return "", err
	}
	block, err := ssh.MarshalPrivateKey(priv, "bastide rehearsal")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(s.sshKey, pem.EncodeToMemory(block), 0o600); err != nil {
		return "", err
	}
	key, err := ssh.NewPublicKey(pub)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), nil
}

func (s *Stage) makeBundle(e *estate.Estate, now time.Time) error {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.identity, []byte(id.String()+"\n"), 0o600); err != nil {
		return err
	}
	file := vault.File{Path: filepath.Join(s.Env, vault.FileName), Recipients: []string{id.Recipient().String()}}
	_, err = file.New(e.Talos.Version, now)
	return err
}

// writeSeed puts down what a person prepares before a first up: the project,
// the Talos snapshot that the file names, an SSH key in the project, the DNS zone
// that the file writes into, and the replica's bucket in a store elsewhere.
func (s *Stage) writeSeed(e *estate.Estate, public string) error {
	seed := sim.Prepared{
		Project: e.Scaleway.Project, Zones: e.Scaleway.Zones, Snapshot: e.Talos.Snapshot,
		TalosVersion: e.Talos.Version, Extensions: e.Talos.Extensions, SSHKey: public,
	}
	if e.DNS != nil {
		seed.Domains = []string{strings.ToLower(strings.TrimSuffix(e.DNS.Zone, "."))}
	}
	if r := e.Store.Replica; r != nil {
		seed.Elsewhere = &sim.Elsewhere{Region: r.Region, Buckets: []string{r.Bucket}}
	}
	data, err := json.MarshalIndent(seed, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(s.Seed, data, 0o600)
}

// Environ is the environment of a person at work on the stage.
func (s *Stage) Environ(access sim.Access) []string {
	return append(access.Environ(), vault.IdentityVariable+"="+s.identity, door.IdentityVariable+"="+s.sshKey)
}
