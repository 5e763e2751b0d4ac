package sim

import (
	"bytes"
	"encoding/json"

	"bastide/internal/sim/api"
	"bastide/internal/sim/factory"
	"bastide/internal/sim/hardware"
)

// Prepared is what a person has at Scaleway before bastide comes: a project, a
// block snapshot with a Talos disk in each zone unless none is named, an SSH key,
// domains, and an API key with or without rights.
type Prepared struct {
	Project      string   `json:"project"`
	Zones        []string `json:"zones"`
	Snapshot     string   `json:"snapshot"`
	TalosVersion string   `json:"talosVersion"`
	Extensions   []string `json:"extensions"`
	KernelArgs   []string `json:"kernelArgs,omitempty"`
	SSHKey       string   `json:"sshKey"`
	// Domains are the account's; without any, every domain is.
	Domains []string `json:"domains,omitempty"`
	// RegistryTaken are names that other customers have.
	RegistryTaken []api.SeedTaken `json:"registryTaken,omitempty"`
	// Elsewhere is an S3 store of another provider, for copies off site.
	Elsewhere *Elsewhere `json:"elsewhere,omitempty"`
	// Permissions are what the API key lacks, or the only ones that it has.
	Permissions *Permissions `json:"permissions,omitempty"`
}

// Permissions name products ("iam"), products with an action ("lb:write") or
// IAM's permission sets ("SecretManagerSecretAccess").
type Permissions struct {
	Deny []string `json:"deny,omitempty"`
	Only []string `json:"only,omitempty"` // permission sets; nil means all
}

// talosDiskBytes is the virtual size of a Talos amd64 disk image, 4247 MiB,
// rounded up to the whole gigabyte that block storage counts in.
const talosDiskBytes = 5e9

// ParseSeed reads what sim serve --seed is given: what is in the region, and the
// store elsewhere, if there is one.
func ParseSeed(text []byte) (api.Seed, *Elsewhere, error) {
	var p Prepared
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return api.Seed{}, nil, err
	}
	s, err := p.seed()
	return s, p.Elsewhere, err
}

func (p Prepared) seed() (api.Seed, error) {
	s := api.Seed{Projects: []api.SeedProject{{ID: p.Project}}}
	id, err := factory.SchematicID(p.Extensions, p.KernelArgs)
	if err != nil {
		return s, err
	}
	image := hardware.TalosImage{Version: p.TalosVersion, Schematic: id, Extensions: p.Extensions, KernelArgs: p.KernelArgs}
	for _, zone := range p.Zones {
		if p.Snapshot == "" {
			break // whoever comes makes one
		}
		s.Snapshots = append(s.Snapshots, api.SeedSnapshot{
			Project: p.Project, Zone: zone, Name: p.Snapshot, SizeBytes: talosDiskBytes, Image: &image,
		})
	}
	if p.SSHKey != "" {
		s.SSHKeys = append(s.SSHKeys, api.SeedSSHKey{Project: p.Project, Name: "admin", PublicKey: p.SSHKey})
	}
	for _, d := range p.Domains {
		s.Domains = append(s.Domains, api.SeedDomain{Project: p.Project, Domain: d})
	}
	s.RegistryTaken = p.RegistryTaken
	if p.Permissions != nil {
		s.Permissions = &api.Credential{Deny: p.Permissions.Deny, PermissionSets: p.Permissions.Only}
	}
	return s, nil
}
