package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bastide/internal/sim/fabric"
	"bastide/internal/sim/hardware"
)

var (
	inside = netip.MustParseAddr("172.16.0.9")
	caller = netip.MustParseAddr("172.16.0.2")
	// small has no certificate, without which an engine does not start.
	small = hardware.Database{ID: "d", Databases: []string{"rdb"}, Endpoints: []hardware.DatabaseEndpoint{{NetworkID: "n", Address: inside, Port: 5432}}}
)

// Without programs a database has an address at which nothing listens.
func TestWithoutPostgreSQL(t *testing.T) {
	f := fabric.New()
	s := New(Options{Fabric: f})
	defer s.Close()
	s.Apply(small)
	if _, err := f.Dial(t.Context(), "n", caller, inside, 5432); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialling: %v", err)
	}
}

// TestMain is the simulator of TestDiesWithTheSimulator when it is asked to be.
func TestMain(m *testing.M) {
	if os.Getenv("BASTIDE_TEST_ENGINE") == "" {
		os.Exit(m.Run())
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	e, err := newEngine(ctx, Find())
	if err == nil {
		err = e.start(ctx, selfSigned())
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println(e.cmd.Process.Pid, e.dir)
	select {} // until it is killed
}

// An engine ends with a simulator that is killed, although it runs as another
// user when that one is root.
func TestDiesWithTheSimulator(t *testing.T) {
	if Find() == "" {
		t.Skip("PostgreSQL is not installed (package postgresql): whether it ends with the simulator is not checked")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BASTIDE_TEST_ENGINE=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	number, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
	pid, err := strconv.Atoi(number)
	if err != nil || !strings.HasPrefix(filepath.Base(dir), "bastide-pg-") {
		t.Fatalf("the simulator says %q", line)
	}
	defer os.RemoveAll(dir)
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err == nil && strings.Contains(string(args), "\nUid:\t0\t") {
		t.Error("PostgreSQL runs as root")
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("PostgreSQL does not run: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	for syscall.Kill(pid, 0) == nil && !zombie(pid) {
		select {
		case <-t.Context().Done():
			t.Fatal("PostgreSQL outlives the simulator")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// zombie says whether a process has ended and only waits for init to notice,
// which in some containers it never does.
func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(text), ") Z ")
}

func TestNamesAreQuoted(t *testing.T) {
	odd := hardware.DatabaseRole{Name: `a"; DROP ROLE x; --`, Verifier: "it's"}
	if got := roleStatement(odd, false); got != `CREATE ROLE "a""; DROP ROLE x; --" LOGIN NOCREATEDB NOCREATEROLE PASSWORD 'it''s';`+"\n" {
		t.Errorf("%s", got)
	}
	for _, p := range []string{"all", "readwrite", "readonly", "none"} {
		for line := range strings.Lines(grantStatements(hardware.DatabaseGrant{Database: `d"`, Role: `r"`, Permission: p})) {
			if !strings.HasSuffix(line, `"r""";`+"\n") {
				t.Errorf("%s: %s", p, line)
			}
		}
	}
}
