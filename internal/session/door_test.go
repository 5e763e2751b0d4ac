package session_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	iam "github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"
	"golang.org/x/crypto/ssh"

	"bastide/internal/blueprint"
	"bastide/internal/door"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/run"
	"bastide/internal/session"
	"bastide/internal/sim"
	"bastide/internal/sim/api"
)

// inRegion opens a simulated region and leads the environment to it.
func (p *place) inRegion(seed api.Seed) *sim.Region {
	p.t.Helper()
	r, err := sim.Start(sim.Options{Listen: "127.0.0.1:0", Dir: p.t.TempDir(), Speed: 1000, Seed: seed,
		Access: sim.Access{AccessKey: sim.AccessKey, SecretKey: secret, Project: project, Region: "fr-par", Zone: "fr-par-1"}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := r.Close(); err != nil {
			p.t.Error(err)
		}
	})
	for _, kv := range r.Access.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		p.vars[k] = v
	}
	return r
}

// A bastion that never read the project's keys is told of by whoever only looks,
// and is made to read them by a survey under the lock: looking changes nothing,
// and up comes through.
func TestABastionWithStaleKeys(t *testing.T) {
	p := newPlace(t)
	r := p.inRegion(api.Seed{Projects: []api.SeedProject{{ID: project}}})
	p.url = r.Access.URL
	public := p.sshKey()
	p.write("estate.yaml", strings.Replace(text(t, p.dir+"/estate.yaml"), "sshKeys: [", "sshKeys: ["+public+"] #", 1))

	// The gateway is made first, the key only then and by hand.
	s := p.open()
	look := func(ctx context.Context) *session.Survey {
		t.Helper()
		v, err := s.Survey(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := look(t.Context())
	network := v.Plan().Only(func(a plan.Action) bool {
		switch a.Step.Kind {
		case blueprint.KindVPC, blueprint.KindPrivateNetwork, blueprint.KindGatewayIP, blueprint.KindAddress, blueprint.KindGateway, blueprint.KindGatewayNetwork:
			return true
		}
		return false
	})
	if s.Wrote() {
		t.Error("looking counts as a change")
	}
	ctx, h, err := s.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = s.Up(ctx, v, network, func(run.Event) {})
	h.Release(t.Context(), err)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Wrote() {
		t.Error("what was made does not count as a change")
	}
	c, err := scw.NewClient(scw.WithAPIURL(p.url), scw.WithAuth(sim.AccessKey, secret), scw.WithDefaultProjectID(project))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := iam.NewAPI(c).CreateSSHKey(&iam.CreateSSHKeyRequest{ProjectID: project, Name: "admin", PublicKey: public}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Vault().New("v1.13.5", time.Now()); err != nil {
		t.Fatal(err)
	}

	before := p.changes()
	v = look(t.Context())
	dial := session.Dialer(s, v)
	_, err = dial(t.Context(), "tcp", "172.16.0.4:50000")
	if outcome.CodeOf(err) != outcome.Unknown || !strings.Contains(err.Error(), "accepts none of the SSH keys") || !strings.Contains(err.Error(), "bastide up "+p.dir) {
		t.Errorf("without the lock: %v", err)
	}
	if !v.Stale() {
		t.Error("a stale bastion is not noticed")
	}
	if after := p.changes(); after != before {
		t.Errorf("looking changed something: %s", after[len(before):])
	}
	ctx, h, err = s.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v = look(ctx)
	_, err = session.Dialer(s, v)(ctx, "tcp", "172.16.0.4:50000")
	h.Release(t.Context(), nil)
	var dialled *door.DialError // the door is open, and nobody is there
	if v.Stale() || !errors.As(err, &dialled) {
		t.Errorf("under the lock: %v", err)
	}
	if made := p.changes()[len(before):]; strings.Count(made, "/refresh-ssh-keys") != 1 {
		t.Errorf("changes under the lock: %s", made)
	}
}

// sshKey makes the administrator's key and returns its public half.
func (p *place) sshKey() string {
	p.t.Helper()
	pub, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		p.t.Fatal(err)
	}
	p.write("id", string(pem.EncodeToMemory(block)))
	p.vars[door.IdentityVariable] = filepath.Join(p.dir, "id")
	key, err := ssh.NewPublicKey(pub)
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// changes are the calls so far that changed something at Scaleway, one a line.
func (p *place) changes() string {
	p.t.Helper()
	resp, err := http.Get(p.url + "/sim/requests")
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var log []struct {
		Method, Path string
		Mutating     bool
	}
	if err := json.NewDecoder(resp.Body).Decode(&log); err != nil {
		p.t.Fatal(err)
	}
	var b strings.Builder
	for _, r := range log {
		if r.Mutating {
			b.WriteString(r.Method + " " + r.Path + "\n")
		}
	}
	return b.String()
}

func text(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
