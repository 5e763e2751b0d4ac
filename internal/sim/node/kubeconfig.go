package node

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// adminKubeconfig makes a kubeconfig for the cluster's administrator.
func (n *node) adminKubeconfig() ([]byte, error) {
	cl := n.config().Cluster()
	life := cl.AdminKubeconfig().CertLifetime()
	pair, err := sign(cl.IssuingCA(), x509.CommonName(cl.AdminKubeconfig().CommonName()), x509.Organization(cl.AdminKubeconfig().CertOrganization()),
		x509.NotBefore(time.Now().Add(-10*time.Second)), validFor(life), exchange, clientUse)
	if err != nil {
		return nil, err
	}
	b64 := base64.StdEncoding.EncodeToString
	user := "admin@" + cl.Name()
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: %[1]s
  cluster:
    server: %[2]s
    certificate-authority-data: %[3]s
users:
- name: %[4]s
  user:
    client-certificate-data: %[5]s
    client-key-data: %[6]s
contexts:
- context:
    cluster: %[1]s
    namespace: default
    user: %[4]s
  name: %[4]s
current-context: %[4]s
`, cl.Name(), cl.Endpoint(), b64(cl.IssuingCA().Crt), user, b64(pair.Crt), b64(pair.Key)), nil
}

// GenerateClientConfiguration issues an identity for the Talos API.
func (a *talosAPI) GenerateClientConfiguration(_ context.Context, in *machine.GenerateClientConfigurationRequest) (*machine.GenerateClientConfigurationResponse, error) {
	n := a.node
	if err := n.controlPlaneOnly("generate client configuration"); err != nil {
		return nil, err
	}
	ttl := in.CrtTtl.AsDuration()
	if ttl <= 0 {
		return nil, status.Error(codes.InvalidArgument, "crt_ttl should be positive")
	}
	roles, _ := role.Parse(in.Roles)
	bundle := secrets.NewBundleFromConfig(secrets.NewFixedClock(time.Now()), n.config())
	cert, err := bundle.GenerateTalosAPIClientCertificateWithTTL(roles, ttl)
	if err != nil {
		return nil, err
	}
	name := n.config().Cluster().Name()
	if r := roles.Strings(); len(r) == 1 {
		name = r[0][len(role.Prefix):] + "@" + name
	}
	text, err := clientconfig.NewConfig(name, nil, bundle.Certs.OS.Crt, cert).Bytes()
	if err != nil {
		return nil, err
	}
	return &machine.GenerateClientConfigurationResponse{Messages: []*machine.GenerateClientConfiguration{{
		Ca: bundle.Certs.OS.Crt, Crt: cert.Crt, Key: cert.Key, Talosconfig: text,
	}}}, nil
}
