package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"bastide/internal/sim/bound"
)

// child is a real process that a node runs: etcd or kube-apiserver. It dies
// with the simulator, however that dies.
type child struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // why it ended, valid once done is closed
}

// launch starts a process that logs to a console. env is added to an
// environment without proxies, which the host's could confuse.
func (n *node) launch(argv, env []string, log *console) (*child, error) {
	if len(argv) == 0 || argv[0] == "" {
		return nil, errors.New("no program to run")
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + n.runDir, "TMPDIR=" + os.TempDir()}, env...)
	cmd.Dir = n.runDir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.WaitDelay = gracefulStop
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c := &child{cmd: cmd, done: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, context.Canceled
	}
	if err := bound.Start(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", argv[0], err)
	}
	n.children[c] = struct{}{}
	n.wg.Go(func() {
		c.err = cmd.Wait()
		close(c.done)
		n.mu.Lock()
		delete(n.children, c)
		n.mu.Unlock()
	})
	return c, nil
}

// lastWords is how many lines of a process are looked through for why it ended: a
// program that panics says that first, and then where each of its threads was.
const lastWords = 400

// tell says to whoever watches this machine that a process ended by itself, or could
// not be started.
func (n *node) tell(service string, err error) {
	said, _ := n.logOf(service).tail(lastWords)
	n.farm.opt.Host.Failed(service+" of "+n.hw.Name, err, said...)
}

// stop ends the process: at once, or after it had a moment to end by itself.
func (c *child) stop(clean bool) {
	if c == nil {
		return
	}
	if clean {
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		t := time.NewTimer(gracefulStop)
		defer t.Stop()
		select {
		case <-c.done:
			return
		case <-t.C:
		}
	}
	_ = c.cmd.Process.Kill()
	<-c.done
}
