package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"bastide/internal/outcome"
)

// Lock is the content of the lock: it holds no secret and is not encrypted, so
// that whoever has to decide about it can read it.
type Lock struct {
	ID       string    `json:"id"`
	Command  string    `json:"command"` // such as "bastide up envs/staging"
	Holder   Holder    `json:"holder"`
	Version  string    `json:"version"`  // of bastide
	Acquired time.Time `json:"acquired"` // by the holder's clock
	Expires  time.Time `json:"expires"`  // by the holder's clock, for people to read
	// Life and the object's age by the store's own clock decide whether it has
	// expired, so that no difference between two clocks does.
	Life    string `json:"life"`
	Renewed int    `json:"renewed"` // how often; it makes every state another ETag
}

// Request is who wants the lock.
type Request struct {
	Command string // for people, such as "bastide up envs/staging"
	Version string // of bastide
	Unlock  string // the command that removes a lock, without the lock's id
}

// State is a lock as it is found.
type State struct {
	Lock
	Age     time.Duration // since it was taken or renewed, by the store's clock
	Expired bool          // nobody renews it any more
	Ended   bool          // the holder ran on this machine and has certainly ended

	object object
}

// grace is added to a lock's life before it counts as expired: the store tells
// times in whole seconds.
const grace = 5 * time.Second

// Current reads the lock; nil where nobody holds it. It writes nothing.
func (s *Store) Current(ctx context.Context) (*State, error) {
	there, err := s.Exists(ctx)
	if err != nil || !there {
		return nil, err
	}
	return s.current(ctx)
}

func (s *Store) current(ctx context.Context) (*State, error) {
	o, err := s.get(ctx, lockKey)
	if has(err, "NoSuchKey") {
		return nil, nil
	}
	if err != nil {
		return nil, s.objects.CannotTell(fmt.Sprintf("the lock in the bucket %s could not be read", s.Name), err)
	}
	st := &State{Age: o.age, object: o}
	if err := json.Unmarshal(o.body, &st.Lock); err != nil || st.ID == "" {
		// Some later version's. It is somebody's all the same, and its ETag names it.
		st.Lock = Lock{ID: o.etag, Command: "an unknown command"}
		return st, nil
	}
	if life, err := time.ParseDuration(st.Life); err == nil && life > 0 {
		st.Expired = st.Age > life+grace
	}
	st.Ended = st.Holder.gone()
	return st, nil
}

// Acquire takes the lock, making the bucket first where there is none. While
// another run holds it, it is refused with that run's name. A lock is taken over
// only when it has expired, or when its holder ran on this machine and has
// certainly ended, and only by a write on condition that nobody else was faster.
func (s *Store) Acquire(ctx context.Context, r Request) (*Held, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	id, err := newID()
	if err != nil {
		return nil, err
	}
	mine := Lock{ID: id, Command: r.Command, Holder: self(), Version: r.Version, Acquired: time.Now().UTC(), Life: s.o.Terms.Life.String()}
	when, over := condition(fresh), (*State)(nil)
	// Each round that does not end here met a lock that came or went since it
	// was looked at.
	for range 10 {
		from := time.Now()
		o, err := s.write(ctx, mine, when)
		if err == nil {
			if over != nil { // or it would be the lock again without this one
				_ = s.erase(ctx, lockKey, over.object.version)
			}
			return s.hold(mine, o, from, over), nil
		}
		if has(err, "NoSuchBucket") { // a destroy has just ended
			if err := s.ready(ctx); err != nil {
				return nil, err
			}
			when, over = fresh, nil
			continue
		}
		if !has(err, "PreconditionFailed", "NoSuchKey") {
			return nil, s.objects.CannotTell(fmt.Sprintf("%s was not locked", s.o.Estate), err)
		}
		there, err := s.current(ctx)
		switch {
		case err != nil:
			return nil, err
		case there == nil:
			when, over = fresh, nil
		case there.ID == mine.ID: // the answer was lost, the write was not
			return s.hold(mine, there.object, from, over), nil
		case there.Expired || there.Ended:
			when, over = unchanged(there.object.etag), there
		default:
			return nil, s.taken(there, r)
		}
	}
	return nil, outcome.Refuse(s.o.Estate+" was not locked", "its lock changes hands faster than it can be taken", "see who works on it, then run the command again")
}

// ready makes the bucket and proves the store. A bucket that was made for a store
// that turns out not to do is taken away again.
func (s *Store) ready(ctx context.Context) error {
	there, err := s.Exists(ctx)
	if err == nil {
		err = s.Ensure(ctx)
	}
	if err != nil {
		return err
	}
	if err = s.prove(ctx); err != nil && !there {
		if undone := s.Remove(ctx); undone != nil {
			s.o.Notice(undone.Error())
		}
	}
	return err
}

// write puts the lock's state down.
func (s *Store) write(ctx context.Context, l Lock, when condition) (object, error) {
	l.Expires = time.Now().Add(s.o.Terms.Life).UTC()
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return object{}, err
	}
	return s.put(ctx, lockKey, append(text, '\n'), "application/json", when)
}

func (s *Store) taken(there *State, r Request) error {
	return outcome.Refuse(s.o.Estate+" is locked", there.String(),
		fmt.Sprintf("wait for it to end; if it is certain that it does not run any more, remove the lock with %s %s", r.Unlock, there.ID))
}

// String says who holds a lock, and for how long.
func (s *State) String() string {
	if s.Holder.PID == 0 {
		return fmt.Sprintf("a lock that this version of bastide cannot read is held, lock id %s, written %s ago", s.ID, s.Age.Round(time.Second))
	}
	text := fmt.Sprintf("%s of %s on %s (process %d) holds the lock %s since %s and renewed it %s ago",
		s.Command, s.Holder.User, s.Holder.Host, s.Holder.PID, s.ID, s.Acquired.Format(time.RFC3339), s.Age.Round(time.Second))
	switch {
	case s.Ended:
		text += "; that process has ended"
	case s.Expired:
		text += "; it has expired"
	default:
		text += fmt.Sprintf("; it expires by itself when it is not renewed for %s", s.Life)
	}
	return text
}

func newID() (string, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}
