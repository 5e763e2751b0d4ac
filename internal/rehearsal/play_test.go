package rehearsal

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bastide/internal/outcome"
	"bastide/internal/sim"
)

// played is a play whose command is a script, in a region that tells of a trouble.
func played(t *testing.T, script, trouble string) *Play {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/sim/host" {
			t.Errorf("it asks for %s", r.URL.Path)
		}
		_, _ = io.WriteString(w, `{"trouble": "`+trouble+`"}`)
	}))
	t.Cleanup(server.Close)
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return &Play{Stage: &Stage{Log: "the log"}, Access: sim.Access{URL: server.URL}, Program: program, gone: make(chan struct{})}
}

// A command that waits for what can never be is ended when the region says that this
// machine has no room for it; one that failed because of it is told so as well.
func TestARehearsalEndsWithTheRoom(t *testing.T) {
	const trouble = "etcd of a ended because there is no room left"
	for name, script := range map[string]string{"it waits": "exec sleep 600", "it fails first": "echo it failed >&2; exit 1"} {
		_, _, err := played(t, script, trouble).Run(t.Context(), func(Event) {}, "up")
		if outcome.CodeOf(err) != outcome.Failed || !strings.Contains(err.Error(), trouble) || !strings.Contains(err.Error(), "--dir") {
			t.Errorf("%s: %v", name, err)
		}
	}
	code, words, err := played(t, "echo it failed >&2; exit 1", "").Run(t.Context(), func(Event) {}, "up")
	if code != outcome.Failed || words != "it failed" || err != nil {
		t.Errorf("without a trouble: %d, %q, %v", code, words, err)
	}
	if code, _, err := played(t, "exit 0", "").Run(t.Context(), func(Event) {}, "up"); code != outcome.Done || err != nil {
		t.Errorf("a command that is done: %d, %v", code, err)
	}
}
