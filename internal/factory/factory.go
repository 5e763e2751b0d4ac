// Package factory asks the Image Factory what it has: versions of Talos and their
// system extensions, and what it calls a schematic. Images themselves are read by
// the image pipeline, from the address that it gives.
package factory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"bastide/internal/estate"
	"bastide/internal/outcome"
)

// Variable points to another Image Factory than the public one.
const Variable = "BASTIDE_FACTORY_URL"

const public = "https://factory.talos.dev"

// Options says how the Factory is reached.
type Options struct {
	// LookupEnv reads the environment.
	LookupEnv func(string) (string, bool)
	UserAgent string
	Client    *http.Client // nil means http.DefaultClient
	// Patience is how long a call that fails in passing is repeated; default 1 minute.
	Patience time.Duration
	// Notice is told once that a call is being repeated; nil is allowed.
	Notice func(string)
}

// Factory is an Image Factory. It is safe for concurrent use.
type Factory struct {
	base string
	from string // the variable that names it; empty for the public one
	o    Options
}

// New makes no call.
func New(o Options) (*Factory, error) {
	f := &Factory{base: public, o: o}
	if o.Client == nil {
		f.o.Client = http.DefaultClient
	}
	if o.Patience == 0 {
		f.o.Patience = time.Minute
	}
	text, _ := o.LookupEnv(Variable)
	if text == "" {
		return f, nil
	}
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return nil, outcome.Refuse("the Image Factory cannot be reached", fmt.Sprintf("%s is not its address", text), "correct "+Variable+" or unset it")
	}
	f.base, f.from = u.String(), Variable
	return f, nil
}

// String is its address.
func (f *Factory) String() string { return f.base }

// Image is the address of the disk image of a file's schematic, in the form that
// it asks for.
func (f *Factory) Image(t estate.Talos) string {
	return fmt.Sprintf("%s/image/%s/%s/scaleway-amd64.%s", f.base, t.SchematicID(), t.Version, t.Image.Source)
}

// Register makes the file's schematic known, so that images of it can be had, and
// checks that the Factory gives it the id that was computed here: otherwise the
// image would be another one than the machine configurations install.
func (f *Factory) Register(ctx context.Context, t estate.Talos) error {
	what := "the schematic of talos.extensions and talos.kernelArgs cannot be used"
	text, err := f.call(ctx, http.MethodPost, "/schematics", t.Schematic())
	if err != nil {
		return f.explain(what, err)
	}
	var answer struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.ID == "" {
		return f.explain(what, errNonsense)
	}
	if want := t.SchematicID(); answer.ID != want {
		return outcome.Refuse(what, fmt.Sprintf("%s calls it %s, and it is %s here", f.base, answer.ID, want),
			"use a bastide that knows this Factory's form of schematics; until then name a snapshot in talos.snapshot")
	}
	return nil
}

// answerError is an answer other than success.
type answerError struct {
	status int
	text   string
}

func (e *answerError) Error() string {
	text := fmt.Sprintf("it answered %d %s", e.status, http.StatusText(e.status))
	if e.text != "" {
		text += ": " + e.text
	}
	return text
}

var errNonsense = errors.New("its answer cannot be read; something else may answer in its place")

// missing says that the Factory has no such thing.
func missing(err error) bool {
	var a *answerError
	return errors.As(err, &a) && a.status == http.StatusNotFound
}

// explain turns an error of a call into what a person reads.
func (f *Factory) explain(what string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	var a *answerError
	if errors.As(err, &a) && a.status >= 400 && a.status < 500 && a.status != http.StatusTooManyRequests {
		return outcome.Refuse(what, fmt.Sprintf("the Image Factory %s refuses it: %s", f.base, a), "correct it in the file").Because(err)
	}
	where := "see that it can be reached from here"
	if f.from != "" {
		where = "see that " + f.from + " is right"
	}
	return outcome.CannotTell(what, fmt.Sprintf("the Image Factory %s could not be asked: %v", f.base, err),
		where+", or make the image of a file that was fetched elsewhere: bastide image build ENV --from FILE").Because(err)
}

// attempt bounds one call.
const attempt = 30 * time.Second

// most bounds an answer, in bytes: the longest list has some 50 kB.
const most = 8 << 20

// call repeats a call that fails in passing. All of them may be repeated: what is
// posted is named by its content.
func (f *Factory) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	deadline := time.Now().Add(f.o.Patience)
	for n := 1; ; n++ {
		text, err := f.once(ctx, method, path, body)
		var a *answerError
		settled := nobody(err) || errors.As(err, &a) && a.status < 500 && a.status != http.StatusTooManyRequests
		wait := time.Duration(rand.Int64N(int64(min(5*time.Second, 200*time.Millisecond<<min(n, 10)))))
		if err == nil || settled || ctx.Err() != nil || time.Now().Add(wait).After(deadline) {
			return text, err
		}
		if n == 1 && f.o.Notice != nil {
			f.o.Notice(fmt.Sprintf("the Image Factory %s: %v; trying again until %s", f.base, err, deadline.Format(time.TimeOnly)))
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		case <-t.C:
		}
	}
}

// nobody says that there is nobody at the address: asking again would ask nobody.
func nobody(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial" && !dial.Timeout()
}

func (f *Factory) once(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	given := ctx
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, f.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/yaml")
	}
	req.Header.Set("User-Agent", f.o.UserAgent)
	res, err := f.o.Client.Do(req)
	if err != nil {
		return nil, inWords(given, err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, most))
	if err != nil {
		return nil, inWords(given, err)
	}
	if res.StatusCode >= 300 {
		return nil, &answerError{res.StatusCode, firstLine(text, res.Header.Get("Content-Type"))}
	}
	return text, nil
}

// inWords leaves the address, which is told beside it, out of an error, and says of
// an attempt that took too long how long it was. given is the command's own time.
func inWords(given context.Context, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) && given.Err() == nil {
		return fmt.Errorf("no answer within %s", attempt)
	}
	return err
}

// firstLine is what an answer says, unless it is a page of somebody in between.
func firstLine(text []byte, kind string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if strings.Contains(kind, "html") || strings.HasPrefix(line, "<") {
		return "a page of HTML"
	}
	if len(line) > 200 {
		line = line[:200] + "…"
	}
	return line
}
