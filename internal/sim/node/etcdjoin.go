package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/siderolabs/net"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

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
	var refused time.Time
	for {
		cluster, id, err = e.tryJoin(ctx)
		if err == nil {
			if !refused.IsZero() {
				n.farm.opt.Clock.Held("etcd admits a member only after five seconds of health", refused)
			}
			return cluster, id, nil
		}
		if errors.Is(err, rpctypes.ErrUnhealthy) && refused.IsZero() {
			refused = time.Now()
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
	ctx, ended := n.try(clientv3.WithRequireLeader(ctx), joinTryTime)
	defer ended()
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
		if n.delay(ctx, etcdPromotePeriod) != nil {
			return
		}
	}
}

// tryPromote asks one endpoint after the other, beginning where the last try
// ended: an endpoint that is no member, such as a load balancer, takes up the
// whole try.
func (e *etcdService) tryPromote(ctx context.Context, id uint64, turn int) (int, error) {
	ctx, ended := e.node.try(ctx, promoteTryTime)
	defer ended()
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
