package kube

import (
	"context"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Election is how processes agree on one of them, by a lease that the holder
// renews, as Kubernetes's own controllers do.
type Election struct {
	Lease    metav1.ObjectMeta // namespace and name
	Identity string
	Duration time.Duration // an unrenewed lease is anybody's after this
	Renew    time.Duration // a holder that could not renew for this long steps down; less than Duration
	Retry    time.Duration // between attempts
}

// Lead takes part until the context ends. While the lease is held, work runs
// with a context that ends when it is lost.
func (c *Client) Lead(ctx context.Context, e Election, work func(context.Context)) {
	var seen coordination.LeaseSpec
	var seenAt time.Time
	for ctx.Err() == nil {
		// Clocks of holders are not trusted: what counts is for how long the
		// lease has looked the same from here.
		held, now := c.take(ctx, e, func(s coordination.LeaseSpec) bool {
			if !s.RenewTime.Equal(seen.RenewTime) || holder(s) != holder(seen) {
				seen, seenAt = s, time.Now()
			}
			return holder(s) == "" || holder(s) == e.Identity || time.Since(seenAt) > e.Duration
		}), time.Now()
		if held {
			c.hold(ctx, e, now, work)
		}
		pause(ctx, e.Retry)
	}
}

// hold works for as long as the lease can be renewed.
func (c *Client) hold(ctx context.Context, e Election, renewed time.Time, work func(context.Context)) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		work(ctx)
	}()
	for ctx.Err() == nil && time.Since(renewed) < e.Renew {
		pause(ctx, e.Retry)
		if c.take(ctx, e, func(s coordination.LeaseSpec) bool { return holder(s) == e.Identity }) {
			renewed = time.Now()
		}
	}
	stop()
	<-done
}

// take writes this process into the lease if it may.
func (c *Client) take(ctx context.Context, e Election, may func(coordination.LeaseSpec) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, e.Renew)
	defer cancel()
	leases, now, seconds := c.Leases(e.Lease.Namespace), metav1.NowMicro(), int32(e.Duration/time.Second)
	lease, err := leases.Get(ctx, e.Lease.Name)
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordination.Lease{ObjectMeta: e.Lease, Spec: coordination.LeaseSpec{
			HolderIdentity: &e.Identity, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now}})
		return err == nil
	}
	if err != nil || !may(lease.Spec) {
		return false
	}
	if s := &lease.Spec; holder(*s) != e.Identity {
		transitions := int32(1)
		if s.LeaseTransitions != nil {
			transitions += *s.LeaseTransitions
		}
		s.HolderIdentity, s.AcquireTime, s.LeaseTransitions = &e.Identity, &now, &transitions
	}
	lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &seconds, &now
	_, err = leases.Update(ctx, lease) // refused when somebody else was faster
	return err == nil
}

func holder(s coordination.LeaseSpec) string {
	if s.HolderIdentity == nil {
		return ""
	}
	return *s.HolderIdentity
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
