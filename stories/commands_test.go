package stories

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/rogpeppe/go-internal/testscript"

	"bastide/internal/sim"
)

// commands are what scripts can say besides running programs.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"call":      call,
	"code":      code,
	"enter":     enter,
	"recipient": recipient,
	"shut":      shut,
	"region":    region,
	"mask":      mask,
	"stage":     stage,
	"ends":      ends,
	"calls":     calls,
	"tries":     tries,
	"happened":  happened,
	"remedy":    remedy,
	"rights":    rights,
}

// code runs a program that must end with one exit code; exec can only tell
// success from failure.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM ARGS...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		got = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("want exit code %s, got %d", args[0], got)
	}
}

// region waits for the simulated region in a folder and points the script's
// clients at it, as eval "$(bastide sim env)" does in a shell. The region is
// stopped when the script ends.
func region(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: region DIR")
	}
	dir := ts.MkAbs(args[0])
	deadline := time.Now().Add(time.Minute)
	for {
		access, err := sim.ReadAccess(dir)
		if err == nil && access.Alive() {
			for _, kv := range access.Environ() {
				k, v, _ := strings.Cut(kv, "=")
				ts.Setenv(k, v)
			}
			ts.Defer(func() { stop(access) })
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no region came up in %s", dir)
		}
		time.Sleep(20 * time.Millisecond) // another process's file: there is no event to await
	}
}

// enter comes in to a rehearsal that was kept, as sourcing its exports does.
func enter(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: enter DIR")
	}
	for _, line := range strings.Split(ts.ReadFile(filepath.Join(args[0], "env.sh")), "\n") {
		if k, v, ok := strings.Cut(strings.TrimPrefix(line, "export "), "="); ok {
			ts.Setenv(k, strings.Trim(v, "'"))
		}
	}
	access, err := sim.ReadAccess(ts.MkAbs(filepath.Join(args[0], "region")))
	ts.Check(err)
	ts.Defer(func() { stop(access) })
}

// call sends a file to the region's API, or to its own pages, as a person with
// curl would: a change by hand, or a fault script. {NAME} in the path stands for
// what is in that file.
func call(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: call METHOD PATH [FILE]")
	}
	var body string
	if len(args) == 3 {
		body = ts.ReadFile(args[2])
	}
	path := regexp.MustCompile(`\{(\w+)\}`).ReplaceAllStringFunc(args[1], func(name string) string {
		return strings.TrimSpace(ts.ReadFile(strings.Trim(name, "{}")))
	})
	req, err := http.NewRequest(args[0], ts.Getenv("SCW_API_URL")+path, strings.NewReader(body))
	ts.Check(err)
	req.Header.Set("X-Auth-Token", ts.Getenv("SCW_SECRET_KEY"))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 {
		text, _ := io.ReadAll(resp.Body)
		ts.Fatalf("%s %s: %s: %s", args[0], args[1], resp.Status, text)
	}
}

// shut waits until the bastion at an address turns everybody away: a change of
// its ranges takes a moment to reach it.
func shut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: shut FILE-WITH-ADDRESS")
	}
	address := net.JoinHostPort(strings.TrimSpace(ts.ReadFile(args[0])), "61000")
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		n, _ := c.Read(make([]byte, 4)) // an open bastion greets first
		_ = c.Close()
		if n == 0 {
			return
		}
	}
	ts.Fatalf("the bastion at %s stays open", address)
}

// recipient makes the holder of an age identity the only recipient of an
// estate's bundle.
func recipient(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: recipient IDENTITY ESTATE")
	}
	identity, err := age.ParseX25519Identity(strings.TrimSpace(ts.ReadFile(args[0])))
	ts.Check(err)
	text := regexp.MustCompile(`age1[0-9a-z]+`).ReplaceAllString(ts.ReadFile(args[1]), identity.Recipient().String())
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

func stop(a sim.Access) {
	if p, err := os.FindProcess(a.PID); err == nil {
		_ = p.Signal(os.Interrupt)
	}
	for a.Alive() {
		time.Sleep(20 * time.Millisecond) // it is not always our child, so there is nothing to wait on
	}
}

// mask replaces what differs from run to run in a file, so that it can be
// compared with cmp: the script's folder, IDs, fingerprints, times.
func mask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: mask FILE TEXT...")
	}
	file := ts.MkAbs(args[0])
	text := ts.ReadFile(args[0])
	for _, a := range args[1:] {
		text = strings.ReplaceAll(text, a, "MASKED")
	}
	ts.Check(os.WriteFile(filepath.Clean(file), []byte(text), 0o600))
}
