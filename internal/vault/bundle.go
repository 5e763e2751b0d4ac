// Package vault keeps what must not be lost or seen: the machine secrets
// bundle, which is the identity of a cluster. It is made or imported by an
// explicit command, lies encrypted beside the environment file, and is never
// overwritten. Admin credentials are signed from it offline, so they can be
// made again at any time.
package vault

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"go.yaml.in/yaml/v4"

	talosx509 "github.com/siderolabs/crypto/x509"

	"bastide/internal/estate"
)

// maxBundle bounds what is read as a bundle. A real one is under 16 KiB.
const maxBundle = 1 << 20

// maxSealed bounds its encrypted form, which is text and so a third larger, and
// an age identity file, which is a few lines.
const maxSealed = 2 << 20

// Bundle is the machine secrets of one cluster. Its fields cannot be printed
// by accident; Machine hands them to the library that renders configurations.
type Bundle struct{ machine *secrets.Bundle }

// Generate makes a new bundle for a Talos version such as v1.13.5. Its
// certificate authorities are valid for ten years from now.
func Generate(talosVersion string, now time.Time) (*Bundle, error) {
	contract, err := config.ParseContractFromVersion(talosVersion)
	if err != nil {
		return nil, fmt.Errorf("talos version %q: %w", talosVersion, err)
	}
	// The nodes' clocks may be behind this one: a CA that is not valid yet
	// would make the first boot fail.
	made, err := secrets.NewBundle(secrets.NewFixedClock(now.Add(-time.Hour)), contract)
	if err != nil {
		return nil, fmt.Errorf("generate machine secrets: %w", err)
	}
	return &Bundle{machine: made}, nil
}

// Parse reads a bundle in the form that `talosctl gen secrets` writes. It is
// strict: unknown and missing keys, keys that do not belong to their
// certificate and authorities outside their time are errors.
func Parse(data []byte, now time.Time) (*Bundle, error) {
	if len(data) > maxBundle {
		return nil, fmt.Errorf("it is larger than %d bytes, which no secrets bundle is", maxBundle)
	}
	if _, err := estate.Documents(data); err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	var machine secrets.Bundle
	if err := decoder.Decode(&machine); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it is empty")
		}
		return nil, withoutValues(err)
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("it holds more than one YAML document")
	}
	machine.Clock = secrets.NewClock()
	b := &Bundle{machine: &machine}
	if err := b.validate(now); err != nil {
		return nil, err
	}
	return b, nil
}

// unknownField finds, in a decoder's message, the line and the key that the
// type does not have.
var unknownField = regexp.MustCompile(`^line (\d+): field (\S+) not found`)

// atLine finds the line of any other message.
var atLine = regexp.MustCompile(`line (\d+)`)

// withoutValues keeps a decoder's message from quoting what it could not
// decode: in this file anything may be a secret.
func withoutValues(err error) error {
	var typed *yaml.TypeError
	if errors.As(err, &typed) && len(typed.Errors) > 0 {
		if m := unknownField.FindStringSubmatch(fmt.Sprint(typed.Errors[0])); m != nil && len(m[2]) < 32 {
			return fmt.Errorf("line %s: a secrets bundle has no key %q there", m[1], m[2])
		}
	}
	if m := atLine.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("line %s is not of the form that a secrets bundle has", m[1])
	}
	return errors.New("it is not the YAML of a secrets bundle")
}

// FromMachine takes a bundle that was read back from a control plane node.
func FromMachine(machine *secrets.Bundle) *Bundle { return &Bundle{machine: machine} }

// Machine is the bundle as the machinery library takes it. It is secret.
func (b *Bundle) Machine() *secrets.Bundle { return b.machine }

// String keeps a bundle that is printed by mistake from showing anything.
func (b *Bundle) String() string { return "secrets bundle " + b.Fingerprint() }

// Format masks every verb.
func (b *Bundle) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, b.String()) }

// MarshalText masks the bundle in JSON and logs.
func (b *Bundle) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// MarshalYAML masks the bundle in YAML.
func (b *Bundle) MarshalYAML() (any, error) { return b.String(), nil }

func (b *Bundle) encode() ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(4)
	if err := encoder.Encode(b.machine); err != nil {
		return nil, fmt.Errorf("encode machine secrets: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("encode machine secrets: %w", err)
	}
	return out.Bytes(), nil
}

// Fingerprint names the cluster's identity: SHA-256 over the key identifier of
// the Talos certificate authority. A node's server certificate carries that
// identifier too, so the fingerprint of a node that would not let us in can be
// told from the handshake alone: see FingerprintOfKey.
func (b *Bundle) Fingerprint() string {
	ca, err := b.machine.Certs.OS.GetCert()
	if err != nil {
		return "unreadable"
	}
	return FingerprintOfKey(ca.SubjectKeyId)
}

// FingerprintOfKey is the fingerprint of the cluster whose Talos certificate
// authority has this key identifier (X.509 subject key identifier of the
// authority, authority key identifier of what it signed).
func FingerprintOfKey(keyID []byte) string {
	if len(keyID) == 0 {
		return "unknown"
	}
	sum := sha256.Sum256(append([]byte("talos certificate authority "), keyID...))
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// Differences names the parts of two bundles' identity that differ, such as
// "etcd certificate authority". Admin credentials and order do not matter.
func Differences(a, b *Bundle) []string {
	var out []string
	differ := func(name, x, y string) {
		if x != y {
			out = append(out, name)
		}
	}
	x, y := a.machine, b.machine
	differ("cluster id", x.Cluster.ID, y.Cluster.ID)
	differ("cluster secret", x.Cluster.Secret, y.Cluster.Secret)
	differ("machine token", x.TrustdInfo.Token, y.TrustdInfo.Token)
	differ("bootstrap token", x.Secrets.BootstrapToken, y.Secrets.BootstrapToken)
	differ("secretbox key", x.Secrets.SecretboxEncryptionSecret, y.Secrets.SecretboxEncryptionSecret)
	differ("Talos certificate authority", publicKey(x.Certs.OS), publicKey(y.Certs.OS))
	differ("etcd certificate authority", publicKey(x.Certs.Etcd), publicKey(y.Certs.Etcd))
	differ("Kubernetes certificate authority", publicKey(x.Certs.K8s), publicKey(y.Certs.K8s))
	differ("aggregator certificate authority", publicKey(x.Certs.K8sAggregator), publicKey(y.Certs.K8sAggregator))
	differ("service account key", keyText(x.Certs.K8sServiceAccount), keyText(y.Certs.K8sServiceAccount))
	return out
}

func publicKey(ca *talosx509.PEMEncodedCertificateAndKey) string {
	if ca == nil {
		return ""
	}
	cert, err := ca.GetCert()
	if err != nil {
		return "unreadable"
	}
	return string(cert.RawSubjectPublicKeyInfo)
}

func keyText(k *talosx509.PEMEncodedKey) string {
	if k == nil {
		return ""
	}
	if block, _ := pem.Decode(k.Key); block != nil {
		return string(block.Bytes)
	}
	return string(k.Key)
}
