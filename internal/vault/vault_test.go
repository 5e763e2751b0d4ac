package vault

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"go.yaml.in/yaml/v4"

	"bastide/internal/outcome"
)

var now = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

// Making the keys of a bundle takes about a second, so tests that only need
// some bundle share these two.
var first, second = sync.OnceValues(generate), sync.OnceValues(generate)

func generate() (*Bundle, error) { return Generate("v1.13.5", now) }

// person is an age identity in a file, and a bundle file for it.
func person(t *testing.T) (File, Keys) {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "identity")
	if err := os.WriteFile(path, []byte("# made for a test\n"+identity.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return File{Path: filepath.Join(dir, FileName), Recipients: []string{identity.Recipient().String()}}, Keys{IdentityFile: path}
}

func TestNewLoadRoundTrip(t *testing.T) {
	file, keys := person(t)
	made, err := file.New("v1.13.5", now)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := file.Load(keys, now)
	if err != nil {
		t.Fatal(err)
	}
	if d := Differences(made, loaded); len(d) != 0 {
		t.Errorf("loaded bundle differs in %v", d)
	}
	if made.Fingerprint() != loaded.Fingerprint() || !strings.HasPrefix(made.Fingerprint(), "SHA256:") {
		t.Errorf("fingerprints %s and %s", made.Fingerprint(), loaded.Fingerprint())
	}
	info, err := os.Stat(file.Path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode().Perm())
	}
	sealed, _ := os.ReadFile(file.Path)
	for _, s := range made.Secrets() {
		if bytes.Contains(sealed, []byte(s.Reveal())) {
			t.Error("the file holds a secret in the clear")
		}
	}
	leftovers, _ := filepath.Glob(filepath.Join(filepath.Dir(file.Path), ".secrets-*"))
	if len(leftovers) != 0 {
		t.Errorf("temporary files left: %v", leftovers)
	}
}

func TestBundleIsNeverOverwritten(t *testing.T) {
	file, keys := person(t)
	kept, err := file.New("v1.13.5", now)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := kept.encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.New("v1.13.5", now); outcome.CodeOf(err) != outcome.Refused {
		t.Errorf("second New: %v", err)
	}
	if _, err := file.Import("again.yaml", bytes.NewReader(plain), now); outcome.CodeOf(err) != outcome.Refused {
		t.Errorf("Import over a bundle: %v", err)
	}
	// The check and the write are apart: what appears in between survives too.
	if err := file.write(kept); outcome.CodeOf(err) != outcome.Refused {
		t.Errorf("write over a bundle: %v", err)
	}
	loaded, err := file.Load(keys, now)
	if err != nil || len(Differences(kept, loaded)) != 0 {
		t.Errorf("the first bundle is gone: %v", err)
	}
}

func TestImportTakesWhatTalosctlWrites(t *testing.T) {
	file, keys := person(t)
	// The library's own bundle, as `talosctl gen secrets` writes it.
	other, err := first()
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(other.Machine())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Import("secrets.yaml", bytes.NewReader(text), now); err != nil {
		t.Fatal(err)
	}
	loaded, err := file.Load(keys, now)
	if err != nil {
		t.Fatal(err)
	}
	if d := Differences(other, loaded); len(d) != 0 {
		t.Errorf("imported bundle differs in %v", d)
	}
}

func TestImportRefuses(t *testing.T) {
	good, err := first()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := second()
	if err != nil {
		t.Fatal(err)
	}
	plain, err := good.encode()
	if err != nil {
		t.Fatal(err)
	}
	text := string(plain)
	swapped := func() string {
		b := *good.machine
		certs := *b.Certs
		pair := *certs.Etcd
		pair.Key = stranger.machine.Certs.Etcd.Key
		certs.Etcd = &pair
		b.Certs = &certs
		out, err := (&Bundle{machine: &b}).encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	cases := []struct {
		name, text, why string
		at              time.Time
	}{
		{"empty", "", "it is empty", now},
		{"not YAML", "{", "not", now},
		{"a list", "- a\n", "line 1", now},
		{"unknown key", strings.Replace(text, "cluster:\n", "cluster:\n    colour: blue\n", 1), `line 2: a secrets bundle has no key "colour" there`, now},
		{"duplicate key", strings.Replace(text, "cluster:\n", "cluster:\n    id: abc\n", 1), "line", now},
		{"missing part", text[:strings.Index(text, "trustdinfo:")] + text[strings.Index(text, "certs:"):], "trustdinfo is required", now},
		{"bad token", strings.Replace(text, good.machine.TrustdInfo.Token, "short", 1), "trustdinfo.token is not a token", now},
		{"bad cluster secret", strings.Replace(text, good.machine.Cluster.Secret, "Zm9v", 1), "cluster.secret holds 3 bytes", now},
		{"another key", swapped(), "certs.etcd has a key that does not belong to its certificate", now},
		{"expired", text, "certs.os expired on 2036-", now.AddDate(11, 0, 0)},
		{"future", text, "certs.os is not valid before", now.AddDate(-1, 0, 0)},
		{"two documents", text + "---\n" + text, "more than one", now},
		{"too large", strings.Repeat("#", maxBundle+1), "larger than", now},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			file, _ := person(t)
			_, err := file.Import("secrets.yaml", strings.NewReader(c.text), c.at)
			if outcome.CodeOf(err) != outcome.Refused {
				t.Fatalf("got %v, want a refusal", err)
			}
			if !strings.Contains(err.Error(), c.why) {
				t.Errorf("refusal %q does not say %q", err, c.why)
			}
			for _, s := range good.Secrets() {
				if strings.Contains(err.Error(), s.Reveal()) {
					t.Error("the refusal shows a secret")
				}
			}
			if there, _ := file.Exists(); there {
				t.Error("a refused import left a bundle")
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	file, keys := person(t)
	if _, err := file.Load(keys, now); outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), "no secrets bundle") {
		t.Errorf("missing bundle: %v", err)
	}
	if _, err := file.New("v1.13.5", now); err != nil {
		t.Fatal(err)
	}
	_, stranger := person(t)
	if _, err := file.Load(stranger, now); outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), "none of the identities") {
		t.Errorf("stranger's identity: %v", err)
	}
	if _, err := file.Load(Keys{}, now); outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), IdentityVariable) {
		t.Errorf("no identity: %v", err)
	}
	broken := filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(broken, []byte("AGE-SECRET-KEY-1NOTREALLY\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Load(Keys{IdentityFile: broken}, now); outcome.CodeOf(err) != outcome.Refused || strings.Contains(err.Error(), "NOTREALLY") {
		t.Errorf("malformed identity: %v", err)
	}
}

func TestIdentityBehindAPassphraseOrPrompt(t *testing.T) {
	file, keys := person(t)
	if _, err := file.New("v1.13.5", now); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(keys.IdentityFile)
	if err != nil {
		t.Fatal(err)
	}
	recipient, err := age.NewScryptRecipient("correct horse")
	if err != nil {
		t.Fatal(err)
	}
	recipient.SetWorkFactor(10)
	var sealed bytes.Buffer
	w := armor.NewWriter(&sealed)
	e, err := age.Encrypt(w, recipient)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = e.Write(text)
	if err := errors.Join(e.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	protected := filepath.Join(t.TempDir(), "identity.age")
	if err := os.WriteFile(protected, sealed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	answer := func(s string) func(string) (Secret, error) {
		return func(string) (Secret, error) { return NewSecret(s), nil }
	}
	if _, err := file.Load(Keys{IdentityFile: protected, Prompt: answer("correct horse")}, now); err != nil {
		t.Error(err)
	}
	if _, err := file.Load(Keys{IdentityFile: protected, Prompt: answer("wrong")}, now); outcome.CodeOf(err) != outcome.Refused {
		t.Errorf("wrong passphrase: %v", err)
	}
	line := strings.Split(strings.TrimSpace(string(text)), "\n")[1]
	if _, err := file.Load(Keys{Prompt: answer(line)}, now); err != nil {
		t.Error(err)
	}
}

func TestSecretsAreMaskedInEveryForm(t *testing.T) {
	b, err := first()
	if err != nil {
		t.Fatal(err)
	}
	s := NewSecret("hunter2")
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "secret", s, "bundle", b, "in", struct{ S Secret }{s})
	j, err := json.Marshal(map[string]any{"s": s, "b": b})
	if err != nil {
		t.Fatal(err)
	}
	y, err := yaml.Marshal(map[string]any{"s": s, "b": b})
	if err != nil {
		t.Fatal(err)
	}
	text := log.String() + string(j) + string(y) + fmt.Sprintf("%v %+v %#v %s %q %x %d %v %#v", s, s, s, s, s, s, s, struct{ S Secret }{s}, &s)
	text += fmt.Sprintf("%v %+v %#v %s %x", b, b, b, b, b)
	for _, leak := range append(b.Secrets(), s) {
		if strings.Contains(text, leak.Reveal()) {
			t.Errorf("a secret shows in %q", text)
		}
	}
	if !strings.Contains(text, Mask) || !strings.Contains(text, b.Fingerprint()) {
		t.Errorf("neither mask nor fingerprint in %q", text)
	}
}

func TestAdminCredentials(t *testing.T) {
	b, err := first()
	if err != nil {
		t.Fatal(err)
	}
	text, err := b.Talosconfig("staging", []string{"172.16.0.4"}, []string{"172.16.0.5"}, now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientconfig.FromBytes(text)
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Contexts[config.Context]; !slices.Equal(c.Endpoints, []string{"172.16.0.4"}) || !slices.Equal(c.Nodes, []string{"172.16.0.5"}) {
		t.Errorf("context %+v", c)
	}
	cert, pool, err := b.TalosClient(now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	if FingerprintOfKey(leaf.AuthorityKeyId) != b.Fingerprint() {
		t.Error("the fingerprint cannot be told from a leaf")
	}
	if !slices.Equal(leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) || !slices.Equal(leaf.Subject.Organization, []string{"os:admin"}) {
		t.Errorf("leaf uses %v, roles %v", leaf.ExtKeyUsage, leaf.Subject.Organization)
	}
	kube, err := b.Kubeconfig("staging", "https://172.16.0.3:6443", now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"server: https://172.16.0.3:6443", "current-context: admin@staging"} {
		if !strings.Contains(string(kube), want) {
			t.Errorf("kubeconfig lacks %q", want)
		}
	}
	if _, err := b.Talosconfig("staging", nil, nil, now, 0); err == nil {
		t.Error("a lifetime of zero was accepted")
	}
}
