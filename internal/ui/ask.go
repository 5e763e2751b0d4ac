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
	return q.answer(ctx, func() (bool, error) { return confirm(q.In, q.Err, question) })
}

// Typed asks for a word to be typed as it is, for what cannot be undone. Any
// other answer is a refusal.
func (q Questions) Typed(ctx context.Context, question, word string) error {
	if !q.Anybody() {
		return outcome.Refuse("nothing was done", "there is no terminal to type "+word+" on", "look at what would go, then run the command with --confirm "+word)
	}
	ok, err := q.answer(ctx, func() (bool, error) { return typed(q.In, q.Err, question, word) })
	if err == nil && !ok {
		err = outcome.Refuse("nothing was done", "what was typed is not "+word, "run the command again and type "+word)
	}
	return err
}

// answer waits for an answer, or for the end of the command.
func (q Questions) answer(ctx context.Context, ask func() (bool, error)) (bool, error) {
	type reply struct {
		yes bool
		err error
	}
	replied := make(chan reply, 1)
	go func() { // a read from a terminal cannot be called off; the process ends soon after
		yes, err := ask()
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
	answer, err := reply(in, out, question+" (yes/no)")
	return strings.ToLower(answer) == "yes", err
}

// typed takes the word as it is, in its own case.
func typed(in io.Reader, out io.Writer, question, word string) (bool, error) {
	answer, err := reply(in, out, fmt.Sprintf("%s; type %s to go on:", question, word))
	return answer == word, err
}

func reply(in io.Reader, out io.Writer, question string) (string, error) {
	fmt.Fprintf(out, "%s%s ", prefix, visible(question, false))
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	return strings.TrimSpace(answer), nil
}

// Secret asks for something that must not be seen, such as a passphrase.
func (q Questions) Secret(question string) ([]byte, error) {
	if !q.Anybody() {
		return nil, outcome.Refuse("a secret is needed", "there is no terminal to ask for it on", "run the command on a terminal")
	}
	fmt.Fprintf(q.Err, "%s%s: ", prefix, visible(question, false))
	secret, err := term.ReadPassword(int(q.In.Fd()))
	fmt.Fprintln(q.Err)
	if err != nil {
		return nil, fmt.Errorf("reading the secret: %w", err)
	}
	return secret, nil
}
