package s3_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The scorer of the other recordings plays only calls of the Scaleway API, so
// object storage has its own here, by the same rules: the same status, every
// recorded element, and what was set comes back. Recordings have no headers;
// where a call would make no sense without one, it is taken from what the
// recording reads afterwards (see headers), and such a read proves little.

type step struct {
	Method, Host, Path, Query string
	Request, Response         json.RawMessage
	Status                    int
}

// text is a body as it was on the wire, or would have been: JSON was unpacked
// when it was recorded.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

const recording = "../../../../shared/recordings/object.jsonl.gz"

func TestRecordedTraffic(t *testing.T) {
	f, err := os.Open(filepath.FromSlash(recording))
	if err != nil {
		t.Skipf("recorded traffic is not on this machine (%v): nothing to replay", err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 16<<20)
	all, scores := score{}, map[string]*score{}
	for lines.Scan() {
		var r struct {
			Name  string
			Steps []step
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		p := &replay{store: start(t), name: r.Name, steps: r.Steps, versions: map[string]string{}}
		for i := range r.Steps {
			operation, wrong, played := p.play(i)
			if !played {
				all.skipped++
				continue
			}
			if scores[operation] == nil {
				scores[operation] = &score{}
			}
			for _, s := range []*score{&all, scores[operation]} {
				s.total++
				if wrong == "" {
					s.match++
				}
			}
			if wrong != "" {
				t.Logf("%s #%d %s %s?%s: %s", r.Name, i, r.Steps[i].Method, r.Steps[i].Path, r.Steps[i].Query, wrong)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(scores)) {
		t.Logf("%-32s %v", name, scores[name])
		least := 85.0
		for _, called := range []string{"object", "bucket", "versioning", "versions", "tagging", "cors", "lifecycle"} {
			if name[strings.Index(name, " ")+1:] == called {
				least = 97
			}
		}
		if got := scores[name].percent(); got < least {
			t.Errorf("%s: %.1f%%, less than %.0f%%", name, got, least)
		}
	}
	t.Logf("all: %v, %d skipped", &all, all.skipped)
	if all.total < 1300 || all.percent() < 97 {
		t.Errorf("%v", &all)
	}
}

type score struct{ match, total, skipped int }

func (s *score) percent() float64 { return 100 * float64(s.match) / float64(max(s.total, 1)) }

func (s *score) String() string {
	return fmt.Sprintf("%d of %d steps, %.1f%%", s.match, s.total, s.percent())
}

// replay plays one recording against an empty store.
type replay struct {
	*store
	name     string
	steps    []step
	versions map[string]string // recorded version id to the store's
}

// play sends a step and says what is wrong with the answer. Steps of other
// hosts, of rights that the recording does not tell, and listings of what the
// account held besides are not played.
func (p *replay) play(i int) (operation, wrong string, played bool) {
	s := p.steps[i]
	_, rest, ok := strings.Cut(s.Host, ".s3.")
	if !ok || s.Status == 403 {
		return "", "", false
	}
	where := strings.TrimSuffix(rest, ".scw.cloud")
	query, err := url.ParseQuery(s.Query)
	if err != nil {
		p.t.Fatal(err)
	}
	operation = s.Method + " " + kind(s.Path, query)
	if v := query.Get("versionId"); v != "" {
		query.Set("versionId", p.versions[v])
	}
	body := text(s.Request)
	if strings.HasPrefix(body, "<") && strings.HasSuffix(body, " bytes of binary>") {
		body = "binary"
	}
	path := (&url.URL{Path: s.Path}).EscapedPath()
	r := p.request(s.Method, path+"?"+query.Encode(), body, append(p.headers(i, body), "Host", s.Host)...)
	a := p.send(p.sign(r, access, secret, where))
	if a.status != s.Status {
		return operation, fmt.Sprintf("%d %s, recorded %d", a.status, a.code, s.Status), true
	}
	p.learn(text(s.Response), a.body)
	return operation, compare(text(s.Response), a.body), true
}

// kind names what a call is about: a sub-resource, the bucket or an object.
func kind(path string, query url.Values) string {
	for k := range query {
		if k != "x-id" && k != "versionId" {
			return k
		}
	}
	if path != "/" {
		return "object"
	}
	return "bucket"
}

// headers gives a step the headers that the recording must have had, as far as
// what it reads next tells.
func (p *replay) headers(i int, body string) []string {
	s := p.steps[i]
	var out []string
	object := s.Path != "/"
	if object && s.Method == "PUT" && strings.Contains(body, "\r\nx-amz-checksum-crc32:") {
		_, after, _ := strings.Cut(body, "\r\n")
		content, _, _ := strings.Cut(after, "\r\n0\r\n")
		out = append(out, "X-Amz-Content-Sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "X-Amz-Trailer", "x-amz-checksum-crc32",
			"X-Amz-Decoded-Content-Length", fmt.Sprint(len(content)), "Content-Encoding", "aws-chunked")
	} else if object && s.Method == "PUT" && body != "" {
		out = append(out, "X-Amz-Checksum-Crc32", crc32Of(body))
	}
	if strings.Contains(s.Query, "CopyObject") {
		bucket, _, _ := strings.Cut(s.Host, ".s3.")
		source := bucket + s.Path // onto itself, to change what it is sent with
		for _, prior := range p.steps[:i] {
			if prior.Method == "PUT" && prior.Path != "/" && prior.Path != s.Path {
				source = bucket + prior.Path
			}
		}
		out = append(out, "X-Amz-Copy-Source", source, "X-Amz-Metadata-Directive", "REPLACE")
	}
	for _, next := range p.steps[i+1:] {
		if s.Method != "PUT" || next.Host != s.Host || next.Path != s.Path {
			continue
		}
		if next.Method == "PUT" && (next.Query == s.Query || object) {
			break
		}
		answer := text(next.Response)
		switch {
		case next.Query == "object-lock=" && next.Status == 200 && s.Query == "":
			return append(out, "X-Amz-Bucket-Object-Lock-Enabled", "true")
		case next.Query == "acl=" && next.Status == 200 && (s.Query == "acl=" && body == "" || object):
			return append(out, "X-Amz-Acl", cannedBy(answer))
		}
	}
	if s.Query == "acl=" && body == "" {
		out = append(out, "X-Amz-Acl", "private")
	}
	return out
}

func cannedBy(acl string) string {
	switch {
	case strings.Contains(acl, "AllUsers") && strings.Contains(acl, ">WRITE<"):
		return "public-read-write"
	case strings.Contains(acl, "AllUsers"):
		return "public-read"
	case strings.Contains(acl, "AuthenticatedUsers"):
		return "authenticated-read"
	}
	return "private"
}

// learn pairs the version ids of two listings by their order.
func (p *replay) learn(recorded, actual string) {
	ids := func(text string) (out []string) {
		for _, piece := range strings.Split(text, "<VersionId>")[1:] {
			id, _, _ := strings.Cut(piece, "<")
			out = append(out, id)
		}
		return out
	}
	r, a := ids(recorded), ids(actual)
	for i := range min(len(r), len(a)) {
		p.versions[r[i]] = a[i]
	}
}
