package vault

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"

	"bastide/internal/outcome"
)

// bombs are documents that are small and would be huge when read naively.
var bombs = map[string]string{
	"aliases":       "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ncluster: {id: *f}\n",
	"self":          "cluster: &a {id: *a}\n",
	"merge":         "x: &x {id: a}\ncluster: {<<: [*x, *x, *x]}\n",
	"depth":         "cluster: " + strings.Repeat("{a: ", 20000),
	"brackets":      strings.Repeat("[", 100000),
	"keys":          strings.Repeat("a: b\n", 100000),
	"one long line": "cluster: {id: " + strings.Repeat("a", 1<<19) + "}\n",
	"binary":        "\x00\x01\x02",
	"not UTF-8":     "cluster: {id: \xff\xfe}\n",
	"tags":          "cluster: !!binary {id: a}\n",
}

// What is no bundle is refused with the name of the file, and nothing is left.
func TestImportOfOtherDocuments(t *testing.T) {
	other := map[string]string{
		"kubeconfig":     "apiVersion: v1\nkind: Config\nclusters: []\n",
		"talosconfig":    "context: a\ncontexts:\n  a: {endpoints: [10.0.0.1]}\n",
		"machine config": "version: v1alpha1\nmachine: {type: controlplane, token: abcdef.0123456789abcdef}\n",
		"age file":       "-----BEGIN AGE ENCRYPTED FILE-----\nYWdlLWVuY3J5cHRpb24ub3JnL3YxCg==\n-----END AGE ENCRYPTED FILE-----\n",
		"identity":       "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ\n",
		"JSON":           `{"cluster": {"id": 1}}`, "a word": "secrets", "a number": "7", "null": "~", "a list": "- cluster\n",
		"nulls": "cluster: ~\nsecrets: ~\ntrustdinfo: ~\ncerts: ~\n", "null certificates": "cluster: {id: a, secret: b}\nsecrets: {bootstraptoken: a}\ntrustdinfo: {token: a}\ncerts: {etcd: ~, k8s: ~, k8saggregator: ~, k8sserviceaccount: ~, os: ~}\n",
		"empty certificates": "cluster: {id: a, secret: b}\nsecrets: {bootstraptoken: a}\ntrustdinfo: {token: a}\ncerts: {etcd: {}, k8s: {}, k8saggregator: {}, k8sserviceaccount: {}, os: {}}\n",
	}
	for name, text := range bombs {
		other[name] = text
	}
	for name, text := range other {
		t.Run(name, func(t *testing.T) {
			file, _ := person(t)
			_, err := file.Import("given.yaml", strings.NewReader(text), now)
			if outcome.CodeOf(err) != outcome.Refused || !strings.HasPrefix(err.Error(), "given.yaml is not a usable secrets bundle: ") {
				t.Fatalf("got %v", err)
			}
			if len(err.Error()) > 1000 || strings.Contains(err.Error(), "AGE-SECRET-KEY") || strings.Contains(err.Error(), "abcdef.0123456789abcdef") {
				t.Errorf("the refusal repeats the file: %.1000s", err)
			}
			if there, _ := file.Exists(); there {
				t.Error("a refused import left a bundle")
			}
		})
	}
}

// sealedFor encrypts with age, armored or not.
func sealedFor(t testing.TB, armored bool, plain []byte, to ...age.Recipient) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(plain)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	if !armored {
		return out.Bytes()
	}
	var text bytes.Buffer
	a := armor.NewWriter(&text)
	_, err = a.Write(out.Bytes())
	if err := errors.Join(err, a.Close()); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// Whatever became of the encrypted file, loading it ends in the bundle or in a
// refusal that names the file.
func TestEncryptedFileThatIsNotWhole(t *testing.T) {
	file, keys := person(t)
	b, err := file.New("v1.13.5", now)
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := b.encode()
	mine, err := age.ParseX25519Recipient(file.Recipients[0])
	if err != nil {
		t.Fatal(err)
	}
	stranger, _ := age.GenerateX25519Identity()
	good := sealedFor(t, true, plain, mine)
	binary := sealedFor(t, false, plain, mine)
	costly := []byte("age-encryption.org/v1\n-> scrypt rF0/NwblUHHTpgQgRpe5CQ 30\ngUjEymFKMVXQEKdMMHL24oYexjE3TIC0O0zGSqJ2aUY\n--- IqJKPOQQPzwHk1Nhp3o1kRXhPGfCDa2e7SEWKmFIsfo\n")
	for name, c := range map[string]struct {
		sealed []byte
		want   string // empty: it is good
	}{
		"armored": {good, ""}, "binary": {binary, ""}, "armored with Windows line ends": {bytes.ReplaceAll(good, []byte("\n"), []byte("\r\n")), ""},
		"empty": {nil, "could not decrypt"}, "truncated": {good[:len(good)/2], "could not decrypt"}, "truncated binary": {binary[:len(binary)-1], "could not decrypt"},
		"only the header": {binary[:30], "could not decrypt"}, "a changed byte": {flipped(binary), "could not decrypt"}, "junk after the end": {append(bytes.Clone(good), "junk"...), "could not decrypt"},
		"for somebody else": {sealedFor(t, true, plain, stranger.Recipient()), "none of the identities can decrypt it"}, "not encrypted": {plain, "could not decrypt"},
		"a huge scrypt work factor": {costly, "none of the identities can decrypt it"}, "larger than any bundle": {sealedFor(t, false, make([]byte, maxBundle+1), mine), "cannot be used"},
		"larger than is read": {make([]byte, maxSealed+1), "cannot be used"}, "holds another document": {sealedFor(t, true, []byte("kind: Config\n"), mine), "cannot be used"},
		"holds a bomb": {sealedFor(t, true, []byte(bombs["aliases"]), mine), "cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file.Path, c.sealed, 0o600); err != nil {
				t.Fatal(err)
			}
			loaded, err := file.Load(keys, now)
			if c.want == "" {
				if err != nil || len(Differences(b, loaded)) > 0 {
					t.Errorf("not the same bundle: %v", err)
				}
				return
			}
			if outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), file.Path) {
				t.Errorf("got %v, want %q and the file", err, c.want)
			}
		})
	}
}

// What helps depends on what is wrong: another identity does not mend a file.
func TestAdviceOnAFileThatCannotBeDecrypted(t *testing.T) {
	file, keys := person(t)
	b, err := file.New("v1.13.5", now)
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := b.encode()
	mine, err := age.ParseX25519Recipient(file.Recipients[0])
	if err != nil {
		t.Fatal(err)
	}
	stranger, _ := age.GenerateX25519Identity()
	good, binary := sealedFor(t, true, plain, mine), sealedFor(t, false, plain, mine)
	for name, c := range map[string]struct {
		sealed    []byte
		says, not string
	}{
		"empty":             {nil, "not a file that age has encrypted; restore the file from a copy", IdentityVariable},
		"truncated":         {good[:len(good)/2], "restore the file from a copy", IdentityVariable},
		"truncated binary":  {binary[:len(binary)-1], "may be corrupted or tampered with; restore the file from a copy", IdentityVariable},
		"not encrypted":     {plain, "secrets import ENV FILE", IdentityVariable},
		"for somebody else": {sealedFor(t, true, plain, stranger.Recipient()), "point " + IdentityVariable, "restore"},
	} {
		if err := os.WriteFile(file.Path, c.sealed, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := file.Load(keys, now); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), c.not) {
			t.Errorf("%s: %v, want %q and not %q", name, err, c.says, c.not)
		}
	}
}

func flipped(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)/2] ^= 1
	return b
}

// An identity file can make its reader work for minutes; that is refused before.
func TestIdentityThatCostsTooMuch(t *testing.T) {
	file, _ := person(t)
	if _, err := file.New("v1.13.5", now); err != nil {
		t.Fatal(err)
	}
	for _, factor := range []int{maxWorkFactor + 1, 22, 30, 63, 1 << 20} {
		text := fmt.Sprintf("age-encryption.org/v1\n-> scrypt rF0/NwblUHHTpgQgRpe5CQ %d\ngUjEymFKMVXQEKdMMHL24oYexjE3TIC0O0zGSqJ2aUY\n--- IqJKPOQQPzwHk1Nhp3o1kRXhPGfCDa2e7SEWKmFIsfo\n", factor)
		path := filepath.Join(t.TempDir(), "identity.age")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := file.Load(Keys{IdentityFile: path, Prompt: func(string) (Secret, error) { return NewSecret("x"), nil }}, now)
		if outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), path) {
			t.Errorf("2^%d: %v", factor, err)
		}
	}
}

// A file that is none does not keep a command waiting.
func TestFilesThatAreNone(t *testing.T) {
	file, keys := person(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/zero", t.TempDir(), filepath.Join(t.TempDir(), "none"), ""} {
		if f, err := OpenGiven(path); err == nil {
			_, err := file.Import(path, f, now)
			if outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), "it is empty") {
				t.Errorf("import %s: %v", path, err)
			}
			_ = f.Close()
		}
	}
	if err := os.Symlink(pipe, file.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Load(keys, now); outcome.CodeOf(err) != outcome.Unknown || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe as the bundle: %v", err)
	}
	if err := os.Remove(file.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := file.New("v1.13.5", now); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/zero", t.TempDir()} {
		if _, err := file.Load(Keys{IdentityFile: path}, now); outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), path) {
			t.Errorf("%s as the identity: %v", path, err)
		}
	}
	// What a shell makes of <(pass show staging).
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, _ := os.ReadFile(keys.IdentityFile)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if _, err := file.Load(Keys{IdentityFile: fmt.Sprintf("/proc/self/fd/%d", r.Fd())}, now); err != nil {
		t.Errorf("an identity through a pipe: %v", err)
	}
}
