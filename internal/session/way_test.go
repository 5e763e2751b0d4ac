package session_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"

	"bastide/internal/door"
	"bastide/internal/session"
)

// A bastion that says nothing is given up when the command is over, and not only
// when the door's own patience is: with the reason why the command ended.
func TestADoorIsGivenUpWithTheCommand(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	over := errors.New("the command's time is over")
	ctx, end := context.WithCancelCause(t.Context())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close() // it hears and does not answer
			end(over)
		}
	}()
	way, err := session.OpenDoor(ctx, door.Config{
		Gateway: netip.MustParseAddrPort(l.Addr().String()), GatewayID: "gw", Network: netip.MustParsePrefix("172.16.0.0/22"),
		KnownHosts: filepath.Join(t.TempDir(), "known_hosts"), Signers: func() ([]ssh.Signer, error) { return nil, nil },
	})
	if way != nil || !errors.Is(err, over) {
		t.Errorf("got %v, %v", way, err)
	}
}
