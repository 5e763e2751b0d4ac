package talos

import (
	"fmt"
	"slices"

	"bastide/internal/quorum"
)

// membership joins the nodes' views. They must agree on who is a member: two
// lists that differ are two clusters, or a change that is not through yet. A
// learner answers few questions, so its own view is not needed.
func membership(nodes []EtcdNode) (quorum.Members, string) {
	var list []EtcdMember
	var teller, split string
	byID := map[uint64]EtcdNode{}
	for _, n := range nodes {
		if n.MemberID != 0 {
			byID[n.MemberID] = n
		}
		if len(n.Members) == 0 {
			continue
		}
		if teller == "" {
			list, teller = n.Members, n.Node
			continue
		}
		if !sameSet(ids(list), ids(n.Members)) {
			split = fmt.Sprintf("%s and %s list different members", teller, n.Node)
		}
		if len(n.Members) > len(list) {
			list, teller = n.Members, n.Node
		}
	}
	var out quorum.Members
	for _, m := range list {
		q := quorum.Member{ID: m.ID, Name: m.Name, Voter: !m.Learner}
		if n, ok := byID[m.ID]; ok {
			q.Healthy, q.Leader, q.Alarms, q.Note = n.Problem == "", n.Leader, n.Alarms, n.Problem
		} else {
			q.Note = unseen(nodes, m.Name)
		}
		out = append(out, q)
	}
	return out, split
}

// divided says whether two nodes list memberships that have no member in
// common: that is two clusters. Lists that overlap are of one cluster that grew
// or shrank while its nodes were asked, and soon agree.
func (h EtcdHealth) divided() bool {
	for i, a := range h.Nodes {
		for _, b := range h.Nodes[i+1:] {
			if len(a.Members) > 0 && len(b.Members) > 0 && !overlap(ids(a.Members), ids(b.Members)) {
				return true
			}
		}
	}
	return false
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(id string) bool { return slices.Contains(b, id) })
}

// unseen says what is known of the node of a member that did not answer.
func unseen(nodes []EtcdNode, name string) string {
	if name == "" {
		return "it was added but never started"
	}
	for _, n := range nodes {
		if n.Node == name && n.Problem != "" {
			return n.Problem
		}
	}
	return "no node of the estate has it"
}

func ids(ms []EtcdMember) []string {
	out := make([]string, 0, len(ms))
	for _, m := range ms {
		out = append(out, fmt.Sprintf("%x", m.ID))
	}
	return out
}
