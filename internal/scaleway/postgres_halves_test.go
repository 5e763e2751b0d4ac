package scaleway

import (
	"errors"
	"strings"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/vault"

	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
)

// What a version's description says is read back as it was meant; what somebody
// else wrote there is nobody's password.
func TestDescriptionsOfPasswordVersions(t *testing.T) {
	t.Parallel()
	for _, live := range []bool{true, false} {
		want := passwordVersion{ours: true, password: 12, address: "172.16.0.9:5432", login: "app", live: live}
		var got passwordVersion
		if got.read(want.description()); got != want {
			t.Errorf("%q was read as %+v", want.description(), got)
		}
	}
	for _, text := range []string{"", "by hand", "bastide:password=3", "bastide:password=x bastide:state=live", "bastide:password=0 bastide:state=live", "bastide:state=pending"} {
		var got passwordVersion
		if got.read(text); got.ours {
			t.Errorf("%q counts as bastide's", text)
		}
	}
}

// versionsAs are a secret's versions from a short form: a number is the version of
// a password, p pending, d disabled, x deleted, ? somebody else's.
func versionsAs(words ...string) []passwordVersion {
	var all []*secret.SecretVersion
	for i, word := range words {
		v := &secret.SecretVersion{Revision: uint32(i + 1), Status: secret.SecretVersionStatusEnabled}
		text := "by hand"
		if word[0] != '?' {
			p := passwordVersion{password: int(word[0] - '0'), address: "a:5432", login: "app", live: !strings.Contains(word, "p")}
			text = p.description()
		}
		v.Description = &text
		switch {
		case strings.Contains(word, "d"):
			v.Status = secret.SecretVersionStatusDisabled
		case strings.Contains(word, "x"):
			v.Status = secret.SecretVersionStatusScheduledForDeletion
		}
		all = append([]*secret.SecretVersion{v}, all...) // listings begin with the newest
	}
	return passwordVersions(all)
}

// Every combination that a run can leave, or a person, and what the plan makes of
// it when the file wants version 2.
func TestHalvesOfAPassword(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		database int
		versions []string
		secret   string // as the plan shows it
		refused  string
	}{
		{0, nil, "none", ""},
		{0, []string{"2p"}, "none, 2 unfinished", ""},
		{2, []string{"2"}, "2", ""},
		{1, []string{"1"}, "1", ""},
		{1, []string{"1", "2p"}, "1, 2 unfinished", ""},
		{1, []string{"1", "2pd"}, "1, 2 unfinished", ""},
		{2, []string{"1", "2pd"}, "1, 2 unfinished", ""},
		{2, []string{"1", "2"}, "2, an older one enabled", ""},
		{2, []string{"1d", "2"}, "2", ""},
		{2, []string{"1d", "2d"}, "2, disabled", ""},
		{2, []string{"1d", "2x"}, "1, disabled", ""},
		{2, []string{"2", "2p"}, "2, 2 unfinished", ""},
		{3, []string{"2d", "3"}, "3", "3 was begun already"},
		{2, []string{"2", "3pd"}, "2, 3 unfinished", "3 was begun already"},
		{3, nil, "none", "3 was begun already"},
		{2, []string{"2", "?"}, "2", "somebody has written version 2"},
		{2, []string{"2", "?d"}, "2", "somebody has written version 2"},
		{2, []string{"2", "?x"}, "2", ""},
		{2, []string{"?", "2"}, "2", ""},
		{1, []string{"1", "?"}, "1", ""}, // a new version is asked for: it replaces what somebody wrote
		{1, []string{"1", "?", "2p"}, "1, 2 unfinished", ""},
	} {
		spec, state := halves(versionsAs(c.versions...))
		spec.Database = c.database
		want := blueprint.PostgresUser{Database: 2, Secret: 2}
		shown := ""
		for _, a := range spec.Attributes() {
			if a.Name == "password in the secret" {
				shown = a.Value
			}
		}
		refused := judgePassword(Item{password: state}, spec, want)
		if shown != c.secret || (refused == "") != (c.refused == "") || !strings.Contains(refused, c.refused) {
			t.Errorf("database %d, secret %v: shown %q, want %q; refused %q, want %q", c.database, c.versions, shown, c.secret, refused, c.refused)
		}
	}
}

// An error that repeats a password is not passed on.
func TestErrorsWithholdPasswords(t *testing.T) {
	t.Parallel()
	s := vault.NewPassword()
	if err := withhold(errors.New("invalid password "+s.Reveal()), s); strings.Contains(err.Error(), s.Reveal()) {
		t.Error("the password is in the error")
	}
	plain := errors.New("something else")
	if withhold(plain, s) != plain || withhold(nil, s) != nil {
		t.Error("an error without a password was changed")
	}
}
