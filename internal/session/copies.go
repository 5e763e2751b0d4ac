package session

import (
	"context"
	"fmt"
	"sync"

	"bastide/internal/outcome"
	"bastide/internal/scaleway"
	"bastide/internal/store"
)

// Copies are the environment's encrypted bundle beside what the estate's bucket
// and the replica have of it. They are handled as the lock and the journal are and
// are no steps of the graph: they say nothing about what is live, every step that
// needs the bundle would have to need them, and a plan would depend on a store
// that it does not change.
type Copies struct {
	sealed []byte
	shelf  []shelved
}

// shelved is one place and what it has.
type shelved struct {
	*store.Shelf
	standing store.Standing
	number   int // of the copy, or of the one that is to be made
}

// Lacking names the places that have no copy of the bundle as it is now.
func (c *Copies) Lacking() []string {
	var out []string
	if c != nil {
		for _, s := range c.shelf {
			if s.standing == store.Lacking {
				out = append(out, s.Title)
			}
		}
	}
	return out
}

// Copies reads which copies there are, one call for each place, and writes
// nothing; nil without store.replica in the file. It is refused where this bundle
// is older than the newest copy: raised with it, the estate would go back to a
// bundle that somebody else believes to be replaced.
func (s *Session) Copies(ctx context.Context) (*Copies, error) {
	if s.Estate.Store.Replica == nil {
		return nil, nil
	}
	sealed, err := s.Vault().Sealed()
	if err != nil {
		return nil, err
	}
	shelves, err := s.shelves()
	if err != nil {
		return nil, err
	}
	lists, err := s.list(ctx, shelves)
	if err != nil {
		return nil, err
	}
	c := &Copies{sealed: sealed}
	for i, shelf := range shelves {
		standing, number := store.Stand(lists[i], sealed)
		if standing == store.Behind {
			return nil, outcome.Refuse(fmt.Sprintf("%s is older than its newest copy", s.Vault().Path),
				fmt.Sprintf("%s has it, and a newer one as number %d (digest %s...)", shelf.Title, number, lists[i][len(lists[i])-1].Digest[:12]),
				fmt.Sprintf("bring the newer one here with bastide secrets restore %s --replace; if this one is right, encrypt it again with age, which makes it the newest", s.config.Path))
		}
		c.shelf = append(c.shelf, shelved{shelf, standing, number})
	}
	return c, nil
}

// CheckReplica refuses a replica that cannot be meant, such as the estate's own
// store. It makes no call, and so comes first.
func (s *Session) CheckReplica() error {
	if s.Estate.Store.Replica == nil {
		return nil
	}
	_, err := s.shelves()
	return err
}

// KeepCopies writes the bundle to the places that lack it, under the estate's
// lock. What there is is read again first: another run may have been there.
func (s *Session) KeepCopies(ctx context.Context) error {
	c, err := s.Copies(ctx)
	if err != nil || c == nil {
		return err
	}
	for _, shelf := range c.shelf {
		if shelf.standing != store.Lacking {
			continue
		}
		if err := s.writes(ctx); err != nil { // the estate's bucket has no guard of its own: the lock is in it
			return err
		}
		if err := shelf.Keep(ctx, shelf.number, c.sealed); err != nil {
			return err
		}
		s.config.Notice(fmt.Sprintf("the secrets bundle was copied to %s, as number %d", shelf.Title, shelf.number))
	}
	return nil
}

// shelves are the places for copies: the estate's bucket, then the replica.
func (s *Session) shelves() ([]*store.Shelf, error) {
	kept, err := s.Store()
	if err != nil {
		return nil, err
	}
	replica, err := s.replica()
	if err != nil {
		return nil, err
	}
	return []*store.Shelf{kept.Copies(), replica}, nil
}

// replica is the shelf outside of the estate's region. It makes no call.
func (s *Session) replica() (*store.Shelf, error) {
	o := s.reach()
	o.Decorators = append(o.Decorators, scaleway.Guard(s.writes))
	objects, err := scaleway.NewReplicaStorage(o)
	if err != nil {
		return nil, err
	}
	return store.Replica(objects, s.Estate.Store.Replica.Bucket, s.Estate.BucketName(), s.replicaAddress()), nil
}

func (s *Session) replicaAddress() string {
	return scaleway.ReplicaAddress(s.Estate, s.config.LookupEnv)
}

// list reads all places at once. The estate's own bucket may be somebody else's:
// then that is what is said.
func (s *Session) list(ctx context.Context, shelves []*store.Shelf) ([][]store.Copy, error) {
	lists, errs := make([][]store.Copy, len(shelves)), make([]error, len(shelves))
	var all sync.WaitGroup
	for i, shelf := range shelves {
		all.Go(func() { lists[i], errs[i] = shelf.List(ctx) })
	}
	all.Wait()
	if errs[0] != nil {
		if _, err := s.kept.Exists(ctx); err != nil {
			return nil, err
		}
	}
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return lists, nil
}
