package scaleway_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/scaleway"

	"github.com/scaleway/scaleway-sdk-go/api/rdb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// moveTo gives the instance's endpoint another address in the private network; an
// empty one leaves it without an endpoint, so that up makes one.
func (w *postgresWorld) moveTo(address string) error {
	i, err := w.databases().WaitForInstance(&rdb.WaitForInstanceRequest{InstanceID: w.instanceID(), RetryInterval: scw.TimeDurationPtr(1e6)})
	if err != nil {
		return err
	}
	for _, e := range i.Endpoints {
		if err := w.databases().DeleteEndpoint(&rdb.DeleteEndpointRequest{EndpointID: e.ID}); err != nil {
			return err
		}
	}
	w.instance()
	if address == "" {
		return nil
	}
	var at scw.IPNet
	if err := at.UnmarshalJSON([]byte(`"` + address + `/22"`)); err != nil {
		return err
	}
	_, err = w.databases().CreateEndpoint(&rdb.CreateEndpointRequest{InstanceID: i.ID, EndpointSpec: &rdb.EndpointSpec{PrivateNetwork: &rdb.EndpointSpecPrivateNetwork{
		PrivateNetworkID: w.find("private-network/staging").CloudID, ServiceIP: &at}}})
	w.instance()
	return err
}

// wrong says what is wrong when a run has ended well: a plan that is not empty, or
// an application that would not get in with what it reads.
func (w *postgresWorld) wrong() string {
	w.Helper()
	_, p, _, err := w.plan(w.Context(), w.cloud())
	if err != nil {
		return err.Error()
	}
	for _, a := range p.Actions {
		if a.Op != plan.Keep {
			return fmt.Sprintf("the plan has %s %s: %s %v", a.Op, a.Step.ID, a.Reason, a.Changes)
		}
	}
	i := w.instance()
	for _, u := range w.estate.Services.Postgres.Users {
		said := w.application(u.Name)
		if at := i.Endpoints[0].IP.String() + ":5432"; net.JoinHostPort(said.Host, said.Port) != at {
			return fmt.Sprintf("%s is led to %s, and the database is at %s; versions %v", u.Name, said.Host, at, w.versions(u.Name))
		}
		if !w.same(u.Name) {
			return fmt.Sprintf("%s reads a password that the database does not have; versions %v", u.Name, w.versions(u.Name))
		}
	}
	return ""
}

// An address that comes back has a version of its own, which is the newest: the
// older one that says the same is not taken up under the one that says otherwise.
func TestAnAddressThatComesBack(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.mustUp()
	for n, address := range []string{"172.16.0.200", "172.16.0.201", "172.16.0.200", "172.16.0.201"} {
		if err := w.moveTo(address); err != nil {
			t.Fatal(err)
		}
		w.mustUp()
		if why := w.wrong(); why != "" {
			t.Fatalf("after move %d: %s", n+1, why)
		}
		if got := w.application("app").Host; got != address {
			t.Errorf("after move %d applications read %s, want %s", n+1, got, address)
		}
	}
	if got := w.versions("app"); !slices.Equal(got, []string{"scheduled_for_deletion", "scheduled_for_deletion", "scheduled_for_deletion", "disabled", "enabled"}) {
		t.Errorf("the secret has %v", got)
	}
}

// Somebody writes into the secret while a run changes it: the run does not pass.
func TestUpFailsWhenTheSecretLeadsElsewhere(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.mustUp()
	w.rotate("app", 2)
	id := w.secretID("app")
	meddle := onceAnswered("/versions/2/enable", func() {
		must(w.secretAPI().CreateSecretVersion(&secret.CreateSecretVersionRequest{SecretID: id, Data: byHand}))(t)
	})
	wantError(t, w.up(t.Context(), w.cloud(meddle)), outcome.Failed, "the password of app", "somebody has written version 3 meanwhile")
	w.wantRefused("postgres-user/app", "somebody has written version 3")
	w.rotate("app", 3)
	w.mustUp()
	if why := w.wrong(); why != "" {
		t.Error(why)
	}
}

var byHand = []byte(`{"engine":"postgres","username":"app","password":"By-hand-1","host":"h","port":"5432","dbname":"app"}`)

// A version that was begun, with one of somebody else's after it, is not ended
// under that one.
func TestBegunVersionBelowSomebodyElses(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.mustUp()
	w.rotate("app", 2)
	ctx, cancel := context.WithCancel(t.Context())
	kill, _ := killAt(2, true, cancel) // the version is written and disabled
	if err := w.up(ctx, w.cloud(kill)); err == nil {
		t.Fatal("the run was not killed")
	}
	cancel()
	w.served.drain()
	must(w.secretAPI().CreateSecretVersion(&secret.CreateSecretVersionRequest{SecretID: w.secretID("app"), Data: byHand}))(t)
	w.mustUp()
	if why := w.wrong(); why != "" {
		t.Error(why)
	}
}

// onceAnswered does something when the first call to a path has its answer.
func onceAnswered(path string, do func()) scaleway.Decorator {
	var once sync.Once
	return func(next http.RoundTripper) http.RoundTripper {
		return transport(func(req *http.Request) (*http.Response, error) {
			res, err := next.RoundTrip(req)
			if strings.HasSuffix(req.URL.Path, path) {
				once.Do(do)
			}
			return res, err
		})
	}
}
