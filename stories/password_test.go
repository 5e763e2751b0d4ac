package stories

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bastide/internal/rehearsal"
	"bastide/internal/vault"

	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// addDatabase lets the file of a stage ask for PostgreSQL with two users, in place
// of its services, which stand last in it.
func addDatabase(t *testing.T, p *rehearsal.Play) {
	t.Helper()
	editEstate(t, p, func(text string) string {
		text, _, _ = strings.Cut(text, "\nservices:")
		return text + `
services:
  postgres:
    type: DB-DEV-S
    databases: [app]
    users:
      - {name: owner, admin: true}
      - {name: app, passwordVersion: 1}
`
	})
}

func editEstate(t *testing.T, p *rehearsal.Play, edit func(string) string) {
	t.Helper()
	file := filepath.Join(p.Stage.Env, "estate.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	edited := edit(string(text))
	if edited == string(text) {
		t.Fatal("the edit changes nothing")
	}
	if err := os.WriteFile(file, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newPassword rotates a password and adds both passwords of each user to what is
// searched for, in the forms in which they travel.
func newPassword(t *testing.T, p *rehearsal.Play, secrets *[]vault.Secret) string {
	t.Helper()
	before := passwords(t, p)
	editEstate(t, p, func(text string) string {
		return strings.Replace(text, "{name: app, passwordVersion: 1}", "{name: app, passwordVersion: 2}", 1)
	})
	out := play(t, p, 2, "plan", p.Stage.Env, "--exit-code")
	if !strings.Contains(out, "password in the secret") {
		t.Errorf("the plan does not show that a password changes:\n%s", out)
	}
	out += play(t, p, 0, "up", p.Stage.Env, "--yes", "--output", "json")
	after := passwords(t, p)
	if len(before) != 2 || len(after) != 2 || before["app"] == after["app"] || before["owner"] != after["owner"] {
		t.Fatalf("the rotation did not change the password of app alone: %d users before, %d after", len(before), len(after))
	}
	for _, all := range []map[string]string{before, after} {
		for _, data := range all {
			var said secret.DatabaseCredentials
			if err := json.Unmarshal([]byte(data), &said); err != nil || len(said.Password) < 20 {
				t.Fatal("a secret holds no password")
			}
			for _, form := range []string{said.Password, base64.StdEncoding.EncodeToString([]byte(said.Password)), base64.StdEncoding.EncodeToString([]byte(data))} {
				*secrets = append(*secrets, vault.NewSecret(form))
			}
		}
	}
	return out
}

// passwords reads what an application would, by user.
func passwords(t *testing.T, p *rehearsal.Play) map[string]string {
	t.Helper()
	client, err := scw.NewClient(scw.WithAPIURL(p.Access.URL), scw.WithAuth(p.Access.AccessKey, p.Access.SecretKey), scw.WithDefaultRegion("fr-par"))
	if err != nil {
		t.Fatal(err)
	}
	api, path := secret.NewAPI(client), "/bastide/staging/postgres"
	all, err := api.ListSecrets(&secret.ListSecretsRequest{Path: &path})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, s := range all.Secrets {
		v, err := api.AccessSecretVersion(&secret.AccessSecretVersionRequest{SecretID: s.ID, Revision: "latest_enabled"})
		if err != nil {
			t.Fatal(err)
		}
		out[s.Name] = string(v.Data)
	}
	return out
}
