package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"bastide/internal/sim/api"
	"bastide/internal/sim/clock"
)

// scoreProject stands for the recorded project.
const scoreProject = "11111111-1111-1111-1111-111111111111"

// scoreProjects are all projects of the account: as many as the recorded one
// had, since every project has a default VPC and listings show them all.
func scoreProjects() []string {
	all := []string{scoreProject}
	for n := 2; n <= 13; n++ {
		all = append(all, fmt.Sprintf("11111111-1111-4111-8111-%012d", n))
	}
	return all
}

// shared is where the recordings and the scorer are, beside the project.
const shared = "../../../../shared"

// TestRecordedTraffic replays real traffic against the region and fails when
// less of it matches than before. A match is strict: the same status, every
// recorded field with its type, what was set comes back, states settle alike.
func TestRecordedTraffic(t *testing.T) {
	for _, need := range []string{filepath.Join(shared, "tools", "replay.py"), filepath.Join(shared, "recordings")} {
		if _, err := os.Stat(need); err != nil {
			t.Skipf("recorded traffic is not on this machine (%s): nothing to replay", need)
		}
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("the scorer needs python3, which is not installed")
	}
	own, err := filepath.Abs("testdata/bastide.ops")
	if err != nil {
		t.Fatal(err)
	}
	all := served(t, filepath.Join(shared, "tools", "ops.txt"))
	products := []string{"instance", "block", "vpc", "vpcgw", "ipam", "lb", "marketplace", "account", "iam",
		"secret", "registry", "domain", "rdb"}
	for _, c := range []struct {
		name, ops string
		least     float64 // per cent
		long      bool
	}{
		{"operations that bastide calls", own, 97, false},
		{"all operations in scope", all, 99, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.long && testing.Short() {
				t.Skip("the short run replays only what bastide calls")
			}
			for _, p := range products {
				t.Run(p, func(t *testing.T) {
					t.Parallel()
					score(t, filepath.Join(shared, "recordings", p+".jsonl.gz"), c.ops, c.least)
				})
			}
		})
	}
}

// served is the scorer's list of operations without the products that the
// region does not have yet.
func served(t *testing.T, list string) string {
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, line := range strings.Split(string(text), "\n") {
		later := false
		for _, p := range []string{"baremetal"} {
			later = later || strings.Contains(line, " /"+p+"/")
		}
		if !later {
			kept = append(kept, line)
		}
	}
	file := filepath.Join(t.TempDir(), "served.ops")
	if err := os.WriteFile(file, []byte(strings.Join(kept, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// score replays a product's recordings. Those of databases are replayed on a
// region of their day each: which versions an instance can be upgraded to is in
// every answer, and is a matter of the engines on sale at the time.
func score(t *testing.T, recording, ops string, least float64) {
	parts := map[string]string{"": recording}
	if strings.HasPrefix(filepath.Base(recording), "rdb.") {
		parts = byDay(t, recording)
	}
	match, total := 0, 0
	var (
		wrong bytes.Buffer
		all   sync.WaitGroup
		sum   sync.Mutex
	)
	for day, file := range parts { // at the same time: what takes it is mostly waiting
		all.Go(func() {
			today, _ := time.Parse(time.DateOnly, day) // none given is none
			m, n, others, err := replay(t.Context(), file, ops, today)
			sum.Lock()
			defer sum.Unlock()
			match, total = match+m, total+n
			wrong.WriteString(others)
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if total == 0 {
		return // the recording has none of these operations
	}
	got := 100 * float64(match) / float64(total)
	t.Logf("%s: %.1f%% of %d steps", strings.TrimSuffix(filepath.Base(recording), ".jsonl.gz"), got, total)
	if got < least {
		t.Errorf("%.1f%% of %d steps match, less than %.0f%%:\n%s", got, total, least, wrong.String())
	}
}

// replay returns how many steps match, out of how many, and what the others are.
func replay(ctx context.Context, recording, ops string, today time.Time) (match, total int, others string, err error) {
	region := api.New(api.Options{Clock: clock.New(2000), Projects: scoreProjects(), Organization: scoreProject, Today: today})
	defer region.Close()
	server := httptest.NewServer(region)
	defer server.Close()
	report, err := os.CreateTemp("", "score-*.json")
	if err != nil {
		return 0, 0, "", err
	}
	defer os.Remove(report.Name())
	defer report.Close()
	cmd := exec.CommandContext(ctx, "python3", filepath.Join(shared, "tools", "replay.py"), "--url", server.URL,
		"--reset", "/sim/reset", "--project", scoreProject, "--ops", ops, "--wait", "10", "--settle", "1", "--json", report.Name(), recording)
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, 0, "", fmt.Errorf("the scorer failed: %w\n%s", err, out)
	}
	var r struct {
		Operations map[string]map[string]int `json:"operations"`
		Steps      []struct {
			Recording, Method, Path, Result string
			Step                            int
			Note                            json.RawMessage
		} `json:"steps"`
	}
	if err := json.NewDecoder(report).Decode(&r); err != nil {
		return 0, 0, "", err
	}
	for _, counts := range r.Operations {
		match += counts["match"]
		for _, k := range []string{"match", "shape", "miss", "unserved", "blocked"} {
			total += counts[k]
		}
	}
	var wrong strings.Builder
	for _, s := range r.Steps {
		if s.Result != "outside" && s.Result != "skipped" {
			fmt.Fprintf(&wrong, "%s %s #%d %s %s: %s\n", s.Result, s.Recording, s.Step, s.Method, s.Path, s.Note)
		}
	}
	return match, total, wrong.String(), nil
}

// byDay sorts the recordings of a file by the day on which they were made and
// returns a file for each day.
func byDay(t *testing.T, file string) map[string]string {
	raw, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	packed, err := gzip.NewReader(raw)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	days, files := map[string][]byte{}, map[string]string{}
	made := regexp.MustCompile(`"created_at":\s*"(\d{4}-\d\d-\d\d)`)
	for line := range bytes.Lines(text) {
		if m := made.FindSubmatch(line); m != nil {
			days[string(m[1])] = append(days[string(m[1])], line...)
		} else {
			t.Errorf("a recording without a date: %.80s", line)
		}
	}
	for day, lines := range days {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write(lines)
		files[day] = filepath.Join(t.TempDir(), "rdb-"+day+".jsonl.gz")
		if err = errors.Join(err, z.Close(), os.WriteFile(files[day], b.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return files
}
