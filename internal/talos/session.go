package talos

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	cosiv1alpha1 "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/state"
	cosiclient "github.com/cosi-project/runtime/pkg/state/protobuf/client"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"bastide/internal/estate"
	"bastide/internal/vault"
)

// session is an open connection to one node's API. Requests carry no target,
// so that the node itself answers: a worker forwards nothing, and a control
// plane node's word about another one is hearsay.
type session struct {
	conn    *grpc.ClientConn
	machine machine.MachineServiceClient
	cosi    state.State
	limits  Limits
	clean   func(error) error
	first   *tls.Conn // what visit opened, if it did
}

// visit meets a node and, if it is ours, opens a session on the same
// connection: a handshake is most of what it costs to ask a node something. The
// session is nil for any other node.
func (c *Cluster) visit(ctx context.Context, n estate.Node) (contact, *session, error) {
	address := c.addresses.Nodes[n.Name]
	seen, conn := c.shake(ctx, address)
	if seen.state != Ours {
		return seen, nil, nil
	}
	config, err := c.mutual(address)
	if err != nil {
		drop(conn)
		return seen, nil, err
	}
	s, err := c.connect(address, config, conn)
	return seen, s, err
}

// open connects to a configured node with the admin's certificate.
func (c *Cluster) open(n estate.Node) (*session, error) {
	address := c.addresses.Nodes[n.Name]
	config, err := c.mutual(address)
	if err != nil {
		return nil, err
	}
	return c.connect(address, config, nil)
}

// openPinned connects to a node in maintenance.
func (c *Cluster) openPinned(n estate.Node, pin string) (*session, error) {
	return c.connect(c.addresses.Nodes[n.Name], pinned(pin), nil)
}

// connect makes a session. It begins on the connection first, unless that is nil.
func (c *Cluster) connect(address netip.Addr, config *tls.Config, first *tls.Conn) (*session, error) {
	target := netip.AddrPortFrom(address, APIPort).String()
	conn, err := grpc.NewClient("passthrough:///"+target,
		grpc.WithTransportCredentials(shaken{credentials.NewTLS(config)}),
		grpc.WithContextDialer(c.dialAfter(first)),
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(constants.GRPCMaxMessageSize), grpc.MaxCallSendMsgSize(constants.GRPCMaxMessageSize)),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: c.limits.Contact, Backoff: backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second}}),
	)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", target, err)
	}
	return &session{
		conn: conn, machine: machine.NewMachineServiceClient(conn),
		cosi: state.WrapCore(cosiclient.NewAdapter(cosiv1alpha1.NewStateClient(conn))), limits: c.limits, clean: c.clean, first: first,
	}, nil
}

// dialAfter dials, but gives out an open connection the first time.
func (c *Cluster) dialAfter(first *tls.Conn) func(context.Context, string) (net.Conn, error) {
	var used atomic.Bool
	return func(ctx context.Context, to string) (net.Conn, error) {
		if first != nil && !used.Swap(true) {
			return first, nil
		}
		return c.dial(ctx, "tcp", to)
	}
}

// shaken is TLS for connections that may have made their handshake already.
type shaken struct {
	credentials.TransportCredentials
}

func (t shaken) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, ok := raw.(*tls.Conn)
	if !ok {
		return t.TransportCredentials.ClientHandshake(ctx, authority, raw)
	}
	return conn, credentials.TLSInfo{State: conn.ConnectionState(), CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
}

func (t shaken) Clone() credentials.TransportCredentials {
	return shaken{t.TransportCredentials.Clone()}
}

func (s *session) close() {
	_ = s.conn.Close()
	drop(s.first) // in case no request was made
}

// read makes one request that changes nothing, with its own deadline.
func read[T any](ctx context.Context, s *session, request func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Call)
	defer cancel()
	out, err := request(ctx)
	return out, s.clean(err)
}

// cleanError is an error whose text is safe to show; its cause keeps the code.
type cleanError struct {
	text string
	err  error
}

func (e *cleanError) Error() string { return e.text }
func (e *cleanError) Unwrap() error { return e.err }

// clean takes secrets out of what a node says: Talos quotes the whole
// difference of two configurations in some of its errors.
func (c *Cluster) clean(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if s, ok := status.FromError(err); ok {
		text = s.Message()
		if s.Code() == codes.DeadlineExceeded {
			text = "no answer in time"
		}
	}
	text, _, _ = strings.Cut(text, "\ndiff:")
	for _, secret := range c.bundle.Secrets() {
		text = strings.ReplaceAll(text, secret.Reveal(), vault.Mask)
	}
	return &cleanError{text: text, err: err}
}

// code is the status code that a node answered with, or Unknown.
func code(err error) codes.Code {
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		return s.GRPCStatus().Code()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return codes.DeadlineExceeded
	}
	return codes.Unknown
}

// ambiguous says whether a request may have taken effect although it failed:
// the connection broke or the answer did not come.
func ambiguous(err error) bool {
	switch code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown, codes.Internal, codes.Aborted:
		return true
	}
	return false
}
