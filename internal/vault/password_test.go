package vault

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// A password has one of each class, fits a URL as it is, is never the same twice
// and masks itself.
func TestNewPassword(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		s := NewPassword()
		p := s.Reveal()
		if len(p) != passwordLength || !hasOneOfEach(p, lowers, uppers, digits, specials) {
			t.Fatal("a password lacks a class of characters or is too short")
		}
		if strings.Trim(p, lowers+uppers+digits+specials) != "" {
			t.Fatal("a password has a character of no class")
		}
		if u, err := url.Parse("postgres://app:" + p + "@db:5432/app"); err != nil {
			t.Fatal("a password does not fit a URL")
		} else if got, _ := u.User.Password(); got != p {
			t.Fatal("a URL changes a password")
		}
		if seen[p] {
			t.Fatal("a password came twice")
		}
		seen[p] = true
		if text := fmt.Sprintf("%v %s %+v %q", s, s, s, s); strings.Contains(text, p) {
			t.Fatal("a password shows")
		}
	}
}
