package talos

import (
	"fmt"
	"strings"

	"bastide/internal/outcome"
	"bastide/internal/quorum"
)

// gate refuses what would cost quorum, or what cannot be reckoned. An estate
// with one control plane node has no quorum to keep through a reboot: asking
// for one was asking for that.
func (c *Cluster) gate(node string, h EtcdHealth, mode Mode) error {
	what, do := "the configuration of "+node+" is not changed", "bring the other members back first; nothing was changed"
	switch ok, why := h.Members.CanLose(node); {
	case h.Split != "":
		return outcome.Refuse(what, h.Split+"\n"+h.Members.Picture(), do)
	case !h.Members.Has():
		return outcome.Refuse(what+": etcd has no quorum", "a change now could not be followed by what depends on it\n"+h.Members.Picture(), do)
	case mode == WithReboot && !ok && c.estate.ControlPlane.Count > 1:
		return outcome.Refuse(what+": etcd would not survive its absence", why+"\n"+h.Members.Picture(), do)
	}
	return nil
}

// lesser says in what etcd is worse off than before.
func lesser(before, now EtcdHealth, node string) string {
	if now.Split != "" {
		return now.Split
	}
	for _, was := range before.Members {
		if !was.Voter || !was.Healthy && was.Name != node {
			continue
		}
		if !holds(now.Members, was.Name) {
			return fmt.Sprintf("etcd: %s is not a healthy voter yet: %s", was.Name, strings.ReplaceAll(serviceOf(now, was.Name), "\n", " "))
		}
	}
	return ""
}

func holds(ms quorum.Members, name string) bool {
	for _, m := range ms {
		if m.Name == name && m.Voter && m.Healthy {
			return true
		}
	}
	return false
}
