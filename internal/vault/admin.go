package vault

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/role"
	"go.yaml.in/yaml/v4"

	talosx509 "github.com/siderolabs/crypto/x509"
)

// AdminLifetime is how long admin credentials are valid unless asked
// otherwise. Talos itself uses one year.
const AdminLifetime = 365 * 24 * time.Hour

// clockSkew is how far the nodes' clocks may be behind ours.
const clockSkew = 10 * time.Minute

// TalosClient is the admin's client certificate for the Talos API and the
// authority that the servers' certificates must come from.
func (b *Bundle) TalosClient(now time.Time, lifetime time.Duration) (tls.Certificate, *x509.CertPool, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return client(b.machine.Certs.OS, pkix.Name{Organization: []string{string(role.Admin)}}, private, now, lifetime)
}

// KubernetesClient is the admin's client certificate for the Kubernetes API
// and the authority of the API server's certificate.
func (b *Bundle) KubernetesClient(now time.Time, lifetime time.Duration) (tls.Certificate, *x509.CertPool, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return client(b.machine.Certs.K8s, pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}, private, now, lifetime)
}

// EtcdAuthority is etcd's certificate authority, without its key.
func (b *Bundle) EtcdAuthority() []byte { return bytes.Clone(b.machine.Certs.Etcd.Crt) }

// Talosconfig is the client configuration of talosctl, as YAML. It is secret.
// Endpoints are addresses of control plane nodes; nodes are the default
// targets.
func (b *Bundle) Talosconfig(cluster string, endpoints, nodes []string, now time.Time, lifetime time.Duration) ([]byte, error) {
	cert, _, err := b.TalosClient(now, lifetime)
	if err != nil {
		return nil, err
	}
	crt, key, err := encodePair(cert)
	if err != nil {
		return nil, err
	}
	type entry struct {
		Endpoints []string `yaml:"endpoints"`
		Nodes     []string `yaml:"nodes,omitempty"`
		CA        string   `yaml:"ca"`
		Crt       string   `yaml:"crt"`
		Key       string   `yaml:"key"`
	}
	return yaml.Marshal(struct {
		Context  string           `yaml:"context"`
		Contexts map[string]entry `yaml:"contexts"`
	}{cluster, map[string]entry{cluster: {
		Endpoints: endpoints, Nodes: nodes, CA: base64.StdEncoding.EncodeToString(b.machine.Certs.OS.Crt), Crt: crt, Key: key,
	}}})
}

// Kubeconfig is the admin's client configuration of kubectl, as YAML. It is
// secret. The server is the cluster endpoint, such as
// https://172.16.0.3:6443.
func (b *Bundle) Kubeconfig(cluster, server string, now time.Time, lifetime time.Duration) ([]byte, error) {
	cert, _, err := b.KubernetesClient(now, lifetime)
	if err != nil {
		return nil, err
	}
	crt, key, err := encodePair(cert)
	if err != nil {
		return nil, err
	}
	user := "admin@" + cluster
	type m = map[string]any
	return yaml.Marshal(m{
		"apiVersion": "v1", "kind": "Config", "current-context": user,
		"clusters": []m{{"name": cluster, "cluster": m{"server": server,
			"certificate-authority-data": base64.StdEncoding.EncodeToString(b.machine.Certs.K8s.Crt)}}},
		"contexts": []m{{"name": user, "context": m{"cluster": cluster, "namespace": "default", "user": user}}},
		"users":    []m{{"name": user, "user": m{"client-certificate-data": crt, "client-key-data": key}}},
	})
}

// client signs a client certificate. Talos accepts a leaf only when its one
// extended use is client authentication.
func client(ca *talosx509.PEMEncodedCertificateAndKey, subject pkix.Name, private crypto.Signer, now time.Time, lifetime time.Duration) (tls.Certificate, *x509.CertPool, error) {
	if lifetime <= 0 {
		return tls.Certificate{}, nil, fmt.Errorf("lifetime %s is not a positive duration", lifetime)
	}
	parent, err := ca.GetCert()
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("read certificate authority: %w", err)
	}
	parentKey, err := signer(ca.Key)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("certificate authority key %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	notAfter := now.Add(lifetime)
	if notAfter.After(parent.NotAfter) {
		notAfter = parent.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: subject, NotBefore: now.Add(-clockSkew), NotAfter: notAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, parent, private.Public(), parentKey)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("sign client certificate: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parent)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, pool, nil
}

// encodePair gives certificate and key as base64 of PEM, the form of both
// client configurations.
func encodePair(cert tls.Certificate) (crt, key string, err error) {
	var keyBlock *pem.Block
	switch private := cert.PrivateKey.(type) {
	case *ecdsa.PrivateKey:
		der, err := x509.MarshalECPrivateKey(private)
		if err != nil {
			return "", "", err
		}
		keyBlock = &pem.Block{Type: talosx509.PEMTypeECPrivate, Bytes: der}
	default:
		der, err := x509.MarshalPKCS8PrivateKey(private)
		if err != nil {
			return "", "", err
		}
		// talosctl insists on this type for Ed25519 keys.
		keyBlock = &pem.Block{Type: talosx509.PEMTypeEd25519Private, Bytes: der}
	}
	crtPEM := pem.EncodeToMemory(&pem.Block{Type: talosx509.PEMTypeCertificate, Bytes: cert.Certificate[0]})
	return base64.StdEncoding.EncodeToString(crtPEM), base64.StdEncoding.EncodeToString(pem.EncodeToMemory(keyBlock)), nil
}
