package session

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bastide/internal/outcome"
)

// A command that never uploads does not speak of uploads, says where nobody is what
// to look at, and names the address once.
func TestWhatIsSaidOfAnAddressThatCannotBeRead(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/file":
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		case "/endless":
			conn, out, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			_, _ = out.WriteString("HTTP/1.0 200 OK\r\n\r\nQFI")
			_ = out.Flush()
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	nobody := httptest.NewServer(nil)
	nobody.Close()
	defer s.Close()
	for from, says := range map[string]string{
		s.URL + "/loop": "redirected too often", s.URL + "/file": "an address with file", s.URL + "/endless": "how long the file is",
		s.URL + "/nothing": "the server answered 404", nobody.URL + "/disk": "connection refused",
	} {
		_, err := CheckImage(context.Background(), from+"?signature=hush", 0, nil, nil)
		var told *outcome.Error
		if !errors.As(err, &told) || told.Code != outcome.Failed || !strings.Contains(told.Why, says) || told.Do == "" {
			t.Errorf("%s: %v", from, err)
			continue
		}
		if text := err.Error(); strings.Contains(text, "upload") || strings.Contains(text, "hush") || strings.Count(text, from) != 1 {
			t.Errorf("%s: %s", from, text)
		}
	}
}
