package scaleway

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bastide/internal/outcome"
)

const scwFile = `access_key: SCWAAAAAAAAAAAAAAAAA
secret_key: 33333333-3333-4333-8333-333333333333
default_project_id: 44444444-4444-4444-8444-444444444444
active_profile: work
profiles:
  work:
    secret_key: 55555555-5555-4555-8555-555555555555
  home:
    access_key: SCWBBBBBBBBBBBBBBBBB
    default_region: nl-ams
`

func TestCredentials(t *testing.T) {
	for name, test := range map[string]struct {
		file     string
		env      []string
		key      string // access key
		secret   string // first digit of the secret key
		warnings []string
		refused  string
	}{
		"environment over file":   {file: scwFile, env: []string{"SCW_ACCESS_KEY", testKey, "SCW_SECRET_KEY", testSecret}, key: testKey, secret: "2"},
		"active profile":          {file: scwFile, key: "SCWAAAAAAAAAAAAAAAAA", secret: "5"},
		"SCW_PROFILE":             {file: scwFile, env: []string{"SCW_PROFILE", "home"}, key: "SCWBBBBBBBBBBBBBBBBB", secret: "3", warnings: []string{"default region"}},
		"default profile":         {file: scwFile, env: []string{"SCW_PROFILE", "default"}, key: "SCWAAAAAAAAAAAAAAAAA", secret: "3"},
		"set but empty":           {file: scwFile, env: []string{"SCW_SECRET_KEY", "", "SCW_API_URL", ""}, key: "SCWAAAAAAAAAAAAAAAAA", secret: "5", warnings: []string{"SCW_SECRET_KEY is set but empty", "SCW_API_URL is set but empty"}},
		"old name":                {env: []string{"SCW_ACCESS_KEY", testKey, "SCW_TOKEN", testSecret}, key: testKey, secret: "2", warnings: []string{"SCW_TOKEN is an old name; use SCW_SECRET_KEY"}},
		"project disagrees":       {file: scwFile, env: []string{"SCW_DEFAULT_PROJECT_ID", "66666666-6666-4666-8666-666666666666"}, key: "SCWAAAAAAAAAAAAAAAAA", secret: "5", warnings: []string{"default project of your Scaleway settings is 66666666"}},
		"nothing":                 {refused: "there is no API key"},
		"unknown profile":         {file: scwFile, env: []string{"SCW_PROFILE", "nobody"}, refused: "no such profile"},
		"profile without a file":  {env: []string{"SCW_PROFILE", "work"}, refused: "no scw configuration file"},
		"file that is not there":  {env: []string{"SCW_CONFIG_PATH", "/nonexistent/scw.yaml"}, refused: "/nonexistent/scw.yaml does not exist"},
		"file that is no YAML":    {file: "secret_key: [" + testSecret, refused: "not the YAML"},
		"insecure is not boolean": {file: scwFile, env: []string{"SCW_INSECURE", "perhaps"}, refused: "SCW_INSECURE"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			vars := map[string]string{"HOME": home}
			if test.file != "" {
				write(t, filepath.Join(home, ".config/scw/config.yaml"), test.file, 0o600)
			}
			for i := 0; i+1 < len(test.env); i += 2 {
				vars[test.env[i]] = test.env[i+1]
			}
			s := &settings{lookup: func(n string) (string, bool) { v, ok := vars[n]; return v, ok }}
			p, err := s.profile()
			if err == nil {
				s.disagreements(p, testEstate().Scaleway)
				_, err = (&Cloud{project: testProject, region: "fr-par", zone: "fr-par-1"}).client(p, Options{})
			}
			if test.refused != "" {
				if outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), test.refused) || strings.Contains(err.Error(), testSecret) {
					t.Fatalf("want a refusal with %q and no secret, got %v", test.refused, err)
				}
				return
			}
			if err != nil || p.AccessKey != test.key || p.SecretKey[:1] != test.secret {
				t.Fatalf("got %s %s… %v", p.AccessKey, p.SecretKey[:1], err)
			}
			all := strings.Join(s.warnings, "\n")
			for _, w := range test.warnings {
				if !strings.Contains(all, w) {
					t.Errorf("no warning %q in %q", w, all)
				}
			}
			if strings.Contains(all, p.SecretKey) {
				t.Error("a warning holds the secret key")
			}
		})
	}
}

// The SDK's own reader prints to standard output when others may read the file.
func TestOpenConfigurationFileIsAWarning(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, ".config/scw/config.yml"), scwFile, 0o644)
	vars := map[string]string{"HOME": home}
	s := &settings{lookup: func(n string) (string, bool) { v, ok := vars[n]; return v, ok }}
	if _, err := s.profile(); err != nil {
		t.Fatal(err)
	}
	if len(s.warnings) != 1 || !strings.Contains(s.warnings[0], "chmod 0600") {
		t.Fatalf("got %q", s.warnings)
	}
}

func TestMalformedKeyIsNotShown(t *testing.T) {
	_, _, err := New(t.Context(), Options{Estate: testEstate(), LookupEnv: environment("http://127.0.0.1:1", "SCW_SECRET_KEY", "not-a-uuid-but-secret")})
	if outcome.CodeOf(err) != outcome.Refused || strings.Contains(err.Error(), "not-a-uuid-but-secret") {
		t.Fatalf("got %v", err)
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
