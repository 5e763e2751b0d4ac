package ui

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"sort"
	"strings"
	"sync"
)

// mask is what stands in a secret's place.
const mask = "[redacted]"

// shortest is the length below which a secret is not searched for: masking
// "root" or "1234" everywhere would hide more than it protects.
const shortest = 8

// Redactor masks known secrets in whatever passes through it. It is the last
// net: secrets have a type that does not print, and this catches what escapes
// that, such as an error text of a library.
type Redactor struct {
	mu       sync.RWMutex
	secrets  map[string]bool
	replacer *strings.Replacer
}

// Redact makes a redactor for secrets. Each is found as it is, line by line
// where it has several, in base64, and as JSON would escape it.
func Redact(secrets []string) *Redactor {
	r := &Redactor{secrets: map[string]bool{}, replacer: strings.NewReplacer()}
	r.Add(secrets...)
	return r
}

// Add adds secrets.
func (r *Redactor) Add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range secrets {
		for _, form := range forms(s) {
			r.secrets[form] = true
		}
	}
	sorted := make([]string, 0, len(r.secrets))
	for s := range r.secrets {
		sorted = append(sorted, s)
	}
	// Where two begin at the same place the longer must win, or its end shows.
	sort.Slice(sorted, func(i, j int) bool {
		return len(sorted[i]) > len(sorted[j]) || (len(sorted[i]) == len(sorted[j]) && sorted[i] < sorted[j])
	})
	pairs := make([]string, 0, 2*len(sorted))
	for _, s := range sorted {
		pairs = append(pairs, s, mask)
	}
	r.replacer = strings.NewReplacer(pairs...)
}

func forms(secret string) []string {
	parts := []string{secret}
	if lines := strings.Split(secret, "\n"); len(lines) > 1 {
		for _, l := range lines {
			if !strings.HasPrefix(l, "-----") { // the frame of a PEM block is no secret
				parts = append(parts, l)
			}
		}
	}
	var out []string
	for _, p := range parts {
		p = strings.TrimSpace(p)
		if len(p) < shortest {
			continue
		}
		out = append(out, p, base64.StdEncoding.EncodeToString([]byte(p)), base64.RawURLEncoding.EncodeToString([]byte(p)))
		if escaped, err := json.Marshal(p); err == nil {
			out = append(out, strings.Trim(string(escaped), `"`))
		}
	}
	// A file in base64 usually keeps the newline that ends it.
	if len(strings.TrimSpace(secret)) >= shortest {
		out = append(out, base64.StdEncoding.EncodeToString([]byte(secret)))
	}
	return out
}

// String masks the secrets in a text.
func (r *Redactor) String(s string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.replacer.Replace(s)
}

// Writer masks what is written. Each Write is looked at by itself, so a text
// must not be split inside a line.
func (r *Redactor) Writer(w io.Writer) io.Writer { return redacting{r, w} }

type redacting struct {
	r *Redactor
	w io.Writer
}

func (w redacting) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.w, w.r.String(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
