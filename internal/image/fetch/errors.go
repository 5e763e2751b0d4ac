package fetch

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"
)

// Status is a server's answer that is not the file.
type Status struct {
	URL  string
	Code int
	Text string // the beginning of what it said, in one line; often empty
}

func (s *Status) Error() string {
	text := fmt.Sprintf("%s answered %d %s", s.URL, s.Code, http.StatusText(s.Code))
	if s.Text != "" {
		text += ": " + s.Text
	}
	return text
}

// passing says whether the same question may get another answer soon.
func (s *Status) passing() bool {
	switch s.Code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return s.Code >= 500
}

func newStatus(url string, r *http.Response) *Status {
	text, _ := io.ReadAll(io.LimitReader(r.Body, 2048))
	return &Status{URL: url, Code: r.StatusCode, Text: line(text, r.Header.Get("Content-Type"))}
}

// line is a server's text as far as a terminal should show it.
func line(text []byte, kind string) string {
	if strings.Contains(kind, "html") || strings.HasPrefix(strings.TrimSpace(string(text)), "<") {
		return "" // a page says nothing in one line
	}
	s := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(text), ""))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

// ErrNoLength is a server whose answer has no end that could be told from a
// connection that broke.
var ErrNoLength = errors.New("does not say how long the file is, so an end that comes early would not show")

// Changed is the error of a file that is not the one any more whose beginning was
// read. Nothing of the new one was given to the reader.
type Changed struct {
	URL string
	How string
}

func (c *Changed) Error() string {
	return fmt.Sprintf("%s became another file while it was downloaded: %s", c.URL, c.How)
}
