package door

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal opens a pseudo-terminal: what a person types goes into the first
// file and what programs print comes out of it; programs get the second.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

// On a terminal the child reads from it although it is not ours, Ctrl-C is
// the child's alone, and bastide outlives it to clean up.
func TestChildOnATerminal(t *testing.T) {
	person, program := terminal(t)
	o := prepareOuter(t)
	o.cmd.Stdin, o.cmd.Stdout, o.cmd.Stderr = program, program, program
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.cmd.Process.Kill(); _ = o.cmd.Wait() })
	_ = program.Close()
	o.stdout = bufio.NewReader(person)
	o.untilReady(t)
	if _, err := person.Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(o.stdout) // a terminal that everybody left gives an error
	if code := o.wait(); code != 40+int(syscall.SIGINT) || strings.Count(string(rest), "got interrupt") != 1 {
		t.Errorf("exit code %d after %q, want the child's answer to one interrupt", code, rest)
	}
	if left := o.left(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
