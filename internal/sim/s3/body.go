package s3

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// body is a request's body as the client meant it: without framing, verified
// against everything that the request says of it.
type body struct {
	c       *call
	in      io.Reader
	chunks  *chunkReader // nil without framing
	want    int64        // length of the content
	read    int64
	md5     hash.Hash
	payload hash.Hash // nil when nobody signed what it would be compared with
	sums    map[string]hash.Hash
	copied  bool // the bytes are another object's: the header says nothing of them
}

func newBody(c *call, in io.Reader, want int64) *body {
	return &body{c: c, in: in, want: want, md5: md5.New(), sums: map[string]hash.Hash{}}
}

// body opens the request's body for reading once, no longer than limit. Further
// checksum algorithms are computed over it.
func (c *call) body(limit int64, further ...string) (*body, error) {
	b := newBody(c, c.req.Body, c.req.ContentLength)
	wanted, err := wantedChecksums(c.aboutBody())
	if err != nil {
		return nil, err
	}
	for _, algorithm := range append(wanted, further...) {
		if b.sums[algorithm] == nil {
			b.sums[algorithm] = newHash(algorithm)
		}
	}
	if strings.HasPrefix(c.proof.payload, "STREAMING-") {
		if err := b.unframe(); err != nil {
			return nil, err
		}
	}
	if b.chunks == nil && c.proof.payload != unsignedPayload {
		b.payload = sha256.New()
	}
	if b.want < 0 {
		return nil, refuse(http.StatusLengthRequired, "MissingContentLength", "You must provide the Content-Length HTTP header.")
	}
	if b.want > limit {
		return nil, badRequest("EntityTooLarge", "Your proposed upload exceeds the maximum allowed size").
			with("ProposedSize", strconv.FormatInt(b.want, 10)).with("MaxSizeAllowed", strconv.FormatInt(limit, 10))
	}
	return b, nil
}

// aboutBody is the header as far as it is about the body. The checksums beside
// the list of parts that ends an upload are about the object.
func (c *call) aboutBody() http.Header {
	if c.req.Method != http.MethodPost || !c.query.Has("uploadId") {
		return c.req.Header
	}
	h := c.req.Header.Clone()
	for name := range h {
		if strings.HasPrefix(name, checksumPrefix) {
			h.Del(name)
		}
	}
	return h
}

// unframe reads an aws-chunked body.
func (b *body) unframe() error {
	switch p := b.c.proof.payload; {
	case p != signedChunks && p != signedTrailer && p != unsignedTrailer:
		return notImplemented("The payload " + p)
	case p != unsignedTrailer && b.c.proof.key == nil:
		return accessDenied("Access Denied")
	}
	length := b.c.req.Header.Get("X-Amz-Decoded-Content-Length")
	n, err := strconv.ParseInt(length, 10, 64)
	if length == "" || err != nil || n < 0 {
		return refuse(http.StatusLengthRequired, "MissingContentLength", "You must provide the x-amz-decoded-content-length HTTP header.")
	}
	b.want = n
	b.chunks = newChunkReader(b.c.req.Body, b.c.proof)
	b.in = b.chunks
	return nil
}

// Read gives the content. Its error is io.EOF only when the content is whole
// and right.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	b.read += int64(n)
	_, _ = b.md5.Write(p[:n])
	if b.payload != nil {
		_, _ = b.payload.Write(p[:n])
	}
	for _, h := range b.sums {
		_, _ = h.Write(p[:n])
	}
	switch {
	case b.read > b.want:
		return n, incompleteBody()
	case errors.Is(err, io.EOF):
		if no := b.verify(); no != nil {
			return n, no
		}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return n, incompleteBody()
	}
	return n, err
}

// verify compares what was read with what was announced.
func (b *body) verify() error {
	if b.read != b.want {
		return incompleteBody()
	}
	if b.copied {
		return nil
	}
	h := b.c.aboutBody()
	if given := h.Get("Content-Md5"); given != "" {
		raw, err := base64.StdEncoding.DecodeString(given)
		if err != nil || len(raw) != md5.Size {
			return badRequest("InvalidDigest", "The Content-MD5 you specified was invalid.")
		}
		if string(raw) != string(b.md5.Sum(nil)) {
			return badRequest("BadDigest", "The Content-MD5 you specified did not match what we received.")
		}
	}
	if b.payload != nil && b.c.proof.payload != hex.EncodeToString(b.payload.Sum(nil)) {
		return badRequest("XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.")
	}
	claimed, err := claimedChecksums(h)
	if err == nil && b.chunks != nil {
		err = b.claimedInTrailer(claimed)
	}
	if err != nil {
		return err
	}
	have := b.checksums()
	for algorithm, value := range claimed {
		if have[algorithm] != value {
			return badRequest("XAmzContentChecksumMismatch", "The provided 'x-amz-checksum' header does not match what was computed.")
		}
	}
	return nil
}

// claimedInTrailer adds the checksums of the trailer, which must be those that
// x-amz-trailer announced.
func (b *body) claimedInTrailer(claimed checksums) error {
	trailing, err := claimedChecksums(b.chunks.trailer)
	if err != nil {
		return err
	}
	for _, name := range strings.Split(b.c.req.Header.Get("X-Amz-Trailer"), ",") {
		if name = strings.TrimSpace(name); name != "" && b.chunks.trailer.Get(name) == "" {
			return badRequest("MalformedTrailerError", "The request contained trailing data that was not well-formed or did not conform to our published schema.")
		}
	}
	for algorithm, value := range trailing {
		if b.sums[algorithm] == nil {
			return badRequest("MalformedTrailerError", "The request contained trailing data that was not announced in x-amz-trailer.")
		}
		claimed[algorithm] = value
	}
	return nil
}

func (b *body) checksums() checksums {
	out := checksums{}
	for algorithm, h := range b.sums {
		out[algorithm] = base64.StdEncoding.EncodeToString(h.Sum(nil))
	}
	return out
}

// readConfig reads a small body whole.
func (c *call) readConfig() ([]byte, error) {
	if c.req.ContentLength == 0 && c.req.Body == http.NoBody {
		if p := c.proof.payload; p != unsignedPayload && p != emptySHA256 && !strings.HasPrefix(p, "STREAMING-") {
			return nil, badRequest("XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.")
		}
		return nil, nil
	}
	b, err := c.body(maxConfig)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(b)
}

// keep writes a body to a file of its own. Nothing refers to the file until the
// caller makes it part of an object.
func (s *Server) keep(b *body) (blob, error) {
	out, err := s.write(b)
	if err != nil {
		return blob{}, err
	}
	out.sums, out.etag = b.checksums(), hex.EncodeToString(b.md5.Sum(nil))
	return out, nil
}

// write copies a reader to a new file, and leaves none behind when it fails.
func (s *Server) write(from io.Reader) (blob, error) {
	name := filepath.Join(s.opts.Dir, randomHex(16))
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return blob{}, err
	}
	n, err := io.Copy(f, from)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(name)
		return blob{}, err
	}
	return blob{file: name, size: n}, nil
}

// blobReader reads a stretch of blobs in order, or from any place.
type blobReader struct {
	io.Reader
	files []*os.File
	parts []*io.SectionReader
}

// openBlobs opens every file that it needs at once, so that a reader gets the
// object as it was, whatever happens to it meanwhile.
func openBlobs(blobs []blob, from, length int64) (*blobReader, error) {
	r := &blobReader{}
	for _, b := range blobs {
		if from >= b.size {
			from -= b.size
			continue
		}
		n := min(b.size-from, length)
		if n <= 0 {
			break
		}
		f, err := os.Open(b.file)
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		r.files = append(r.files, f)
		r.parts = append(r.parts, io.NewSectionReader(f, from, n))
		from, length = 0, length-n
	}
	var all []io.Reader
	for _, p := range r.parts {
		all = append(all, p)
	}
	r.Reader = io.MultiReader(all...)
	return r, nil
}

// ReadAt reads from a place in the stretch.
func (r *blobReader) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for _, part := range r.parts {
		if off >= part.Size() {
			off -= part.Size()
			continue
		}
		n, err := part.ReadAt(p[done:min(int64(len(p)), int64(done)+part.Size()-off)], off)
		if done += n; err != nil {
			return done, err
		}
		if done == len(p) {
			return done, nil
		}
		off = 0
	}
	return done, io.EOF
}

// Close closes the files.
func (r *blobReader) Close() error {
	var errs []error
	for _, f := range r.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
