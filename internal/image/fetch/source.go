// Package fetch reads an image from a URL or a file, from beginning to end. A
// download that breaks is taken up where it broke, as long as it is certain that
// it is still the same file.
package fetch

import (
	"context"
	"io"
	"net/http"
	"time"
)

// Options of a source; the zero value is good.
type Options struct {
	// Progress is told, at most about ten times a second and at the end, how many
	// bytes have been read and how many there are, -1 if that is not known.
	Progress func(read, total int64)
	// Patience is how long no byte may come, over all retries, before a download
	// is given up; 0 means two minutes.
	Patience time.Duration
	// FirstByte is how long the first answer may take: the Factory builds an image
	// when it is first asked for. 0 means fifteen minutes.
	FirstByte time.Duration
	// Knocks is how often it is tried to connect where nobody has ever answered, not
	// even with a refusal; 0 means until Patience is over.
	Knocks int
	// Notice is told, at most every fifteen seconds, what failed in passing and until
	// when it is tried again.
	Notice func(sentence string)
}

// Source is an image that is being read.
type Source struct {
	io.ReadCloser
	name    string
	length  int64
	version string
	at      io.ReaderAt
}

// Name is the URL, without what may be secret in it, or the path.
func (s *Source) Name() string { return s.name }

// Length is how many bytes there are, -1 if the server does not say.
func (s *Source) Length() int64 { return s.length }

// Version is the ETag, or else the Last-Modified, that the server gave; empty
// for files and for servers that give none.
func (s *Source) Version() string { return s.version }

// At reads the source anywhere; nil for what is not a file.
func (s *Source) At() io.ReaderAt { return s.at }

// Open begins to read from a URL with http or https, or else a file's path. The
// answer is known when it returns: a status other than 200, or a page of HTML
// instead of a file, is an error here. ctx ends the reading as well.
//
// Errors: *Status for an answer that is not the file; *format.Refusal for a page
// instead of a file; *Changed, from Read, for a file that became another one
// while it was read; what the network or the file system says.
func Open(ctx context.Context, from string, client *http.Client, o Options) (*Source, error) {
	return open(ctx, from, client, o)
}
