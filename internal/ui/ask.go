package ui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"bastide/internal/outcome"
)

// Questions asks the person at the terminal. In is where answers come from; a
// nil In, or one that is no terminal, means that nobody is there.
type Questions struct {
	In  *os.File
	Err io.Writer
}

// Anybody says whether somebody can answer.
func (q Questions) Anybody() bool { return q.In != nil && term.IsTerminal(int(q.In.Fd())) }

// Confirm asks for a yes. Without a terminal it refuses and names the flag.
func (q Questions) Confirm(ctx context.Context, question string) (bool, error) {
	if !q.Anybody() {
		return false, outcome.Refuse("nothing was done", "there is no terminal to confirm on", "look at the plan, then run the command with --yes")
	}
	type reply struct {
		yes bool
		err error
	}
	replied := make(chan reply, 1)
	go func() { // a read from a terminal cannot be called off; the process ends soon after
		yes, err := confirm(q.In, q.Err, question)
		replied <- reply{yes, err}
	}()
	select {
	case r := <-replied:
		return r.yes, r.err
	case <-ctx.Done():
		fmt.Fprintln(q.Err)
		return false, &outcome.Error{Code: outcome.Interrupted, What: "nothing was done", Why: "it was interrupted at the question", Err: ctx.Err()}
	}
}

// confirm takes the whole word and nothing else: this spends money or deletes.
func confirm(in io.Reader, out io.Writer, question string) (bool, error) {
	fmt.Fprintf(out, "%s%s (yes/no) ", prefix, question)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	return strings.TrimSpace(strings.ToLower(answer)) == "yes", nil
}

// Secret asks for something that must not be seen, such as a passphrase.
func (q Questions) Secret(question string) ([]byte, error) {
	if !q.Anybody() {
		return nil, outcome.Refuse("a secret is needed", "there is no terminal to ask for it on", "run the command on a terminal")
	}
	fmt.Fprintf(q.Err, "%s%s: ", prefix, question)
	secret, err := term.ReadPassword(int(q.In.Fd()))
	fmt.Fprintln(q.Err)
	if err != nil {
		return nil, fmt.Errorf("reading the secret: %w", err)
	}
	return secret, nil
}
