package fabric

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
)

var (
	one = netip.MustParseAddr("172.16.0.4")
	two = netip.MustParseAddr("172.16.0.5")
)

// pair is a network in which two answers what it hears at port 80.
func pair(t *testing.T) *Fabric {
	t.Helper()
	f := New()
	f.HostUp("net", one)
	f.HostUp("net", two)
	l, err := f.Listen("net", two, 80)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	return f
}

func dial(t *testing.T, f *Fabric, network string, port int) (net.Conn, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return f.Dial(ctx, network, one, two, port)
}

func TestPacketsGoWhereSomebodyListens(t *testing.T) {
	c, err := dial(t, pair(t), "net", 80)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAHostThatIsUpRefusesOtherPorts(t *testing.T) {
	if _, err := dial(t, pair(t), "net", 81); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want connection refused", err)
	}
}

func TestNetworksDoNotMeet(t *testing.T) {
	f := pair(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing is there: without this the call waits as long as TCP would
	if _, err := f.Dial(ctx, "another", one, two, 80); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want no answer until the caller gave up", err)
	}
}

func TestLosingAHostCutsItsConnectionsAndItsServices(t *testing.T) {
	f := pair(t)
	c, err := dial(t, f, "net", 80)
	if err != nil {
		t.Fatal(err)
	}
	f.HostDown("net", two)
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlived the host")
	}
	f.HostUp("net", two)
	if _, err := dial(t, f, "net", 80); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want connection refused: what the host served ended with it", err)
	}
}

func TestACutIsHealed(t *testing.T) {
	f := pair(t)
	c, err := dial(t, f, "net", 80)
	if err != nil {
		t.Fatal(err)
	}
	f.Cut("net", one, two)
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlived the cut")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Dial(ctx, "net", one, two, 80); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want no answer", err)
	}
	f.Heal("net", one, two)
	if _, err := dial(t, f, "net", 80); err != nil {
		t.Errorf("after healing: %v", err)
	}
}

// What a host's firewall does not let in meets silence, and is let in as soon as
// the firewall changes its mind; what is open stays.
func TestAGuardedHostIsSilent(t *testing.T) {
	f := pair(t)
	c, err := dial(t, f, "net", 80)
	if err != nil {
		t.Fatal(err)
	}
	asked, open := make(chan struct{}, 1), make(chan struct{})
	f.Guard("net", two, func(from netip.Addr, port int) bool {
		if from != one || port != 80 {
			t.Errorf("asked about %s, %d", from, port)
		}
		select {
		case asked <- struct{}{}:
		default:
		}
		select {
		case <-open:
			return true
		default:
			return false
		}
	})
	go func() { <-asked; close(open) }()
	if _, err := dial(t, f, "net", 80); err != nil {
		t.Errorf("after the firewall changed: %v", err)
	}
	if _, err := c.Write([]byte("a")); err != nil {
		t.Errorf("what was open: %v", err)
	}
	if _, err := f.Dial(t.Context(), "net", two, two, 80); err != nil {
		t.Errorf("to itself: %v", err)
	}
	f.HostDown("net", two)
	f.HostUp("net", two)
	f.Guard("net", two, func(netip.Addr, int) bool { return false })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Dial(ctx, "net", one, two, 81); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want no answer: not even a refusal", err)
	}
}
