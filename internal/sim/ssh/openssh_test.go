package ssh

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	xssh "golang.org/x/crypto/ssh"

	"bastide/internal/sim/hardware"
)

// TestOpenSSHClient lets the client that people use through, with the option
// behind ProxyJump and with keepalives as often as it can.
func TestOpenSSHClient(t *testing.T) {
	program, err := exec.LookPath("ssh")
	if err != nil {
		t.Skip("no OpenSSH client on this machine")
	}
	r := newRegion(t, "127.62.0.20", Options{})
	r.node(6443, answer)
	dir := t.TempDir()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := xssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	identity := filepath.Join(dir, "id")
	if err := os.WriteFile(identity, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	signer, err := xssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	r.apply(func(g *hardware.Gateway) { g.AuthorizedKeys = append(g.AuthorizedKeys, line(signer)) })

	run := func(args ...string) (string, string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		defer cancel()
		args = append([]string{"-F", "none", "-i", identity, "-p", strconv.Itoa(r.conf.BastionPort), "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none",
			"-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=accept-new", "-o", "UserKnownHostsFile=" + filepath.Join(dir, "known"),
			"-o", "ServerAliveInterval=1"}, args...)
		cmd := exec.CommandContext(ctx, program, append(args, "bastion@"+r.conf.PublicIP.String())...)
		var out, problems strings.Builder
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("hello"), &out, &problems
		err := cmd.Run()
		return out.String(), problems.String(), err
	}
	if out, problems, err := run("-W", "172.16.0.11:6443"); err != nil || out != "HELLO" {
		t.Errorf("forwarded: %q, %v, %s", out, err, problems)
	}
	if _, problems, err := run("-W", "172.16.0.11:22"); err == nil || !strings.Contains(problems, "connect failed: Connection refused") {
		t.Errorf("a closed port: %v, %s", err, problems)
	}
	if _, problems, err := run("-W", "10.0.0.1:22"); err == nil || !strings.Contains(problems, "administratively prohibited") {
		t.Errorf("another network: %v, %s", err, problems)
	}
	if _, problems, err := run("-T"); err == nil || !strings.Contains(problems, "no shell") {
		t.Errorf("a shell: %v, %s", err, problems)
	}
	r.apply(func(g *hardware.Gateway) { g.AuthorizedKeys = nil })
	if _, problems, err := run("-W", "172.16.0.11:6443"); err == nil || !strings.Contains(problems, "Permission denied (publickey)") {
		t.Errorf("a key that is gone: %v, %s", err, problems)
	}
}
