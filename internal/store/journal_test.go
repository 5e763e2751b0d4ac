package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

// A journal is one sealed object, however often it was written.
func TestAJournalIsSealed(t *testing.T) {
	p := newPlace(t)
	s := p.store(Terms{})
	var plain []byte
	s.o.Seal = func(text []byte) ([]byte, error) {
		plain = text
		return bytes.Repeat([]byte("sealed "), len(text)/7), nil
	}
	h := p.acquire(s)
	j := s.Journal(t.Context(), h, "bastide up envs/staging")
	for _, phase := range []string{"started", "finished"} {
		j.Add(Entry{At: time.Now(), Step: "vpc/staging", Op: "create", Phase: phase, TookMS: 12})
		j.write(t.Context())
	}
	j.Close(t.Context(), errors.New("something broke"))
	var phases []string
	for line := range strings.Lines(string(plain)) {
		var e Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.At.IsZero() {
			t.Errorf("%s: %v", line, err)
		}
		phases = append(phases, e.Phase+e.Error+e.Text)
	}
	if got := strings.Join(phases, ", "); got != "begunbastide up envs/staging, started, finished, endedsomething broke" {
		t.Errorf("the journal says %s", got)
	}
	o, err := s.get(t.Context(), j.key)
	if err != nil || !bytes.HasPrefix(o.body, []byte("sealed sealed")) || bytes.Contains(o.body, []byte("vpc")) {
		t.Errorf("%s, %v", o.body, err)
	}
	if v, err := s.versions(t.Context(), j.key); err != nil || len(v) != 1 {
		t.Errorf("%d versions, %v", len(v), err)
	}
	h.Release(t.Context())
}

// A journal that cannot be written is a pity and no failure, and is said once.
func TestALostJournal(t *testing.T) {
	p := newPlace(t)
	s := p.store(Terms{})
	h := p.acquire(s)
	p.faults(`{http: [{method: PUT, path: "/bastide-staging/journal/*", status: 403}]}`)
	j := s.Journal(t.Context(), h, "bastide up envs/staging")
	j.write(t.Context())
	j.Close(t.Context(), nil)
	if n := strings.Count(p.heard(), "the journal of this run could not be written"); n != 1 {
		t.Errorf("said %d times: %s", n, p.heard())
	}
	if err := h.Check(t.Context()); err != nil {
		t.Error(err)
	}
	h.Release(t.Context())
}
