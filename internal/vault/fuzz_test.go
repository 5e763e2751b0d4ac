package vault

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"bastide/internal/outcome"
)

// FuzzImport: no document makes the import panic or hang; a refusal names the
// file and shows no secret; what is accepted comes back the same.
func FuzzImport(f *testing.F) {
	b, err := first()
	if err != nil {
		f.Fatal(err)
	}
	plain, _ := b.encode()
	f.Add(plain)
	f.Add(bytes.ReplaceAll(plain, []byte("\n"), []byte("\r\n")))
	f.Add(plain[:len(plain)/2])
	f.Add([]byte("certs: {os: {crt: AAAA, key: AAAA}}"))
	for _, bomb := range bombs {
		f.Add([]byte(bomb))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := Parse(data, now)
		if err != nil {
			for _, s := range b.Secrets() {
				if strings.Contains(err.Error(), s.Reveal()) {
					t.Fatal("the refusal shows a secret")
				}
			}
			if err.Error() == "" || len(err.Error()) > 2000 {
				t.Fatalf("refused with %q", err)
			}
			return
		}
		if parsed.Fingerprint() == "unreadable" {
			t.Fatal("accepted a bundle without a readable authority")
		}
		anew, err := parsed.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(anew, now)
		if err != nil {
			t.Fatalf("refused when written anew: %v", err)
		}
		if d := Differences(parsed, again); len(d) > 0 {
			t.Fatalf("another bundle when written anew: %v", d)
		}
		if _, err := parsed.Talosconfig("staging", []string{"172.16.0.4"}, nil, now, time.Hour); err != nil {
			t.Fatalf("accepted, and cannot sign: %v", err)
		}
	})
}

// FuzzSealed: no encrypted file and no identity file makes loading panic or
// hang; a refusal names one of the two.
func FuzzSealed(f *testing.F) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		f.Fatal(err)
	}
	mine := []byte(identity.String() + "\n")
	good := sealedFor(f, true, []byte("cluster: {}\n"), identity.Recipient())
	f.Add(good, mine)
	f.Add(sealedFor(f, false, []byte("cluster: {}\n"), identity.Recipient()), mine)
	f.Add(good[:len(good)/2], mine)
	f.Add(good, []byte("AGE-SECRET-KEY-1"))
	f.Add(good, []byte("-----BEGIN AGE ENCRYPTED FILE-----\n"))
	f.Add(good, []byte("age-encryption.org/v1\n-> scrypt rF0/NwblUHHTpgQgRpe5CQ 63\ngUjEymFKMVXQEKdMMHL24oYexjE3TIC0O0zGSqJ2aUY\n--- IqJKPOQQPzwHk1Nhp3o1kRXhPGfCDa2e7SEWKmFIsfo\n"))
	f.Add([]byte("age-encryption.org/v1\n-> scrypt rF0/NwblUHHTpgQgRpe5CQ 22\ngUjEymFKMVXQEKdMMHL24oYexjE3TIC0O0zGSqJ2aUY\n--- IqJKPOQQPzwHk1Nhp3o1kRXhPGfCDa2e7SEWKmFIsfo\n"), mine)
	f.Fuzz(func(t *testing.T, sealed, identity []byte) {
		if bytes.Contains(identity, []byte("-> scrypt")) && len(identity) < 1<<10 && !bytes.Contains(identity, []byte(" 63\n")) {
			t.Skip() // an honest passphrase costs a second, on purpose
		}
		dir := t.TempDir()
		file, keys := File{Path: filepath.Join(dir, FileName)}, Keys{IdentityFile: filepath.Join(dir, "identity"), Prompt: func(string) (Secret, error) { return NewSecret("x"), nil }}
		if err := os.WriteFile(file.Path, sealed, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(keys.IdentityFile, identity, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := file.Load(keys, now)
		if outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), file.Path) && !strings.Contains(err.Error(), keys.IdentityFile) {
			t.Fatalf("got %v, want a refusal that names the file", err)
		}
	})
}
