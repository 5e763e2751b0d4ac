package session

import (
	"errors"
	"strings"
	"testing"
	"time"

	"bastide/internal/outcome"
	"bastide/internal/vault"
)

// What goes into a journal names no secret of the bundle, whatever an error says.
func TestJournalsHoldNoSecret(t *testing.T) {
	b, err := vault.Generate("v1.13.5", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := &Session{bundle: b}
	secrets := b.Secrets()
	if len(secrets) < 5 {
		t.Fatalf("only %d secrets", len(secrets))
	}
	for _, secret := range secrets {
		text := s.masked(errors.New("the node refused token=" + secret.Reveal() + ", twice: " + secret.Reveal())).Error()
		if strings.Contains(text, secret.Reveal()) || !strings.Contains(text, "the node refused token="+vault.Mask) {
			t.Errorf("a secret passes: %d characters", len(text))
		}
	}
	if s.masked(nil) != nil {
		t.Error("no error became one")
	}
}

// Nothing changes anything at Scaleway without the lock, not even by mistake.
func TestNothingIsWrittenWithoutTheLock(t *testing.T) {
	err := (&Session{}).mayWrite(t.Context())
	var told *outcome.Error
	if !errors.As(err, &told) || told.Code != outcome.Failed || !strings.Contains(err.Error(), "lock is not held") {
		t.Errorf("%v", err)
	}
}
