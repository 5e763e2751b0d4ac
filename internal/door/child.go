package door

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/term"

	"bastide/internal/outcome"
)

// grace is how long a child may take to end when its run is cancelled.
const grace = 10 * time.Second

// Child is a program to run with a way into the private network.
type Child struct {
	Estate string // names the private directory
	Argv   []string
	Env    []string // the parent's environment
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Kubeconfig and Talosconfig become files that only the user can read and
	// that go away with the run. One that is nil is written empty, so that the
	// program cannot fall back to the configuration of another cluster.
	Kubeconfig  []byte
	Talosconfig []byte
	Proxy       ProxyConfig
}

// Run runs a program behind the door and returns its exit code, 128 and the
// signal's number when a signal ended it. The error says why it could not run.
//
// Signals are the program's business: on a terminal it gets Ctrl-C itself, and
// what is sent to bastide is passed on; bastide ends when the program does. For
// that, neither ctx nor the door's context may end with a signal. When ctx ends,
// the program is told to end and, after ten seconds, killed.
func (d *Door) Run(ctx context.Context, c Child) (code int, err error) {
	if len(c.Argv) == 0 {
		return 0, outcome.Refuse("there is nothing to run behind the door", "no command was given", "put it after --, as in: bastide door ENV -- kubectl get nodes")
	}
	program, err := exec.LookPath(c.Argv[0])
	if err != nil {
		return 0, outcome.Refuse(c.Argv[0]+" cannot be run", err.Error(), "install it, or correct the command").Because(err)
	}
	// Signals are caught before there is anything to clean up.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)

	proxy, err := d.Proxy(context.WithoutCancel(ctx), c.Proxy)
	if err != nil {
		return 0, err
	}
	defer proxy.Close()
	l, err := newLair(c.Estate)
	if err != nil {
		return 0, err
	}
	defer l.remove()
	cmd, err := c.command(program, l, proxy)
	if err != nil {
		return 0, err
	}
	return supervise(ctx, cmd, l, signals)
}

func (c Child) command(program string, l *lair, proxy *Proxy) (*exec.Cmd, error) {
	kubeconfig, err := l.put("kubeconfig", orEmpty(c.Kubeconfig))
	if err != nil {
		return nil, err
	}
	talosconfig, err := l.put("talosconfig", orEmpty(c.Talosconfig))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, c.Argv[1:]...) // not CommandContext, which would kill at once
	cmd.Args[0] = c.Argv[0]
	cmd.Env = childEnvironment(c.Env, proxy.inside, proxy.URL(), kubeconfig, talosconfig)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.WaitDelay = grace // for a grandchild that keeps the output open
	// On a terminal the child stays in our group, the one in the foreground: it
	// may read, Ctrl-C and Ctrl-Z reach it, and a shell can manage jobs.
	// Elsewhere it leads a group of its own, so that a signal reaches all of it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !onTerminal(c.Stdin, c.Stdout, c.Stderr)}
	endWithParent(cmd.SysProcAttr)
	return cmd, nil
}

func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte("# none: bastide had no configuration to give\n")
	}
	return b
}

func onTerminal(streams ...any) bool {
	for _, s := range streams {
		if f, ok := s.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return true
		}
	}
	return false
}

// supervise starts the child, passes signals on and waits.
func supervise(ctx context.Context, cmd *exec.Cmd, l *lair, signals <-chan os.Signal) (int, error) {
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		// The kernel's promise to end the child when its parent dies is tied to
		// the thread that started it, so that thread has to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return 0, outcome.Refuse(cmd.Args[0]+" cannot be run", err.Error(), "correct the command").Because(err)
	}
	group := cmd.SysProcAttr.Setpgid
	send := func(s os.Signal) { signalChild(cmd, group, s) }
	if err := l.adopt(cmd.Process.Pid, group); err != nil {
		send(syscall.SIGTERM)
		<-ended
		return 0, fmt.Errorf("noting the child process: %w", err)
	}
	cancelled := ctx.Done()
	var kill <-chan time.Time
	for {
		select {
		case s := <-signals:
			// On a terminal the child has had these from the terminal itself.
			if group || (s != syscall.SIGINT && s != syscall.SIGQUIT) {
				send(s)
			}
		case <-cancelled:
			cancelled = nil
			send(syscall.SIGTERM)
			timer := time.NewTimer(grace)
			defer timer.Stop()
			kill = timer.C
		case <-kill:
			send(syscall.SIGKILL)
		case err := <-ended:
			return exitCode(cmd, err)
		}
	}
}

func signalChild(cmd *exec.Cmd, group bool, s os.Signal) {
	number, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	if group {
		_ = syscall.Kill(-cmd.Process.Pid, number)
		return
	}
	_ = cmd.Process.Signal(number)
}

func exitCode(cmd *exec.Cmd, err error) (int, error) {
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) && !errors.Is(err, exec.ErrWaitDelay) {
		return 0, outcome.Fail(cmd.Args[0]+" could not be waited for", err.Error(), "").Because(err)
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}
