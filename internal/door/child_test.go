package door

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bastide/internal/outcome"
)

// The test program plays two more roles when it is told to: "run" is a bastide
// that runs a child behind the door, "child" is that child.
const roleVariable = "DOOR_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "run":
		os.Exit(playRun())
	case "child":
		os.Exit(playChild())
	case "talos":
		os.Exit(playTalosClient())
	}
	os.Exit(m.Run())
}

// playRun opens the door that the environment describes and runs itself as the child.
func playRun() int {
	keys, err := FindKeys(KeySource{Getenv: os.Getenv})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	cfg := Config{Gateway: netip.MustParseAddrPort(os.Getenv("DOOR_TEST_GATEWAY")), Network: privateNetwork,
		KnownHosts: os.Getenv("DOOR_TEST_KNOWN_HOSTS"), Signers: keys.Signers}
	ctx := context.Background()
	d, err := Open(ctx, cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	defer d.Close()
	env := append(os.Environ(), roleVariable+"=child")
	code, err := d.Run(ctx, Child{Estate: "staging", Argv: []string{os.Args[0]}, Env: env, Stdin: os.Stdin, Stdout: os.Stdout,
		Stderr: os.Stderr, Kubeconfig: []byte("kube secret"), Talosconfig: []byte("talos secret")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	return code
}

// playChild says what it was given, then waits for a signal or the end of stdin.
func playChild() int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "NO_PROXY", "KUBECONFIG", "TALOSCONFIG", "SCW_ACCESS_KEY"} {
		fmt.Printf("%s=%s\n", name, os.Getenv(name))
	}
	fmt.Printf("pid=%d\n", os.Getpid())
	fmt.Println("ready")
	ended := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		ended <- strings.TrimSpace(line)
	}()
	select {
	case s := <-signals:
		fmt.Println("got", s)
		return 40 + int(s.(syscall.Signal))
	case line := <-ended:
		code, _ := strconv.Atoi(line)
		return code
	}
}

// outer is a started "run".
type outer struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	tmp    string
	said   map[string]string
}

// prepareOuter makes a "run" that is not started yet, with a door to open.
func prepareOuter(t *testing.T) *outer {
	t.Helper()
	home := t.TempDir()
	private, public := writeKey(t, home, "id", "", ed(t))
	b := startBastion(t)
	b.allowed[string(public.Marshal())] = true
	o := &outer{tmp: t.TempDir(), said: map[string]string{}}
	o.cmd = exec.Command(os.Args[0])
	o.cmd.Env = append(os.Environ(), roleVariable+"=run", "DOOR_TEST_GATEWAY="+b.addr().String(), "TMPDIR="+o.tmp,
		"DOOR_TEST_KNOWN_HOSTS="+filepath.Join(home, "known_hosts"), IdentityVariable+"="+private, "SCW_ACCESS_KEY=SCWXXXXXXXXXXXXXXXXX",
		"NO_PROXY=172.16.0.0/12,example.org", "KUBECONFIG=/somewhere/else")
	return o
}

func startOuter(t *testing.T) *outer {
	t.Helper()
	o := prepareOuter(t)
	o.cmd.Stderr = os.Stderr
	var err error
	if o.stdin, err = o.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := o.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	o.stdout = bufio.NewReader(out)
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.cmd.Process.Kill(); _ = o.cmd.Wait() })
	o.untilReady(t)
	return o
}

// untilReady reads what the child says about itself.
func (o *outer) untilReady(t *testing.T) {
	t.Helper()
	for {
		line, err := o.stdout.ReadString('\n')
		if err != nil {
			t.Fatalf("the child did not start: %v", err)
		}
		if line = strings.TrimSpace(line); line == "ready" {
			return
		}
		name, value, _ := strings.Cut(line, "=")
		o.said[name] = value
	}
}

func (o *outer) wait() int {
	_ = o.cmd.Wait()
	return o.cmd.ProcessState.ExitCode()
}

// left lists what is in the temporary directory.
func (o *outer) left(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(o.tmp, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestChildGetsAWayIn(t *testing.T) {
	o := startOuter(t)
	proxy := o.said["HTTPS_PROXY"]
	if !strings.HasPrefix(proxy, "http://"+proxyUser+":") || !strings.Contains(proxy, "@127.0.0.1:") || proxy != o.said["https_proxy"] {
		t.Errorf("HTTPS_PROXY=%s https_proxy=%s", proxy, o.said["https_proxy"])
	}
	if o.said["NO_PROXY"] != "example.org" {
		t.Errorf("NO_PROXY=%s still covers the network, or lost what does not", o.said["NO_PROXY"])
	}
	if o.said["SCW_ACCESS_KEY"] != "SCWXXXXXXXXXXXXXXXXX" {
		t.Error("SCW_ACCESS_KEY was touched")
	}
	for name, want := range map[string]string{"KUBECONFIG": "kube secret", "TALOSCONFIG": "talos secret"} {
		path := o.said[name]
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%s=%s holds %q, %v", name, path, got, err)
		}
		for p, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700, filepath.Dir(filepath.Dir(path)): 0o700} {
			if info, err := os.Stat(p); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v; want mode %o", p, info, err, mode)
			}
		}
	}
	if _, err := io.WriteString(o.stdin, "7\n"); err != nil {
		t.Fatal(err)
	}
	if code := o.wait(); code != 7 {
		t.Errorf("exit code %d, want the child's 7", code)
	}
	if left := o.left(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSignalsAreTheChilds(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		o := startOuter(t)
		if err := o.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(o.stdout)
		if code := o.wait(); code != 40+int(s) || !strings.Contains(string(rest), "got "+s.String()) {
			t.Errorf("%v: exit code %d after %q, want the child's answer", s, code, rest)
		}
		if left := o.left(t); len(left) > 0 {
			t.Errorf("%v: left behind: %v", s, left)
		}
	}
}

func TestWhatAKilledRunLeftIsRemoved(t *testing.T) {
	o := startOuter(t)
	child, _ := strconv.Atoi(o.said["pid"])
	born, ok := processBorn(child)
	if !ok {
		t.Fatal("the child is not there")
	}
	_ = o.cmd.Process.Kill()
	_, _ = io.ReadAll(o.stdout) // ends when the child has ended too: the kernel told it to
	_ = o.cmd.Wait()
	if alive(child, born) {
		t.Error("the child outlived its way in")
	}
	if len(o.left(t)) != 1 {
		t.Fatalf("a killed run left %v, want its directory", o.left(t))
	}
	t.Setenv("TMPDIR", o.tmp)
	if swept, err := Sweep("other"); err != nil || len(swept) > 0 {
		t.Errorf("another estate's sweep removed %v, %v", swept, err)
	}
	swept, err := Sweep("staging")
	if err != nil || len(swept) != 1 || !strings.Contains(swept[0], "staging-"+strconv.Itoa(o.cmd.Process.Pid)) {
		t.Errorf("swept %v, %v; want the directory named", swept, err)
	}
	if left := o.left(t); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
}

func TestSweepEndsAChildThatLostItsWayIn(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	orphan := exec.Command(os.Args[0])
	orphan.Env = append(os.Environ(), roleVariable+"=child")
	orphan.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := orphan.StdinPipe() // held open, so that it waits
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := orphan.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for line := ""; line != "ready\n"; {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	l, err := newLair("staging")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.adopt(orphan.Process.Pid, true); err != nil {
		t.Fatal(err)
	}
	if swept, err := Sweep("staging"); err != nil || len(swept) > 0 {
		t.Fatalf("a live run was swept: %v, %v", swept, err)
	}
	l.note.OwnerBorn = "an earlier process with this ID"
	if err := l.save(); err != nil {
		t.Fatal(err)
	}
	swept, err := Sweep("staging")
	if err != nil || len(swept) != 2 {
		t.Fatalf("swept %v, %v; want the process and the directory", swept, err)
	}
	rest, _ := io.ReadAll(lines)
	_ = orphan.Wait()
	if !strings.Contains(string(rest), "got terminated") {
		t.Errorf("the orphan said %q", rest)
	}
}

func TestSweepSparesEverythingElse(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	in, err := openBase()
	if err != nil {
		t.Fatal(err)
	}
	dead := exec.Command(os.Args[0], "-test.run=^$")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{ // name -> whether it stays
		fmt.Sprintf("staging-%d", dead.ProcessState.Pid()):   false,
		fmt.Sprintf("staging-%d.2", dead.ProcessState.Pid()): false,
		fmt.Sprintf("staging-2-%d", dead.ProcessState.Pid()): true, // another estate
		fmt.Sprintf("staging-%d", os.Getpid()):               true, // alive, its note not yet written
		"staging-notes":                                      true,
	}
	for name := range names {
		if err := os.Mkdir(filepath.Join(in, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Sweep("staging"); err != nil {
		t.Fatal(err)
	}
	for name, stays := range names {
		if _, err := os.Stat(filepath.Join(in, name)); (err == nil) != stays {
			t.Errorf("%s: stays is %v, want %v", name, err == nil, stays)
		}
	}
}

func TestPrivateDirectoryOfSomebodyElseIsRefused(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if err := os.Mkdir(base(), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := newLair("staging"); outcome.CodeOf(err) != outcome.Refused {
		t.Errorf("got %v, want a refusal", err)
	}
	if _, err := Sweep("staging"); outcome.CodeOf(err) != outcome.Refused {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestRunInThisProcess(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	key := newKey(t)
	b := startBastion(t, key)
	d := open(t, config(t, b, key))
	run := func(argv ...string) (int, string, error) {
		var out bytes.Buffer
		code, err := d.Run(t.Context(), Child{Estate: "staging", Argv: argv, Env: os.Environ(), Stdout: &out, Stderr: &out})
		return code, out.String(), err
	}
	if code, out, err := run("sh", "-c", "cat $KUBECONFIG; exit 3"); code != 3 || err != nil || !strings.HasPrefix(out, "# none") {
		t.Errorf("got %d %q %v, want 3 and an empty kubeconfig", code, out, err)
	}
	if code, _, err := run("sh", "-c", "kill -KILL $$"); code != 137 || err != nil {
		t.Errorf("got %d %v, want 137", code, err)
	}
	for _, argv := range [][]string{{}, {"no-such-program"}, {os.TempDir()}} {
		if _, _, err := run(argv...); outcome.CodeOf(err) != outcome.Refused {
			t.Errorf("%v: got %v, want a refusal", argv, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(base(), "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestCancelledRunEndsTheChild(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	key := newKey(t)
	b := startBastion(t, key)
	d := open(t, config(t, b, key))
	ctx := timeout(t, time.Minute)
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			if line == "ready\n" {
				cancel()
			}
		}
	}()
	in, hold, err := os.Pipe() // never written to
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer hold.Close()
	code, err := d.Run(ctx, Child{Estate: "staging", Argv: []string{os.Args[0]}, Env: append(os.Environ(), roleVariable+"=child"),
		Stdin: in, Stdout: w, Stderr: w})
	_ = w.Close()
	if code != 40+int(syscall.SIGTERM) || err != nil {
		t.Errorf("got %d %v, want the child's answer to SIGTERM", code, err)
	}
}
