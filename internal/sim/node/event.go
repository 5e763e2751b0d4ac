package node

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// eventLog is the stream that talosctl follows during reboots and upgrades.
type eventLog struct {
	mu      sync.Mutex
	events  []timedEvent // the newest last
	first   int          // sequence number of events[0]
	counter uint32
	wake    chan struct{}
}

type timedEvent struct {
	at time.Time
	*machine.Event
}

const eventsKept = 1000

func newEventLog() *eventLog { return &eventLog{wake: make(chan struct{})} }

// publish appends an event; actor is the id of the call that caused it, if any.
func (l *eventLog) publish(payload proto.Message, actor string) {
	raw, err := proto.Marshal(payload)
	if err != nil {
		return
	}
	e := &machine.Event{
		ActorId: actor,
		Data:    &anypb.Any{TypeUrl: "talos/runtime/" + string(payload.ProtoReflect().Descriptor().FullName()), Value: raw},
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Id = l.nextID()
	l.events = append(l.events, timedEvent{time.Now(), e})
	if drop := len(l.events) - eventsKept; drop > 0 {
		l.events = append([]timedEvent(nil), l.events[drop:]...)
		l.first += drop
	}
	close(l.wake)
	l.wake = make(chan struct{})
}

// follow calls send for each event from where the request starts until the
// context or the channel ends.
func (l *eventLog) follow(ctx context.Context, end <-chan struct{}, req *machine.EventsRequest, send func(*machine.Event) error) error {
	next := l.start(req)
	for {
		l.mu.Lock()
		next = max(next, l.first)
		batch := append([]timedEvent(nil), l.events[next-l.first:]...)
		wake := l.wake
		l.mu.Unlock()
		for _, e := range batch {
			next++
			if req.WithActorId != "" && e.ActorId != req.WithActorId {
				continue
			}
			if err := send(e.Event); err != nil {
				return err
			}
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return nil
		case <-wake:
		}
	}
}

// start finds the sequence number that a request wants to begin at.
func (l *eventLog) start(req *machine.EventsRequest) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := l.first + len(l.events)
	switch {
	case req.TailEvents < 0:
		return l.first
	case req.TailEvents > 0:
		return max(l.first, end-int(req.TailEvents))
	case req.TailId != "":
		for i, e := range l.events {
			if e.Id > req.TailId {
				return l.first + i
			}
		}
	case req.TailSeconds > 0:
		since := time.Now().Add(-time.Duration(req.TailSeconds) * time.Second)
		for i, e := range l.events {
			if e.at.After(since) {
				return l.first + i
			}
		}
	}
	return end
}

// nextID returns an id that sorts by time: 4 bytes of seconds, 3 of a counter,
// 5 random, in lower-case base32 with the digits first. The caller holds mu.
func (l *eventLog) nextID() string {
	var b [12]byte
	_, _ = rand.Read(b[7:])
	l.counter++
	binary.BigEndian.PutUint32(b[0:4], uint32(time.Now().Unix()))
	b[4], b[5], b[6] = byte(l.counter>>16), byte(l.counter>>8), byte(l.counter)
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}
