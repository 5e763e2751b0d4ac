package node

import (
	"crypto/tls"
	stdx509 "crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/role"
)

// names are what a certificate is valid for.
type names struct {
	ips []net.IP
	dns []string
}

// add sorts an address or a name into its place.
func (s *names) add(all ...string) {
	for _, a := range all {
		if ip, err := netip.ParseAddr(a); err == nil {
			s.ips = append(s.ips, ip.AsSlice())
		} else if a != "" && !slices.Contains(s.dns, a) {
			s.dns = append(s.dns, a)
		}
	}
}

func (s *names) addAddrs(all ...netip.Addr) {
	for _, a := range all {
		s.add(a.String())
	}
}

// sign issues a certificate for a day from a certificate authority.
func sign(ca *x509.PEMEncodedCertificateAndKey, opts ...x509.Option) (*x509.PEMEncodedCertificateAndKey, error) {
	if ca == nil || len(ca.Key) == 0 {
		return nil, errors.New("the configuration has no such certificate authority")
	}
	authority, err := x509.NewCertificateAuthorityFromCertificateAndKey(ca)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate authority: %w", err)
	}
	pair, err := x509.NewKeyPair(authority, opts...)
	if err != nil {
		return nil, fmt.Errorf("issuing a certificate: %w", err)
	}
	return x509.NewCertificateAndKeyFromKeyPair(pair), nil
}

var (
	serverUse = x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth})
	clientUse = x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth})
	bothUse   = x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth, stdx509.ExtKeyUsageClientAuth})
	signing   = x509.KeyUsage(stdx509.KeyUsageDigitalSignature)
	exchange  = x509.KeyUsage(stdx509.KeyUsageDigitalSignature | stdx509.KeyUsageKeyEncipherment)
)

func validFor(d time.Duration) x509.Option { return x509.NotAfter(time.Now().Add(d)) }

const day = 24 * time.Hour

// apiNames are the subject alternative names of the node's Talos API: what the
// configuration adds, every address, and the host name. The cluster endpoint is
// not among them.
func (n *node) apiNames() names {
	var s names
	if cfg := n.config(); cfg != nil && cfg.Machine() != nil {
		s.add(cfg.Machine().Security().CertSANs()...)
	}
	s.addAddrs(n.addresses()...)
	s.add(n.hostname())
	return s
}

// maintenanceTLS makes the throwaway certificate of maintenance mode.
func (n *node) maintenanceTLS() (*tls.Config, error) {
	issue := func() (*tls.Certificate, error) {
		ca, err := x509.NewSelfSignedCertificateAuthority(x509.Organization("talos"), x509.RSA(false), x509.ECDSA(true))
		if err != nil {
			return nil, err
		}
		s := n.apiNames()
		s.add("127.0.0.1", "::1")
		pair, err := x509.NewKeyPair(ca, x509.CommonName("maintenance-service.talos.dev"),
			x509.IPAddresses(s.ips), x509.DNSNames(s.dns), validFor(day), signing, serverUse)
		if err != nil {
			return nil, err
		}
		pemPair := x509.NewCertificateAndKeyFromKeyPair(pair)
		cert, err := tls.X509KeyPair(pemPair.Crt, pemPair.Key)
		return &cert, err
	}
	first, err := issue()
	if err != nil {
		return nil, fmt.Errorf("making the maintenance certificate: %w", err)
	}
	return baseTLS(func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if n.live().CertChanges {
			return issue()
		}
		return first, nil
	}), nil
}

// baseTLS is what every Talos listener has in common.
func baseTLS(get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, GetCertificate: get, NextProtos: []string{"h2"},
		SessionTicketsDisabled: true,
	}
}

// mutualTLS serves a certificate to clients of the machine's accepted authorities.
func (n *node) mutualTLS(get func() (*tls.Certificate, error)) *tls.Config {
	conf := baseTLS(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return get() })
	conf.ClientAuth = tls.RequireAndVerifyClientCert
	conf.VerifyPeerCertificate = onlyClientAuth
	base := conf.Clone()
	conf.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := base.Clone()
		now.ClientCAs = n.machineCAs()
		return now, nil
	}
	return conf
}

// onlyClientAuth refuses leaves that are good for anything but client
// authentication, as apid does.
func onlyClientAuth(_ [][]byte, chains [][]*stdx509.Certificate) error {
	if len(chains) == 0 {
		return errors.New("no verified chains")
	}
	for _, c := range chains[0] {
		if !c.IsCA && !slices.Equal(c.ExtKeyUsage, []stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}) {
			return fmt.Errorf("certificate %q is missing the client auth extended key usage", c.Subject)
		}
	}
	return nil
}

// machineCAs are the authorities whose certificates the Talos API accepts.
func (n *node) machineCAs() *stdx509.CertPool {
	pool := stdx509.NewCertPool()
	sec := n.config().Machine().Security()
	if ca := sec.IssuingCA(); ca != nil {
		pool.AppendCertsFromPEM(ca.Crt)
	}
	for _, ca := range sec.AcceptedCAs() {
		pool.AppendCertsFromPEM(ca.Crt)
	}
	return pool
}

// apiCertificate signs the server certificate of a control plane node's API.
func (n *node) apiCertificate() (*tls.Certificate, error) {
	ca := n.config().Machine().Security().IssuingCA()
	if n.live().ForeignCert {
		other, err := x509.NewSelfSignedCertificateAuthority(x509.Organization("talos"))
		if err != nil {
			return nil, err
		}
		ca = x509.NewCertificateAndKeyFromCertificateAuthority(other)
	}
	s := n.apiNames()
	pair, err := sign(ca, x509.CommonName(n.hostname()), x509.IPAddresses(s.ips), x509.DNSNames(s.dns), validFor(day), signing, serverUse)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(pair.Crt, pair.Key)
	return &cert, err
}

// proxyTLS is how a control plane node's API speaks to other nodes: with a
// certificate that lets it say on whose behalf.
func (n *node) proxyTLS() (*tls.Config, error) {
	pair, err := sign(n.config().Machine().Security().IssuingCA(),
		x509.CommonName(n.hostname()), x509.Organization(string(role.Impersonator)), validFor(day), signing, clientUse)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(pair.Crt, pair.Key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: n.machineCAs(), MinVersion: tls.VersionTLS12}, nil
}
