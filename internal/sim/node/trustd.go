package node

import (
	"bytes"
	"context"
	"crypto/subtle"
	"crypto/tls"
	stdx509 "crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/siderolabs/crypto/x509"
	securityapi "github.com/siderolabs/talos/pkg/machinery/api/security"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// trustd is the service by which a control plane node signs the API
// certificates of workers that know the machine token.
type trustd struct {
	securityapi.UnimplementedSecurityServiceServer
	node *node
}

func (n *node) serveTrustd() {
	n.services.set("trustd", stateWaiting, "Waiting for time sync, network")
	if !n.awaitTime(n.ctx) {
		return
	}
	certs := &certCache{make: n.apiCertificate}
	conf := baseTLS(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certs.get() })
	t := &trustd{node: n}
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(conf)), grpc.UnaryInterceptor(t.authenticate))
	securityapi.RegisterSecurityServiceServer(s, t)
	listeners, err := n.listen(trustdPort)
	if err != nil {
		n.services.set("trustd", stateFailed, err.Error())
		return
	}
	for _, l := range listeners {
		n.spawn(func() { _ = s.Serve(l) })
	}
	n.services.set("trustd", stateRunning, "Started task trustd")
	n.services.health("trustd", true, "Health check successful")
	<-n.ctx.Done()
	s.Stop()
}

// authenticate checks the token that comes with each call.
func (t *trustd) authenticate(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	want := t.node.config().Machine().Security().Token()
	if got := md["token"]; len(got) == 1 && subtle.ConstantTimeCompare([]byte(got[0]), []byte(want)) == 1 {
		return handler(ctx, req)
	}
	return nil, status.Error(codes.Unauthenticated, "invalid token")
}

// Certificate signs a request as a server certificate, whatever else it asks for.
func (t *trustd) Certificate(_ context.Context, in *securityapi.CertificateRequest) (*securityapi.CertificateResponse, error) {
	block, _ := pem.Decode(in.Csr)
	if block == nil {
		return nil, status.Error(codes.InvalidArgument, "failed to decode CSR")
	}
	req, err := stdx509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "failed to parse CSR: %s", err)
	}
	opts := []x509.Option{signing, serverUse}
	if len(req.Subject.Organization) > 0 {
		opts = append(opts, x509.OverrideSubject(func(s *pkix.Name) { s.Organization = nil }))
	}
	sec := t.node.config().Machine().Security()
	signed, err := x509.NewCertificateFromCSRBytes(sec.IssuingCA().Crt, sec.IssuingCA().Key, in.Csr, opts...)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "failed to sign CSR: %s", err)
	}
	cas := [][]byte{sec.IssuingCA().Crt}
	for _, ca := range sec.AcceptedCAs() {
		cas = append(cas, ca.Crt)
	}
	return &securityapi.CertificateResponse{Ca: bytes.Join(cas, nil), Crt: signed.X509CertificatePEM}, nil
}

// tokenCredentials sends the machine token with a call.
type tokenCredentials string

func (t tokenCredentials) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"token": string(t)}, nil
}
func (tokenCredentials) RequireTransportSecurity() bool { return true }

// openWorkerAPI gets the worker's certificate from a control plane node and then
// serves the API. Until a trustd answers, the worker has none.
func (n *node) openWorkerAPI() {
	var cert *tls.Certificate
	var asked config.Provider
	for {
		asked = n.config()
		c, err := n.requestCertificate()
		if err == nil {
			cert = c
			break
		}
		n.logOf("controller-runtime").add("failed to sign API server CSR: " + err.Error())
		if n.pause(n.ctx, trustdPeriod) != nil {
			return
		}
	}
	cache := &certCache{have: cert, make: n.requestCertificate}
	if err := n.openAPI(&apid{cert: cache}, n.mutualTLS(cache.get)); err != nil {
		n.services.set("apid", stateFailed, err.Error())
		return
	}
	n.services.set("apid", stateRunning, "Started task apid")
	n.services.health("apid", true, "Health check successful")
	if n.config() != asked { // changed before there was an API to renew the certificate of
		n.askForCertificate(cache)
	}
}

// askForCertificate has a control plane node sign a worker's certificate anew, as
// when the names in its configuration have changed. The worker serves the one that
// it has until a trustd has answered.
func (n *node) askForCertificate(c *certCache) {
	if !c.ask() {
		return
	}
	n.spawn(func() {
		for {
			made, err := c.make()
			if err == nil {
				if c.take(made) {
					return
				}
				continue
			}
			n.logOf("controller-runtime").add("failed to sign API server CSR: " + err.Error())
			if n.pause(n.ctx, trustdPeriod) != nil {
				return
			}
		}
	})
}

func (n *node) requestCertificate() (*tls.Certificate, error) {
	sec := n.config().Machine().Security()
	cas := sec.AcceptedCAs()
	if ca := sec.IssuingCA(); ca != nil {
		cas = append(cas, &x509.PEMEncodedCertificate{Crt: ca.Crt})
	}
	if len(cas) == 0 {
		return nil, errors.New("no accepted CAs")
	}
	caCert, err := cas[len(cas)-1].GetCert()
	if err != nil {
		return nil, fmt.Errorf("failed to parse CA certificate: %w", err)
	}
	s := n.apiNames()
	csr, identity, err := x509.NewCSRAndIdentityFromCA(caCert, x509.IPAddresses(s.ips), x509.DNSNames(s.dns), x509.CommonName(n.hostname()))
	if err != nil {
		return nil, fmt.Errorf("failed to generate API server CSR: %w", err)
	}
	endpoints := n.endpoints()
	if len(endpoints) == 0 {
		return nil, errors.New("no controlplane endpoints discovered yet")
	}
	var last error
	for _, ep := range endpoints {
		crt, err := n.askTrustd(ep.String(), csr.X509CertificateRequestPEM)
		if err != nil {
			last = err
			continue
		}
		cert, err := tls.X509KeyPair(crt, identity.Key)
		return &cert, err
	}
	return nil, last
}

func (n *node) askTrustd(host string, csr []byte) ([]byte, error) {
	conn, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(host, fmt.Sprint(trustdPort)),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: n.machineCAs(), MinVersion: tls.VersionTLS12})),
		grpc.WithPerRPCCredentials(tokenCredentials(n.config().Machine().Security().Token())),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return n.dial(ctx, "tcp", addr) }))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(n.ctx, 10*time.Second)
	defer cancel()
	resp, err := securityapi.NewSecurityServiceClient(conn).Certificate(ctx, &securityapi.CertificateRequest{Csr: csr})
	if err != nil {
		return nil, err
	}
	return resp.Crt, nil
}
