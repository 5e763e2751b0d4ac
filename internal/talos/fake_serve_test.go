package talos

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	cosiv1alpha1 "github.com/cosi-project/runtime/api/v1alpha1"
	talosx509 "github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// dial is the way in: it knows only the private addresses.
func (f *fakeFarm) dial(_ context.Context, _, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	n := f.nodes[host]
	var at State
	if n != nil {
		at = n.state
	}
	f.mu.Unlock()
	switch {
	case n == nil:
		return nil, fmt.Errorf("dial %s: %w", address, syscall.ECONNREFUSED)
	case at == Unreachable:
		return nil, fmt.Errorf("dial %s: %w", address, context.DeadlineExceeded) // at once, so that scenes do not wait for it
	case at == Refusing:
		return nil, fmt.Errorf("dial %s: %w", address, syscall.ECONNREFUSED)
	}
	client, server := net.Pipe()
	f.mu.Lock()
	n.conns[server] = true
	f.mu.Unlock()
	n.accept <- server
	return client, nil
}

// pipes is a listener whose connections the farm's dialer makes.
type pipes struct {
	accept chan net.Conn
	done   chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (n *fakeNode) serve(t *testing.T) {
	n.accept = make(chan net.Conn)
	listener := &pipes{accept: n.accept, done: make(chan struct{})}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{NextProtos: []string{"h2"}, GetConfigForClient: n.tls})),
		grpc.UnaryInterceptor(func(ctx context.Context, in any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			method := info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:]
			if n.before != nil {
				if err := n.before(n, method); err != nil {
					return nil, err
				}
			}
			out, err := next(ctx, in)
			if err == nil && n.after != nil {
				err = n.after(n, method)
			}
			return out, err
		}))
	machine.RegisterMachineServiceServer(server, n)
	cosiv1alpha1.RegisterStateServer(server, &fakeResources{node: n})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { close(listener.done); server.Stop() })
}

func (n *fakeNode) hangUp() {
	n.farm.mu.Lock()
	defer n.farm.mu.Unlock()
	for c := range n.conns {
		_ = c.Close()
		delete(n.conns, c)
	}
}

// tls is the listener's face: a throwaway certificate that asks for nothing,
// or one of the cluster that asks for the admin's.
func (n *fakeNode) tls(*tls.ClientHelloInfo) (*tls.Config, error) {
	n.farm.mu.Lock()
	defer n.farm.mu.Unlock()
	if n.state == Maintenance {
		return &tls.Config{Certificates: []tls.Certificate{n.cert}, NextProtos: []string{"h2"}}, nil
	}
	if n.face == nil || n.faceOf != string(n.active) || n.faceBy != n.bundle {
		face, err := n.makeFace()
		if err != nil {
			return nil, err
		}
		n.face, n.faceOf, n.faceBy = face, string(n.active), n.bundle
	}
	return n.face, nil
}

// makeFace signs a certificate for the names of the configuration.
func (n *fakeNode) makeFace() (*tls.Config, error) {
	ca, err := talosx509.NewCertificateAuthorityFromCertificateAndKey(n.bundle.Machine().Certs.OS)
	if err != nil {
		return nil, err
	}
	names := []string{n.address.String()}
	if n.active != nil {
		if p, err := n.farm.parsed(n.active); err == nil {
			names = append(names, p.Machine().Security().CertSANs()...)
		}
	}
	var ips []net.IP
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			ips = append(ips, ip)
		}
	}
	pair, err := talosx509.NewKeyPair(ca, talosx509.CommonName(n.name), talosx509.IPAddresses(ips), talosx509.NotBefore(time.Now().Add(-time.Minute)),
		talosx509.NotAfter(time.Now().Add(time.Hour)), talosx509.ExtKeyUsage([]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.Crt)
	return &tls.Config{Certificates: []tls.Certificate{*pair.Certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, NextProtos: []string{"h2"}}, nil
}

func throwaway(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: maintenanceName}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}
