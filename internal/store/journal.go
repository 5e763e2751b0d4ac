package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// Entry is one line of a journal: what became of a step, and when. It holds no
// secret.
type Entry struct {
	At     time.Time `json:"at"`
	Step   string    `json:"step,omitempty"`
	Op     string    `json:"op,omitempty"`
	Phase  string    `json:"phase"` // started, finished, failed, skipped, begun, ended
	TookMS int64     `json:"tookMs,omitempty"`
	Error  string    `json:"error,omitempty"`
	Text   string    `json:"text,omitempty"` // the command, in the first line
}

// Journal is the account of one run, kept as one object that is encrypted to the
// file's recipients: lines of JSON. It is a convenience. That it cannot be written
// is said once and is no failure.
type Journal struct {
	s       *Store
	key     string
	stop    chan struct{}
	stopped sync.WaitGroup

	mu      sync.Mutex
	lines   bytes.Buffer
	changed bool
	version string // of what was written last
	said    bool
}

// every is how often a journal is written while a run goes on.
const every = 30 * time.Second

// Journal begins the account of a run under a lock.
func (s *Store) Journal(ctx context.Context, h *Held, command string) *Journal {
	now := time.Now().UTC()
	j := &Journal{s: s, key: fmt.Sprintf("%s%s-%s.jsonl.age", journalPrefix, now.Format("20060102T150405Z"), h.ID), stop: make(chan struct{})}
	j.Add(Entry{At: now, Phase: "begun", Text: command})
	beyond := context.WithoutCancel(ctx)
	j.stopped.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-j.stop:
				return
			case <-tick.C:
				j.write(beyond)
			}
		}
	})
	return j
}

// Add notes an entry.
func (j *Journal) Add(e Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.At = e.At.UTC()
	if line, err := json.Marshal(e); err == nil {
		j.lines.Write(line)
		j.lines.WriteByte('\n')
		j.changed = true
	}
}

// Close ends the account with what came of the run, and writes it, also when the
// context has ended.
func (j *Journal) Close(ctx context.Context, result error) {
	close(j.stop)
	j.stopped.Wait()
	end := Entry{At: time.Now(), Phase: "ended"}
	if result != nil {
		end.Error = result.Error()
	}
	j.Add(end)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forRelease)
	defer cancel()
	j.write(ctx)
}

func (j *Journal) write(ctx context.Context) {
	j.mu.Lock()
	plain, changed, before := bytes.Clone(j.lines.Bytes()), j.changed, j.version
	j.changed = false
	j.mu.Unlock()
	if !changed {
		return
	}
	sealed, err := j.s.o.Seal(plain)
	var o object
	if err == nil {
		o, err = j.s.put(ctx, j.key, sealed, "application/age")
	}
	if err == nil && before != "" {
		_ = j.s.erase(ctx, j.key, before) // the lifecycle rule removes what stays
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		j.version = o.version
		return
	}
	j.changed = true
	if !j.said {
		j.said = true
		j.s.o.Notice(fmt.Sprintf("the journal of this run could not be written to %s in the bucket %s: %v; the run goes on", j.key, j.s.Name, err))
	}
}
