package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/net"
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
	if !n.awaitTime(n.ctx) || n.pause(n.ctx, imagePullTime) != nil {
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
			learner = id
			set.def("initial-cluster-state", "existing")
			set.def("initial-cluster", cluster)
		}
	}
	return set.flags(), learner, nil
}

// etcdAddresses are what the member advertises: the addresses in the advertised
// subnets, or the first one.
func (n *node) etcdAddresses() []netip.Addr {
	subnets := n.config().Cluster().Etcd().AdvertisedSubnets()
	all := n.addresses()
	if len(subnets) == 0 {
		return all[:min(1, len(all))]
	}
	found, err := net.FilterIPs(all, subnets)
	if err != nil {
		return nil
	}
	return found
}

func (n *node) etcdURLs(port int) []string {
	var urls []string
	for _, a := range n.etcdAddresses() {
		urls = append(urls, "https://"+netip.AddrPortFrom(a, uint16(port)).String())
	}
	return urls
}

// join asks the members for admission until one grants it.
func (e *etcdService) join(ctx context.Context) (cluster string, id uint64, err error) {
	n := e.node
	n.console.printf("etcd is waiting to join the cluster, if this node is the first node in the cluster, please run `talosctl bootstrap` against one of the following IPs: %v", n.addresses())
	for {
		cluster, id, err = e.tryJoin(ctx)
		if err == nil {
			return cluster, id, nil
		}
		n.logOf("etcd").add("retrying error: " + err.Error())
		if err := n.pause(ctx, etcdJoinPeriod); err != nil {
			return "", 0, err
		}
	}
}

// tryJoin removes a stale member of this node's name, and adds a learner.
func (e *etcdService) tryJoin(ctx context.Context) (string, uint64, error) {
	n := e.node
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), 10*time.Second)
	defer cancel()
	c, err := n.etcdCluster(ctx)
	if err != nil {
		return "", 0, err
	}
	defer c.Close()
	list, err := c.MemberList(ctx)
	if err != nil {
		return "", 0, fmt.Errorf("error getting etcd member list: %w", err)
	}
	for _, m := range list.Members {
		if m.Name == n.hostname() {
			if _, err := c.MemberRemove(ctx, m.ID); err != nil {
				return "", 0, fmt.Errorf("error removing self from the member list: %w", err)
			}
		}
	}
	added, err := c.MemberAddAsLearner(ctx, n.etcdURLs(etcdPeerPort))
	if err != nil {
		return "", 0, fmt.Errorf("error adding member: %w", err)
	}
	if list, err = c.MemberList(ctx); err != nil {
		return "", 0, fmt.Errorf("error getting second etcd member list: %w", err)
	}
	var parts []string
	for _, m := range list.Members {
		name := m.Name
		if m.ID == added.Member.ID {
			name = n.hostname()
		}
		for _, u := range m.PeerURLs {
			parts = append(parts, name+"="+u)
		}
	}
	return strings.Join(parts, ","), added.Member.ID, nil
}

// watchHealth reads a key through the local member as long as it runs.
func (e *etcdService) watchHealth(ctx context.Context) {
	n := e.node
	if n.pause(ctx, etcdHealthDelay) != nil {
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

// promote makes the learner a voter as soon as the leader thinks it ready.
func (e *etcdService) promote(ctx context.Context, id uint64) {
	n := e.node
	if n.quirks.LearnerFor > 0 && n.spend(ctx, n.quirks.LearnerFor) != nil {
		return
	}
	for turn := 0; ; {
		var err error
		if turn, err = e.tryPromote(ctx, id, turn); err == nil {
			n.console.printf("successfully promoted etcd member")
			return
		}
		n.logOf("etcd").add("retrying promotion: " + err.Error())
		if n.pause(ctx, etcdPromotePeriod) != nil {
			return
		}
	}
}

// tryPromote asks one endpoint after the other, beginning where the last try
// ended: an endpoint that is no member, such as a load balancer, takes up the
// whole try.
func (e *etcdService) tryPromote(ctx context.Context, id uint64, turn int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, max(e.node.farm.opt.Clock.Scale(30*time.Second), 2*time.Second))
	defer cancel()
	last := errors.New("no endpoints")
	endpoints := e.node.controlPlaneEndpoints()
	for range endpoints {
		if ctx.Err() != nil {
			break
		}
		ep := endpoints[turn%len(endpoints)]
		turn++
		c, err := e.node.etcdClient(ctx, []string{ep})
		if err != nil {
			last = err
			continue
		}
		_, last = c.MemberPromote(ctx, id)
		_ = c.Close()
		if last == nil {
			break
		}
	}
	return turn, last
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
