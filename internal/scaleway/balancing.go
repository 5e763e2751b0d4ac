package scaleway

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

func (c *Cloud) listBackends(ctx context.Context, balancer string) ([]*lb.Backend, error) {
	return list(ctx, c, "backends of load balancer "+balancer, func(v *lb.Backend) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*lb.Backend, uint64, error) {
		r, err := c.balancers.ListBackends(&lb.ZonedAPIListBackendsRequest{Zone: c.zone, LBID: balancer, Page: n, PageSize: size,
			OrderBy: lb.ListBackendsRequestOrderByCreatedAtAsc}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.Backends, uint64(r.TotalCount), nil
	})
}

func (c *Cloud) listFrontends(ctx context.Context, balancer string) ([]*lb.Frontend, error) {
	return list(ctx, c, "frontends of load balancer "+balancer, func(v *lb.Frontend) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*lb.Frontend, uint64, error) {
		r, err := c.balancers.ListFrontends(&lb.ZonedAPIListFrontendsRequest{Zone: c.zone, LBID: balancer, Page: n, PageSize: size,
			OrderBy: lb.ListFrontendsRequestOrderByCreatedAtAsc}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.Frontends, uint64(r.TotalCount), nil
	})
}

// onBalancer makes a change on a load balancer when it is ready, and waits until
// it is ready again.
func (c *Cloud) onBalancer(ctx context.Context, id string, change func(context.Context) error) error {
	if err := c.steady(ctx, forLB, func(ctx context.Context) error {
		if _, err := c.balancerReady(ctx, id); err != nil {
			return err
		}
		return change(ctx)
	}); err != nil {
		return err
	}
	_, err := c.balancerReady(ctx, id)
	return err
}

// named finds the one of a load balancer's backends or frontends that is ours.
// They carry no tags: under a load balancer that is ours the name is the mark,
// and where none has it the only one there is was renamed.
func named[T any](all []T, name string, nameOf func(T) string) (T, bool) {
	if i := slices.IndexFunc(all, func(v T) bool { return nameOf(v) == name }); i >= 0 {
		return all[i], true
	}
	if len(all) == 1 {
		return all[0], true
	}
	var none T
	return none, false
}

func backendName(b *lb.Backend) string   { return b.Name }
func frontendName(f *lb.Frontend) string { return f.Name }

// applyBackend makes the set of API servers.
func (c *Cloud) applyBackend(ctx context.Context, j job, want blueprint.LBBackend) (plan.Observed, error) {
	balancer, err := j.id(want.LoadBalancer)
	if err != nil {
		return plan.Observed{}, err
	}
	b, err := ensure(ctx, c, forLB,
		func(ctx context.Context) (*lb.Backend, bool, error) {
			all, err := c.listBackends(ctx, balancer)
			b, found := named(all, j.step.Name, backendName)
			return b, found, err
		},
		func(ctx context.Context) (b *lb.Backend, err error) {
			err = c.onBalancer(ctx, balancer, func(ctx context.Context) (err error) {
				b, err = c.balancers.CreateBackend(&lb.ZonedAPICreateBackendRequest{Zone: c.zone, LBID: balancer, Name: want.Name,
					ForwardProtocol: blueprint.Protocol, ForwardPort: int32(want.Port), ForwardPortAlgorithm: blueprint.Algorithm,
					StickySessions: blueprint.Stickiness, HealthCheck: healthCheck(want), ServerIP: addrsText(want.Servers),
					ProxyProtocol: blueprint.ProxyProtocol, OnMarkedDownAction: blueprint.OnMarkedDown,
					TimeoutServer: lasting(blueprint.IdleTimeout), TimeoutConnect: lasting(blueprint.DialTimeout), TimeoutTunnel: lasting(blueprint.IdleTimeout)}, scw.WithContext(ctx))
				return err
			})
			return b, err
		})
	if err != nil {
		return plan.Observed{}, err
	}
	if err := c.correctBackend(ctx, balancer, b, want); err != nil {
		return plan.Observed{}, err
	}
	return j.done(b.ID, string(c.zone), present, want), nil
}

func lasting(d time.Duration) *time.Duration { return &d }

func healthCheck(want blueprint.LBBackend) *lb.HealthCheck {
	return &lb.HealthCheck{Port: int32(want.Port), CheckDelay: lasting(blueprint.CheckDelay), CheckTimeout: lasting(blueprint.CheckTimeout),
		CheckMaxRetries: blueprint.CheckRetries, TCPConfig: &lb.HealthCheckTCPConfig{}}
}

// correctBackend changes what differs, each with the call that changes only
// that. A load balancer's PUT resets what it does not name, so all is named.
func (c *Cloud) correctBackend(ctx context.Context, balancer string, b *lb.Backend, want blueprint.LBBackend) error {
	have := backendSpec(b)
	if have.Name != want.Name || have.Port != want.Port || have.Forwarding != want.Forwarding || have.Timeouts != want.Timeouts {
		if err := c.onBalancer(ctx, balancer, func(ctx context.Context) error {
			_, err := c.balancers.UpdateBackend(&lb.ZonedAPIUpdateBackendRequest{Zone: c.zone, BackendID: b.ID, Name: want.Name,
				ForwardProtocol: blueprint.Protocol, ForwardPort: int32(want.Port), ForwardPortAlgorithm: blueprint.Algorithm,
				StickySessions: blueprint.Stickiness, ProxyProtocol: blueprint.ProxyProtocol, OnMarkedDownAction: blueprint.OnMarkedDown,
				TimeoutServer: lasting(blueprint.IdleTimeout), TimeoutConnect: lasting(blueprint.DialTimeout), TimeoutTunnel: lasting(blueprint.IdleTimeout)}, scw.WithContext(ctx))
			return err
		}); err != nil {
			return err
		}
	}
	if !slices.Equal(addrsText(have.Servers), addrsText(want.Servers)) {
		if err := c.onBalancer(ctx, balancer, func(ctx context.Context) error {
			_, err := c.balancers.SetBackendServers(&lb.ZonedAPISetBackendServersRequest{Zone: c.zone, BackendID: b.ID, ServerIP: addrsText(want.Servers)}, scw.WithContext(ctx))
			return err
		}); err != nil {
			return err
		}
	}
	if have.Check == want.Check {
		return nil
	}
	h := healthCheck(want)
	return c.onBalancer(ctx, balancer, func(ctx context.Context) error {
		_, err := c.balancers.UpdateHealthCheck(&lb.ZonedAPIUpdateHealthCheckRequest{Zone: c.zone, BackendID: b.ID, Port: h.Port,
			CheckDelay: h.CheckDelay, CheckTimeout: h.CheckTimeout, CheckMaxRetries: h.CheckMaxRetries, TCPConfig: h.TCPConfig}, scw.WithContext(ctx))
		return err
	})
}

func (c *Cloud) applyFrontend(ctx context.Context, j job, want blueprint.LBFrontend) (plan.Observed, error) {
	balancer, err1 := j.id(want.LoadBalancer)
	backend, err2 := j.id(want.Backend)
	if err := firstOf(err1, err2); err != nil {
		return plan.Observed{}, err
	}
	f, err := ensure(ctx, c, forLB,
		func(ctx context.Context) (*lb.Frontend, bool, error) {
			all, err := c.listFrontends(ctx, balancer)
			f, found := named(all, j.step.Name, frontendName)
			return f, found, err
		},
		func(ctx context.Context) (f *lb.Frontend, err error) {
			err = c.onBalancer(ctx, balancer, func(ctx context.Context) (err error) {
				f, err = c.balancers.CreateFrontend(&lb.ZonedAPICreateFrontendRequest{Zone: c.zone, LBID: balancer, Name: want.Name,
					InboundPort: int32(want.Port), BackendID: backend, TimeoutClient: &want.Idle}, scw.WithContext(ctx))
				return err
			})
			return f, err
		})
	if err != nil {
		return plan.Observed{}, err
	}
	if int(f.InboundPort) != want.Port || f.Backend == nil || f.Backend.ID != backend || f.Name != want.Name || length(f.TimeoutClient) != want.Idle {
		if err := c.onBalancer(ctx, balancer, func(ctx context.Context) error {
			_, err := c.balancers.UpdateFrontend(&lb.ZonedAPIUpdateFrontendRequest{Zone: c.zone, FrontendID: f.ID, Name: want.Name,
				InboundPort: int32(want.Port), BackendID: backend, TimeoutClient: &want.Idle}, scw.WithContext(ctx))
			return err
		}); err != nil {
			return plan.Observed{}, err
		}
	}
	return j.done(f.ID, string(c.zone), present, want), nil
}

// length is a duration that may be missing.
func length(d *time.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return *d
}

// backendSpec is a backend in the blueprint's terms, without its balancer.
func backendSpec(b *lb.Backend) blueprint.LBBackend {
	spec := blueprint.LBBackend{Name: b.Name, Port: int(b.ForwardPort), Check: "none",
		Forwarding: blueprint.ForwardingText(string(b.ForwardProtocol), string(b.ForwardPortAlgorithm), string(b.StickySessions), string(b.ProxyProtocol), string(b.OnMarkedDownAction)),
		Timeouts:   blueprint.TimeoutsText(length(b.TimeoutServer), length(b.TimeoutConnect), length(b.TimeoutTunnel))}
	for _, s := range b.Pool {
		if addr, err := netip.ParseAddr(s); err == nil {
			spec.Servers = append(spec.Servers, addr)
		}
	}
	if h := b.HealthCheck; h != nil {
		kind := "another check"
		if h.TCPConfig != nil {
			kind = blueprint.Protocol
		}
		spec.Check = blueprint.CheckText(kind, int(h.Port), length(h.CheckDelay), length(h.CheckTimeout), int(h.CheckMaxRetries))
	}
	return spec
}
