package talos

import (
	"fmt"

	talosx509 "github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"bastide/internal/vault"
)

// Masked is a configuration for reading: no secret is in it, and nothing else
// that belongs to one bundle either, so that the same file renders the same
// bytes whoever renders it.
func Masked(text []byte) ([]byte, error) {
	p, err := configloader.NewFromBytes(text)
	if err != nil {
		return nil, fmt.Errorf("read machine configuration: %w", err)
	}
	redacted, err := canonical(p.RedactSecrets(vault.Mask))
	if err != nil {
		return nil, err
	}
	if c := redacted.RawV1Alpha1(); c != nil {
		maskIdentity(c)
	}
	return encode(redacted)
}

func maskIdentity(c *v1alpha1.Config) {
	var pairs []*talosx509.PEMEncodedCertificateAndKey
	if c.MachineConfig != nil {
		pairs = append(pairs, c.MachineConfig.MachineCA)
	}
	if c.ClusterConfig != nil {
		c.ClusterConfig.ClusterID = vault.Mask
		pairs = append(pairs, c.ClusterConfig.ClusterCA, c.ClusterConfig.ClusterAggregatorCA)
		if c.ClusterConfig.EtcdConfig != nil {
			pairs = append(pairs, c.ClusterConfig.EtcdConfig.RootCA)
		}
	}
	for _, pair := range pairs {
		if pair != nil {
			pair.Crt = []byte(vault.Mask)
		}
	}
}
