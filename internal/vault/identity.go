package vault

import (
	"bytes"
	"errors"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"

	"bastide/internal/outcome"
)

// maxWorkFactor bounds what a passphrase may cost: 2^20 takes 1 GiB of memory
// and some seconds, four times what age-keygen and age write (2^18). The
// library's own bound would let a file take 4 GiB before the first refusal.
const maxWorkFactor = 20

// identities reads the age identity file, which may itself be encrypted with a
// passphrase, or asks for an identity where no file is named.
func (k Keys) identities() ([]age.Identity, error) {
	if k.IdentityFile == "" {
		return k.asked()
	}
	text, err := readGiven(k.IdentityFile, maxSealed)
	if err != nil {
		return nil, outcome.Refuse("could not read the age identity "+k.IdentityFile, "", "point "+IdentityVariable+" to a readable identity file").Because(err)
	}
	if encrypted(text) {
		if text, err = k.open(text); err != nil {
			return nil, err
		}
	}
	identities, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil {
		// The library's message may quote the line, which is the key.
		return nil, outcome.Refuse(k.IdentityFile+" is not an age identity file", "a line in it is not an identity (AGE-SECRET-KEY-1...)",
			"point "+IdentityVariable+" to a file that age-keygen made")
	}
	return identities, nil
}

func (k Keys) asked() ([]age.Identity, error) {
	if k.Prompt == nil {
		return nil, outcome.Refuse("the secrets bundle cannot be decrypted", IdentityVariable+" is not set and there is no terminal to ask on",
			"set "+IdentityVariable+" to the path of your age identity")
	}
	answer, err := k.Prompt("age identity (AGE-SECRET-KEY-1...)")
	if err != nil {
		return nil, err
	}
	identities, err := age.ParseIdentities(strings.NewReader(strings.TrimSpace(answer.Reveal())))
	if err != nil {
		return nil, outcome.Refuse("the secrets bundle cannot be decrypted", "what was typed is not an age identity",
			"paste the line that starts with AGE-SECRET-KEY-1, or set "+IdentityVariable)
	}
	return identities, nil
}

func (k Keys) open(sealed []byte) ([]byte, error) {
	if k.Prompt == nil {
		return nil, outcome.Refuse("the age identity "+k.IdentityFile+" cannot be used", "it is protected by a passphrase and there is no terminal to ask on",
			"run this on a terminal, or point "+IdentityVariable+" to an identity without a passphrase")
	}
	passphrase, err := k.Prompt("passphrase of " + k.IdentityFile)
	if err != nil {
		return nil, err
	}
	identity, err := age.NewScryptIdentity(passphrase.Reveal())
	if err == nil {
		identity.SetMaxWorkFactor(maxWorkFactor)
		var plain []byte
		if plain, err = unseal(sealed, []age.Identity{identity}); err == nil {
			return plain, nil
		}
	}
	if err == nil {
		err = errors.New("wrong passphrase")
	}
	return nil, outcome.Refuse("the age identity "+k.IdentityFile+" cannot be used", "", "check the passphrase").Because(err)
}

func encrypted(text []byte) bool {
	text = bytes.TrimSpace(text)
	return bytes.HasPrefix(text, []byte("age-encryption.org/")) || bytes.HasPrefix(text, []byte(armor.Header))
}
