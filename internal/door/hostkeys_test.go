package door

import (
	"fmt"
	"net"
	"net/netip"
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
		"# a comment\n[127.0.0.1]:1 ssh-ed25519 notbase64\n":                                                             outcome.Unknown,
		"|1|c2FsdHNhbHRzYWx0c2FsdHNh|aGFzaGhhc2hoYXNoaGFzaGg= " + string(ssh.MarshalAuthorizedKey(b.signer.PublicKey())): outcome.Unknown,
		"@revoked * " + string(ssh.MarshalAuthorizedKey(b.signer.PublicKey())):                                           outcome.Refused,
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

// An environment on a read-only disk, or of somebody else, can be looked at: the
// key is taken, a person is told, and within the command another is refused.
func TestFirstContactThatCannotBeRecorded(t *testing.T) {
	key := newKey(t)
	b := startBastion(t, key)
	cfg := config(t, b, key)
	cfg.KnownHosts = "/proc/bastide/known_hosts" // where nothing can be made, not even by root
	var told notices
	cfg.Notice = told.add
	d := open(t, cfg)
	if got := told.String(); !strings.Contains(got, "cannot be recorded in "+cfg.KnownHosts) || !strings.Contains(got, ssh.FingerprintSHA256(b.signer.PublicKey())) {
		t.Errorf("told %q", got)
	}
	if err := d.hosts.check(b.addr(), b.signer.PublicKey()); err != nil {
		t.Errorf("the same key again: %v", err)
	}
	if n := strings.Count(told.String(), "first contact"); n != 1 {
		t.Errorf("%d first contacts, want one", n)
	}
	other := newKey(t).PublicKey()
	if err := d.hosts.check(b.addr(), other); outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), ssh.FingerprintSHA256(other)) {
		t.Errorf("another key: %v, want a refusal that shows it", err)
	}
	if a, err := d.hosts.algorithms(b.addr()); err != nil || len(a) != 1 || a[0] != b.signer.PublicKey().Type() {
		t.Errorf("the next handshake asks for %v, %v", a, err)
	}
}

// A known key opens the door of an environment that cannot be written to.
func TestKnownKeyWhereNothingCanBeWritten(t *testing.T) {
	key := newKey(t)
	b := startBastion(t, key)
	cfg := config(t, b, key)
	_ = open(t, cfg).Close()
	var told notices
	cfg.Notice = told.add
	dir := filepath.Dir(cfg.KnownHosts)
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	_ = open(t, cfg).Close()
	b.set(func(b *bastion) { b.signer = newKey(t) })
	if _, err := Open(t.Context(), cfg); outcome.CodeOf(err) != outcome.Refused {
		t.Errorf("another key: %v", err)
	}
	if told.String() != "" {
		t.Errorf("told %q", told.String())
	}
}

// FuzzKnownHosts: whatever the file holds, a key is accepted, refused, or the
// file is named with a line; and what was accepted once is held to.
func FuzzKnownHosts(f *testing.F) {
	mine, theirs := newKey(f).PublicKey(), newKey(f).PublicKey()
	gateway := netip.MustParseAddrPort("203.0.113.7:61000")
	const id = "11111111-2222-4333-8444-555555555555"
	line := string(ssh.MarshalAuthorizedKey(mine))
	for _, seed := range []string{"", "\n#\n", "gateway-" + id + " " + line, "[203.0.113.7]:61000,gateway-" + id + " " + line, "[203.0.113.7]:61000 " + line, "@revoked * " + line,
		"@cert-authority * " + line, "|1|c2FsdA==|aGFzaA== " + line, "gateway-" + id + " ssh-ed25519 AAAA", "x", "\x00", strings.Repeat("a,", 4000) + " " + line, "* " + line + "\r\n", "@revoked", "a b c d e\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h := &hostKeys{file: filepath.Join(t.TempDir(), "known_hosts"), id: id}
		if err := os.WriteFile(h.file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := h.check(gateway, mine); err != nil {
			if code := outcome.CodeOf(err); code != outcome.Refused && code != outcome.Unknown || !strings.Contains(err.Error(), h.file+":") {
				t.Fatalf("%v with code %d names no place", err, code)
			}
			if after, _ := os.ReadFile(h.file); string(after) != string(text) {
				t.Fatalf("a refusal changed the file to %q", after)
			}
			return
		}
		if err := h.check(gateway, mine); err != nil {
			t.Fatalf("accepted, and then: %v", err)
		}
		if err := h.check(gateway, theirs); outcome.CodeOf(err) != outcome.Refused {
			t.Fatalf("another key after the first: %v", err)
		}
	})
}
