package vault

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"

	"bastide/internal/outcome"
)

// Digest is the SHA-256 of an encrypted bundle, as 64 hexadecimal digits. The
// same bundle encrypted again has another one.
func Digest(sealed []byte) string {
	sum := sha256.Sum256(sealed)
	return hex.EncodeToString(sum[:])
}

// Restore puts an encrypted bundle in its place. One that is the same already is
// fine. Another one stays and is an error, unless it is to be replaced; then it is
// moved beside, under the name that is returned, and never deleted.
func (f File) Restore(sealed []byte, replace bool) (aside string, err error) {
	if !encrypted(sealed) {
		return "", outcome.Refuse("the copy was not restored", "it is not a file that age has encrypted", "take another copy")
	}
	there, err := f.Exists()
	if err != nil {
		return "", err
	}
	if there {
		have, err := f.Sealed()
		if err == nil && bytes.Equal(have, sealed) {
			return "", nil
		}
		if !replace {
			return "", outcome.Refuse("there is another secrets bundle at "+f.Path, "it may be the only one of its kind, and of which cluster it is cannot be told without its identity",
				"run the command again with --replace: the file that is there is moved beside, not deleted")
		}
		if err != nil {
			return "", err // what cannot be read is not moved about
		}
		if aside, err = f.moveAside(have); err != nil {
			return "", err
		}
	}
	settle := os.Link
	if there {
		settle = os.Rename // in one step: at no moment is there none
	}
	if err := f.place(sealed, settle); err != nil {
		return aside, outcome.Fail("could not write the secrets bundle "+f.Path, "", "see that its directory may be written and has room").Because(err)
	}
	return aside, nil
}

// moveAside gives the bundle that is there a second name, after its content.
func (f File) moveAside(have []byte) (string, error) {
	aside := f.Path + ".before-" + Digest(have)[:16]
	err := os.Link(f.Path, aside)
	if errors.Is(err, fs.ErrExist) {
		var old []byte
		if old, err = os.ReadFile(aside); err == nil && !bytes.Equal(old, have) {
			err = errors.New(aside + " is something else")
		}
	}
	if err != nil {
		return "", outcome.Fail("could not keep the secrets bundle "+f.Path+" under another name", "", "see that its directory may be written and has room").Because(err)
	}
	return aside, nil
}
