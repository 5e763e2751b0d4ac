package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	etcdClientPort = 2379
	etcdPeerPort   = 2380
)

// etcdService is what Talos does around the etcd process of a control plane
// node: join or bootstrap, run, look after its health, promote the learner.
type etcdService struct {
	node *node

	mu        sync.Mutex
	bootstrap bool // make a new cluster when there is no data
	recover   bool // from the uploaded snapshot
	skipHash  bool
	stopped   bool               // by an operator, or because the member left
	round     context.CancelFunc // ends the present round of preparing and running
	child     *child
	ended     chan struct{} // closed when the present round has ended
}

func newEtcdService(n *node) *etcdService { return &etcdService{node: n} }

func (e *etcdService) dataDir() string { return e.node.varPath("etcd") }

// empty tells whether the node holds no etcd data.
func (e *etcdService) empty() bool {
	entries, _ := os.ReadDir(e.dataDir())
	return len(entries) == 0
}

// run keeps etcd running until the boot ends.
func (e *etcdService) run() {
	n := e.node
	n.services.set("etcd", stateWaiting, `Waiting for service "cri" to be "up", time sync, network, etcd spec`)
	if !n.awaitTime(n.ctx) || n.delay(n.ctx, imagePullTime) != nil {
		return
	}
	for n.ctx.Err() == nil {
		ctx, cancel := context.WithCancel(n.ctx)
		ended := make(chan struct{})
		e.mu.Lock()
		stopped := e.stopped
		e.round, e.ended = cancel, ended
		e.mu.Unlock()
		var err error
		if stopped {
			<-ctx.Done()
		} else {
			err = e.once(ctx)
		}
		asked := ctx.Err() != nil
		cancel()
		close(ended)
		if n.ctx.Err() != nil || asked {
			continue
		}
		n.tell("etcd", err)
		n.services.set("etcd", stateWaiting, fmt.Sprintf("Error running Containerd(etcd), going to restart forever: %v", err))
		_ = n.pause(n.ctx, serviceRestart)
	}
}

// once prepares and runs etcd until it ends or the context does.
func (e *etcdService) once(ctx context.Context) error {
	n := e.node
	n.services.set("etcd", statePreparing, "Running pre state")
	args, learner, err := e.prepare(ctx)
	if err != nil {
		n.services.set("etcd", stateFailed, "Failed to run pre stage: "+err.Error())
		return err
	}
	argsFile := filepath.Join(n.runDir, "etcd.args")
	if err := os.WriteFile(argsFile, []byte(strings.Join(args, "\n")), 0o600); err != nil {
		return err
	}
	proxy, err := n.startEtcdProxy()
	if err != nil {
		return err
	}
	defer proxy.close()
	c, err := n.launch(append(slices.Clone(n.farm.opt.EtcdProgram), argsFile), proxy.env(), n.logOf("etcd"))
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.child = c
	e.mu.Unlock()
	defer n.serve(etcdClientPort)()
	defer n.serve(etcdPeerPort)()
	n.services.set("etcd", stateRunning, fmt.Sprintf("Started task etcd (PID %d)", c.cmd.Process.Pid))
	n.publishEtcd()

	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	n.spawn(func() { e.watchHealth(inner) })
	if learner != 0 {
		n.spawn(func() { e.promote(inner, learner) })
	}
	select {
	case <-c.done:
		return fmt.Errorf("task \"etcd\" failed: %w: %s", cmpErr(c.err), n.logOf("etcd").last(1))
	case <-ctx.Done():
		if n.ctx.Err() == nil {
			c.stop(true)
			n.services.set("etcd", stateFinished, "Service finished successfully")
		}
		return ctx.Err()
	}
}

func cmpErr(err error) error {
	if err == nil {
		return errors.New("exit code 0")
	}
	return err
}

// prepare renders the arguments, which for an empty node that was not told to
// bootstrap means to join the cluster first.
func (e *etcdService) prepare(ctx context.Context) (args []string, learner uint64, err error) {
	n := e.node
	for n.live().StuckPreparing {
		if err := n.pause(ctx, etcdJoinPeriod); err != nil {
			return nil, 0, err
		}
	}
	if err := os.MkdirAll(e.dataDir(), 0o700); err != nil {
		return nil, 0, err
	}
	if err := n.writeEtcdPKI(); err != nil {
		return nil, 0, err
	}
	e.mu.Lock()
	bootstrap, restore := e.bootstrap, e.recover
	e.mu.Unlock()
	if restore {
		return nil, 0, errors.New("recovering etcd from a snapshot is not simulated")
	}
	set, err := n.etcdArgs()
	if err != nil {
		return nil, 0, err
	}
	if e.empty() {
		self := n.hostname() + "="
		switch {
		case bootstrap:
			set.def("initial-cluster-state", "new")
			set.def("initial-cluster", self+strings.Join(n.etcdURLs(etcdPeerPort), ","+self))
		default:
			cluster, id, err := e.join(ctx)
			if err != nil {
				return nil, 0, err
			}
			if n.quirks.LostAtJoin {
				n.farm.opt.Clock.After(0, func() { n.machine.powerOff(errPoweredOff) })
				<-ctx.Done()
				return nil, 0, ctx.Err()
			}
			learner = id
			set.def("initial-cluster-state", "existing")
			set.def("initial-cluster", cluster)
		}
	}
	return set.flags(), learner, nil
}

// watchHealth reads a key through the local member as long as it runs.
func (e *etcdService) watchHealth(ctx context.Context) {
	n := e.node
	launched := time.Now()
	if n.delay(ctx, etcdHealthDelay) != nil {
		return
	}
	c, err := n.etcdLocal(ctx)
	if err != nil {
		return
	}
	defer c.Close()
	for {
		try, cancel := context.WithTimeout(ctx, 15*time.Second)
		_, err := c.Get(try, "health")
		cancel()
		// A learner that came in by a snapshot often loses its first publication,
		// and serves no client until etcd tries again, after its request timeout.
		if !launched.IsZero() && (err == nil || errors.Is(err, rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner))) {
			n.farm.opt.Clock.Held("etcd starts and publishes itself", launched)
			launched = time.Time{}
		}
		if errors.Is(err, rpctypes.ErrPermissionDenied) {
			err = nil
		}
		if ctx.Err() != nil {
			return
		}
		wait := etcdHealthPeriod
		if err != nil {
			n.services.health("etcd", false, err.Error())
			wait = etcdHealthDelay
		} else {
			n.services.health("etcd", true, "Health check successful")
		}
		if n.pause(ctx, wait) != nil {
			return
		}
	}
}

// begin starts a round anew, in bootstrap mode.
func (e *etcdService) begin(restore, skipHash bool) {
	e.mu.Lock()
	e.bootstrap, e.recover, e.skipHash, e.stopped = true, restore, skipHash, false
	end := e.round
	e.mu.Unlock()
	if end != nil {
		end()
	}
}

// halt stops etcd and keeps it stopped.
func (e *etcdService) halt() {
	e.mu.Lock()
	e.stopped = true
	end, ended := e.round, e.ended
	e.mu.Unlock()
	if end != nil {
		end()
		<-ended
	}
}

// leave takes the member out of its cluster and deletes its data. It fails when
// the cluster does not let it go, as for the last member.
func (e *etcdService) leave(ctx context.Context) error {
	n := e.node
	if e.empty() {
		return nil
	}
	id, err := n.memberID(ctx)
	if err != nil {
		return fmt.Errorf("failed to leave cluster: %w", err)
	}
	c, err := n.etcdCluster(ctx)
	if err != nil {
		return fmt.Errorf("failed to create etcd client: %w", err)
	}
	defer c.Close()
	limit, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), n.farm.opt.Clock.Scale(5*time.Minute)+10*time.Second)
	defer cancel()
	for {
		_, err = c.MemberRemove(limit, id)
		if err == nil || errors.Is(err, rpctypes.ErrMemberNotFound) {
			break
		}
		if !errors.Is(err, rpctypes.ErrUnhealthy) && !errors.Is(err, rpctypes.ErrStopped) {
			return fmt.Errorf("failed to leave cluster: %w", err)
		}
		if n.pause(limit, 10*time.Second) != nil {
			return fmt.Errorf("failed to leave cluster: %w", err)
		}
	}
	e.halt()
	return os.RemoveAll(e.dataDir())
}
