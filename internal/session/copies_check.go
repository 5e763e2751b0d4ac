package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"bastide/internal/scaleway"
	"bastide/internal/store"
)

// checkCopies is doctor's question about them: does each place have this bundle,
// as its newest, byte for byte?
func (s *Session) checkCopies(ctx context.Context) scaleway.Check {
	check := scaleway.Check{Name: "bundle-copies"}
	found := func(what, why, fix string) {
		check.Findings = append(check.Findings, scaleway.Finding{What: what, Why: why, Fix: fix})
	}
	path := s.Vault().Path
	there, err := s.Vault().Exists()
	if err == nil && !there {
		found(path, "is not here", "bring it back with bastide secrets restore ENV, or make it with bastide secrets new ENV if there never was one")
		return check
	}
	sealed, err := s.Vault().Sealed()
	if err != nil {
		check.Unread = err.Error()
		return check
	}
	for _, open := range []func() (*store.Shelf, error){
		func() (*store.Shelf, error) {
			kept, err := s.Store()
			if err != nil {
				return nil, err
			}
			return kept.Copies(), nil
		}, s.replica,
	} {
		if err := examine(ctx, open, sealed, path, found); err != nil {
			check.Unread = strings.TrimPrefix(check.Unread+"; "+err.Error(), "; ")
		}
	}
	return check
}

// examine looks at one place for copies.
func examine(ctx context.Context, open func() (*store.Shelf, error), sealed []byte, path string, found func(what, why, fix string)) error {
	shelf, err := open()
	if err != nil {
		return err
	}
	copies, err := shelf.List(ctx)
	if err != nil {
		return err
	}
	switch standing, number := store.Stand(copies, sealed); standing {
	case store.Lacking:
		found(shelf.Title, "has no copy of "+path+" as it is now", "run bastide up ENV, which makes one")
		return nil
	case store.Behind:
		found(path, fmt.Sprintf("is older than the copy number %d in %s", number, shelf.Title), "bring the newer one here with bastide secrets restore ENV --replace")
		return nil
	}
	_, err = shelf.Fetch(ctx, copies[len(copies)-1])
	var damaged *store.DamagedError
	if errors.As(err, &damaged) {
		found(shelf.Title, err.Error(), "delete that object with an S3 client, then run bastide up ENV, which makes it again")
		return nil
	}
	return err
}
