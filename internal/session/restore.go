package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"bastide/internal/outcome"
	"bastide/internal/store"
	"bastide/internal/vault"
)

// Restored is a copy that was put back.
type Restored struct {
	Path, From, Digest string
	Aside              string // where the file is that was there before; empty without one
}

// The places that a copy can be restored from.
const (
	FromBoth    = "" // the newer of the two, if they agree
	FromStore   = "store"
	FromReplica = "replica"
)

// Restore puts the newest copy of the bundle into its place. From one place alone
// it needs the other for nothing, its credentials included.
func (s *Session) Restore(ctx context.Context, from string, replace bool) (Restored, error) {
	path := s.Vault().Path
	shelves, err := s.source(from)
	if err != nil {
		return Restored{}, err
	}
	lists := make([][]store.Copy, len(shelves))
	for i, shelf := range shelves {
		if lists[i], err = shelf.List(ctx); err != nil {
			return Restored{}, s.otherSource(err, from, i)
		}
	}
	at, newest, err := s.newest(shelves, lists)
	if err != nil {
		return Restored{}, err
	}
	sealed, err := shelves[at].Fetch(ctx, newest)
	var damaged *store.DamagedError
	if errors.As(err, &damaged) {
		err = outcome.Refuse(path+" was not restored", err.Error(), "look at the other copies with an S3 client").Because(err)
	}
	if err != nil {
		return Restored{}, s.otherSource(err, from, at)
	}
	aside, err := s.Vault().Restore(sealed, replace)
	return Restored{Path: path, From: shelves[at].Title, Digest: vault.Digest(sealed), Aside: aside}, err
}

func (s *Session) source(from string) ([]*store.Shelf, error) {
	named := s.Estate.Store.Replica != nil
	if from == FromBoth && !named { // copies of a time when there was one
		from = FromStore
	}
	switch {
	case from == FromBoth:
		return s.shelves()
	case from == FromReplica && !named:
		return nil, outcome.Refuse(s.Vault().Path+" was not restored", "the file names no store.replica", "write it into the file, or take the copy in the estate's bucket with --from "+FromStore)
	case from == FromReplica:
		replica, err := s.replica()
		return []*store.Shelf{replica}, err
	case from == FromStore:
		kept, err := s.Store()
		if err != nil {
			return nil, err
		}
		return []*store.Shelf{kept.Copies()}, nil
	}
	return nil, outcome.Refuse("nothing was restored", fmt.Sprintf("--from says %s, which is no place for copies", from), "write "+FromStore+" or "+FromReplica)
}

// otherSource adds to an error about one of two places that the other may do.
func (s *Session) otherSource(err error, from string, failed int) error {
	var told *outcome.Error
	if from != FromBoth || !errors.As(err, &told) {
		return err
	}
	said := *told
	said.Do += "; or take the other copy with --from " + []string{FromReplica, FromStore}[failed]
	return &said
}

// newest is the copy that all places agree on as the newest.
func (s *Session) newest(shelves []*store.Shelf, lists [][]store.Copy) (at int, c store.Copy, err error) {
	at = -1
	for i, copies := range lists {
		if len(copies) == 0 {
			continue
		}
		last := copies[len(copies)-1]
		if at >= 0 && last.Digest != c.Digest {
			return at, c, outcome.Refuse(s.Vault().Path+" was not restored",
				fmt.Sprintf("the newest copy in %s (digest %s...) is another one than in %s (digest %s...)", shelves[at].Title, c.Digest[:12], shelves[i].Title, last.Digest[:12]),
				"say which with --from "+FromStore+" or --from "+FromReplica)
		}
		if at < 0 {
			at, c = i, last
		}
	}
	if at < 0 {
		var titles []string
		for _, shelf := range shelves {
			titles = append(titles, shelf.Title)
		}
		return at, c, outcome.Refuse(s.Vault().Path+" was not restored", "there is no copy in "+strings.Join(titles, " and "), "bring the file back from wherever else you have it")
	}
	return at, c, nil
}
