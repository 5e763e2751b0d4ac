package vault

import (
	"fmt"
	"log/slog"
)

// Mask is what a secret looks like wherever it is printed, logged or encoded.
const Mask = "******"

// Secret is text that must not be seen. Every way that Go has of turning a
// value into text gives the mask; Reveal is the one way to the value, so that
// a search for that word finds every place that handles it.
type Secret struct{ value string }

// NewSecret hides a text.
func NewSecret(value string) Secret { return Secret{value: value} }

// Reveal gives the text.
func (s Secret) Reveal() string { return s.value }

// Empty says whether there is nothing to hide.
func (s Secret) Empty() bool { return s.value == "" }

func (Secret) String() string               { return Mask }
func (Secret) GoString() string             { return Mask }
func (Secret) LogValue() slog.Value         { return slog.StringValue(Mask) }
func (Secret) MarshalText() ([]byte, error) { return []byte(Mask), nil }
func (Secret) MarshalYAML() (any, error)    { return Mask, nil }

// Format covers the verbs that ignore String, such as %d and %x.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(Mask)) }
