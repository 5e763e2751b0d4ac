package door

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"bastide/internal/outcome"
)

// writeKey writes a key pair as ssh-keygen does and returns the private path.
func writeKey(t *testing.T, dir, name, passphrase string, private any) (string, ssh.PublicKey) {
	t.Helper()
	var block *pem.Block
	var err error
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(private, "")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".pub", ssh.MarshalAuthorizedKey(signer.PublicKey()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path, signer.PublicKey()
}

func ed(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

// env is an environment in a map.
func env(m map[string]string) func(string) string { return func(k string) string { return m[k] } }

func openWith(t *testing.T, src KeySource, accepted ssh.PublicKey) error {
	t.Helper()
	b := startBastion(t)
	b.allowed[string(accepted.Marshal())] = true
	keys, err := FindKeys(src)
	if err != nil {
		return err
	}
	defer keys.Close()
	cfg := config(t, b)
	cfg.Signers = keys.Signers
	d, err := Open(t.Context(), cfg)
	if err != nil {
		return err
	}
	return d.Close()
}

func startAgent(t *testing.T, keys ...any) string {
	t.Helper()
	ring := agent.NewKeyring()
	for _, k := range keys {
		if err := ring.Add(agent.AddedKey{PrivateKey: k}); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "agent") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(ring, c) }()
		}
	}()
	return l.Addr().String()
}

func TestKeyBesideThePublicKeyOpensTheDoor(t *testing.T) {
	home := t.TempDir()
	_, public := writeKey(t, home, "id", "", ed(t))
	for _, entry := range []string{"~/id.pub", filepath.Join(home, "id.pub"), "id.pub"} {
		if err := openWith(t, KeySource{Getenv: env(nil), Home: home, Dir: home, Allowed: []string{entry}}, public); err != nil {
			t.Errorf("%s: %v", entry, err)
		}
	}
}

func TestIdentityVariableWins(t *testing.T) {
	home := t.TempDir()
	writeKey(t, home, "id", "", ed(t))
	other, public := writeKey(t, home, "other", "", ed(t))
	src := KeySource{Getenv: env(map[string]string{IdentityVariable: other, "SSH_AUTH_SOCK": "/nonexistent"}), Home: home, Dir: home,
		Allowed: []string{"~/id.pub"}}
	if err := openWith(t, src, public); err != nil {
		t.Error(err)
	}
	src.Getenv = env(map[string]string{IdentityVariable: filepath.Join(home, "missing")})
	if err := openWith(t, src, public); outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), IdentityVariable) {
		t.Errorf("got %v, want a refusal that names %s", err, IdentityVariable)
	}
}

func TestAgentKeysOfTheEstateComeFirst(t *testing.T) {
	home := t.TempDir()
	var held []any
	for range 8 {
		held = append(held, ed(t))
	}
	mine := ed(t)
	signer, _ := ssh.NewSignerFromKey(mine)
	src := KeySource{Getenv: env(map[string]string{"SSH_AUTH_SOCK": startAgent(t, append(held, mine)...)}), Home: home,
		Allowed: []string{string(ssh.MarshalAuthorizedKey(signer.PublicKey()))}}
	if err := openWith(t, src, signer.PublicKey()); err != nil {
		t.Error(err)
	}
	keys, err := FindKeys(src)
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	offered, err := keys.Signers()
	if err != nil || len(offered) != maxOffered || string(offered[0].PublicKey().Marshal()) != string(signer.PublicKey().Marshal()) {
		t.Errorf("%d keys are offered (%v), want %d with the estate's first", len(offered), err, maxOffered)
	}
}

func TestPassphraseIsAskedForOnceAndOnlyWhenNeeded(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, private := range map[string]any{"ed25519": ed(t), "rsa": rsaKey} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			path, public := writeKey(t, home, "id", "open sesame", private)
			asked := 0
			src := KeySource{Getenv: env(nil), Home: home, Allowed: []string{"~/id.pub"},
				Passphrase: func(file string) ([]byte, error) {
					asked++
					if file != path {
						t.Errorf("asked about %s", file)
					}
					return []byte("open sesame"), nil
				}}
			if err := openWith(t, src, public); err != nil || asked != 1 {
				t.Errorf("got %v after %d questions, want an open door after one", err, asked)
			}
			if err := openWith(t, src, newKey(t).PublicKey()); outcome.CodeOf(err) != outcome.Refused || asked != 1 {
				t.Errorf("got %v after %d questions, want a refusal without a further one", err, asked)
			}
			src.Getenv = env(map[string]string{IdentityVariable: path})
			if err := openWith(t, src, public); err != nil {
				t.Errorf("named by %s: %v", IdentityVariable, err)
			}
		})
	}
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	home := t.TempDir()
	_, locked := writeKey(t, home, "locked", "right", ed(t))
	writeKey(t, home, "a", "", ed(t))
	_, other := writeKey(t, home, "b", "", ed(t))
	if err := os.WriteFile(filepath.Join(home, "a.pub"), ssh.MarshalAuthorizedKey(other), 0o644); err != nil {
		t.Fatal(err)
	}
	inline := string(ssh.MarshalAuthorizedKey(newKey(t).PublicKey()))
	for _, c := range []struct {
		name string
		src  KeySource
		want string
	}{
		{"nothing anywhere", KeySource{Allowed: []string{inline}}, "no SSH agent runs"},
		{"agent gone", KeySource{Allowed: []string{inline}, Getenv: env(map[string]string{"SSH_AUTH_SOCK": filepath.Join(home, "gone")})}, "does not answer"},
		{"agent empty", KeySource{Allowed: []string{inline}, Getenv: env(map[string]string{"SSH_AUTH_SOCK": startAgent(t)})}, "holds none"},
		{"missing file", KeySource{Allowed: []string{"~/none.pub"}}, "correct the path ~/none.pub"},
		{"private half named", KeySource{Allowed: []string{"~/b"}}, "ends in .pub"},
		{"halves of two keys", KeySource{Allowed: []string{"~/a.pub"}}, "is not the private half"},
		{"no terminal", KeySource{Allowed: []string{"~/locked.pub"}}, "no terminal"},
		{"wrong passphrase", KeySource{Allowed: []string{"~/locked.pub"},
			Passphrase: func(string) ([]byte, error) { return []byte("wrong"), nil }}, "right passphrase"},
		{"no passphrase", KeySource{Allowed: []string{"~/locked.pub"},
			Passphrase: func(string) ([]byte, error) { return nil, errors.New("the terminal went away") }}, "the terminal went away"},
	} {
		c.src.Home = home
		if c.src.Getenv == nil {
			c.src.Getenv = env(nil)
		}
		err := openWith(t, c.src, locked)
		if outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v with code %d, want a refusal with %q", c.name, err, outcome.CodeOf(err), c.want)
		}
	}
}
