// Package quorum is the arithmetic of an etcd cluster: who votes, how many
// must agree, and whether one member may go. It is pure; what it is told is
// what etcd answered a moment ago, and what it could not be asked counts
// against the step, never for it. It draws itself, so that a refusal can show
// why.
package quorum

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Member is one entry of etcd's member list, and what was seen of it.
type Member struct {
	ID      uint64
	Name    string // the node's name; empty for a member that was added but never started
	Voter   bool   // false for a learner, which replicates but does not count
	Healthy bool   // its node was asked and its etcd answered without errors
	Leader  bool
	Alarms  []string // such as NOSPACE or CORRUPT
	Note    string   // what is wrong, in a few words
}

// Members is a whole membership.
type Members []Member

// Quorum is how many voters must agree: a majority of all voters, whether
// they are well or not.
func (ms Members) Quorum() int { return ms.voters()/2 + 1 }

// Has says whether the cluster can accept writes now.
func (ms Members) Has() bool { return ms.voters() > 0 && ms.healthy() >= ms.Quorum() }

// Spare is how many more healthy voters can be lost before writes stop. It is
// negative when quorum is lost already.
func (ms Members) Spare() int { return ms.healthy() - ms.Quorum() }

// CanLose says whether the member of this name may be away for a while, as it
// is during a reboot: it stays in the member list, so the quorum stays what it
// is. When it may not go, why says so with the numbers.
func (ms Members) CanLose(name string) (ok bool, why string) {
	i := slices.IndexFunc(ms, func(m Member) bool { return m.Name == name })
	if i < 0 {
		return ms.alone(name, "is not a member; what it is to etcd must be settled first")
	}
	if why := ms.unsettled(name); why != "" {
		return false, why
	}
	if !ms[i].Voter || !ms[i].Healthy {
		return true, "" // it does not count towards quorum now, so it cannot be missed
	}
	return ms.enough(ms.healthy()-1, ms.Quorum(), name)
}

// CanRemove says whether the member of this name may be taken out of the
// member list. That lowers the number of voters and can lower the quorum.
func (ms Members) CanRemove(name string) (ok bool, why string) {
	i := slices.IndexFunc(ms, func(m Member) bool { return m.Name == name })
	if i < 0 {
		return ms.alone(name, "is not a member")
	}
	if !ms.Has() {
		return false, fmt.Sprintf("quorum is lost: %d of %d voters are healthy and %d are needed, so etcd cannot change its membership", ms.healthy(), ms.voters(), ms.Quorum())
	}
	if why := ms.unsettled(name); why != "" {
		return false, why
	}
	after := slices.Delete(slices.Clone(ms), i, i+1)
	if after.voters() == 0 {
		return false, name + " is the last voter"
	}
	return ms.enough(after.healthy(), after.Quorum(), name)
}

func (ms Members) alone(name, why string) (bool, string) { return false, name + " " + why }

// unsettled names what must be over before any member may go.
func (ms Members) unsettled(name string) string {
	for _, m := range ms {
		if m.Name == name {
			continue
		}
		if !m.Voter {
			return fmt.Sprintf("%s is still a learner; one change at a time", m.label())
		}
		if len(m.Alarms) > 0 {
			return fmt.Sprintf("%s has raised %s", m.label(), strings.Join(m.Alarms, " and "))
		}
	}
	return ""
}

func (ms Members) enough(left, needed int, name string) (bool, string) {
	if left >= needed {
		return true, ""
	}
	return false, fmt.Sprintf("without %s %d of %d voters would be healthy and %d are needed", name, left, ms.voters(), needed)
}

func (ms Members) voters() int {
	n := 0
	for _, m := range ms {
		if m.Voter {
			n++
		}
	}
	return n
}

func (ms Members) healthy() int {
	n := 0
	for _, m := range ms {
		if m.Voter && m.Healthy {
			n++
		}
	}
	return n
}

func (m Member) label() string {
	if m.Name != "" {
		return m.Name
	}
	return fmt.Sprintf("member %x", m.ID)
}

func (ms Members) sorted() Members {
	out := slices.Clone(ms)
	sort.Slice(out, func(i, j int) bool {
		if out[i].label() != out[j].label() {
			return out[i].label() < out[j].label()
		}
		return out[i].ID < out[j].ID
	})
	return out
}
