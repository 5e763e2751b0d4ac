package api

import (
	"net/netip"

	"bastide/internal/sim/hardware"
)

// applyRDB hands an instance whose engine runs to the hardware. Only PostgreSQL
// has any; MySQL is data only.
func (w *world) applyRDB(i *rdbInstance) {
	if !i.Up || i.Engine[:min(10, len(i.Engine))] != "PostgreSQL" {
		return
	}
	d := hardware.Database{ID: i.ID, From: i.From, Certificate: i.Certificate, Key: i.Key}
	for _, e := range i.Endpoints {
		at := hardware.DatabaseEndpoint{NetworkID: e.Network, Address: e.Address.Addr(), Port: e.Port}
		if e.Kind == rdbPublic {
			for _, r := range i.ACLs {
				if p, err := netip.ParsePrefix(r.IP); err == nil {
					at.Allow = append(at.Allow, p)
				}
			}
		}
		d.Endpoints = append(d.Endpoints, at)
	}
	for _, u := range i.Users {
		d.Roles = append(d.Roles, hardware.DatabaseRole{Name: u.Name, Verifier: u.Verifier, Admin: u.Admin})
	}
	for _, b := range i.Databases {
		d.Databases = append(d.Databases, b.Name)
	}
	for _, p := range i.Privileges {
		d.Grants = append(d.Grants, hardware.DatabaseGrant{Database: p.Database, Role: p.User, Permission: p.Permission})
	}
	w.region.effects.runDatabase(d)
}
