package door

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
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	talosclient "github.com/siderolabs/talos/pkg/machinery/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/emptypb"
)

// The addresses of an estate, as the certificates and the talosconfig name them.
const loadBalancer = "172.16.0.5"

var controlPlane = []string{"172.16.0.11", "172.16.0.12", "172.16.0.13"}

// apid answers Version, as a control plane node does, and says which one it is.
type apid struct {
	machineapi.UnimplementedMachineServiceServer
	address string
}

func (a apid) Version(context.Context, *emptypb.Empty) (*machineapi.VersionResponse, error) {
	return &machineapi.VersionResponse{Messages: []*machineapi.Version{{Version: &machineapi.VersionInfo{Tag: a.address}}}}, nil
}

// startNodes serves Talos's API with each node's own certificate, which names
// the node and the load balancer, and gives the authority's certificate.
func startNodes(t *testing.T, b *bastion) []byte {
	t.Helper()
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"talos"}}, IsCA: true,
		NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	authorityKey := ecKey(t)
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	if err != nil {
		t.Fatal(err)
	}
	for i, address := range controlPlane {
		leaf := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 2)), NotAfter: time.Now().Add(time.Hour),
			IPAddresses: []net.IP{net.ParseIP(address), net.ParseIP(loadBalancer)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
		key := ecKey(t)
		cert, err := x509.CreateCertificate(rand.Reader, leaf, authority, &key.PublicKey, authorityKey)
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}})))
		machineapi.RegisterMachineServiceServer(server, apid{address: address})
		go func() { _ = server.Serve(l) }()
		t.Cleanup(server.Stop)
		b.set(func(b *bastion) { b.targets[address+":50000"] = l.Addr().String() })
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// playTalosClient is what talosctl does: the machinery client with endpoints
// from a configuration, and the proxy from the environment. It is a process of
// its own because Go reads the proxy variables once.
func playTalosClient() int {
	authority, err := os.ReadFile(os.Getenv("DOOR_TEST_CA"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := talosclient.New(ctx, talosclient.WithEndpoints(strings.Fields(os.Getenv("DOOR_TEST_ENDPOINTS"))...),
		talosclient.WithTLSConfig(&tls.Config{RootCAs: pool}))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer c.Close()
	answer, err := c.Version(ctx)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(answer.Messages[0].Version.Tag)
	return 0
}

// Which talosconfig works behind an HTTP proxy is a fact of gRPC, not of ours.
// This test holds it, so that a new version that changes it is noticed.
func TestTalosClientThroughTheProxy(t *testing.T) {
	var alike []netip.AddrPort
	for _, a := range controlPlane {
		alike = append(alike, netip.MustParseAddrPort(a+":50000"))
	}
	b, p := proxied(t, ProxyConfig{Spread: map[string][]netip.AddrPort{loadBalancer + ":50000": alike}})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, startNodes(t, b), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(endpoints ...string) (string, error) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(childEnvironment(os.Environ(), privateNetwork, p.URL(), "", ""), roleVariable+"=talos",
			"DOOR_TEST_CA="+ca, "DOOR_TEST_ENDPOINTS="+strings.Join(endpoints, " "))
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	if got, err := ask(controlPlane[0]); err != nil || got != controlPlane[0] {
		t.Errorf("one endpoint: got %q, %v", got, err)
	}
	if got, err := ask(controlPlane...); err == nil || !strings.Contains(got, "x509") {
		t.Errorf("several endpoints: got %q, %v; gRPC has learnt to tell them apart behind a proxy, so Spread may go", got, err)
	}
	// The shape that works with any of them down.
	b.set(func(b *bastion) {
		b.targets[controlPlane[0]+":50000"] = refuses
		b.targets[controlPlane[2]+":50000"] = refuses
	})
	for range 3 {
		if got, err := ask(loadBalancer); err != nil || got != controlPlane[1] {
			t.Errorf("the load balancer's address: got %q, %v, want the answer of %s", got, err, controlPlane[1])
		}
	}
}
