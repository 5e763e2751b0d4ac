package sim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"bastide/internal/sim/api"
	"bastide/internal/sim/hardware"
)

// Prepared is what a person has at Scaleway before bastide comes: a project, a
// block snapshot with a Talos disk in each zone, an SSH key, domains, and an API
// key with or without rights.
type Prepared struct {
	Project      string   `json:"project"`
	Zones        []string `json:"zones"`
	Snapshot     string   `json:"snapshot"`
	TalosVersion string   `json:"talosVersion"`
	Extensions   []string `json:"extensions"`
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

// ParseSeed reads what sim serve --seed is given.
func ParseSeed(text []byte) (Prepared, error) {
	var p Prepared
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&p)
	return p, err
}

// Seed is what of it is the region's own.
func (p Prepared) Seed() api.Seed {
	image := hardware.TalosImage{Version: p.TalosVersion, Schematic: schematic(p.Extensions), Extensions: p.Extensions}
	s := api.Seed{Projects: []api.SeedProject{{ID: p.Project}}}
	for _, zone := range p.Zones {
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
	return s
}

// schematic is the Image Factory's id of a schematic with only extensions: the
// SHA-256 of its canonical YAML, four spaces an indent.
func schematic(extensions []string) string {
	var b strings.Builder
	b.WriteString("customization:")
	if len(extensions) == 0 {
		b.WriteString(" {}\n")
	} else {
		b.WriteString("\n    systemExtensions:\n        officialExtensions:\n")
		for _, e := range extensions {
			fmt.Fprintf(&b, "            - %s\n", e)
		}
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:])
}
