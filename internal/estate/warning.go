package estate

import (
	"fmt"
	"slices"
)

// comfortableMemory is what Talos recommends for a control plane node (its
// health check's own figure, a little under 4 GiB).
const comfortableMemory = 3946 * MiB

// wideAdmin is the prefix length above which a range is no longer one place.
const wideAdmin = 24

// Warnings lists what the file may say but its writer should know. Nothing is
// refused for them. They have paths, but no lines.
func (e *Estate) Warnings() Problems {
	var ws Problems
	warn := func(path, what, why, hint string) {
		ws = append(ws, Problem{Path: path, What: what, Why: why, Hint: hint})
	}
	if r := e.Store.Replica; r != nil {
		for _, why := range r.nearness() {
			warn("store.replica.endpoint", why.what, why.why, why.hint)
		}
	}
	if e.ControlPlane.Count == 1 {
		warn("controlPlane.count", "is 1", "the cluster stops whenever that node restarts, and its loss is the loss of etcd", "write 3 for anything that matters")
	}
	if t, ok := LookupInstanceType(e.ControlPlane.Type); ok && t.Memory < comfortableMemory {
		warn("controlPlane.type", fmt.Sprintf("%s has %s of memory", t.Name, t.Memory), "Talos starts on it but recommends 4 GiB for a control plane node", "choose PLAY2-NANO or larger")
	}
	if e.nodeCount() == e.ControlPlane.Count {
		warn("pools", "there is no worker", "control plane nodes do not take ordinary pods, so nothing of yours would run", "add a pool, or allow scheduling on control planes in a patch")
	}
	for i, r := range e.Admin.CIDRs {
		if r.IsValid() && r.Bits() < wideAdmin {
			warn(indexed("admin.cidrs", i), fmt.Sprintf("%s admits %d addresses", r, 1<<(32-r.Bits())), "each of them may try keys at the bastion", "list only the addresses that you come from")
		}
	}
	if p := e.Services.Postgres; p != nil {
		if p.Backup.Disabled {
			warn("services.postgres.backup.disabled", "is true", "nothing brings the data back that a mistake deletes", "let Scaleway make backups, unless you make your own")
		}
		if databaseType.MatchString(p.Type) && !slices.Contains(databaseTypes, p.Type) {
			hint := "compare it with: scw rdb node-type list"
			if near := nearest(p.Type, databaseTypes); near != "" {
				hint = "did you mean " + near + "?"
			}
			warn("services.postgres.type", p.Type+" is not a node type that bastide has seen", "Scaleway refuses the instance if it does not exist", hint)
		}
	}
	return ws
}
