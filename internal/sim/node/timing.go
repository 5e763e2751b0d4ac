package node

import (
	"context"
	"errors"
	"time"
)

// Delays of the real system, before the clock scales them. Where Talos fixes a
// period in its source, that is the value; the others are what a small Instance
// takes, rounded.
const (
	firmwareTime      = 6 * time.Second  // power button to kernel
	kernelTime        = 5 * time.Second  // kernel to a leased address
	metadataRetry     = 10 * time.Second // between attempts to read the configuration
	apiRestart        = 3 * time.Second  // port 50000 closed between maintenance and normal API
	provisionTime     = 3 * time.Second  // STATE and EPHEMERAL made, file systems grown
	timeSyncTime      = 2 * time.Second
	criTime           = 2 * time.Second
	imagePullTime     = 5 * time.Second
	serviceRestart    = 5 * time.Second // Talos restarts a failed service after this
	etcdJoinPeriod    = 3 * time.Second
	etcdPromotePeriod = 15 * time.Second
	joinTryTime       = 10 * time.Second // an endpoint that is no member, such as a load balancer, takes up the whole try
	promoteTryTime    = 30 * time.Second
	etcdHealthDelay   = 5 * time.Second
	etcdHealthPeriod  = 20 * time.Second
	kubeletPeriod     = 10 * time.Second // look at the node status, and lease renewal
	statusPeriod      = 5 * time.Minute  // a node status that did not change is told again
	leaseDuration     = 40 * time.Second // a silent node turns Unknown after this
	endpointPeriod    = 5 * time.Second
	manifestPeriod    = 10 * time.Second
	trustdPeriod      = 5 * time.Second
	shutdownTime      = 3 * time.Second // services stopped one after the other
	gracefulStop      = 2 * time.Second // real time that a child process gets after SIGTERM
)

// Scaled delays shorter than this only burn processor time: what is waited for
// is a real process.
const (
	shortestPoll = 100 * time.Millisecond
	shortestTry  = 2 * time.Second
)

// pause waits a simulated delay, but never less than the shortest poll.
func (n *node) pause(ctx context.Context, d time.Duration) error {
	d = max(n.farm.opt.Clock.Scale(d), shortestPoll)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// delay is a pause that the real system makes too, once and for a reason, and
// not one between two looks at something.
func (n *node) delay(ctx context.Context, d time.Duration) error {
	begin := time.Now()
	err := n.pause(ctx, d)
	if err == nil {
		n.farm.opt.Clock.Passed(d, begin)
	}
	return err
}

// try limits one attempt at something. An attempt that takes up its whole time
// is a delay that the real system has too.
func (n *node) try(ctx context.Context, d time.Duration) (context.Context, func()) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, max(n.farm.opt.Clock.Scale(d), shortestTry))
	return ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			n.farm.opt.Clock.Passed(d, begin)
		}
		cancel()
	}
}

// spend lets simulated time pass that nothing real fills.
func (n *node) spend(ctx context.Context, d time.Duration) error {
	return n.farm.opt.Clock.Wait(ctx, d)
}
