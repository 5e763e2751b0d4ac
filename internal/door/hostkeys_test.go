package door

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"bastide/internal/outcome"
)

func silentListener(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l // the kernel accepts, nobody speaks
}

func TestFirstContactIsRecordedAndSaid(t *testing.T) {
	key := newKey(t)
	b := startBastion(t, key)
	cfg := config(t, b, key)
	var told notices
	cfg.Notice = told.add
	_ = open(t, cfg).Close()
	fingerprint := ssh.FingerprintSHA256(b.signer.PublicKey())
	if got := told.String(); !strings.Contains(got, fingerprint) || !strings.Contains(got, cfg.KnownHosts) {
		t.Errorf("told %q, want the fingerprint %s and the file", got, fingerprint)
	}
	info, err := os.Stat(cfg.KnownHosts)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v; want 0600", info, err)
	}
	// OpenSSH would accept this gateway from the same file.
	callback, err := knownhosts.New(cfg.KnownHosts)
	if err != nil {
		t.Fatal(err)
	}
	if err := callback(b.addr().String(), net.TCPAddrFromAddrPort(b.addr()), b.signer.PublicKey()); err != nil {
		t.Errorf("the file does not vouch for the gateway: %v", err)
	}
	_ = open(t, cfg).Close()
	if n := strings.Count(told.String(), "first contact"); n != 1 {
		t.Errorf("%d first contacts, want one", n)
	}
}

func TestChangedHostKeyIsRefused(t *testing.T) {
	key := newKey(t)
	b := startBastion(t, key)
	cfg := config(t, b, key)
	if err := os.MkdirAll(filepath.Dir(cfg.KnownHosts), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cfg.KnownHosts, []byte("# the keys of our gateways\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = open(t, cfg).Close()
	before, _ := os.ReadFile(cfg.KnownHosts)
	old := ssh.FingerprintSHA256(b.signer.PublicKey())
	b.set(func(b *bastion) { b.signer = newKey(t) })
	_, err := Open(t.Context(), cfg)
	if outcome.CodeOf(err) != outcome.Refused {
		t.Fatalf("got %v with code %d, want a refusal", err, outcome.CodeOf(err))
	}
	for _, want := range []string{cfg.KnownHosts + ":3", old, ssh.FingerprintSHA256(b.signer.PublicKey()), "remove line 3"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the refusal does not say %q: %v", want, err)
		}
	}
	if n := b.count(); n != 2 {
		t.Errorf("the bastion was asked %d times, want two: a wrong key is not tried again", n)
	}
	if after, _ := os.ReadFile(cfg.KnownHosts); string(after) != string(before) {
		t.Errorf("a refusal changed the file:\n%s", after)
	}
}

// A gateway that was rebuilt has another ID, and may well get the old address.
func TestRebuiltGatewayIsAFirstContact(t *testing.T) {
	key := newKey(t)
	b := startBastion(t, key)
	cfg := config(t, b, key)
	var told notices
	cfg.Notice = told.add
	_ = open(t, cfg).Close()
	b.set(func(b *bastion) { b.signer = newKey(t) })
	cfg.GatewayID = "99999999-2222-4333-8444-555555555555"
	_ = open(t, cfg).Close()
	text, _ := os.ReadFile(cfg.KnownHosts)
	if n := strings.Count(string(text), "\n"); n != 1 || !strings.Contains(string(text), cfg.GatewayID) {
		t.Errorf("want one line, the new gateway's, got:\n%s", text)
	}
	if n := strings.Count(told.String(), "first contact"); n != 2 {
		t.Errorf("%d first contacts, want two", n)
	}
}

// The same gateway under another address is still held to its key.
func TestMovedGatewayIsHeldToItsKey(t *testing.T) {
	key := newKey(t)
	first, second := startBastion(t, key), startBastion(t, key)
	cfg := config(t, first, key)
	_ = open(t, cfg).Close()
	cfg.Gateway = second.addr()
	if _, err := Open(t.Context(), cfg); outcome.CodeOf(err) != outcome.Refused {
		t.Errorf("got %v, want a refusal", err)
	}
	second.set(func(b *bastion) { b.signer = first.signer })
	_ = open(t, cfg).Close()
}

func TestKnownHostsThatCannotBeRead(t *testing.T) {
	key := newKey(t)
	b := startBastion(t, key)
	for text, want := range map[string]outcome.Code{
		"# a comment\n[127.0.0.1]:1 ssh-ed25519 notbase64\n":                   outcome.Unknown,
		"@revoked * " + string(ssh.MarshalAuthorizedKey(b.signer.PublicKey())): outcome.Refused,
	} {
		cfg := config(t, b, key)
		if err := os.MkdirAll(filepath.Dir(cfg.KnownHosts), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(cfg.KnownHosts, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), cfg)
		if outcome.CodeOf(err) != want || !strings.Contains(fmt.Sprint(err), cfg.KnownHosts+":") {
			t.Errorf("%q: got %v with code %d, want code %d and the place", text, err, outcome.CodeOf(err), want)
		}
	}
}
