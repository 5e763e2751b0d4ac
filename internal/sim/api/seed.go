package api

import (
	"fmt"
	"slices"
	"strings"

	"bastide/internal/sim/hardware"
)

// Seed is what a person has prepared before bastide comes: projects, keys, and
// the snapshot of a Talos disk.
type Seed struct {
	Projects  []SeedProject  `json:"projects,omitempty"`
	SSHKeys   []SeedSSHKey   `json:"ssh_keys,omitempty"`
	Snapshots []SeedSnapshot `json:"snapshots,omitempty"`
	// Domains are the account's; without any, every domain is.
	Domains []SeedDomain `json:"domains,omitempty"`
	// RegistryTaken are names that other customers have.
	RegistryTaken  []SeedTaken         `json:"registry_taken,omitempty"`
	RegistryImages []SeedRegistryImage `json:"registry_images,omitempty"`
	// Permissions limit every key that is not limited otherwise.
	Permissions *Credential `json:"permissions,omitempty"`
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

// SeedDomain is a domain with its root zone, of the first project when none is
// named.
type SeedDomain struct {
	Domain  string `json:"domain"`
	Project string `json:"project,omitempty"`
}

// SeedTaken is the name of a registry namespace of another customer.
type SeedTaken struct {
	Region string `json:"region"`
	Name   string `json:"name"`
}

// SeedRegistryImage is an image that was pushed; its namespace is made if need be.
type SeedRegistryImage struct {
	Project   string   `json:"project,omitempty"`
	Region    string   `json:"region"`
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Tags      []string `json:"tags,omitempty"`
	SizeBytes int64    `json:"size_bytes"`
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
	for i, d := range s.Domains {
		if !strings.Contains(d.Domain, ".") || canonical(d.Domain) != d.Domain {
			return fmt.Errorf("seed: domain %d: %q is no domain in small letters", i+1, d.Domain)
		}
	}
	for i, t := range s.RegistryTaken {
		if !knownRegion(t.Region) || !registryName.MatchString(t.Name) {
			return fmt.Errorf("seed: registry name %d: an existing region and the name of a namespace are needed", i+1)
		}
	}
	for i, n := range s.RegistryImages {
		if !knownRegion(n.Region) || !registryName.MatchString(n.Namespace) || n.Name == "" || n.SizeBytes < 0 {
			return fmt.Errorf("seed: registry image %d: an existing region, a namespace and a name are needed", i+1)
		}
	}
	if s.Permissions != nil {
		if err := s.Permissions.Check(); err != nil {
			return fmt.Errorf("seed: permissions: %w", err)
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
	for _, d := range s.Domains {
		w.DomainsKnown = true
		if _, exists := w.Zones.get(d.Domain); !exists {
			add(w, w.Zones, newDNSZone(first(d.Project), d.Domain, ""))
		}
	}
	for _, t := range s.RegistryTaken {
		w.NamesTaken[t.Region+"/"+t.Name] = true
	}
	for _, i := range s.RegistryImages {
		w.seedRegistryImage(first(i.Project), i)
	}
	if s.Permissions != nil {
		w.Rights.Deny = append(slices.Clone(w.opts.Rights.Deny), s.Permissions.Deny...)
		if w.Rights.PermissionSets = w.opts.Rights.PermissionSets; s.Permissions.PermissionSets != nil {
			w.Rights.PermissionSets = s.Permissions.PermissionSets
		}
	}
	w.touched = nil
	return nil
}

func (w *world) seedRegistryImage(project string, i SeedRegistryImage) {
	for _, n := range w.Namespaces.all() {
		if n.Region == i.Region && n.Name == i.Namespace {
			w.pushed(n, i.Name, i.SizeBytes, i.Tags)
			return
		}
	}
	n := add(w, w.Namespaces, &registryNamespace{record: newRecord(project, i.Namespace, nil), Region: i.Region, Status: "ready"})
	w.pushed(n, i.Name, i.SizeBytes, i.Tags)
}
