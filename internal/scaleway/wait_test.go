package scaleway

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"bastide/internal/outcome"

	"github.com/scaleway/scaleway-sdk-go/scw"
)

// look plays states one after the other; the last one stays.
func look(states ...any) func(context.Context) (string, error) {
	n := 0
	return func(context.Context) (string, error) {
		s := states[min(n, len(states)-1)]
		n++
		if err, ok := s.(error); ok {
			return "", err
		}
		return s.(string), nil
	}
}

func runs(s string) verdict {
	v := verdict{done: s == "running", status: s}
	if s == "locked" {
		v.failed = "Scaleway has locked it"
	}
	return v
}

func TestUntil(t *testing.T) {
	missing := &scw.ResourceNotFoundError{Resource: "server"}
	c := &Cloud{pace: quickPace.orDefaults()}
	for name, test := range map[string]struct {
		w      waiting
		states []any
		want   string // of the error; empty for success
	}{
		"the old state is shown after the change":   {waiting{limit: time.Minute}, []any{"stopped", "stopped", "starting", "running"}, ""},
		"not visible yet":                           {waiting{limit: time.Minute, fresh: true}, []any{missing, missing, "starting", "running"}, ""},
		"fails in passing":                          {waiting{limit: time.Minute}, []any{&scw.ResponseError{StatusCode: 503}, &lostError{method: "GET", path: "/x", err: errors.New("cut")}, "running"}, ""},
		"locked":                                    {waiting{limit: time.Minute}, []any{"starting", "locked"}, "Scaleway has locked it"},
		"never":                                     {waiting{limit: 20 * time.Millisecond}, []any{"starting"}, "did not run within 20ms: it is starting"},
		"never readable":                            {waiting{limit: 20 * time.Millisecond}, []any{&scw.ResponseError{StatusCode: 500, Message: "boom"}}, "boom"},
		"forbidden":                                 {waiting{limit: time.Minute}, []any{&scw.PermissionsDeniedError{}}, "lacks the permission"},
		"gone":                                      {waiting{limit: time.Minute, gone: true}, []any{"running", missing}, ""},
		"untyped not found is gone as well":         {waiting{limit: time.Minute, gone: true}, []any{"to_delete", &scw.ResponseError{StatusCode: 404, RawBody: []byte(`{"message":"lb not Found"}`)}}, ""},
		"being there is not gone":                   {waiting{limit: 20 * time.Millisecond, gone: true}, []any{"running"}, "it is running"},
		"forbidden is not gone":                     {waiting{limit: time.Minute, gone: true}, []any{&scw.PermissionsDeniedError{}}, "lacks the permission"},
		"was there before and cannot be found":      {waiting{limit: time.Minute}, []any{missing}, "cannot be found any more"},
		"was on its way out and cannot be found":    {waiting{limit: time.Minute, fresh: true}, []any{"deleting", missing}, "cannot be found any more"},
		"a page that is not there is not gone":      {waiting{limit: time.Minute, gone: true}, []any{&scw.ResponseError{StatusCode: 404, RawBody: []byte("<html>")}}, "404"},
		"comes back from a failure seen in passing": {waiting{limit: time.Minute}, []any{"failed", "running"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.w.what, test.w.to = "the server", "run"
			_, err := until(t.Context(), c, test.w, look(test.states...), runs)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Fatalf("want %q, got %v", test.want, err)
			}
			if err != nil && outcome.CodeOf(err) != outcome.Failed {
				t.Errorf("exit code %d", outcome.CodeOf(err))
			}
		})
	}
}

func TestUntilStopsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := &Cloud{pace: Pace{First: time.Hour}.orDefaults()}
	_, err := until(ctx, c, waiting{limit: time.Hour}, func(context.Context) (string, error) { cancel(); return "starting", nil }, runs)
	if outcome.CodeOf(err) != outcome.Interrupted {
		t.Fatalf("got %v", err)
	}
}

// Waiting costs a share of the time waited, so it neither hammers nor dawdles.
func TestPace(t *testing.T) {
	p := Pace{}.orDefaults()
	var waited time.Duration
	polls := 0
	for waited < 30*time.Second {
		waited += p.next(waited)
		polls++
	}
	if polls > 60 || waited > 34*time.Second {
		t.Fatalf("%d looks in a wait of 30 s that ended at %s", polls, waited)
	}
	if p.next(time.Hour) != p.Max {
		t.Fatalf("after an hour: %s", p.next(time.Hour))
	}
}

// shelf is a place where things are made; every way in which an answer can get
// lost must leave exactly one thing on it.
type shelf struct {
	made   int
	posts  int
	lag    int     // how many readings do not show it yet
	before []error // failures without effect
	after  []error // failures after the thing was made
}

func (s *shelf) find(context.Context) (string, bool, error) {
	if s.made > 0 && s.lag > 0 {
		s.lag--
		return "", false, nil
	}
	return "thing", s.made > 0, nil
}

func (s *shelf) post(context.Context) (string, error) {
	s.posts++
	if len(s.before) > 0 {
		err := s.before[0]
		s.before = s.before[1:]
		return "", err
	}
	s.made++
	if len(s.after) > 0 {
		err := s.after[0]
		s.after = s.after[1:]
		return "", err
	}
	return "thing", nil
}

func TestNothingIsMadeTwice(t *testing.T) {
	cut, failing := &lostError{method: "POST", path: "/x", err: errors.New("cut")}, &scw.ResponseError{StatusCode: 503}
	transient := &scw.TransientStateError{}
	for name, s := range map[string]*shelf{
		"first time":                     {},
		"there already":                  {made: 1},
		"cut before":                     {before: []error{cut}},
		"cut after":                      {after: []error{cut}},
		"503 before":                     {before: []error{failing, failing}},
		"503 after":                      {after: []error{failing}},
		"busy, then cut after":           {before: []error{transient, transient}, after: []error{cut}},
		"cut after, shown with some lag": {after: []error{cut}, lag: 3},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Cloud{pace: quickPace.orDefaults()}
			v, err := ensure(t.Context(), c, time.Minute, s.find, s.post)
			if err != nil || v != "thing" || s.made != 1 {
				t.Fatalf("got %q, %v with %d made in %d posts", v, err, s.made, s.posts)
			}
		})
	}
}

func TestPermanentRefusalIsNotRepeated(t *testing.T) {
	for _, err := range []error{
		&scw.OutOfStockError{Resource: "PLAY2-NANO"}, &scw.QuotasExceededError{}, &scw.PermissionsDeniedError{}, &scw.InvalidArgumentsError{},
		&scw.ResponseError{StatusCode: 409, Message: "name taken"},
	} {
		s := &shelf{before: []error{err}}
		c := &Cloud{pace: quickPace.orDefaults()}
		if _, got := ensure(t.Context(), c, time.Minute, s.find, s.post); !errors.Is(got, err) || s.posts != 1 {
			t.Errorf("%T: %v after %d posts", err, got, s.posts)
		}
	}
}

// A wait says what it waits for, and an interruption of it is no more than that:
// an import that is to be removed can take half an hour.
func TestAWaitSaysWhatItWaitsFor(t *testing.T) {
	pace := quickPace
	pace.Tell = time.Nanosecond
	c := &Cloud{pace: pace.orDefaults()}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var said []string
	_, err := until(Telling(ctx, func(text string) { said = append(said, text); cancel() }), c,
		waiting{what: "the snapshot x", to: "come to rest", limit: time.Minute}, look("creating"), runs)
	if len(said) != 1 || !strings.Contains(said[0], "waiting for the snapshot x to come to rest, at most 1m0s: it is creating") {
		t.Errorf("said %q", said)
	}
	if !errors.Is(err, context.Canceled) || outcome.CodeOf(err) != outcome.Interrupted {
		t.Errorf("want an interruption, got %v", err)
	}
}
