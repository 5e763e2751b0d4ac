package factory

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bastide/internal/estate"
	"bastide/internal/outcome"
)

var gvisor = estate.Talos{Version: "v1.13.5", Extensions: []string{"siderolabs/gvisor"}, Image: estate.Image{Source: "raw.zst"}}

// answering is a Factory that answers each path in one way; what is not named is
// answered as the real one does.
func answering(t *testing.T, answers map[string]http.HandlerFunc) *Factory {
	t.Helper()
	usual := map[string]string{
		"/schematics":                          fmt.Sprintf(`{"id": %q}`, gvisor.SchematicID()),
		"/version/v1.13.5/extensions/official": `[{"name":"siderolabs/gvisor"},{"name":"siderolabs/gvisor-debug"},{"name":"siderolabs/kata-containers"}]`,
		"/versions":                            `["v1.12.9","v1.13.4","v1.13.5","v1.14.0"]`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if special := answers[r.URL.Path]; special != nil {
			special(w, r)
			return
		}
		text, known := usual[r.URL.Path]
		if !known {
			http.Error(w, "not found", http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	f, err := New(Options{LookupEnv: func(string) (string, bool) { return server.URL + "/", true }, Patience: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func both(ctx context.Context, f *Factory, t estate.Talos) error {
	if err := f.Check(ctx, t); err != nil {
		return err
	}
	return f.Register(ctx, t)
}

func says(status int, kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}
}

// What the Factory refuses is a refusal; what it could not be asked is unknown.
func TestAnswersOfTheFactory(t *testing.T) {
	const extensions = "/version/v1.13.5/extensions/official"
	for name, c := range map[string]struct {
		answers map[string]http.HandlerFunc
		code    outcome.Code
		want    string
	}{
		"as it should be":     {nil, outcome.Done, ""},
		"another id":          {map[string]http.HandlerFunc{"/schematics": says(201, "application/json", `{"id":"`+estate.NoSchematic+`"}`)}, outcome.Refused, "calls it " + estate.NoSchematic},
		"no id":               {map[string]http.HandlerFunc{"/schematics": says(201, "application/json", `{}`)}, outcome.Unknown, "cannot be read"},
		"a schematic refused": {map[string]http.HandlerFunc{"/schematics": says(400, "text/plain", "unknown field\nmore")}, outcome.Refused, "400 Bad Request: unknown field"},
		"a page":              {map[string]http.HandlerFunc{extensions: says(200, "text/html", "<html>log in</html>")}, outcome.Unknown, "cannot be read"},
		"a page that fails":   {map[string]http.HandlerFunc{extensions: says(502, "text/html", "<html>bad gateway</html>")}, outcome.Unknown, "502 Bad Gateway: a page of HTML"},
		"limited":             {map[string]http.HandlerFunc{extensions: says(429, "text/plain", "slow down")}, outcome.Unknown, "429"},
		"cut":                 {map[string]http.HandlerFunc{extensions: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }}, outcome.Unknown, "could not be asked"},
		"half":                {map[string]http.HandlerFunc{extensions: says(200, "application/json", `[{"name":"siderolabs/gvi`)}, outcome.Unknown, "cannot be read"},
		"forbidden":           {map[string]http.HandlerFunc{extensions: says(403, "text/plain", "no")}, outcome.Refused, "403"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			err := both(t.Context(), answering(t, c.answers), gvisor)
			if outcome.CodeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("want %d with %q, got %v", c.code, c.want, err)
			}
		})
	}
}

// What fails in passing is asked again.
func TestTheFactoryIsAskedAgain(t *testing.T) {
	var asked atomic.Int32
	f := answering(t, map[string]http.HandlerFunc{"/schematics": func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(`{"id":"` + gvisor.SchematicID() + `"}`))
	}})
	f.o.Patience = time.Minute
	var told []string
	f.o.Notice = func(text string) { told = append(told, text) }
	defer func() {
		if len(told) != 1 || !strings.Contains(told[0], "trying again until") {
			t.Errorf("a person who waits is told %q", told)
		}
	}()
	if err := f.Register(t.Context(), gvisor); err != nil || asked.Load() != 2 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}

// A wrong name is refused with those that may have been meant.
func TestNearestNames(t *testing.T) {
	f := answering(t, nil)
	for name, want := range map[string]string{
		"siderolabs/gvizor": "did you mean siderolabs/gvisor", "siderolabs/kata": "siderolabs/kata-containers", "other/gvisor": "siderolabs/gvisor",
		"siderolabs/gvisor-debugg": "siderolabs/gvisor-debug", "siderolabs/zzzzzzzz": "see which there are",
	} {
		talos := gvisor
		talos.Extensions = []string{"siderolabs/gvisor", name}
		err := f.Check(t.Context(), talos)
		if outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "talos.extensions[1]") {
			t.Errorf("%s: %v", name, err)
		}
	}
	talos := gvisor
	talos.Version = "v1.13.99"
	err := f.Check(t.Context(), talos)
	if outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), "choose one of v1.13.4, v1.13.5") {
		t.Errorf("a version that does not exist: %v", err)
	}
}

func TestAddressesOfTheFactory(t *testing.T) {
	for text, good := range map[string]bool{"": true, "https://factory.example.org/": true, "http://127.0.0.1:1/x": true,
		"factory.example.org": false, "ftp://x": false, "https://": false, "https://user:secret@x": false, "https://x?y": false} {
		f, err := New(Options{LookupEnv: func(string) (string, bool) { return text, text != "" }})
		if (err == nil) != good || err != nil && outcome.CodeOf(err) != outcome.Refused {
			t.Errorf("%q: %v", text, err)
		}
		if err == nil && (strings.HasSuffix(f.String(), "/") || !strings.Contains(f.Image(gvisor), gvisor.SchematicID()+"/v1.13.5/scaleway-amd64.raw.zst")) {
			t.Errorf("%q: %s", text, f.Image(gvisor))
		}
	}
}

// An address at which nobody answers ends the question at once.
func TestNobodyAtTheAddress(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	f, err := New(Options{LookupEnv: func(string) (string, bool) { return server.URL, true }, Patience: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	err = f.Check(t.Context(), gvisor)
	if outcome.CodeOf(err) != outcome.Unknown || !strings.Contains(err.Error(), Variable) || !strings.Contains(err.Error(), "--from FILE") {
		t.Error(err)
	}
}
