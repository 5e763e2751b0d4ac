package scaleway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/plan"
	"bastide/internal/run"
	"bastide/internal/scaleway"
	"bastide/internal/sim/api"
	"bastide/internal/sim/clock"
	"bastide/internal/sim/s3"
)

const (
	project = "11111111-1111-4111-8111-111111111111"
	zone    = "fr-par-1"
	sshKey  = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIm0ZVYxQyGBqs8iPtY5XJzVqVYhzvHqMBNYnMDXQTvL"
	// speed makes the region's longest delay, half a minute, take 30 ms.
	speed = 1000
)

// privateEstate is the mission's private estate: three control plane nodes with
// a second disk, and workers.
func privateEstate(workers int) *estate.Estate {
	disk := estate.Disk{Size: 20e9, IOPS: 5000}
	return &estate.Estate{
		APIVersion: estate.APIVersion, Kind: estate.Kind, Name: "staging",
		Scaleway: estate.Scaleway{Project: project, Region: "fr-par", Zones: []string{zone}},
		Talos:    estate.Talos{Version: "v1.13.5", Snapshot: "talos-v1.13.5"},
		Network: estate.Network{Mode: "private", CIDR: prefix("172.16.0.0/22"), Pods: prefix("10.244.0.0/16"), Services: prefix("10.96.0.0/12"),
			Gateway: estate.Gateway{Type: "VPC-GW-S"}},
		Admin:        estate.Admin{CIDRs: []estate.Prefix{prefix("198.51.100.7/32"), prefix("203.0.113.0/24")}, Door: "bastion"},
		API:          estate.API{LoadBalancer: "LB-S"},
		ControlPlane: estate.ControlPlane{Count: 3, Type: "PLAY2-NANO", Disk: disk, Ephemeral: &estate.Disk{Size: 30e9, IOPS: 15000}},
		Pools:        []estate.Pool{{Name: "system", Count: workers, Type: "PLAY2-MICRO", Disk: disk}},
	}
}

func prefix(s string) estate.Prefix { return estate.Prefix{Prefix: netip.MustParsePrefix(s)} }

// world is a fresh region with a prepared snapshot.
type world struct {
	testing.TB
	region *api.Region
	url    string
	s3     string // object storage's address
	estate *estate.Estate
	speed  float64
	served *traffic
	// attempt and budget bound calls, for tests in which some hang or never work.
	attempt, budget time.Duration
	kept            *keptConnections
	backoff         time.Duration // the longest
}

func newWorld(t testing.TB, e *estate.Estate) *world { return newWorldAt(t, e, speed) }

func newWorldAt(t testing.TB, e *estate.Estate, speed float64) *world {
	t.Helper()
	return newWorldIn(t, e, api.New(api.Options{Clock: clock.New(speed)}), speed)
}

func newWorldIn(t testing.TB, e *estate.Estate, region *api.Region, speed float64) *world {
	t.Helper()
	t.Cleanup(region.Close)
	seed := api.Seed{Projects: []api.SeedProject{{ID: project}}}
	if e.Talos.Snapshot != "" {
		seed.Snapshots = []api.SeedSnapshot{{Project: project, Name: e.Talos.Snapshot, Zone: zone, SizeBytes: 10e9}}
	}
	if err := region.Seed(seed); err != nil {
		t.Fatal(err)
	}
	return serve(t, e, region, region, speed)
}

// serve puts a handler before the region, for what the region does not do.
func serve(t testing.TB, e *estate.Estate, region *api.Region, h http.Handler, speed float64) *world {
	t.Helper()
	served := &traffic{}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		served.change(1)
		defer served.change(-1)
		h.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	return &world{TB: t, served: served, region: region, url: server.URL, s3: objects(t, region, served, speed), estate: e, speed: speed, attempt: 5 * time.Second, budget: 10 * time.Second, backoff: 20 * time.Millisecond, kept: &keptConnections{}}
}

// objects serves the region's object storage.
func objects(t testing.TB, region *api.Region, served *traffic, speed float64) string {
	t.Helper()
	store, err := s3.New(s3.Options{Dir: t.TempDir(), Region: "fr-par", Clock: clock.New(speed), Watch: objectCalls{region},
		Keys: func(string) (s3.Key, bool) {
			const secret = "22222222-2222-4222-8222-222222222222"
			return s3.Key{Secret: secret, Project: project, May: func(need s3.Right, in string) (bool, string) {
				return region.ObjectRight(secret, in, string(need.Thing), string(need.Action))
			}}, true
		}})
	if err != nil {
		t.Fatal(err)
	}
	region.Mount(store)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		served.change(1)
		defer served.change(-1)
		store.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() {
		server.Close()
		_ = store.Close()
	})
	return server.URL
}

// objectCalls puts calls to object storage under the region's faults and log.
type objectCalls struct{ *api.Region }

func (c objectCalls) Begin(req *http.Request, path, query string) func(s3.End) {
	end := c.Outside("s3", path, query, req)
	return func(e s3.End) { end(e.Status, nil, e.Fault, string(e.Killed), e.Ruled) }
}

// traffic counts the calls that a region is working on.
type traffic struct {
	mu      sync.Mutex
	open    int
	changed time.Time
}

func (t *traffic) change(by int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open += by
	t.changed = time.Now()
}

// drain waits until no call is open and none has come or gone for a moment:
// what a killed process had sent still lands.
func (t *traffic) drain() {
	const moment = 5 * time.Millisecond
	for {
		t.mu.Lock()
		quiet := t.open == 0 && time.Since(t.changed) > moment
		t.mu.Unlock()
		if quiet {
			return
		}
		time.Sleep(moment)
	}
}

type keptConnections struct {
	sync.Mutex
	transports []*http.Transport
}

// cloud is a fresh client, as each run of the program has. The connections that
// the one before it kept are closed, as when a program ends: a test has hundreds.
func (w *world) cloud(decorators ...scaleway.Decorator) *scaleway.Cloud {
	w.Helper()
	w.hangUp()
	decorators = append(slices.Clone(decorators), func(next http.RoundTripper) http.RoundTripper {
		if t, ok := next.(*http.Transport); ok {
			w.kept.Lock()
			w.kept.transports = append(w.kept.transports, t)
			w.kept.Unlock()
		}
		return next
	})
	vars := map[string]string{"SCW_ACCESS_KEY": "SCWXXXXXXXXXXXXXXXXX", "SCW_SECRET_KEY": "22222222-2222-4222-8222-222222222222", "SCW_API_URL": w.url,
		"SCW_S3_ENDPOINT": w.s3, "SCW_S3_USE_PATH_STYLE": "true"}
	c, warnings, err := scaleway.New(w.Context(), scaleway.Options{Estate: w.estate, UserAgent: "bastide/test", Decorators: decorators,
		LookupEnv: func(n string) (string, bool) { v, ok := vars[n]; return v, ok },
		Retry:     scaleway.Retry{Attempt: w.attempt, Base: min(w.backoff, 2*time.Millisecond), Cap: w.backoff, Budget: w.budget},
		// As long in the region's time as the default is in real time, but never
		// so short that a busy test machine is mistaken for a lag that is over.
		Pace: scaleway.Pace{First: 2 * time.Millisecond, Max: 50 * time.Millisecond, Settle: max(40*time.Millisecond, w.scaled(5*time.Second))},
	})
	if err != nil || len(warnings) > 0 {
		w.Fatal(err, warnings)
	}
	return c
}

// hangUp closes the connections that clients keep for their next call.
func (w *world) hangUp() {
	w.kept.Lock()
	defer w.kept.Unlock()
	for _, t := range w.kept.transports {
		t.CloseIdleConnections()
	}
	w.kept.transports = nil
}

// scaled is a time of the region in real time.
func (w *world) scaled(d time.Duration) time.Duration { return time.Duration(float64(d) / w.speed) }

// settled waits until a stale reading shows what is.
func (w *world) settled() { time.Sleep(w.scaled(3 * time.Second)) }

// plan reads the region and compares, for the cloud's part of the graph.
func (w *world) plan(ctx context.Context, c *scaleway.Cloud) (*scaleway.Inventory, plan.Plan, plan.Live, error) {
	w.Helper()
	inv, err := c.Inventory(ctx)
	if err != nil {
		return nil, plan.Plan{}, plan.Live{}, err
	}
	g, err := blueprint.Build(w.estate, inv.Booked(), []string{sshKey})
	if err != nil {
		w.Fatal(err)
	}
	live := inv.Live(g)
	p := plan.Make(g, live)
	var cloudy []plan.Action
	for _, a := range p.Actions {
		if !a.Step.Kind.Cluster() {
			cloudy = append(cloudy, a)
		}
	}
	p.Actions = cloudy
	return inv, p, live, nil
}

// up is one run: read, compare, carry out.
func (w *world) up(ctx context.Context, c *scaleway.Cloud) error {
	w.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, p, live, err := w.plan(ctx, c)
	if err != nil {
		return err
	}
	executors := func(k blueprint.Kind) run.Executor {
		if k == blueprint.KindImageObject {
			return filed{}
		}
		return c
	}
	return run.New(p, live).Run(ctx, executors, func(run.Event) {})
}

// filed is the store in place of the step that puts an image there: the file is
// there, and has a content.
type filed struct{}

const contentOfImage = "sha256:1f67f51ff567a1a0089a78cd79c43d71f6a0dcfa7ef3093675987dcf19157456"

func (filed) Apply(_ context.Context, a plan.Action, _ plan.Known) (plan.Observed, error) {
	return plan.Observed{Step: a.Step.ID, CloudID: a.Step.Name, Settled: true, Spec: a.Step.Spec, Digest: contentOfImage}, nil
}

func (w *world) mustUp() {
	w.Helper()
	if err := w.up(w.Context(), w.cloud()); err != nil {
		w.Fatal(err)
	}
}

// raze is a destroy that names all data.
func (w *world) raze(ctx context.Context, c *scaleway.Cloud) error {
	w.Helper()
	return w.destroy(ctx, c, blueprint.DataClasses...)
}

// destroy takes everything down, each removal as soon as it may go.
func (w *world) destroy(ctx context.Context, c *scaleway.Cloud, named ...blueprint.Data) error {
	w.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	inv, err := c.WholeInventory(ctx)
	if err != nil {
		return err
	}
	t, err := c.Teardown(inv, named)
	if err != nil {
		return err
	}
	removals := t.Removals
	done := map[string]chan struct{}{}
	for _, r := range removals {
		done[r.ID] = make(chan struct{})
	}
	errs := make(chan error, len(removals))
	var all sync.WaitGroup
	for _, r := range removals {
		all.Go(func() {
			for _, id := range r.After {
				select {
				case <-done[id]:
				case <-ctx.Done():
					return
				}
			}
			if err := c.Delete(ctx, r); err != nil {
				errs <- err
				cancel()
				return
			}
			close(done[r.ID])
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}

// wantConverged checks that a plan is empty and that nothing is there twice.
func (w *world) wantConverged() *scaleway.Inventory {
	w.Helper()
	inv, p, _, err := w.plan(w.Context(), w.cloud())
	if err != nil {
		w.Fatal(err)
	}
	for _, a := range p.Actions {
		if a.Op != plan.Keep {
			w.Errorf("%s: %s: %s %+v", a.Step.ID, a.Op, a.Reason, a.Changes)
		}
	}
	for _, s := range p.Strays {
		w.Errorf("stray %s %s: %s", s.Kind, s.Name, s.Why)
	}
	for _, f := range inv.Foreign {
		w.Errorf("foreign %s: %s", f.What, f.Why)
	}
	return inv
}

// wantNothingLeft asks the region itself.
func (w *world) wantNothingLeft() {
	w.Helper()
	for tag, things := range w.region.State()["owned"].(map[string][]api.Owned) {
		things = slices.DeleteFunc(things, func(o api.Owned) bool { return o.Kind == "secret" }) // they go seven days later; the inventory knows
		if state, _ := json.Marshal(things); strings.HasPrefix(tag, "bastide:") && len(things) > 0 {
			w.Errorf("left over: %s", state)
		}
	}
	inv, err := w.cloud().Inventory(w.Context())
	if err != nil || !inv.Empty() {
		w.Errorf("inventory after destroy: %+v, %v", inv, err)
	}
}

// writes counts calls that change something, from a place in the log on.
func (w *world) writes(since int) (n int, which []string) {
	for _, r := range w.region.Requests(since) {
		if r.Mutating {
			n++
			which = append(which, fmt.Sprintf("%s %s %d", r.Method, r.Path, r.Status))
		}
	}
	return n, which
}
