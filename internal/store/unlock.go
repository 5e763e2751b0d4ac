package store

import (
	"context"
	"fmt"

	"bastide/internal/outcome"
)

// Unlock removes the lock with an id, whoever holds it, and no other. It says
// whose it was; nil where nobody holds one.
func (s *Store) Unlock(ctx context.Context, id, command string) (*State, error) {
	there, err := s.Current(ctx)
	if err != nil || there == nil {
		return nil, err
	}
	was := there
	// A holder that lives may renew it in between, which makes another version.
	for range 5 {
		if there == nil || there.ID != id && was.ID == id {
			return was, nil
		}
		if there.ID != id {
			return there, outcome.Refuse(s.o.Estate+" was not unlocked", fmt.Sprintf("%s is not the id of its lock; %s", id, there), fmt.Sprintf("if it is certain that it does not run any more: %s %s", command, there.ID))
		}
		if err := s.eraseLock(ctx, id, there.object.version); err != nil {
			return was, err
		}
		if there, err = s.current(ctx); err != nil {
			return was, err
		}
	}
	return was, outcome.Fail(s.o.Estate+" was not unlocked", "its holder lives and renews it: "+was.String(), "stop it first")
}
