package ui

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected output in testdata; review the diff")

// streams collects what a printer writes, each line marked with its stream.
type streams struct{ out, err bytes.Buffer }

func (s *streams) String() string {
	var b strings.Builder
	for _, part := range []struct {
		name string
		buf  *bytes.Buffer
	}{{"stdout", &s.out}, {"stderr", &s.err}} {
		if part.buf.Len() > 0 {
			fmt.Fprintf(&b, "--- %s\n%s", part.name, part.buf.String())
		}
	}
	// Control characters are written out, so that the files can be read.
	return strings.NewReplacer("\x1b", "<esc>", "\r", "<cr>").Replace(b.String())
}

// clock is a time that only moves when it is told to.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func newClock() *clock { return &clock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

// modes are the printers there are.
var modes = map[string]Options{
	"text":  {},
	"ascii": {ASCII: true, Width: 60},
	"color": {Colour: true},
	"json":  {JSON: true, Stream: true},
}

// golden runs a scene with printers of some modes and compares each output
// with testdata/<name>.<mode>.txt.
func golden(t *testing.T, name string, in []string, scene func(Printer, *clock)) {
	t.Helper()
	for _, mode := range in {
		t.Run(mode, func(t *testing.T) {
			var s streams
			c := newClock()
			o := modes[mode]
			o.Out, o.Err, o.Now = &s.out, &s.err, c.Now
			scene(New(o), c)
			file := filepath.Join("testdata", name+"."+mode+".txt")
			if *rewrite {
				if err := os.WriteFile(file, []byte(s.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.String(); got != string(want) {
				t.Errorf("%s differs (go test -rewrite to accept); got:\n%s", file, got)
			}
		})
	}
}
