package vault

import (
	"encoding/base64"
	"encoding/pem"
	"strings"

	talosx509 "github.com/siderolabs/crypto/x509"
)

// Secrets lists every text whose appearance anywhere would give a part of the
// bundle away, in the encodings in which parts travel: as they are in the
// file, as PEM, as base64 of PEM, and line by line, because JSON and logs
// break PEM apart. It is for redaction and for tests that search for leaks.
func (b *Bundle) Secrets() []Secret {
	m := b.machine
	texts := []string{
		m.Cluster.Secret, m.Secrets.BootstrapToken, m.Secrets.SecretboxEncryptionSecret, m.Secrets.AESCBCEncryptionSecret, m.TrustdInfo.Token,
	}
	for _, token := range []string{m.Secrets.BootstrapToken, m.TrustdInfo.Token} {
		if _, secret, ok := strings.Cut(token, "."); ok {
			texts = append(texts, secret)
		}
	}
	for _, pair := range []*talosx509.PEMEncodedCertificateAndKey{m.Certs.Etcd, m.Certs.K8s, m.Certs.K8sAggregator, m.Certs.OS} {
		if pair != nil {
			texts = append(texts, forms(pair.Key)...)
		}
	}
	if m.Certs.K8sServiceAccount != nil {
		texts = append(texts, forms(m.Certs.K8sServiceAccount.Key)...)
	}
	var out []Secret
	seen := map[string]bool{"": true}
	for _, text := range texts {
		if !seen[text] {
			seen[text] = true
			out = append(out, NewSecret(text))
		}
	}
	return out
}

// forms are the encodings of one private key.
func forms(key []byte) []string {
	out := []string{string(key), base64.StdEncoding.EncodeToString(key)}
	block, _ := pem.Decode(key)
	if block == nil {
		return out
	}
	out = append(out, base64.StdEncoding.EncodeToString(block.Bytes))
	for line := range strings.Lines(string(key)) {
		if line = strings.TrimSpace(line); len(line) >= 32 && !strings.HasPrefix(line, "-") {
			out = append(out, line)
		}
	}
	return out
}
