package factory

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"bastide/internal/sim/talosdisk"
)

// buildTakes is how long the first request for an image takes, in the region's
// time: the Factory builds on demand and keeps what it built. Nobody recorded
// it.
const buildTakes = 30 * time.Second

// storedFor is how long an address of the storage holds. Signatures follow the
// calendar, like those of object storage.
const storedFor = time.Hour

// path is what the last segment of an image's address asks for.
var imagePath = regexp.MustCompile(`^(scaleway|metal)-amd64\.(raw|qcow2|raw\.zst|raw\.xz)$`)

// build is an image that is made, or has been.
type build struct {
	done chan struct{}
	err  error

	content  io.ReaderAt
	file     *os.File // nil for a raw image
	size     int64
	etag     string
	modified time.Time
}

// asked is a good request for an image.
type asked struct {
	label  talosdisk.Label
	format string
}

// ask reads a request for an image, or answers why there is none.
func (s *Server) ask(w http.ResponseWriter, r *http.Request) (asked, bool) {
	path := r.PathValue("path")
	for _, suffix := range []string{".sha256", ".sha512", ".sigstore.json"} {
		if strings.HasSuffix(path, suffix) {
			fail(w, http.StatusPaymentRequired, "enterprise feature is not enabled")
			return asked{}, false
		}
	}
	one, ok := s.schematic(r.PathValue("schematic"))
	if !ok {
		fail(w, http.StatusNotFound, "schematic not found")
		return asked{}, false
	}
	v, ok := version(w, r)
	if !ok {
		return asked{}, false
	}
	m := imagePath.FindStringSubmatch(path)
	if m == nil {
		fail(w, http.StatusBadRequest, "invalid image path: %s", path)
		return asked{}, false
	}
	for _, e := range one.Customization.Extensions.Official {
		if !slices.ContainsFunc(extensions(v), func(x extension) bool { return x.Name == e }) {
			fail(w, http.StatusBadRequest, "official extension %q is not available for Talos version %s", e, v)
			return asked{}, false
		}
	}
	return asked{talosdisk.Label{Version: v, Schematic: r.PathValue("schematic"), Platform: m[1],
		Extensions: one.Customization.Extensions.Official, KernelArgs: one.Customization.KernelArgs}, m[2]}, true
}

// getImage answers HEAD itself and leads GET to the storage, where a client can
// go on in the middle.
func (s *Server) getImage(w http.ResponseWriter, r *http.Request) {
	a, ok := s.ask(w, r)
	if !ok {
		return
	}
	b, err := s.image(r.Context(), a)
	if err != nil {
		fail(w, http.StatusInternalServerError, "internal error")
		return
	}
	if r.Method != http.MethodHead && !s.opts.Watch.Faults().Factory().Direct {
		path := strings.Join([]string{"/storage", r.PathValue("schematic"), a.label.Version, r.PathValue("path")}, "/")
		until := strconv.FormatInt(time.Now().Add(storedFor).UnixMilli(), 10)
		http.Redirect(w, r, "http://"+r.Host+path+"?expires="+until+"&signature="+s.sign(path, until), http.StatusFound)
		return
	}
	w.Header().Set("Content-Length", strconv.FormatInt(b.size, 10))
	w.Header().Set("Content-Type", contentType(a.format))
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", r.PathValue("path")))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		if _, err := io.Copy(w, io.NewSectionReader(b.content, 0, b.size)); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// getStored serves the storage that GET is led to, with ranges and conditions.
func (s *Server) getStored(w http.ResponseWriter, r *http.Request) {
	until, err := strconv.ParseInt(r.URL.Query().Get("expires"), 10, 64)
	if r.URL.Query().Get("signature") != s.sign(r.URL.Path, r.URL.Query().Get("expires")) || err != nil || time.Now().UnixMilli() > until {
		fail(w, http.StatusForbidden, "AccessDenied: the address is not signed, or no longer good")
		return
	}
	a, ok := s.ask(w, r)
	if !ok {
		return
	}
	b, err := s.image(r.Context(), a)
	if err != nil {
		fail(w, http.StatusInternalServerError, "internal error")
		return
	}
	w.Header().Set("Content-Type", contentType(a.format))
	w.Header().Set("ETag", b.etag)
	http.ServeContent(w, r, "", b.modified, io.NewSectionReader(b.content, 0, b.size))
}

func (s *Server) sign(path, until string) string {
	sum := sha256.Sum256([]byte(s.secret + "\x00" + path + "\x00" + until))
	return hex.EncodeToString(sum[:16])
}

func contentType(format string) string {
	switch format {
	case "raw.zst":
		return "application/zstd"
	case "raw.xz":
		return "application/x-xz"
	}
	return "application/octet-stream"
}

// image gives an image, which is built when it is first asked for; whoever asks
// meanwhile waits for the same build. A client that goes away does not end it.
func (s *Server) image(ctx context.Context, a asked) (*build, error) {
	key := strings.Join([]string{a.label.Schematic, a.label.Version, a.label.Platform + "." + a.format}, "-")
	s.mu.Lock()
	b := s.builds[key]
	if b == nil {
		b = &build{done: make(chan struct{})}
		s.builds[key] = b
		s.running.Go(func() { s.build(b, a, key) })
	}
	s.mu.Unlock()
	select {
	case <-b.done:
		return b, b.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Server) build(b *build, a asked, key string) {
	waited := make(chan error, 1)
	go func() { waited <- s.opts.Clock.Wait(s.alive, buildTakes) }()
	b.err = s.make(b, a, filepath.Join(s.opts.Dir, key))
	b.err = errors.Join(b.err, <-waited)
	if b.err != nil {
		s.opts.Log.Error("simulated Image Factory: build", "image", key, "error", b.err)
		s.opts.Host.Failed("the simulated Image Factory", b.err)
		s.mu.Lock()
		delete(s.builds, key) // the next request tries again
		s.mu.Unlock()
	}
	close(b.done)
}

// make makes an image. A raw one takes no room: it is read from its layout.
func (s *Server) make(b *build, a asked, file string) error {
	disk, err := talosdisk.New(a.label)
	if err != nil {
		return err
	}
	b.modified = time.Now()
	if a.format == "raw" {
		b.content, b.size = disk, talosdisk.Size
		b.etag = etag(sha256.Sum256([]byte(filepath.Base(file))))
		return nil
	}
	write := map[string]func(io.Writer) error{"qcow2": disk.WriteQCOW2, "raw.zst": disk.WriteZstd, "raw.xz": disk.WriteXZ}[a.format]
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(f, sum, alive{s.alive}), 1<<20)
	if err := errors.Join(write(w), w.Flush()); err != nil {
		return errors.Join(err, f.Close(), os.Remove(file))
	}
	b.file, b.content, b.etag = f, f, etag([sha256.Size]byte(sum.Sum(nil)))
	b.size, err = f.Seek(0, io.SeekEnd)
	return err
}

func etag(sum [sha256.Size]byte) string { return `"` + hex.EncodeToString(sum[:16]) + `"` }

// alive ends what is written once its context has ended.
type alive struct{ ctx context.Context }

func (a alive) Write(p []byte) (int, error) { return len(p), a.ctx.Err() }
