package talos

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"bastide/internal/outcome"
	"bastide/internal/vault"
)

// Dialer opens a connection to an address in the private network.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// APIPort is where every node's Talos API listens, in maintenance and after.
const APIPort = 50000

// State is what a node was found to be at first contact.
type State string

// The states of a node, told from the TLS handshake alone.
const (
	// Unreachable: no answer; whether it exists, boots or is cut off is not known.
	Unreachable State = "unreachable"
	// Refusing: the machine is up and nothing listens. A node is like that
	// while it boots, while it changes from maintenance to its configuration,
	// and, if it is a worker, until its kubelet has joined the cluster.
	Refusing State = "refusing"
	// Maintenance: no configuration yet; anyone may send one.
	Maintenance State = "maintenance"
	// Ours: configured, with a certificate from this bundle's authority.
	Ours State = "configured"
	// Foreign: configured, with a certificate from another authority.
	Foreign State = "foreign"
)

// contact is what one handshake with a node's API showed.
type contact struct {
	state       State
	why         string // for Unreachable and Refusing
	hopeless    error  // for Unreachable: the way in itself is shut, so another look does not help soon
	pin         string // the certificate's public key, as base64 of SHA-256
	fingerprint string // of the cluster that the certificate is of
	leaf        *x509.Certificate
}

// maintenanceName is in the throwaway certificate of a node in maintenance.
const maintenanceName = "maintenance-service.talos.dev"

// meet makes one TLS handshake with a node and says what it is. A node in
// maintenance presents a throwaway certificate and asks for none; a configured
// one presents its cluster's and asks for the admin's, which is shown so that
// the node has nothing to complain of; it proves nothing to anybody else.
func (c *Cluster) meet(ctx context.Context, address netip.Addr) contact {
	seen, conn := c.shake(ctx, address)
	drop(conn)
	return seen
}

// drop ends a connection without a farewell: TLS's own waits up to five seconds
// for a node that does not read it, and nothing was said that could be cut off.
func drop(conn *tls.Conn) {
	if conn != nil {
		_ = conn.NetConn().Close()
	}
}

// shake is meet that leaves the connection to a node of ours open. It is nil
// for any other, and for one whose certificate is not good for a request.
func (c *Cluster) shake(ctx context.Context, address netip.Addr) (contact, *tls.Conn) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Contact)
	defer cancel()
	raw, err := c.dial(ctx, "tcp", netip.AddrPortFrom(address, APIPort).String())
	if err != nil {
		return missed(ctx, err), nil
	}
	asked := false
	conn := tls.Client(raw, &tls.Config{
		InsecureSkipVerify: true, // judged below, by hand
		NextProtos:         []string{"h2"},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked = true
			cert, _, err := c.credentials()
			return &cert, err
		},
	})
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return missed(ctx, err), nil
	}
	leaf := conn.ConnectionState().PeerCertificates[0]
	seen := contact{leaf: leaf, pin: pinOf(leaf)}
	if asked && c.vouched(conn.ConnectionState(), address) {
		seen.state, seen.fingerprint = Ours, c.bundle.Fingerprint()
		return seen, conn
	}
	switch {
	case !asked && leaf.Subject.CommonName == maintenanceName:
		seen.state = Maintenance
	case !asked:
		seen.state, seen.fingerprint = Foreign, "a service that is not Talos"
	case c.signed(leaf):
		seen.state, seen.fingerprint = Ours, c.bundle.Fingerprint()
	default:
		seen.state, seen.fingerprint = Foreign, vault.FingerprintOfKey(leaf.AuthorityKeyId)
	}
	_ = raw.Close()
	return seen, nil
}

// vouched makes the checks that TLS itself makes of a server's certificate.
func (c *Cluster) vouched(s tls.ConnectionState, address netip.Addr) bool {
	_, pool, err := c.credentials()
	if err != nil {
		return false
	}
	between := x509.NewCertPool()
	for _, cert := range s.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	_, err = s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool, Intermediates: between, DNSName: address.String(), CurrentTime: c.now()})
	return err == nil
}

// signed says whether this bundle's authority signed the certificate. Names
// and dates are not looked at: an expired certificate is still ours.
func (c *Cluster) signed(leaf *x509.Certificate) bool {
	ca, err := c.bundle.Machine().Certs.OS.GetCert()
	return err == nil && leaf.CheckSignatureFrom(ca) == nil
}

func pinOf(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// missed tells a machine that refuses from one that does not answer. A tunnel
// reports a refusal as text only.
func missed(ctx context.Context, err error) contact {
	var told *outcome.Error
	if errors.As(err, &told) {
		return contact{state: Unreachable, why: err.Error(), hopeless: err}
	}
	text := err.Error()
	refused := errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(strings.ToLower(text), "refused") || strings.HasSuffix(text, "EOF")
	switch {
	case refused:
		return contact{state: Refusing, why: "connection refused"}
	case ctx.Err() != nil || isTimeout(err):
		return contact{state: Unreachable, why: "no answer in time"}
	}
	return contact{state: Unreachable, why: text}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// pinned accepts exactly one public key: the one seen at first contact with a
// node in maintenance, whose certificate nobody vouches for. Whoever answers
// later with another key is somebody else.
func pinned(pin string) *tls.Config {
	return &tls.Config{
		InsecureSkipVerify: true,
		NextProtos:         []string{"h2"},
		VerifyConnection: func(s tls.ConnectionState) error {
			if got := pinOf(s.PeerCertificates[0]); got != pin {
				return &changedError{first: pin, now: got}
			}
			return nil
		},
	}
}

// changedError is a certificate that changed between two contacts.
type changedError struct{ first, now string }

// certificateChanged is how the error is known again after gRPC has made it
// into text.
const certificateChanged = "its certificate changed between two contacts"

func (e *changedError) Error() string {
	return fmt.Sprintf("%s, from %s to %s", certificateChanged, e.first, e.now)
}

// mutual is the TLS of a configured node.
func (c *Cluster) mutual(address netip.Addr) (*tls.Config, error) {
	cert, pool, err := c.credentials()
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}, ServerName: address.String(), NextProtos: []string{"h2"}}, nil
}

// credentials are the admin's, signed once a run.
func (c *Cluster) credentials() (tls.Certificate, *x509.CertPool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pool == nil {
		cert, pool, err := c.bundle.TalosClient(c.now(), sessionLifetime)
		if err != nil {
			return tls.Certificate{}, nil, err
		}
		c.admin, c.pool = cert, pool
	}
	return c.admin, c.pool, nil
}

// sessionLifetime is how long the certificate that a run makes for itself is
// valid: longer than any run.
const sessionLifetime = 24 * time.Hour
