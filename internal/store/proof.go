package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"bastide/internal/outcome"
)

// prove finds out whether the store enforces conditions, on which the lock rests:
// a store that ignores them gives the lock to everybody (two clients that both
// "win"). The object that is there from the first time makes each later proof two
// refused writes: cheaper than to remember one, and true of the store that is
// there today.
func (s *Store) prove(ctx context.Context) error {
	text, err := json.Marshal(map[string]string{"purpose": "proves that this store enforces If-None-Match and If-Match; may be deleted", "written": time.Now().UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	first, err := s.put(ctx, proofKey, text, "application/json", fresh)
	if err == nil { // it was not there; now it must not be overwritten
		if first.version == "" {
			return s.weak("it keeps no versions, by which a lock is removed without touching another one", nil)
		}
		var second object
		if second, err = s.put(ctx, proofKey, text, "application/json", fresh); err == nil {
			return s.weak("it does not enforce conditional writes: it overwrote what was to be written only if nothing was there", func() error {
				return s.eraseBoth(ctx, first, second)
			})
		}
	}
	if err := s.refusedFor(err); err != nil {
		return err
	}
	third, err := s.put(ctx, proofKey, text, "application/json", unchanged("00000000000000000000000000000000"))
	if err == nil {
		return s.weak("it does not enforce conditional writes: it overwrote what was to be overwritten only if it had not changed", func() error { return s.erase(ctx, proofKey, third.version) })
	}
	return s.refusedFor(err)
}

// refusedFor wants the one refusal that proves something.
func (s *Store) refusedFor(err error) error {
	if has(err, "PreconditionFailed") {
		return nil
	}
	return s.objects.CannotTell(fmt.Sprintf("whether the store behind the bucket %s enforces conditions could not be found out", s.Name), err)
}

// weak refuses a store, and takes back what was written to find out.
func (s *Store) weak(why string, undo func() error) error {
	if undo != nil {
		if err := undo(); err != nil {
			s.o.Notice(fmt.Sprintf("%s is left in the bucket %s: %v", proofKey, s.Name, err))
		}
	}
	return outcome.Refuse(fmt.Sprintf("the store behind the bucket %s cannot hold the estate's lock", s.Name),
		why+"; two runs at once could both believe that they are alone",
		"use an object store that keeps versions and enforces If-None-Match and If-Match, as Scaleway's does; see SCW_S3_ENDPOINT")
}

func (s *Store) eraseBoth(ctx context.Context, one, other object) error {
	if err := s.erase(ctx, proofKey, other.version); err != nil {
		return err
	}
	return s.erase(ctx, proofKey, one.version)
}
