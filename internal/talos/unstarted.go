package talos

import (
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"bastide/internal/outcome"
)

// unstarted watches for a member that was added and is never started: its node
// lost its power in between. Talos then asks etcd to add it again, which refuses
// a peer that it has already, and has no room for another learner, so all who
// join wait in vain.
type unstarted struct {
	c     *Cluster
	since map[uint64]time.Time // when a look first found a member so; looks that do not find it forget it
}

// look fails when a member has been so for longer than any start takes. It
// concludes from what is certain only: the member never told its name, and its
// node says that it holds no data of etcd's, so it has not begun to start.
func (u *unstarted) look(h EtcdHealth) error {
	now := time.Now()
	seen := map[uint64]time.Time{}
	for _, n := range h.Nodes {
		m, ok := u.of(n, h)
		if !ok {
			continue
		}
		seen[m.ID] = now
		if first, known := u.since[m.ID]; known {
			seen[m.ID] = first
		}
		if now.Sub(seen[m.ID]) >= u.c.limits.Joining {
			return outcome.Fail(fmt.Sprintf("%s does not get into etcd", n.Node),
				fmt.Sprintf("its member %x was added and has not begun to start since, as when the node restarted in between; etcd does not add it again, and takes no other node meanwhile\n%s", m.ID, h.Members.Picture()),
				u.c.removeUnstarted(h, n.Node, m.ID))
		}
	}
	u.since = seen
	return nil
}

// of finds the member that was added for a node and not started.
func (u *unstarted) of(n EtcdNode, h EtcdHealth) (EtcdMember, bool) {
	if !n.empty {
		return EtcdMember{}, false
	}
	for _, other := range h.Nodes {
		for _, m := range other.Members {
			if m.Name == "" && m.Learner && m.Peer == u.c.addresses.Nodes[n.Node] {
				return m, true
			}
		}
	}
	return EtcdMember{}, false
}

// removeUnstarted is the command that makes room: the node adds itself anew.
func (c *Cluster) removeUnstarted(h EtcdHealth, node string, id uint64) string {
	slow := fmt.Sprintf("unless `talosctl -n %s service etcd` says that it is starting right now, ", c.addresses.Nodes[node])
	for _, n := range h.Nodes {
		if n.Leader {
			return slow + fmt.Sprintf("remove the member, which never had a vote or data: `talosctl -n %s etcd remove-member %x`, then run `bastide up` again", c.addresses.Nodes[n.Node], id)
		}
	}
	return slow + fmt.Sprintf("remove the member, which never had a vote or data, with `talosctl etcd remove-member %x` on a node whose etcd runs, then run `bastide up` again", id)
}

// peer is the address in a member's first peer URL; the zero address if there is none.
func peer(urls []string) netip.Addr {
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil {
			continue
		}
		if at, err := netip.ParseAddrPort(u.Host); err == nil {
			return at.Addr()
		}
	}
	return netip.Addr{}
}
