package s3

import (
	"maps"
	"slices"
	"time"
)

// sweep does what the buckets' lifecycle rules ask for at a time. Days pass at
// the region's speed; dates are those of the calendar. Locked versions stay.
func (s *Server) sweep(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	day := s.opts.Clock.Scale(24 * time.Hour)
	aged := func(since time.Time, days int) bool { return at.Sub(since) >= time.Duration(days)*day }
	for _, b := range s.buckets {
		if b.lifecycle == nil {
			continue
		}
		for _, r := range b.lifecycle.Rule {
			if r.Status != stateOn {
				continue
			}
			for _, key := range slices.Collect(maps.Keys(b.keys)) {
				s.sweepNoncurrent(b, &r, key, at, aged)
				s.sweepCurrent(b, &r, key, at, aged)
			}
			if a := r.AbortIncompleteMultipartUpload; a != nil {
				for id, u := range b.uploads {
					if r.covers(u.key, nil) && aged(u.started, a.DaysAfterInitiation) {
						delete(b.uploads, id)
						s.discard(u.blobs())
					}
				}
			}
		}
	}
}

type ageing func(since time.Time, days int) bool

// sweepCurrent expires the newest version: for good where the bucket never had
// versions, else behind a delete marker. A marker alone goes where asked.
func (s *Server) sweepCurrent(b *bucket, r *lifecycleRule, key string, at time.Time, aged ageing) {
	v, e := b.current(key), r.Expiration
	if v == nil || e == nil || !r.covers(key, v.tags) {
		return
	}
	if v.marker {
		wanted := e.ExpiredObjectDeleteMarker != nil && *e.ExpiredObjectDeleteMarker
		if wanted && len(b.keys[key]) == 1 {
			b.remove(key, v.id)
		}
		return
	}
	due := e.Days != nil && aged(v.modified, *e.Days)
	if date, err := time.Parse(time.RFC3339, e.Date); err == nil {
		due = !at.Before(date)
	}
	if !due {
		return
	}
	switch {
	case b.versioning != "" && (b.versioning == stateOn || v.id != nullVersion):
		s.place(b, marker(key, at))
	case v.locked(at, false):
	default:
		b.remove(key, v.id)
		s.discard(v.content)
		if b.versioning == stateOff {
			s.place(b, marker(key, at))
		}
	}
}

// sweepNoncurrent removes versions that others have replaced long enough ago,
// but for the newest ones that the rule keeps.
func (s *Server) sweepNoncurrent(b *bucket, r *lifecycleRule, key string, at time.Time, aged ageing) {
	n := r.NoncurrentVersionExpiration
	if n == nil {
		return
	}
	versions := b.keys[key]
	for i := 1; i < len(versions); i++ {
		v := versions[i]
		replaced := versions[i-1].modified
		if i > n.NewerNoncurrentVersions && r.covers(key, v.tags) && aged(replaced, n.NoncurrentDays) && !v.locked(at, false) {
			b.remove(key, v.id)
			s.discard(v.content)
		}
	}
}
