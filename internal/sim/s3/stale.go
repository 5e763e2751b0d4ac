package s3

import (
	"maps"
	"time"
)

// remember keeps a copy of the store before a change, if a fault needs it.
func (s *Server) remember() {
	stale := s.opts.Watch.Faults().Stale()
	if stale == 0 {
		s.past = nil
		return
	}
	now := time.Now()
	for len(s.past) > 0 && s.past[0].until.Before(now.Add(-stale-time.Second)) {
		s.past = s.past[1:]
	}
	copied := map[string]*bucket{}
	for name, b := range s.buckets {
		c := *b
		c.keys, c.uploads = maps.Clone(b.keys), maps.Clone(b.uploads)
		copied[name] = &c
	}
	s.past = append(s.past, moment{now, copied})
}

// asOf is the store as it was at a time, for reading only.
func (s *Server) asOf(t time.Time) map[string]*bucket {
	for _, m := range s.past {
		if m.until.After(t) {
			return m.buckets
		}
	}
	return s.buckets
}

// discard removes the files of blobs that nothing refers to any more: at once,
// or once no stale read can ask for them.
func (s *Server) discard(blobs []blob) {
	if stale := s.opts.Watch.Faults().Stale(); stale > 0 && len(blobs) > 0 {
		time.AfterFunc(stale+2*time.Second, func() { discard(blobs) })
		return
	}
	discard(blobs)
}
