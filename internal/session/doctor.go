package session

import (
	"context"
	"net/netip"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/scaleway"
)

// Doctor looks the project over: for what is the estate's and should not be
// there, what looks like the estate's, what nobody uses, and traps. It looks at
// Scaleway, and at copies of the secrets bundle where the file names a replica for
// them, and so needs neither the bundle's identity nor a living cluster.
func (s *Session) Doctor(ctx context.Context) ([]scaleway.Check, error) {
	cloud, err := s.Cloud(ctx)
	if err != nil {
		return nil, err
	}
	p, err := cloud.Examine(ctx)
	if err != nil {
		return nil, err
	}
	var booked map[string]netip.Addr
	if p.Inventory != nil {
		booked = p.Inventory.Booked()
	}
	g, err := blueprint.Build(s.Estate, booked, s.Estate.Admin.PublicKeys)
	if err != nil {
		return nil, outcome.Refuse("the estate cannot be laid out", err.Error(), "change the file").Because(err)
	}
	checks := p.Checks(g)
	if s.Estate.Store.Replica != nil {
		checks = append(checks, s.checkCopies(ctx))
	}
	return checks, nil
}
