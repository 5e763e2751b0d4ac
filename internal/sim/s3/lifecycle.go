package s3

import (
	"context"
	"encoding/xml"
	"slices"
	"strings"
	"time"
)

type lifecycleConfig struct {
	XMLName xml.Name
	Rule    []lifecycleRule
}

type lifecycleRule struct {
	ID                             string           `xml:",omitempty"`
	Prefix                         *string          `xml:",omitempty"`
	Filter                         *lifecycleFilter `xml:",omitempty"`
	Status                         string
	Expiration                     *expiration            `xml:",omitempty"`
	Transition                     []transition           `xml:",omitempty"`
	NoncurrentVersionExpiration    *noncurrentExpiration  `xml:",omitempty"`
	NoncurrentVersionTransition    []noncurrentTransition `xml:",omitempty"`
	AbortIncompleteMultipartUpload *abortIncompleteAfter  `xml:",omitempty"`
}

type lifecycleFilter struct {
	Prefix *string       `xml:",omitempty"`
	Tag    *tag          `xml:",omitempty"`
	And    *lifecycleAnd `xml:",omitempty"`
}

type lifecycleAnd struct {
	Prefix *string `xml:",omitempty"`
	Tag    []tag
}

type expiration struct {
	Days                      *int   `xml:",omitempty"`
	Date                      string `xml:",omitempty"`
	ExpiredObjectDeleteMarker *bool  `xml:",omitempty"`
}

type transition struct {
	Days         *int   `xml:",omitempty"`
	Date         string `xml:",omitempty"`
	StorageClass string
}

type noncurrentExpiration struct {
	NoncurrentDays          int
	NewerNoncurrentVersions int `xml:",omitempty"`
}

type noncurrentTransition struct {
	NoncurrentDays int
	StorageClass   string
}

type abortIncompleteAfter struct{ DaysAfterInitiation int }

func (l *lifecycleConfig) check() error {
	if len(l.Rule) == 0 || len(l.Rule) > 1000 {
		return malformedXML()
	}
	seen := map[string]bool{}
	for i := range l.Rule {
		r := &l.Rule[i]
		if r.ID == "" {
			r.ID = randomHex(16)
		}
		if len(r.ID) > 255 || seen[r.ID] {
			return invalidArgument("Rule ID must be unique. Found same ID for more than one rule")
		}
		seen[r.ID] = true
		if err := r.check(); err != nil {
			return err
		}
	}
	return nil
}

func (r *lifecycleRule) check() error {
	if r.Status != stateOn && r.Status != "Disabled" {
		return malformedXML()
	}
	if (r.Prefix == nil) == (r.Filter == nil) {
		return malformedXML()
	}
	if f := r.Filter; f != nil {
		n := 0
		for _, set := range []bool{f.Prefix != nil, f.Tag != nil, f.And != nil} {
			if set {
				n++
			}
		}
		if n > 1 {
			return malformedXML()
		}
	}
	if r.Expiration == nil && r.NoncurrentVersionExpiration == nil && r.AbortIncompleteMultipartUpload == nil && len(r.Transition)+len(r.NoncurrentVersionTransition) == 0 {
		return invalidRequest("At least one action needs to be specified in a rule")
	}
	if e := r.Expiration; e != nil {
		if err := e.check(); err != nil {
			return err
		}
	}
	for _, t := range r.Transition {
		if !slices.Contains([]string{"GLACIER", "ONEZONE_IA"}, t.StorageClass) || (t.Days == nil) == (t.Date == "") {
			return malformedXML()
		}
	}
	positive := "'%s' for %s action must be a positive integer"
	if n := r.NoncurrentVersionExpiration; n != nil && n.NoncurrentDays < 1 {
		return invalidArgument(positive, "NoncurrentDays", "NoncurrentVersionExpiration")
	}
	if a := r.AbortIncompleteMultipartUpload; a != nil && a.DaysAfterInitiation < 1 {
		return invalidArgument(positive, "DaysAfterInitiation", "AbortIncompleteMultipartUpload")
	}
	return nil
}

func (e *expiration) check() error {
	n := 0
	for _, set := range []bool{e.Days != nil, e.Date != "", e.ExpiredObjectDeleteMarker != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		return malformedXML()
	}
	if e.Days != nil && *e.Days < 1 {
		return invalidArgument("'Days' for Expiration action must be a positive integer")
	}
	if e.Date != "" {
		t, err := time.Parse(time.RFC3339, e.Date)
		if err != nil {
			return malformedXML()
		}
		if !t.Equal(t.UTC().Truncate(24 * time.Hour)) {
			return invalidArgument("'Date' must be at midnight GMT")
		}
	}
	return nil
}

// covers says whether a rule is about a key with these tags.
func (r *lifecycleRule) covers(key string, tags []tag) bool {
	prefix, need := r.Prefix, []tag{}
	if f := r.Filter; f != nil {
		prefix = f.Prefix
		if f.Tag != nil {
			need = append(need, *f.Tag)
		}
		if f.And != nil {
			prefix = f.And.Prefix
			need = append(need, f.And.Tag...)
		}
	}
	if prefix != nil && !strings.HasPrefix(key, *prefix) {
		return false
	}
	for _, t := range need {
		if !slices.Contains(tags, t) {
			return false
		}
	}
	return true
}

// sweepForever acts on lifecycle rules once an hour of the region's time. The
// real store does so once a day; tests and users of a fast region wait less.
func (s *Server) sweepForever(ctx context.Context) {
	every := max(s.opts.Clock.Scale(time.Hour), 20*time.Millisecond)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.sweep(time.Now())
		}
	}
}
