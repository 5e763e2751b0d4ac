package node

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// console is a bounded text log: the kernel ring buffer, or the output of a service.
type console struct {
	mu    sync.Mutex
	lines []string
	first int // number of lines[0]
	wake  chan struct{}
	part  []byte // an unfinished line
}

const linesKept = 2000

func newConsole() *console { return &console{wake: make(chan struct{})} }

// printf appends a line in the form of the kernel log: facility and time, then text.
func (c *console) printf(format string, args ...any) {
	c.add(fmt.Sprintf("user: warning: [%s]: [talos] %s", time.Now().UTC().Format(time.RFC3339Nano), fmt.Sprintf(format, args...)))
}

func (c *console) add(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
	if drop := len(c.lines) - linesKept; drop > 0 {
		c.lines = append([]string(nil), c.lines[drop:]...)
		c.first += drop
	}
	close(c.wake)
	c.wake = make(chan struct{})
}

// Write lets a child process log into a console.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.part = append(c.part, p...)
	var whole []string
	for {
		i := bytes.IndexByte(c.part, '\n')
		if i < 0 {
			break
		}
		whole = append(whole, string(c.part[:i]))
		c.part = c.part[i+1:]
	}
	c.mu.Unlock()
	for _, l := range whole {
		c.add(l)
	}
	return len(p), nil
}

// tail returns the last lines, all of them for n < 0, and the number of the next.
func (c *console) tail(n int) ([]string, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	start := 0
	if n >= 0 {
		start = max(0, len(c.lines)-n)
	}
	return append([]string(nil), c.lines[start:]...), c.first + len(c.lines)
}

// follow sends the lines from a number on until the context ends.
func (c *console) follow(ctx context.Context, next int, send func(string) error) error {
	for {
		c.mu.Lock()
		next = max(next, c.first)
		batch := append([]string(nil), c.lines[next-c.first:]...)
		wake := c.wake
		c.mu.Unlock()
		for _, l := range batch {
			next++
			if err := send(l); err != nil {
				return err
			}
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		}
	}
}

// last returns the last n lines as one text, for an error message.
func (c *console) last(n int) string {
	lines, _ := c.tail(n)
	return strings.Join(lines, "\n")
}
