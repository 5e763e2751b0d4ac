package api

import (
	"fmt"

	"bastide/internal/sim/hardware"
)

// Seed is what a person has prepared before bastide comes: projects, keys, and
// the snapshot of a Talos disk.
type Seed struct {
	Projects  []SeedProject  `json:"projects,omitempty"`
	SSHKeys   []SeedSSHKey   `json:"ssh_keys,omitempty"`
	Snapshots []SeedSnapshot `json:"snapshots,omitempty"`
}

// SeedProject is a project that exists.
type SeedProject struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// SeedSSHKey is a public key of a project, the first one when none is named.
type SeedSSHKey struct {
	Project   string `json:"project,omitempty"`
	Name      string `json:"name,omitempty"`
	PublicKey string `json:"public_key"`
}

// SeedSnapshot is a block storage snapshot that is ready for use.
type SeedSnapshot struct {
	ID        string               `json:"id,omitempty"` // drawn when empty
	Project   string               `json:"project,omitempty"`
	Name      string               `json:"name"`
	Zone      string               `json:"zone"`
	SizeBytes int64                `json:"size_bytes"`
	Tags      []string             `json:"tags,omitempty"`
	Image     *hardware.TalosImage `json:"image,omitempty"`
}

// Seed puts things into the region and keeps them across resets.
func (r *Region) Seed(s Seed) error {
	if err := s.check(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.world.seed(s); err != nil {
		return err
	}
	r.seeds = append(r.seeds, s)
	return nil
}

// seedOnce is the same for the page: a reset forgets it.
func (r *Region) seedOnce(s Seed) error {
	if err := s.check(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.world.seed(s)
}

func (s Seed) check() error {
	for i, p := range s.Projects {
		if !uuidPattern.MatchString(p.ID) {
			return fmt.Errorf("seed: project %d: id %q is not a UUID", i+1, p.ID)
		}
	}
	for i, n := range s.Snapshots {
		if n.Name == "" || n.SizeBytes < gigabyte || !knownZone(n.Zone) {
			return fmt.Errorf("seed: snapshot %d: name, an existing zone and a size of 1 GB or more are needed", i+1)
		}
	}
	return nil
}

func (w *world) seed(s Seed) error {
	for _, p := range s.Projects {
		name := p.Name
		if name == "" {
			name = "default"
		}
		w.addProject(p.ID, name)
		w.Open = false
	}
	first := func(project string) string {
		if project == "" && len(w.Projects.Order) > 0 {
			return w.Projects.Order[0]
		}
		return project
	}
	for _, k := range s.SSHKeys {
		if _, err := w.addSSHKey(first(k.Project), k.Name, k.PublicKey); err != nil {
			return fmt.Errorf("seed: ssh key %q is not a public key", k.Name)
		}
	}
	for _, n := range s.Snapshots {
		snap := &blockSnapshot{record: newRecord(first(n.Project), n.Name, n.Tags), Zone: n.Zone, Size: n.SizeBytes,
			Status: "available", Image: n.Image}
		if n.ID != "" {
			snap.ID = n.ID
		}
		add(w, w.Snapshots, snap)
	}
	w.touched = nil
	return nil
}
