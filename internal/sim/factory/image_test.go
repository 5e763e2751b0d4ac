package factory_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"bastide/internal/sim/fault"
)

func TestTheFirstRequestWaitsForTheBuild(t *testing.T) {
	s := start(t)
	path := "/image/" + plain + "/v1.13.5/scaleway-amd64.qcow2"
	var all sync.WaitGroup
	for range 4 { // together they wait for one build
		all.Go(func() { s.want(http.StatusOK, "HEAD", path, "") })
	}
	all.Wait()
	s.want(http.StatusFound, "GET", path, "")
	builds := 0
	for _, d := range s.clock.Delays() {
		if d.What == "30s" {
			builds++
		}
	}
	if builds != 1 {
		t.Errorf("%d builds of one image: %v", builds, s.clock.Delays())
	}
}

func TestDownloadsGoOnInTheMiddle(t *testing.T) {
	s := start(t)
	path := "/image/" + plain + "/v1.13.5/scaleway-amd64.qcow2"
	head, _ := s.do("HEAD", path, "")
	if head.ContentLength < 32<<20 || head.Header.Get("ETag") != "" || head.Header.Get("Accept-Ranges") != "" {
		t.Errorf("HEAD: %d, %v", head.ContentLength, head.Header)
	}
	at := s.located(path)
	part, text := s.do("GET", at, "", "Range", "bytes=0-3")
	if part.StatusCode != http.StatusPartialContent || text != "QFI\xfb" {
		t.Errorf("%d: %q", part.StatusCode, text)
	}
	etag := part.Header.Get("ETag")
	rest, text := s.do("GET", at, "", "Range", "bytes=4-7", "If-Range", etag)
	if rest.StatusCode != http.StatusPartialContent || text != "\x00\x00\x00\x03" || rest.Header.Get("ETag") != etag {
		t.Errorf("%d: %q", rest.StatusCode, text)
	}
	if again, _ := s.do("GET", at, "", "Range", "bytes=4-7", "If-Range", `"another"`); again.StatusCode != http.StatusOK {
		t.Errorf("another version is gone on with: %d", again.StatusCode)
	}
	s.want(http.StatusPreconditionFailed, "GET", at, "", "If-Match", `"another"`)
	s.want(http.StatusRequestedRangeNotSatisfiable, "GET", at, "", "Range", "bytes=99999999999-")
	if raw, _ := s.do("HEAD", "/image/"+plain+"/v1.13.5/metal-amd64.raw", ""); raw.ContentLength != 4247<<20 {
		t.Errorf("the raw image has %d bytes", raw.ContentLength)
	}
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	if log := strings.Join(s.watch.log, "\n"); strings.Contains(log, "signature") || !strings.Contains(log, "GET /storage/"+plain) {
		t.Error(log)
	}
}

func TestAFactoryWithoutStorage(t *testing.T) {
	s := start(t)
	if err := s.watch.engine.Load(fault.Script{Factory: fault.Factory{Direct: true}}); err != nil {
		t.Fatal(err)
	}
	resp, text := s.do("GET", "/image/"+plain+"/1.13.5/scaleway-amd64.qcow2", "", "Range", "bytes=4-7")
	if resp.StatusCode != http.StatusOK || resp.Header.Get("ETag") != "" || !strings.HasPrefix(text, "QFI") {
		t.Errorf("%d, %v", resp.StatusCode, resp.Header)
	}
}

// What is served is what other programs read.
func TestServedImagesAreGood(t *testing.T) {
	s := start(t)
	for format, check := range map[string][]string{
		"qcow2": {"qemu-img", "check"}, "raw.zst": {"zstd", "-qt"},
	} {
		t.Run(format, func(t *testing.T) {
			if _, err := exec.LookPath(check[0]); err != nil {
				t.Skipf("%s is not installed: what it would say of the image is not known", check[0])
			}
			resp, err := http.Get(s.url + "/image/" + plain + "/v1.13.5/scaleway-amd64." + format)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			name := filepath.Join(t.TempDir(), "image."+format)
			f, err := os.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(f, resp.Body)
			if err != nil || n != resp.ContentLength {
				t.Fatalf("%d of %d bytes: %v", n, resp.ContentLength, err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.CommandContext(t.Context(), check[0], append(check[1:], name)...).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
