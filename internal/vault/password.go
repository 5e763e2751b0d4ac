package vault

import (
	"crypto/rand"
	"math/big"
	"strings"
)

// What a password is made of. All of it may stand in the user part of a URL as it
// is, and in a shell's single quotes.
const (
	lowers   = "abcdefghijklmnopqrstuvwxyz"
	uppers   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits   = "0123456789"
	specials = "!*-_"

	passwordLength = 40 // characters, about 240 bits
)

// NewPassword makes a password at random, with a small and a capital letter, a
// digit and a special character, as managed databases want it.
func NewPassword() Secret {
	for {
		var b strings.Builder
		all := lowers + uppers + digits + specials
		for range passwordLength {
			n, err := rand.Int(rand.Reader, big.NewInt(int64(len(all))))
			if err != nil {
				panic(err) // crypto/rand never fails on a system that Go runs on
			}
			b.WriteByte(all[n.Int64()])
		}
		// Most tries have one of each; choosing again keeps all that do equally likely.
		if p := b.String(); hasOneOfEach(p, lowers, uppers, digits, specials) {
			return NewSecret(p)
		}
	}
}

func hasOneOfEach(text string, classes ...string) bool {
	for _, class := range classes {
		if !strings.ContainsAny(text, class) {
			return false
		}
	}
	return true
}
