package vault

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"

	"bastide/internal/estate"
	"bastide/internal/outcome"
)

// FileName is the bundle's place in the environment's directory.
const FileName = "secrets.age"

// IdentityVariable names the environment variable that holds the path of the
// age identity file.
const IdentityVariable = "BASTIDE_AGE_IDENTITY"

// File is the encrypted bundle of one environment.
type File struct {
	Path       string   // usually ENV/secrets.age
	Recipients []string // age public keys that can decrypt it
}

// Exists says whether there is a bundle. Anything but a clear answer of the
// file system is an error: a bundle that cannot be seen is not a missing one.
func (f File) Exists() (bool, error) {
	_, err := os.Lstat(f.Path)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, outcome.CannotTell("could not look for the secrets bundle "+f.Path, "", "check the permissions of its directory").Because(err)
}

// New makes the identity of a new cluster. It refuses when a bundle is there.
func (f File) New(talosVersion string, now time.Time) (*Bundle, error) {
	if err := f.vacant(); err != nil {
		return nil, err
	}
	b, err := Generate(talosVersion, now)
	if err != nil {
		return nil, err
	}
	return b, f.write(b)
}

// Import takes over the identity of a cluster that exists, from what `talosctl
// gen secrets` wrote. It refuses when a bundle is there; name says where the
// text came from.
func (f File) Import(name string, from io.Reader, now time.Time) (*Bundle, error) {
	if err := f.vacant(); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(from, maxBundle+1))
	if err != nil {
		return nil, outcome.Refuse("could not read "+name, "", "name the file that `talosctl gen secrets` wrote").Because(err)
	}
	b, err := Parse(data, now)
	if err != nil {
		return nil, outcome.Refuse(name+" is not a usable secrets bundle", "", "give the file that `talosctl gen secrets` wrote for this cluster").Because(err)
	}
	return b, f.write(b)
}

// Keys says where the private half comes from.
type Keys struct {
	IdentityFile string // value of BASTIDE_AGE_IDENTITY
	// Prompt asks a person for a secret; nil when there is no terminal.
	Prompt func(label string) (Secret, error)
}

// Sealed is the bundle as it lies there, encrypted.
func (f File) Sealed() ([]byte, error) {
	sealed, err := estate.ReadFile(f.Path, maxSealed)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, outcome.Refuse("there is no secrets bundle at "+f.Path, "it is the identity of the cluster and is never made in passing",
			"if the cluster exists, bring the file back, with `bastide secrets restore ENV` from its copies or with `bastide secrets import ENV FILE` from a bundle; only for one that was never raised, make it with `bastide secrets new ENV`")
	}
	if errors.As(err, new(*estate.TooLargeError)) {
		return nil, outcome.Refuse("the secrets bundle "+f.Path+" cannot be used", "", restore).Because(err)
	}
	if err != nil {
		return nil, outcome.CannotTell("could not read the secrets bundle "+f.Path, "", "check the file's permissions").Because(err)
	}
	return sealed, nil
}

// Load decrypts the bundle.
func (f File) Load(keys Keys, now time.Time) (*Bundle, error) {
	sealed, err := f.Sealed()
	if err != nil {
		return nil, err
	}
	identities, err := keys.identities()
	if err != nil {
		return nil, err
	}
	plain, err := unseal(sealed, identities)
	if err != nil {
		return nil, outcome.Refuse("could not decrypt the secrets bundle "+f.Path, "", adviceOn(sealed, err)).Because(err)
	}
	b, err := Parse(plain, now)
	if err != nil {
		return nil, outcome.Refuse("the secrets bundle "+f.Path+" cannot be used", "", restore).Because(err)
	}
	return b, nil
}

// restore is the advice about a bundle that is of no use any more.
const restore = "restore the file from a copy, such as an earlier version in git; a new bundle would be another cluster's"

// adviceOn tells a wrong identity, a file that age did not write and one that
// was damaged apart: each needs something else.
func adviceOn(sealed []byte, err error) string {
	switch {
	case errors.Is(err, errNoMatch):
		return "point " + IdentityVariable + " to the identity of one of the recipients that it was encrypted to; a recipient that was added to secrets.recipients later is not one of them"
	case !encrypted(sealed):
		return restore + "; if this is the bundle itself, unencrypted, move it away and take it in with `bastide secrets import ENV FILE`"
	}
	return restore
}

func (f File) vacant() error {
	there, err := f.Exists()
	if err != nil {
		return err
	}
	if there {
		return f.occupied()
	}
	return nil
}

func (f File) occupied() error {
	return outcome.Refuse("there is a secrets bundle at "+f.Path+" already", "it is the identity of a cluster and losing it loses that cluster",
		"keep it; move it elsewhere yourself if it is really not needed")
}

func (f File) write(b *Bundle) error {
	plain, err := b.encode()
	if err != nil {
		return err
	}
	sealed, err := seal(plain, f.Recipients)
	if err != nil {
		return outcome.Refuse("could not encrypt the secrets bundle", "", "correct secrets.recipients in the environment file").Because(err)
	}
	if err := f.place(sealed, os.Link); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return f.occupied()
		}
		return outcome.Fail("could not write the secrets bundle "+f.Path, "", "see that its directory may be written and has room").Because(err)
	}
	return nil
}

// place writes the whole file under another name and then links it into
// place: a link, unlike a rename, fails when something is there, even if it
// came between the check and now. To replace what is there, settle renames.
func (f File) place(sealed []byte, settle func(from, to string) error) error {
	dir := filepath.Dir(f.Path)
	temporary, err := os.CreateTemp(dir, ".secrets-*.age") // born with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	if _, err := temporary.Write(sealed); err != nil {
		temporary.Close()
		return err
	}
	if err := errors.Join(temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	if err := settle(temporary.Name(), f.Path); err != nil {
		return err
	}
	directory, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer directory.Close()
	return directory.Sync()
}

// Seal encrypts something else than the bundle to the same recipients.
func (f File) Seal(plain []byte) ([]byte, error) { return seal(plain, f.Recipients) }

func seal(plain []byte, recipients []string) ([]byte, error) {
	if len(recipients) == 0 {
		return nil, errors.New("no recipient is given")
	}
	to, err := age.ParseRecipients(strings.NewReader(strings.Join(recipients, "\n")))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	armored := armor.NewWriter(&out) // text, so that it can live in a git repository
	w, err := age.Encrypt(armored, to...)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := errors.Join(w.Close(), armored.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// errNoMatch is a file that is whole, as far as was read, and for somebody else.
var errNoMatch = errors.New("none of the identities can decrypt it")

func unseal(sealed []byte, identities []age.Identity) ([]byte, error) {
	var in io.Reader = bytes.NewReader(sealed)
	if !encrypted(sealed) {
		return nil, errors.New("it is not a file that age has encrypted")
	}
	if bytes.HasPrefix(bytes.TrimSpace(sealed), []byte(armor.Header)) {
		in = armor.NewReader(in)
	}
	r, err := age.Decrypt(in, identities...)
	if err != nil {
		var none *age.NoIdentityMatchError
		if errors.As(err, &none) {
			return nil, errNoMatch
		}
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxBundle+1))
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	return plain, nil
}
