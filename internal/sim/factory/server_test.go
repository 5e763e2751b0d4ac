package factory_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"bastide/internal/sim/clock"
	"bastide/internal/sim/factory"
	"bastide/internal/sim/fault"
)

const (
	plain  = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"
	gvisor = "customization:\n  systemExtensions:\n    officialExtensions: [siderolabs/gvisor]\n"
)

// watch keeps what a region would log.
type watch struct {
	engine *fault.Engine
	mu     sync.Mutex
	log    []string
	ends   []factory.End
}

func (w *watch) Faults() *fault.Engine { return w.engine }

func (w *watch) Begin(r *http.Request, query string) func(factory.End) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, r.Method+" "+r.URL.Path+"?"+query)
	return func(e factory.End) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ends = append(w.ends, e)
	}
}

// site is a Factory under test.
type site struct {
	t     *testing.T
	url   string
	watch *watch
	clock clock.Clock
	http  *http.Client // does not follow redirects
}

func start(t *testing.T) *site {
	t.Helper()
	c := clock.New(10_000)
	w := &watch{engine: fault.NewEngine(c)}
	s, err := factory.New(factory.Options{Dir: t.TempDir(), Clock: c, Watch: w})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &site{t: t, url: web.URL, watch: w, clock: c, http: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// do makes a call and reads its answer, unless that is large.
func (s *site) do(method, path, body string, header ...string) (*http.Response, string) {
	s.t.Helper()
	if !strings.HasPrefix(path, "http") {
		path = s.url + path
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := s.http.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		s.t.Fatal(err)
	}
	return resp, string(text)
}

func (s *site) want(status int, method, path, body string, header ...string) string {
	s.t.Helper()
	resp, text := s.do(method, path, body, header...)
	if resp.StatusCode != status {
		s.t.Errorf("%s %s: %d, want %d: %s", method, path, resp.StatusCode, status, text)
	}
	return text
}

// post makes a schematic and returns its id.
func (s *site) post(text string) string {
	s.t.Helper()
	var out struct{ ID, Schematic string }
	if err := json.Unmarshal([]byte(s.want(http.StatusCreated, "POST", "/schematics", text)), &out); err != nil {
		s.t.Fatal(err)
	}
	if got := s.want(http.StatusOK, "GET", "/schematics/"+out.ID, ""); got != out.Schematic {
		s.t.Errorf("GET gives %q, POST gave %q", got, out.Schematic)
	}
	return out.ID
}

// located asks for an image and returns where the storage has it.
func (s *site) located(path string) string {
	s.t.Helper()
	resp, text := s.do("GET", path, "")
	if resp.StatusCode != http.StatusFound {
		s.t.Fatalf("GET %s: %d: %s", path, resp.StatusCode, text)
	}
	return resp.Header.Get("Location")
}

func TestSchematicsExistOncePosted(t *testing.T) {
	s := start(t)
	s.want(http.StatusOK, "GET", "/schematics/"+plain, "")
	id := "a1b2"
	s.want(http.StatusNotFound, "GET", "/schematics/"+id, "")
	s.want(http.StatusNotFound, "HEAD", "/image/"+id+"/v1.13.5/scaleway-amd64.qcow2", "")
	if one, two := s.post(gvisor), s.post(gvisor); one != two || len(one) != 64 {
		t.Errorf("%s, %s", one, two)
	}
	if text := s.want(http.StatusBadRequest, "POST", "/schematics", "customization: {extentions: []}"); !strings.Contains(text, "extentions") {
		t.Errorf("the refusal does not name the key: %s", text)
	}
}

func TestVersionsAndExtensions(t *testing.T) {
	s := start(t)
	var versions []string
	if err := json.Unmarshal([]byte(s.want(http.StatusOK, "GET", "/versions", "")), &versions); err != nil || !slices.Contains(versions, "v1.13.5") {
		t.Errorf("%v, %v", versions, err)
	}
	s.want(http.StatusOK, "GET", "/versions?broken=true", "")
	var all []struct{ Name, Ref, Digest, Author, Description string }
	if err := json.Unmarshal([]byte(s.want(http.StatusOK, "GET", "/version/1.13.5/extensions/official", "")), &all); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range all {
		names[e.Name] = true
		if e.Ref == "" || !strings.HasPrefix(e.Digest, "sha256:") || e.Author == "" || e.Description == "" {
			t.Errorf("%+v is not whole", e)
		}
	}
	if !names["siderolabs/gvisor"] || !names["siderolabs/kata-containers"] || len(names) < 50 {
		t.Errorf("%d extensions: %v", len(names), names)
	}
	s.want(http.StatusOK, "GET", "/version/v1.13.5/overlays/official", "")
	s.want(http.StatusNotFound, "GET", "/version/v1.99.0/extensions/official", "")
	s.want(http.StatusInternalServerError, "GET", "/version/newest/extensions/official", "")
	s.want(http.StatusNotFound, "GET", "/v2/installer/"+plain+"/manifests/v1.13.5", "")
}

func TestImagesThatAreNotServed(t *testing.T) {
	s := start(t)
	id := s.post("customization: {systemExtensions: {officialExtensions: [siderolabs/gvizor]}}") // nobody checks yet
	if text := s.want(http.StatusBadRequest, "GET", "/image/"+id+"/v1.13.5/scaleway-amd64.qcow2", ""); !strings.Contains(text, "siderolabs/gvizor") {
		t.Error(text)
	}
	base := "/image/" + plain
	s.want(http.StatusPaymentRequired, "GET", base+"/v1.13.5/scaleway-amd64.qcow2.sha256", "")
	s.want(http.StatusPaymentRequired, "HEAD", base+"/v1.13.5/scaleway-amd64.qcow2.sigstore.json", "")
	s.want(http.StatusBadRequest, "GET", base+"/v1.13.5/scaleway-amd64.vmdk", "")
	s.want(http.StatusNotFound, "GET", base+"/v1.99.1/scaleway-amd64.qcow2", "")
	s.want(http.StatusForbidden, "GET", "/storage/"+plain+"/v1.13.5/scaleway-amd64.qcow2", "")
}

// Fault rules act on all that the Factory answers; a client that was killed
// finds its schematic there, or not.
func TestTheFactoryFails(t *testing.T) {
	s := start(t)
	script, err := fault.Parse([]byte(`http:
  - {method: POST, path: /schematics, nth: 1, status: 503}
  - {method: POST, path: /schematics, nth: 2, applyThenDrop: true}
  - {method: POST, path: /schematics, nth: 3, drop: true}
  - {method: GET, path: "/storage/**", nth: 1, truncate: 1000000}
  - {method: GET, path: "/storage/**", nth: 2, status: 200, body: "<html>down for maintenance</html>"}
  - {method: GET, path: /versions, nth: 1, delay: 10s}
`))
	if err == nil {
		err = s.watch.engine.Load(script)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.want(http.StatusServiceUnavailable, "POST", "/schematics", gvisor)
	for range 2 {
		if resp, err := http.Post(s.url+"/schematics", "application/yaml", strings.NewReader(gvisor)); err == nil {
			_ = resp.Body.Close()
			t.Errorf("a dropped call was answered with %d", resp.StatusCode)
		}
	}
	at := s.located("/image/" + s.post(gvisor) + "/v1.13.5/scaleway-amd64.qcow2")
	resp, err := http.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if n != 1_000_000 || !errors.Is(err, io.ErrUnexpectedEOF) || resp.ContentLength < 32<<20 {
		t.Errorf("%d of %d bytes, %v", n, resp.ContentLength, err)
	}
	if text := s.want(http.StatusOK, "GET", at, ""); !strings.HasPrefix(text, "<html>") {
		t.Error(text)
	}
	s.want(http.StatusPartialContent, "GET", at, "", "Range", "bytes=1000000-1000009")
	s.want(http.StatusOK, "GET", "/versions", "")
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	made := 0
	for _, e := range s.watch.ends {
		if e.Made != "" {
			made++
		}
	}
	if made != 2 { // the one whose answer was lost, and the last
		t.Errorf("%d calls made a schematic: %+v", made, s.watch.ends)
	}
}

// A client that is killed around its POST left a schematic behind, or none.
func TestClientsAreKilledAtTheFactory(t *testing.T) {
	for when, made := range map[string]int{"before": http.StatusNotFound, "after": http.StatusOK} {
		t.Run(when, func(t *testing.T) {
			s := start(t)
			id, err := factory.SchematicID([]string{"siderolabs/gvisor"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			victim := exec.CommandContext(t.Context(), "sleep", "60")
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
			if err := s.watch.engine.Load(fault.Script{Kill: []fault.KillRule{{Path: "/schematics", Nth: 1, PID: victim.Process.Pid, When: when}}}); err != nil {
				t.Fatal(err)
			}
			if resp, err := http.Post(s.url+"/schematics", "application/yaml", strings.NewReader(gvisor)); err == nil {
				_ = resp.Body.Close()
				t.Errorf("the dead were answered with %d", resp.StatusCode)
			}
			if err := victim.Wait(); err == nil {
				t.Error("nobody was killed")
			}
			s.want(made, "GET", "/schematics/"+id, "")
			s.watch.mu.Lock()
			defer s.watch.mu.Unlock()
			if e := s.watch.ends[0]; e.Killed != when || e.Status != 0 {
				t.Errorf("%+v", e)
			}
		})
	}
}
