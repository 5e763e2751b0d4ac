package s3

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// The framings of a body that x-amz-content-sha256 can announce.
const (
	unsignedPayload   = "UNSIGNED-PAYLOAD"
	signedChunks      = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	signedTrailer     = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
	unsignedTrailer   = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
	maxChunk          = 1 << 30
	maxTrailer        = 16 << 10
	trailerSignature  = "x-amz-trailer-signature"
	chunkSignatureKey = "chunk-signature="
)

// chunkReader takes the aws-chunked framing off a body and verifies the
// signatures of its chunks, where they are signed, and the trailer.
type chunkReader struct {
	in      *bufio.Reader
	proof   proof
	signed  bool
	trailed bool
	left    int64 // of the chunk that is being read
	sum     hash.Hash
	given   string // the current chunk's signature
	last    string // the signature before it
	begun   bool
	err     error
	trailer http.Header // complete after io.EOF
}

func newChunkReader(body io.Reader, p proof) *chunkReader {
	return &chunkReader{in: bufio.NewReaderSize(body, 64<<10), proof: p, signed: p.payload != unsignedTrailer,
		trailed: p.payload != signedChunks, last: p.seed, trailer: http.Header{}}
}

func incompleteBody() *refusal {
	return badRequest("IncompleteBody", "The request body terminated unexpectedly")
}

// Read gives the bytes of the object. Its error is io.EOF only after the last
// chunk and the trailer were whole and their signatures right.
func (c *chunkReader) Read(p []byte) (int, error) {
	for c.err == nil && c.left == 0 {
		c.err = c.next()
	}
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.in.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	if c.signed {
		c.sum.Write(p[:n])
	}
	if err != nil {
		c.err = incomplete(err)
		return n, c.err
	}
	return n, nil
}

// incomplete turns the end of the wire into what S3 says of it.
func incomplete(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, bufio.ErrBufferFull) {
		return incompleteBody()
	}
	return err
}

// next ends the chunk before and begins another; io.EOF after the last.
func (c *chunkReader) next() error {
	if c.begun {
		if err := c.endChunk(); err != nil {
			return err
		}
	}
	c.begun = true
	line, err := c.line()
	if err != nil {
		return err
	}
	size, extension, _ := strings.Cut(line, ";")
	n, err := strconv.ParseUint(size, 16, 32)
	if err != nil || n > maxChunk || size == "" {
		return incompleteBody()
	}
	given, has := strings.CutPrefix(extension, chunkSignatureKey)
	if c.signed != has || (!c.signed && extension != "") {
		return incompleteBody()
	}
	c.given, c.left = given, int64(n)
	c.sum = sha256.New()
	if n > 0 {
		return nil
	}
	if err := c.verifyChunk(); err != nil {
		return err
	}
	return c.end()
}

// endChunk verifies the chunk that was read to its end.
func (c *chunkReader) endChunk() error {
	var crlf [2]byte
	if _, err := io.ReadFull(c.in, crlf[:]); err != nil {
		return incomplete(err)
	}
	if string(crlf[:]) != "\r\n" {
		return incompleteBody()
	}
	return c.verifyChunk()
}

func (c *chunkReader) verifyChunk() error {
	if !c.signed {
		return nil
	}
	text := algorithmV4 + "-PAYLOAD\n" + c.proof.stamp + "\n" + c.proof.scope + "\n" + c.last + "\n" + emptySHA256 + "\n" + hex.EncodeToString(c.sum.Sum(nil))
	if want := hex.EncodeToString(mac(c.proof.key, text)); !sameSignature(want, c.given) {
		return signatureDoesNotMatch()
	}
	c.last = c.given
	return nil
}

// line reads up to CRLF. A line feed alone does not end a line: signed trailers
// have one behind their value.
func (c *chunkReader) line() (string, error) {
	var text []byte
	for {
		b, err := c.in.ReadSlice('\n')
		if err != nil {
			return "", incomplete(err)
		}
		if text = append(text, b...); len(text) > maxTrailer {
			return "", incompleteBody()
		}
		if t, ok := bytes.CutSuffix(text, []byte("\r\n")); ok {
			return string(t), nil
		}
	}
}

// end reads the trailer, up to an empty line, and what must not be behind it.
func (c *chunkReader) end() error {
	var canonical strings.Builder
	read, signature := 0, ""
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		if line == "" {
			break
		}
		read += len(line)
		name, value, ok := strings.Cut(line, ":")
		if !ok || !c.trailed || read > maxTrailer {
			return badRequest("MalformedTrailerError", "The request contained trailing data that was not well-formed or did not conform to our published schema.")
		}
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		if name == trailerSignature {
			signature = value
			continue
		}
		fmt.Fprintf(&canonical, "%s:%s\n", name, value)
		c.trailer.Set(name, value)
	}
	if rest, err := c.in.Peek(1); len(rest) > 0 || !errors.Is(err, io.EOF) {
		if len(rest) > 0 {
			return incompleteBody()
		}
		return incomplete(err)
	}
	if c.signed && c.trailed {
		text := algorithmV4 + "-TRAILER\n" + c.proof.stamp + "\n" + c.proof.scope + "\n" + c.last + "\n" + hexSHA256(canonical.String())
		if !sameSignature(hex.EncodeToString(mac(c.proof.key, text)), signature) {
			return signatureDoesNotMatch()
		}
	}
	return io.EOF
}
