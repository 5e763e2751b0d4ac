package door

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"bastide/internal/outcome"
)

func TestDialReachesPrivateAddresses(t *testing.T) {
	key := newKey(t)
	b := startBastion(t, key)
	b.targets["172.16.0.11:50000"] = echo(t)
	d := open(t, config(t, b, key))
	c, err := dial(t, d, "172.16.0.11:50000")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.RemoteAddr().String(); got != "172.16.0.11:50000" {
		t.Errorf("the connection says it leads to %s", got)
	}
	if err := roundTrip(c, strings.Repeat("across and back ", 100_000)); err != nil {
		t.Error(err)
	}
}

func TestManyChannelsShareFewConnections(t *testing.T) {
	key := newKey(t)
	b := startBastion(t, key)
	b.targets["172.16.0.11:50000"] = echo(t)
	d := open(t, config(t, b, key))
	errs := make(chan error, 100)
	var ready, wg sync.WaitGroup
	ready.Add(cap(errs))
	for i := range cap(errs) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c, err := d.DialContext(t.Context(), "tcp", "172.16.0.11:50000")
			ready.Done()
			if err != nil {
				errs <- err
				return
			}
			defer c.Close()
			ready.Wait() // all are open at once
			if err := roundTrip(c, fmt.Sprint("channel ", i)); err != nil {
				errs <- err
			}
		}()
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if n := b.count(); n > maxLinks {
		t.Errorf("%d SSH connections were made, want at most %d", n, maxLinks)
	}
}

func TestDialSaysWhatStoodInTheWay(t *testing.T) {
	key := newKey(t)
	b := startBastion(t, key)
	for address, target := range map[string]string{
		"172.16.0.11:1": refuses, "172.16.0.11:2": timesOut, "172.16.0.11:3": forbidden, "172.16.0.11:4": hangs,
		"172.16.0.11:5": "dial tcp 172.16.0.11:5: connect: connection refused",
	} {
		b.targets[address] = strings.ReplaceAll(target, ":", " ")
	}
	cfg := config(t, b, key)
	cfg.DialTimeout = 2 * time.Second // an answer at once takes a while on a busy machine
	d := open(t, cfg)
	for _, c := range []struct {
		address string
		want    Failure
		is      error
	}{
		{"172.16.0.11:1", Refused, syscall.ECONNREFUSED},
		{"172.16.0.11:2", TimedOut, os.ErrDeadlineExceeded},
		{"172.16.0.11:3", Prohibited, nil},
		{"172.16.0.11:4", TimedOut, os.ErrDeadlineExceeded},
		{"172.16.0.11:5", Refused, syscall.ECONNREFUSED},
		{"172.16.0.99:50000", Unreachable, syscall.EHOSTUNREACH},
		{"10.0.0.1:22", Outside, nil},
		{"127.0.0.1:22", Outside, nil},
	} {
		_, err := dial(t, d, c.address)
		var failed *DialError
		if !errors.As(err, &failed) || failed.Failure != c.want {
			t.Errorf("%s: got %v, want %q", c.address, err, c.want)
			continue
		}
		if c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v is not %v", c.address, err, c.is)
		}
		if !strings.HasPrefix(err.Error(), c.address) {
			t.Errorf("%s: %q does not name the address", c.address, err)
		}
	}
	for _, bad := range []string{"cp-1:50000", "172.16.0.11", "172.16.0.11:x"} {
		if _, err := dial(t, d, bad); err == nil {
			t.Errorf("%s was dialled, want an error", bad)
		}
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	key := newKey(t)
	b := startBastion(t, key)
	b.targets["172.16.0.11:4"] = hangs
	d := open(t, config(t, b, key))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := d.DialContext(ctx, "tcp", "172.16.0.11:4"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancellation", err)
	}
}

func TestOpenRefusedWithoutAnAcceptedKey(t *testing.T) {
	b := startBastion(t, newKey(t))
	_, err := Open(t.Context(), config(t, b, newKey(t)))
	if outcome.CodeOf(err) != outcome.Refused || !strings.Contains(fmt.Sprint(err), "accepts none of the SSH keys") {
		t.Fatalf("got %v with code %d, want a refusal that speaks of keys", err, outcome.CodeOf(err))
	}
	if n := b.count(); n != 1 {
		t.Errorf("the bastion was asked %d times, want once: a refused key does not get better", n)
	}
}

func TestOpenWaitsForAFreshGatewayToLearnItsKeys(t *testing.T) {
	key := newKey(t)
	b := startBastion(t)
	go func() {
		<-b.tries
		b.set(func(b *bastion) { b.allowed[string(key.PublicKey().Marshal())] = true })
	}()
	cfg := config(t, b, key)
	cfg.Fresh = true
	open(t, cfg)
}

func TestOpenCannotTellWhenNothingAnswers(t *testing.T) {
	key := newKey(t)
	b := startBastion(t, key)
	cfg := config(t, b, key)
	cfg.Patience = 3 * time.Second // enough to be refused once on a busy machine
	b.stop()
	_, err := Open(t.Context(), cfg)
	if outcome.CodeOf(err) != outcome.Unknown || !strings.Contains(err.Error(), "connection refused") {
		t.Fatalf("got %v with code %d, want unknown with the last reason", err, outcome.CodeOf(err))
	}
}

func TestOpenEndsWhenTheBastionNeverSpeaks(t *testing.T) {
	key := newKey(t)
	b := startBastion(t, key)
	cfg := config(t, b, key)
	b.stop()
	silent := silentListener(t, b.addr().String())
	defer silent.Close()
	cfg.Patience, cfg.DialTimeout = 300*time.Millisecond, 50*time.Millisecond
	if _, err := Open(t.Context(), cfg); outcome.CodeOf(err) != outcome.Unknown {
		t.Fatalf("got %v with code %d, want unknown", err, outcome.CodeOf(err))
	}
}

func TestLostConnectionIsMadeAgain(t *testing.T) {
	key := newKey(t)
	b := startBastion(t, key)
	b.targets["172.16.0.11:50000"] = parrot(t)
	var told notices
	cfg := config(t, b, key)
	cfg.Notice = told.add
	d := open(t, cfg)
	c, err := dial(t, d, "172.16.0.11:50000")
	if err != nil {
		t.Fatal(err)
	}
	// The gateway reconfigures: it hangs up, and answers again a little later.
	address := b.addr().String()
	b.stop()
	if _, err := io.ReadAll(c); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("reading from the lost connection gives %v, want an unexpected end", err)
	}
	if _, err := c.Write([]byte("x")); err == nil {
		t.Error("writing to the lost connection gives no error")
	}
	time.AfterFunc(100*time.Millisecond, func() { b.listen(address) })
	again, err := dial(t, d, "172.16.0.11:50000")
	if err != nil {
		t.Fatal(err)
	}
	if err := roundTrip(again, "back again"); err != nil {
		t.Error(err)
	}
	_ = d.Close() // every notice has been given
	for _, want := range []string{"first contact", "lost the connection", "connected to the bastion again"} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("nobody was told %q; told:\n%s", want, told.String())
		}
	}
}

func TestSilentConnectionIsGivenUp(t *testing.T) {
	key := newKey(t)
	b := startBastion(t, key)
	b.targets["172.16.0.11:50000"] = parrot(t)
	cfg := config(t, b, key)
	cfg.KeepAlive = 300 * time.Millisecond
	d := open(t, cfg)
	c, err := dial(t, d, "172.16.0.11:50000")
	if err != nil {
		t.Fatal(err)
	}
	b.set(func(b *bastion) { b.mute = true })
	if _, err := io.ReadAll(c); err == nil { // ends only because the keepalive ends it
		t.Error("a connection without signs of life ended as if all were well")
	}
	b.set(func(b *bastion) { b.mute = false })
	if _, err := dial(t, d, "172.16.0.11:50000"); err != nil {
		t.Error(err)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	key := newKey(t)
	b := startBastion(t, key)
	b.targets["172.16.0.11:50000"] = parrot(t)
	for name, end := range map[string]func(*Door, context.CancelFunc){
		"close":   func(d *Door, _ context.CancelFunc) { _ = d.Close() },
		"context": func(_ *Door, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			d, err := Open(ctx, config(t, b, key))
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			c, err := dial(t, d, "172.16.0.11:50000")
			if err != nil {
				t.Fatal(err)
			}
			end(d, cancel)
			if _, err := io.ReadAll(c); err == nil {
				t.Error("a connection outlived the door")
			}
			if _, err := d.DialContext(context.Background(), "tcp", "172.16.0.11:50000"); err == nil {
				t.Error("a closed door was walked through")
			}
		})
	}
}

func TestDeadlinesOfConnections(t *testing.T) {
	key := newKey(t)
	b := startBastion(t, key)
	b.targets["172.16.0.11:50000"] = parrot(t)
	d := open(t, config(t, b, key))
	c, err := dial(t, d, "172.16.0.11:50000")
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(-time.Second))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading after the deadline gives %v", err)
	}
	_ = c.SetReadDeadline(time.Time{}) // nothing was being read, so the connection lives
	if err := roundTrip(c, "still alive"); err != nil {
		t.Error(err)
	}
	late, err := dial(t, d, "172.16.0.11:50000")
	if err != nil {
		t.Fatal(err)
	}
	_ = late.SetDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := late.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading beyond the deadline gives %v", err)
	}
}

func TestSignersAreAskedAtEveryConnection(t *testing.T) {
	key := newKey(t)
	b := startBastion(t, key)
	b.targets["172.16.0.11:50000"] = parrot(t)
	cfg := config(t, b)
	asked := make(chan struct{}, 10)
	cfg.Signers = func() ([]ssh.Signer, error) { asked <- struct{}{}; return []ssh.Signer{key}, nil }
	d := open(t, cfg)
	c, err := dial(t, d, "172.16.0.11:50000")
	if err != nil {
		t.Fatal(err)
	}
	b.drop()
	_, _ = io.ReadAll(c)
	if _, err := dial(t, d, "172.16.0.11:50000"); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 2 {
		t.Errorf("the keys were asked for %d times, want once a connection", len(asked))
	}
}
