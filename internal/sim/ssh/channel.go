package ssh

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	xssh "golang.org/x/crypto/ssh"
)

// dialLimit ends a connection attempt that nothing else ends.
const dialLimit = 30 * time.Second

// forwardRequest is what a direct-tcpip channel asks for (RFC 4254, 7.2).
type forwardRequest struct {
	Host       string
	Port       uint32
	Originator string
	From       uint32
}

// openChannel answers a client that asks for a channel.
func (b *bastion) openChannel(ctx context.Context, asked xssh.NewChannel) {
	target, reason, text := b.connect(ctx, asked)
	if target == nil {
		b.gateway.log.Debug("bastion refuses a channel", "type", asked.ChannelType(), "reason", reason, "text", text)
		_ = asked.Reject(reason, text)
		return
	}
	channel, requests, err := asked.Accept()
	if err != nil {
		_ = target.Close()
		return
	}
	splice(ctx, channel, requests, target)
}

// connect makes the connection that a channel is to be, or says why not.
func (b *bastion) connect(ctx context.Context, asked xssh.NewChannel) (net.Conn, xssh.RejectionReason, string) {
	switch asked.ChannelType() {
	case "direct-tcpip":
	case "session":
		return nil, xssh.Prohibited, "this bastion has no shell, it only forwards connections"
	default:
		return nil, xssh.UnknownChannelType, "unsupported channel type"
	}
	var want forwardRequest
	if err := xssh.Unmarshal(asked.ExtraData(), &want); err != nil || want.Port < 1 || want.Port > 65535 {
		return nil, xssh.ConnectionFailed, "malformed request"
	}
	to, err := netip.ParseAddr(want.Host)
	if err != nil {
		return nil, xssh.ConnectionFailed, "Name or service not known"
	}
	to = to.Unmap()
	leg, ok := b.gateway.rules.Load().leg(to)
	if !ok {
		return nil, xssh.Prohibited, "the gateway is not attached to a private network with that address"
	}
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	conn, err := b.gateway.fabric.Dial(ctx, leg.NetworkID, leg.Address, to, int(want.Port))
	if err != nil {
		return nil, xssh.ConnectionFailed, failureText(err)
	}
	return conn, 0, ""
}

// failureText says why a connection failed in the C library's words, which are
// what OpenSSH's server passes on and its users know.
func failureText(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "Connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH):
		return "No route to host"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return "Connection timed out"
	}
	return err.Error()
}

// splice copies both ways. An end of one direction is passed on alone; a failure,
// a channel that the client closes and a lost client end both.
func splice(ctx context.Context, channel xssh.Channel, requests <-chan *xssh.Request, target net.Conn) {
	defer channel.Close()
	defer target.Close()
	stop := context.AfterFunc(ctx, func() { _ = target.Close() })
	defer stop()

	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if _, err := io.Copy(target, channel); err != nil {
			_ = target.Close()
			return
		}
		if half, ok := target.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		// The requests end when the client closes the channel, not when it only
		// ends its direction. What it sent before still has to arrive.
		xssh.DiscardRequests(requests)
		<-sent
		_ = target.Close()
	}()

	if _, err := io.Copy(channel, target); err == nil {
		_ = channel.CloseWrite()
		<-sent
	}
	_ = channel.Close()
	_ = target.Close()
	<-closed
}
