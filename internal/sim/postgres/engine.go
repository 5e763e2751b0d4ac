package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bastide/internal/sim/bound"
	"bastide/internal/sim/hardware"
)

// superuser is what the provider's own role is called.
const superuser = "_rdb_superadmin"

// engine is a PostgreSQL with its files, which live in a folder of their own in
// the system's one for temporary files: its path has to be short, for the
// socket's sake, and open to the user that it runs as.
type engine struct {
	programs string
	dir      string
	as       *syscall.Credential // nil: as this process

	port int
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	have state
}

// access lets the provider's role in through the socket only, whose folder is
// nobody else's, and everybody else with a password.
const access = `local all ` + superuser + ` trust
host all ` + superuser + ` all reject
host all all 127.0.0.1/32 scram-sha-256
`

// newEngine makes the files of an engine.
func newEngine(ctx context.Context, programs string) (*engine, error) {
	dir, err := os.MkdirTemp("", "bastide-pg-")
	if err != nil {
		return nil, err
	}
	e := &engine{programs: programs, dir: dir, have: newState()}
	if err = e.prepare(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return e, nil
}

func (e *engine) prepare(ctx context.Context) error {
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		var err error
		if e.as, err = servant(); err != nil {
			return err
		}
		if err = os.Chown(e.dir, int(e.as.Uid), int(e.as.Gid)); err != nil {
			return err
		}
	}
	init := e.command(ctx, "initdb", "-D", e.file("data"), "-U", superuser, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync", "--no-instructions")
	if _, err := run(init); err != nil {
		return err
	}
	return e.write("data/pg_hba.conf", []byte(access))
}

// servant is the user that runs what must not run as root.
func servant() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if errors.Join(err, err2) == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody")
}

func (e *engine) file(name string) string { return filepath.Join(e.dir, name) }

// write makes a file that only the engine reads.
func (e *engine) write(name string, text []byte) error {
	file := e.file(name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	if e.as == nil {
		return nil
	}
	return os.Chown(file, int(e.as.Uid), int(e.as.Gid))
}

func (e *engine) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(e.programs, program), args...)
	cmd.Dir, cmd.WaitDelay = e.dir, 5*time.Second
	cmd.Env = []string{"PATH=" + e.programs + ":" + os.Getenv("PATH"), "HOME=" + e.dir, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: e.as}
	return cmd
}

// run waits for a program and returns what it printed.
func run(cmd *exec.Cmd) (string, error) {
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := bound.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, strings.TrimSpace(complaint.String()))
	}
	return out.String(), nil
}

func (e *engine) runs() bool {
	if e.done == nil {
		return false
	}
	select {
	case <-e.done:
		return false
	default:
		return true
	}
}

func (e *engine) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(e.port)) }

// start runs the engine on a free port. Another program may take the port just
// then, so there is more than one try.
func (e *engine) start(ctx context.Context, d hardware.Database) error {
	if err := e.certify(d); err != nil {
		return err
	}
	var errs []error
	for range 3 {
		err := e.startOnce(ctx)
		if err == nil {
			return nil
		}
		errs = append(errs, err, e.stop())
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

func (e *engine) startOnce(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	e.port = l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return err
	}
	log, err := os.OpenFile(e.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	// The process outlives the call that starts it.
	cmd := e.command(context.WithoutCancel(ctx), "postgres", "-D", e.file("data"), "-p", strconv.Itoa(e.port), "-k", e.dir, "-h", "127.0.0.1",
		"-c", "fsync=off", "-c", "ssl=on", "-c", "ssl_cert_file="+e.file("server.crt"), "-c", "ssl_key_file="+e.file("server.key"),
		"-c", "shared_buffers=16MB", "-c", "max_connections=50", "-c", "log_timezone=UTC")
	cmd.Stdout, cmd.Stderr = log, log
	if err := bound.Start(cmd); err != nil {
		return err
	}
	done := make(chan struct{})
	e.cmd, e.done = cmd, done
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	return e.answers(ctx)
}

// answers waits until the engine takes connections.
func (e *engine) answers(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := e.sql(ctx, "postgres", "SELECT 1;")
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-e.done:
			text, _ := os.ReadFile(e.file("log")) // only for the message
			return fmt.Errorf("postgres ended at once: %s", lastLines(text, 3))
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

func lastLines(text []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], " / ")
}

// sql runs statements as the provider's role. They go in through a pipe: what
// is in them is nobody's to see in a list of processes.
func (e *engine) sql(ctx context.Context, database, statements string) (string, error) {
	cmd := e.command(ctx, "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=terse",
		"-h", e.dir, "-p", strconv.Itoa(e.port), "-U", superuser)
	cmd.Env = append(cmd.Env, "PGDATABASE="+database) // as an argument, a name with = in it would be taken apart
	cmd.Stdin = strings.NewReader(statements)
	return run(cmd)
}

// dump is what is in a database, as statements that make it again.
func (e *engine) dump(ctx context.Context, database string) (string, error) {
	cmd := e.command(ctx, "pg_dump", "-h", e.dir, "-p", strconv.Itoa(e.port), "-U", superuser)
	cmd.Env = append(cmd.Env, "PGDATABASE="+database)
	return run(cmd)
}

func (e *engine) certify(d hardware.Database) error {
	return errors.Join(e.write("server.crt", d.Certificate), e.write("server.key", d.Key))
}

// stop ends the process without ado: what it has in memory is not wanted.
func (e *engine) stop() error {
	if !e.runs() {
		return nil
	}
	_ = e.cmd.Process.Signal(syscall.SIGQUIT) // it may have ended just now
	t := time.NewTimer(5 * time.Second)
	defer t.Stop()
	select {
	case <-e.done:
		return nil
	case <-t.C:
	}
	_ = e.cmd.Process.Kill()
	<-e.done
	return nil
}

// forget removes the files.
func (e *engine) forget() error { return os.RemoveAll(e.dir) }
