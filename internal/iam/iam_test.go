package iam

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"bastide/internal/estate"
)

func load(t *testing.T, file string) *estate.Estate {
	t.Helper()
	e, err := estate.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

const (
	full    = "../estate/testdata/valid/full.yaml"
	minimal = "../estate/testdata/valid/minimal.yaml"
)

// Only what the file uses is in it.
func TestOnlyWhatTheFileUses(t *testing.T) {
	all, few := Script(load(t, full)), Script(load(t, minimal))
	for _, word := range []string{"RelationalDatabases", "ContainerRegistry", "DomainsDNS", "SecretManager", "registry-pull", "-objects", "BASTIDE_REPLICA_ACCESS_KEY"} {
		if !strings.Contains(all, word) {
			t.Errorf("%s is not in what the full example needs", word)
		}
		if strings.Contains(few, word) {
			t.Errorf("%s is in what the smallest example needs", word)
		}
	}
	e := load(t, full)
	e.Services.Registry.Public = true
	if strings.Contains(Script(e), "registry-pull") {
		t.Error("pulling from a public namespace needs no key")
	}
}

// Containers are made without the right to see what is in them; passwords need it.
func TestSecretsWithoutTheirContent(t *testing.T) {
	e := load(t, full)
	e.Services.Postgres = nil
	sets := Needed(e)[0].Sets()
	if slices.Contains(sets, "SecretManagerFullAccess") || slices.Contains(sets, "SecretManagerSecretAccess") || !slices.Contains(sets, "SecretManagerSecretCreate") {
		t.Errorf("%v", sets)
	}
}

// Nothing reaches beyond the project, and nobody but a person gets near IAM.
func TestNothingBeyondTheProject(t *testing.T) {
	e := load(t, full)
	for _, a := range Needed(e) {
		if a.Project != e.Scaleway.Project || a.Days <= 0 || a.For == "" || a.Keep == "" || len(a.Grants) == 0 {
			t.Errorf("%+v is not whole", a)
		}
		for _, set := range a.Sets() {
			if strings.HasPrefix(set, "IAM") || strings.HasPrefix(set, "AllProducts") || strings.Contains(set, "Manager") && !strings.HasPrefix(set, "SecretManager") {
				t.Errorf("%s has %s", a.Name, set)
			}
		}
		if reads := a.Name == "staging-ci"; reads != !slices.ContainsFunc(a.Sets(), func(s string) bool { return !strings.HasSuffix(s, "ReadOnly") }) && a.Name != "staging-registry-pull" {
			t.Errorf("%s: %v", a.Name, a.Sets())
		}
	}
}

// What is printed is a shell script.
func TestScriptIsOne(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell to read the script with")
	}
	cmd := exec.CommandContext(t.Context(), sh, "-n")
	cmd.Stdin = strings.NewReader(Script(load(t, full)))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
