package s3

import (
	"encoding/xml"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"bastide/internal/sim/fault"
)

// reply is a finished answer, not sent yet. A stream is sent behind the body.
type reply struct {
	status int
	header http.Header
	body   []byte
	stream io.ReadCloser
	length int64 // announced where there is a stream or a HEAD
	cut    bool  // the connection ends without an answer
}

func newReply(status int) *reply { return &reply{status: status, header: http.Header{}, length: -1} }

// xmlReply answers with a body.
func xmlReply(v any) (*reply, error) {
	body, err := encodeXML(v)
	r := newReply(http.StatusOK)
	r.header.Set("Content-Type", "application/xml")
	r.body = body
	return r, err
}

// call is one request on its way through the store.
type call struct {
	s       *Server
	req     *http.Request
	query   url.Values
	name    string // of the bucket, "" for none
	key     string
	host    string // the region in the host name, "" for none
	region  string
	proof   proof
	config  []byte // the whole body, for operations with a small one
	buckets map[string]*bucket
	short   int // items to leave off a listing
	effects []Effect
	ruled   string // the rule of the fault script that took a right from the key
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{s: s, req: r, query: r.URL.Query()}
	c.name, c.key, c.host = locate(r)
	id := newRequestID()
	path := "/" + c.name
	if c.key != "" {
		path += "/" + c.key
	}
	end := s.opts.Watch.Begin(r, path, withoutSignature(r.URL.RawQuery))
	f := s.opts.Watch.Faults().HTTP(r.Method, path, c.query, fingerprint(r))
	killed, after := false, func() bool { return false }
	if changes(r.Method) {
		killed, after = s.opts.Watch.Faults().Mutating(path)
	}
	a, passed, e := &reply{cut: true}, false, End{Fault: f}
	if killed {
		e.Killed = KilledBefore
	} else {
		a, passed = intercept(r, f, path, id)
	}
	if passed {
		a = c.answer(f, path, id)
		if after() { // whoever asked is gone
			a, e.Killed = &reply{cut: true}, KilledAfter
		}
	}
	if !a.cut {
		e.Status = a.status
	}
	e.Effects, e.Ruled = c.effects, c.ruled
	end(e)
	if cuts := f != nil && f.Cuts(r.ContentLength); !cuts && r.ContentLength < drained && r.Header.Get("Expect") == "" {
		// What a refused client still sends is read, or it would see a reset
		// connection instead of the answer.
		_, _ = io.CopyN(io.Discard, r.Body, drained)
	}
	send(w, r, a, id, f)
}

// drained is how much of a refused body is read for the client's sake.
const drained = 64 << 20

func changes(method string) bool { return fault.Mutates(method) && method != http.MethodOptions }

// locate finds bucket and key in the host name or the path.
func locate(r *http.Request) (bucket, key, region string) {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	path := strings.TrimPrefix(r.URL.Path, "/")
	if at, ok := strings.CutSuffix(host, ".scw.cloud"); ok {
		if i := strings.LastIndex("."+at, ".s3."); i >= 0 {
			region = ("." + at)[i+len(".s3."):]
			if i > 0 {
				return at[:i-1], path, region
			}
		}
	}
	bucket, key, _ = strings.Cut(path, "/")
	return bucket, key, region
}

// withoutSignature is a query as it may be logged.
func withoutSignature(raw string) string {
	var kept []string
	for _, f := range strings.Split(raw, "&") {
		if f != "" && !strings.HasPrefix(f, "X-Amz-") {
			kept = append(kept, f)
		}
	}
	return strings.Join(kept, "&")
}

// fingerprint stands for a body in fault rules that count per request; bodies
// themselves may be large.
func fingerprint(r *http.Request) []byte {
	var b []byte
	for _, name := range []string{"X-Amz-Content-Sha256", "Content-Md5", "Content-Length", "X-Amz-Decoded-Content-Length", "Range", "X-Amz-Copy-Source"} {
		b = append(append(b, r.Header.Get(name)...), 0)
	}
	return append(b, r.URL.RawQuery...)
}

// answer authenticates and runs the operation.
func (c *call) answer(f *fault.HTTP, path, id string) *reply {
	a, err := c.run(f)
	if err == nil {
		a.cut = f != nil && f.ApplyThenDrop
		c.crossOrigin(a)
		return a
	}
	var no *refusal
	if !errors.As(err, &no) {
		c.s.opts.Log.Error("simulated object storage: handler failed", "path", path, "error", err)
		c.s.opts.Host.Failed("the simulated object storage", err)
		no = refuse(http.StatusInternalServerError, "InternalError", "We encountered an internal error. Please try again.")
	}
	a = no.reply(path, id)
	a.cut = f != nil && f.ApplyThenDrop
	return a
}

func (c *call) run(f *fault.HTTP) (*reply, error) {
	store := c.s.opts.Watch.Faults().Store()
	if store.RejectChecksumHeaders && refusesChecksums(c.req.Header) {
		return nil, invalidArgument("Unsupported header or payload: checksums are not known to this store")
	}
	if c.host != "" && !slices.Contains(regions, c.host) {
		return nil, badRequest("InvalidURI", "Couldn't parse the specified URI.")
	}
	var err error
	if c.proof, err = c.s.authenticate(c.req, c.host); err != nil {
		return nil, err
	}
	if c.region = c.proof.region; c.region == "" {
		c.region = c.s.opts.Region
	}
	op, err := c.operation()
	if err != nil {
		return nil, err
	}
	if err := c.allowedByKey(op.need); err != nil {
		return nil, err
	}
	if op.free {
		return op.run(c)
	}
	if changes(c.req.Method) {
		if c.config, err = c.readConfig(); err != nil {
			return nil, err
		}
	}
	if f != nil {
		c.short = f.ShortPage
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.buckets = c.s.buckets
	if f != nil && f.Stale > 0 && !changes(c.req.Method) {
		c.buckets = c.s.asOf(time.Now().Add(-f.Stale))
	}
	if changes(c.req.Method) {
		c.s.remember()
	}
	return op.run(c)
}

// send writes an answer, or what a fault leaves of it.
func send(w http.ResponseWriter, r *http.Request, a *reply, id string, f *fault.HTTP) {
	if a.stream != nil {
		defer func() { _ = a.stream.Close() }()
	}
	if a.cut {
		panic(http.ErrAbortHandler) // closes the connection without a reply
	}
	h := w.Header()
	for k, v := range a.header {
		h[k] = v
	}
	h.Set("X-Amz-Id-2", id)
	h.Set("X-Amz-Request-Id", id)
	if h.Get("Content-Type") == "" {
		h["Content-Type"] = nil // no guess from the body
	}
	length := a.length
	if length < 0 {
		length = int64(len(a.body))
	}
	if a.status != http.StatusNoContent && a.status != http.StatusNotModified {
		h.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	if r.Method == http.MethodHead && a.status >= 300 {
		h.Del("Content-Length")
		h["Content-Type"] = nil
	}
	w.WriteHeader(a.status)
	if r.Method == http.MethodHead {
		return
	}
	content := io.Reader(strings.NewReader(string(a.body)))
	if a.stream != nil {
		content = a.stream
	}
	if f != nil && f.Truncate > 0 && int64(f.Truncate) < length {
		_, _ = io.CopyN(w, content, int64(f.Truncate))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	if _, err := io.Copy(w, content); err != nil && a.stream != nil {
		panic(http.ErrAbortHandler) // a body cut short must not look whole
	}
}

// root gives an answer's root the namespace that the recordings have.
func root(name string) xml.Name { return xml.Name{Space: namespace, Local: name} }

// bare is the root of those answers that were recorded without a namespace.
func bare(name string) xml.Name { return xml.Name{Local: name} }
