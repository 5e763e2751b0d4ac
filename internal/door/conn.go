package door

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// conn is a channel to a private address, as a net.Conn.
type conn struct {
	ssh.Channel
	link   *link
	remote net.Addr
	gone   sync.Once

	reads, writes deadline
	ended         atomic.Bool // closed by a deadline
}

// Read ends with io.EOF only where the other side said so; when the bastion is
// lost it says io.ErrUnexpectedEOF.
func (c *conn) Read(p []byte) (int, error) {
	if !c.reads.enter() {
		return 0, os.ErrDeadlineExceeded
	}
	defer c.reads.leave()
	n, err := c.Channel.Read(p)
	switch {
	case err == nil:
	case c.ended.Load():
		err = os.ErrDeadlineExceeded
	case errors.Is(err, io.EOF) && (c.link.wire.failed.Load() || c.link.isDead()):
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	if !c.writes.enter() {
		return 0, os.ErrDeadlineExceeded
	}
	defer c.writes.leave()
	n, err := c.Channel.Write(p)
	switch {
	case err == nil:
	case c.ended.Load():
		err = os.ErrDeadlineExceeded
	case errors.Is(err, io.EOF): // the library's word for "no longer open"
		err = syscall.EPIPE
	}
	return n, err
}

func (c *conn) Close() error {
	c.gone.Do(func() { c.link.open.Add(-1) })
	c.reads.stop()
	c.writes.stop()
	if err := c.Channel.Close(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil // already closed from the other side
}

func (c *conn) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error  { c.reads.set(t, c.end); return nil }
func (c *conn) SetWriteDeadline(t time.Time) error { c.writes.set(t, c.end); return nil }

// end takes the channel away from under a read or a write, the only way to
// wake one up.
func (c *conn) end() {
	c.ended.Store(true)
	_ = c.Close()
}

// deadline is one direction's. SSH channels have none. One that passes while
// the direction is idle only fails later calls; one that passes during a call
// ends the connection.
type deadline struct {
	mu     sync.Mutex
	timer  *time.Timer
	set_   int // counts set calls, so that a timer that was replaced does nothing
	passed bool
	busy   int
}

func (d *deadline) set(t time.Time, end func()) {
	d.mu.Lock()
	d.set_++
	d.passed = false
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	mine := d.set_
	if t.IsZero() {
		d.mu.Unlock()
		return
	}
	fire := func() {
		d.mu.Lock()
		current := d.set_ == mine
		if current {
			d.passed = true
		}
		interrupt := current && d.busy > 0
		d.mu.Unlock()
		if interrupt {
			end()
		}
	}
	left := time.Until(t)
	if left > 0 {
		d.timer = time.AfterFunc(left, fire)
		d.mu.Unlock()
		return
	}
	d.mu.Unlock()
	fire()
}

func (d *deadline) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.passed {
		return false
	}
	d.busy++
	return true
}

func (d *deadline) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy--
}

func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
}
