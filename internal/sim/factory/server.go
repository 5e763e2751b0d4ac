// Package factory is the Image Factory beside the simulated region: schematics,
// versions, official extensions and disk images that Talos "boots" from. It
// answers plain HTTP on a port of its own. Its registry of installer images is
// not served.
package factory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/uuid"

	"bastide/internal/sim/clock"
	"bastide/internal/sim/fault"
	"bastide/internal/sim/host"
)

// End is what became of a call.
type End struct {
	Status int // 0 means that the connection was cut
	Made   string
	Fault  *fault.HTTP
	Killed string // before or after the call took effect, when the caller was
}

// Watch is the region around the Factory: its fault script and its request log.
type Watch interface {
	Faults() *fault.Engine
	// Begin notes a call by its path, and its query without signatures. End is
	// called once.
	Begin(r *http.Request, query string) (end func(End))
}

// Options configures a Factory.
type Options struct {
	// Dir is where images are kept once they are built; it is made, and emptied
	// first.
	Dir   string
	Clock clock.Clock
	Watch Watch
	Log   *slog.Logger
	Host  *host.Host // is told of builds that fail; nil tells nobody
}

// Server is the Factory. It is an http.Handler.
type Server struct {
	opts   Options
	routes *http.ServeMux
	secret string // signs addresses of its storage
	end    context.CancelFunc
	alive  context.Context

	running sync.WaitGroup // builds

	mu         sync.Mutex
	schematics map[string]schematic
	builds     map[string]*build
}

// New returns a Factory that knows the schematic without customisation only.
func New(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Dir = filepath.Join(o.Dir, "factory")
	if err := errors.Join(os.RemoveAll(o.Dir), os.MkdirAll(o.Dir, 0o700)); err != nil {
		return nil, err
	}
	s := &Server{opts: o, routes: http.NewServeMux(), secret: uuid.NewString(), schematics: map[string]schematic{}, builds: map[string]*build{}}
	s.alive, s.end = context.WithCancel(context.Background())
	if _, err := s.add(schematic{}); err != nil {
		return nil, err
	}
	s.routes.HandleFunc("POST /schematics", s.postSchematic)
	s.routes.HandleFunc("GET /schematics/{schematic}", s.getSchematic)
	s.routes.HandleFunc("GET /versions", s.getVersions)
	s.routes.HandleFunc("GET /version/{version}/extensions/official", s.getExtensions)
	s.routes.HandleFunc("GET /version/{version}/overlays/official", s.getOverlays)
	s.routes.HandleFunc("GET /image/{schematic}/{version}/{path}", s.getImage)
	s.routes.HandleFunc("GET /storage/{schematic}/{version}/{path}", s.getStored)
	return s, nil
}

// Close ends the builds that run. Images stay on disk.
func (s *Server) Close() error {
	s.end()
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, b := range s.builds {
		if b.file != nil {
			errs = append(errs, b.file.Close())
		}
	}
	return errors.Join(errs...)
}

// ServeHTTP takes a call through the fault script, its handler and the log.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	query.Del("signature")
	end := s.opts.Watch.Begin(r, query.Encode())
	out, e := &answer{ResponseWriter: w, limit: -1}, End{}
	defer func() { // also when the connection is cut
		e.Status, e.Made = out.status, out.made
		end(e)
	}()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestSchematic))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	faults := s.opts.Watch.Faults()
	e.Fault = faults.HTTP(r.Method, r.URL.Path, r.URL.Query(), body)
	after := func() bool { return false }
	if fault.Mutates(r.Method) {
		var killed bool
		if killed, after = faults.Mutating(r.URL.Path); killed {
			e.Killed = "before"
			panic(http.ErrAbortHandler)
		}
	}
	if !act(out, r, e.Fault) {
		return
	}
	out.Header().Set("Server", "Image Factory v1.5.0")
	out.Header().Set("X-Request-Id", requestID(r))
	r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, body))
	if !fault.Mutates(r.Method) {
		s.read(out, r, e.Fault)
		return
	}
	held := &unsent{answer: out, status: http.StatusOK}
	s.routes.ServeHTTP(held, r)
	if after() {
		e.Killed = "after"
		panic(http.ErrAbortHandler)
	}
	if e.Fault != nil && e.Fault.ApplyThenDrop {
		panic(http.ErrAbortHandler)
	}
	held.send()
}

// largestSchematic is the largest body that is read.
const largestSchematic = 4 << 20

// read answers a call that changes nothing, as far as a fault lets it.
func (s *Server) read(out *answer, r *http.Request, f *fault.HTTP) {
	if f != nil && f.ApplyThenDrop {
		panic(http.ErrAbortHandler)
	}
	if f != nil && f.Truncate > 0 {
		out.limit = int64(f.Truncate)
	}
	s.routes.ServeHTTP(out, r)
}

func requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); id != "" {
		return id
	}
	return uuid.NewString()
}

// bodyKey leads from a context to the body that was read already.
type bodyKey struct{}

// fail answers as the Factory does: in plain text.
func fail(w http.ResponseWriter, status int, format string, args ...any) {
	http.Error(w, fmt.Sprintf(format, args...), status)
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// add keeps a schematic and returns its id.
func (s *Server) add(one schematic) (string, error) {
	id, err := one.id()
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.schematics[id] = one
	return id, nil
}

func (s *Server) schematic(id string) (schematic, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.schematics[id]
	return one, ok
}

func (s *Server) postSchematic(w http.ResponseWriter, r *http.Request) {
	body, _ := r.Context().Value(bodyKey{}).([]byte)
	one, err := parseSchematic(body)
	if err != nil {
		fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	text, err := one.canonical()
	if err != nil {
		fail(w, http.StatusInternalServerError, "internal error")
		return
	}
	id, err := s.add(one)
	if err != nil {
		fail(w, http.StatusInternalServerError, "internal error")
		return
	}
	if m, ok := w.(*unsent); ok {
		m.made = id
	}
	answerJSON(w, http.StatusCreated, map[string]string{"id": id, "schematic": string(text)})
}

func (s *Server) getSchematic(w http.ResponseWriter, r *http.Request) {
	one, ok := s.schematic(r.PathValue("schematic"))
	if !ok {
		fail(w, http.StatusNotFound, "schematic not found")
		return
	}
	text, err := one.canonical()
	if err != nil {
		fail(w, http.StatusInternalServerError, "internal error")
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(text)
}

func (s *Server) getVersions(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("broken") == "true" {
		answerJSON(w, http.StatusOK, broken)
		return
	}
	answerJSON(w, http.StatusOK, versions())
}

func (s *Server) getExtensions(w http.ResponseWriter, r *http.Request) {
	if v, ok := version(w, r); ok {
		answerJSON(w, http.StatusOK, extensions(v))
	}
}

func (s *Server) getOverlays(w http.ResponseWriter, r *http.Request) {
	if v, ok := version(w, r); ok {
		answerJSON(w, http.StatusOK, overlays(v))
	}
}

// version reads the version in a path. A malformed one is a 500, as the Factory's
// own reference says.
func version(w http.ResponseWriter, r *http.Request) (string, bool) {
	v, malformed, known := findVersion(r.PathValue("version"))
	switch {
	case malformed:
		fail(w, http.StatusInternalServerError, "error parsing version: %q is no version", r.PathValue("version"))
	case !known:
		fail(w, http.StatusNotFound, "version %s is not available", v)
	}
	return v, known
}
