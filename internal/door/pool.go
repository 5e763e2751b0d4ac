package door

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// One SSH connection carries many channels, but they share its window and its
// fate; a second one is made when the first is busy.
const (
	maxLinks        = 2
	channelsPerLink = 32
)

const (
	firstBackoff = 200 * time.Millisecond
	lastBackoff  = 5 * time.Second
)

// attempt is one try to connect, shared by everybody who waits for it.
type attempt struct {
	done chan struct{}
	link *link
	err  error
}

// link gives a live SSH connection, making one if needed. A gateway that is
// being reconfigured drops its connections and refuses new ones for a while,
// so failures are tried again, with growing pauses, until ctx ends. What will
// not get better is returned at once: a wrong host key, a key that is not
// accepted (unless patient).
func (d *Door) link(ctx context.Context, patient bool) (*link, error) {
	backoff := firstBackoff
	for {
		l, a, err := d.pick()
		if l != nil || err != nil {
			return l, err
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if a.err == nil {
			return a.link, nil
		}
		if permanent(a.err) && !(patient && errors.Is(a.err, ErrNotAccepted)) {
			return nil, a.err
		}
		pause := time.NewTimer(backoff/2 + rand.N(backoff/2))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			if d.ctx.Err() != nil {
				return nil, context.Cause(d.ctx)
			}
			return nil, a.err // says more than "deadline exceeded"
		}
		backoff = min(backoff*2, lastBackoff)
	}
}

// pick returns the connection with most room, or the attempt to wait for.
func (d *Door) pick() (*link, *attempt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		return nil, nil, context.Cause(d.ctx) // under the lock: Close waits for nothing that starts later
	}
	d.links = slices.DeleteFunc(d.links, func(l *link) bool { return l.isDead() })
	var best *link
	for _, l := range d.links {
		if best == nil || l.load() < best.load() {
			best = l
		}
	}
	full := best != nil && best.load() >= channelsPerLink && len(d.links) < maxLinks
	if (best == nil || full) && d.connecting == nil {
		a := &attempt{done: make(chan struct{})}
		d.connecting = a
		d.wg.Add(1)
		go d.connect(a)
	}
	if best != nil {
		return best, nil, nil // busy is better than waiting for the second one
	}
	return nil, d.connecting, nil
}

// connect makes one attempt. It runs under the door's own context, so that the
// caller who happened to start it cannot take it away from the others.
func (d *Door) connect(a *attempt) {
	defer d.wg.Done()
	ctx, cancel := context.WithTimeout(d.ctx, d.cfg.DialTimeout)
	defer cancel()
	a.link, a.err = connect(ctx, d.cfg, d.hosts)
	d.mu.Lock()
	defer d.mu.Unlock()
	defer close(a.done)
	d.connecting = nil
	if a.err != nil {
		return
	}
	if d.ctx.Err() != nil {
		a.link.close()
		a.link, a.err = nil, context.Cause(d.ctx)
		return
	}
	d.links = append(d.links, a.link)
	if d.lost {
		d.lost = false
		d.notify("connected to the bastion again")
	}
	d.wg.Add(1)
	go d.watch(a.link)
}

// watch keeps a connection alive and notes its end.
func (d *Door) watch(l *link) {
	defer d.wg.Done()
	l.keepAlive(d.cfg.KeepAlive)
	if d.ctx.Err() != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.lost {
		d.lost = true
		d.notify(fmt.Sprintf("lost the connection to the bastion at %s; the next use connects again", d.cfg.Gateway))
	}
}

// notify must not be called back into the door while it holds its lock.
func (d *Door) notify(text string) {
	d.wg.Add(1)
	go func() {
		defer d.wg.Done()
		d.cfg.Notice(text)
	}()
}
