package session_test

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"bastide/internal/outcome"
	"bastide/internal/session"
	"bastide/internal/sim/api"
	"bastide/internal/sim/clock"
	"bastide/internal/vault"
)

const (
	project = "11111111-1111-4111-8111-111111111111"
	secret  = "22222222-2222-4222-8222-222222222222"
)

// place is an environment and the region that it is in.
type place struct {
	t      *testing.T
	dir    string
	url    string
	region *api.Region
	vars   map[string]string
	told   []string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	region := api.New(api.Options{Clock: clock.New(1000)})
	t.Cleanup(region.Close)
	if err := region.Seed(api.Seed{Projects: []api.SeedProject{{ID: project}}}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(region)
	t.Cleanup(server.Close)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dir: t.TempDir(), url: server.URL, region: region}
	p.write("identity", identity.String()+"\n")
	p.write("estate.yaml", `apiVersion: bastide/v1
kind: Estate
name: staging
scaleway: {project: `+project+`, region: fr-par, zones: [fr-par-1]}
secrets: {recipients: [`+identity.Recipient().String()+`]}
talos: {version: v1.13.5, snapshot: talos}
kubernetes: {version: 1.36.3}
network: {cidr: 172.16.0.0/22}
admin:
  cidrs: [198.51.100.7/32]
  sshKeys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIU4iuVzrmvsScxT00jocBpiiEcqjE+8doGxCaJd4rbI]
controlPlane: {type: PLAY2-NANO}
`)
	p.vars = map[string]string{"SCW_ACCESS_KEY": "SCWXXXXXXXXXXXXXXXXX", "SCW_SECRET_KEY": secret, "SCW_API_URL": p.url, "HOME": p.dir,
		vault.IdentityVariable: filepath.Join(p.dir, "identity")}
	return p
}

func (p *place) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) open() *session.Session {
	p.t.Helper()
	s, err := session.Open(session.Config{Path: p.dir, UserAgent: "bastide/test", LookupEnv: func(n string) (string, bool) { v, ok := p.vars[n]; return v, ok },
		Notice: func(text string) { p.told = append(p.told, text) }})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = s.Close() })
	return s
}

// server is a node of the estate, by its mark.
func (p *place) server(estate string) {
	p.t.Helper()
	c, err := scw.NewClient(scw.WithAPIURL(p.url), scw.WithAuth("SCWXXXXXXXXXXXXXXXXX", secret), scw.WithDefaultProjectID(project), scw.WithDefaultRegion("fr-par"), scw.WithDefaultZone("fr-par-1"))
	if err != nil {
		p.t.Fatal(err)
	}
	volume := map[string]*instance.VolumeServerTemplate{"0": {Name: scw.StringPtr("root"), Size: scw.SizePtr(20 * scw.GB), VolumeType: instance.VolumeVolumeTypeSbsVolume}}
	_, err = instance.NewAPI(c).CreateServer(&instance.CreateServerRequest{Name: "staging-cp-1", CommercialType: "PLAY2-NANO", DynamicIPRequired: scw.BoolPtr(false), Volumes: volume,
		Tags: []string{"bastide:estate=" + estate, "bastide:step=server/staging-cp-1"}})
	if err != nil {
		p.t.Fatal(err)
	}
}

// Field report 08: an environment whose servers exist and whose bundle does not
// is refused. Nothing makes another bundle, whatever reads the estate.
func TestFieldReport08ServersWithoutABundle(t *testing.T) {
	p := newPlace(t)
	if _, err := p.open().Survey(t.Context()); err != nil {
		t.Fatalf("an estate that was never raised: %v", err)
	}
	p.server("staging")
	for name, look := range map[string]func(*session.Session) error{
		"survey": func(s *session.Session) error { _, err := s.Survey(t.Context()); return err },
		"status": func(s *session.Session) error { _, err := s.Status(t.Context()); return err },
	} {
		err := look(p.open())
		if outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), "servers of staging exist, its secrets bundle does not") || !strings.Contains(err.Error(), "bastide secrets import") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, look := range map[string]func(*session.Session) error{
		"kubeconfig":  func(s *session.Session) error { _, err := s.Kubeconfig(t.Context(), time.Hour); return err },
		"talosconfig": func(s *session.Session) error { _, err := s.Talosconfig(t.Context(), time.Hour); return err },
		"unlock":      func(s *session.Session) error { _, err := s.Unlock(); return err },
	} {
		if err := look(p.open()); outcome.CodeOf(err) != outcome.Refused || !strings.Contains(err.Error(), "there is no secrets bundle at ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(p.dir, vault.FileName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a bundle was made: %v", err)
	}
	for _, r := range p.region.Requests(0) {
		if r.Mutating && !strings.HasSuffix(r.Path, "/servers") {
			t.Errorf("%s %s", r.Method, r.Path)
		}
	}
}

// Another estate's server is no reason to refuse this one.
func TestFieldReport08ServersOfAnotherEstate(t *testing.T) {
	p := newPlace(t)
	p.server("staging-2")
	if _, err := p.open().Survey(t.Context()); err != nil {
		t.Error(err)
	}
}

// Field report 09: credentials in the shell point to another cluster. They are
// not read: what a session uses comes from the environment's own bundle.
func TestFieldReport09CredentialsInTheShellAreNotRead(t *testing.T) {
	p := newPlace(t)
	b, err := p.open().Vault().New("v1.13.5", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"TALOSCONFIG", "KUBECONFIG", "TALOS_HOME"} {
		p.write(name, "this is not to be read")
		p.vars[name] = filepath.Join(p.dir, name)
		t.Setenv(name, p.vars[name])
	}
	asked := map[string]bool{}
	s, err := session.Open(session.Config{Path: p.dir, UserAgent: "bastide/test", Notice: func(string) {}, LookupEnv: func(n string) (string, bool) {
		asked[n] = true
		v, ok := p.vars[n]
		return v, ok
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	mine, err := s.Unlock()
	if err != nil || mine.Fingerprint() != b.Fingerprint() {
		t.Fatalf("%v, %v", mine, err)
	}
	if _, err := s.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name := range asked {
		if strings.HasPrefix(name, "TALOS") || strings.HasPrefix(name, "KUBE") {
			t.Errorf("%s was read", name)
		}
	}
}
