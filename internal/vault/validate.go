package vault

import (
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"time"

	talosx509 "github.com/siderolabs/crypto/x509"
)

// tokenPattern is the form of bootstrap and machine tokens: the id and the
// secret of a Kubernetes bootstrap token.
var tokenPattern = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)

// validate checks that the parts are there, parse, and belong together. Its
// errors name keys, never values.
func (b *Bundle) validate(now time.Time) error {
	if err := b.machine.Validate(); err != nil {
		return fmt.Errorf("it is incomplete: %w", err)
	}
	var problems []error
	report := func(key string, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %w", key, err))
		}
	}
	m := b.machine
	report("cluster.id", checkBase64(m.Cluster.ID, 32))
	report("cluster.secret", checkBase64(m.Cluster.Secret, 32))
	if s := m.Secrets.SecretboxEncryptionSecret; s != "" {
		report("secrets.secretboxencryptionsecret", checkBase64(s, 32))
	}
	report("secrets.bootstraptoken", checkToken(m.Secrets.BootstrapToken))
	report("trustdinfo.token", checkToken(m.TrustdInfo.Token))
	report("certs.etcd", checkAuthority(m.Certs.Etcd, now))
	report("certs.k8s", checkAuthority(m.Certs.K8s, now))
	report("certs.k8saggregator", checkAuthority(m.Certs.K8sAggregator, now))
	report("certs.os", checkAuthority(m.Certs.OS, now))
	_, err := signer(m.Certs.K8sServiceAccount.Key)
	report("certs.k8sserviceaccount.key", err)
	return errors.Join(problems...)
}

func checkBase64(text string, size int) error {
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		if raw, err := encoding.DecodeString(text); err == nil {
			if len(raw) != size {
				return fmt.Errorf("holds %d bytes, not %d", len(raw), size)
			}
			return nil
		}
	}
	return errors.New("is not base64")
}

func checkToken(text string) error {
	if !tokenPattern.MatchString(text) {
		return errors.New("is not a token of the form xxxxxx.xxxxxxxxxxxxxxxx (small letters and digits)")
	}
	return nil
}

func checkAuthority(pair *talosx509.PEMEncodedCertificateAndKey, now time.Time) error {
	cert, err := pair.GetCert()
	if err != nil {
		return fmt.Errorf("has a certificate that cannot be read: %w", err)
	}
	key, err := signer(pair.Key)
	if err != nil {
		return err
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	switch {
	case !ok || !public.Equal(cert.PublicKey):
		return errors.New("has a key that does not belong to its certificate")
	case !cert.IsCA:
		return errors.New("has a certificate that is not a certificate authority's")
	case now.After(cert.NotAfter):
		return fmt.Errorf("expired on %s", cert.NotAfter.UTC().Format(time.DateOnly))
	case now.Before(cert.NotBefore.Add(-time.Hour)):
		return fmt.Errorf("is not valid before %s", cert.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// signer reads a private key in any of the forms that Talos uses.
func signer(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("is not a PEM encoded key")
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		if s, ok := key.(crypto.Signer); ok {
			return s, nil
		}
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	return nil, errors.New("is not a private key that can be read")
}
