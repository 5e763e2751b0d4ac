package quorum

import (
	"fmt"
	"strings"
)

// Picture draws the membership: one line per member, then a bar with a cell
// per voter, healthy ones first, and a mark under the last cell that must be
// full for writes to go on.
//
//	staging-cp-1  voter    healthy  leader
//	staging-cp-2  voter    DOWN     no answer
//	staging-cp-3  learner  healthy  (does not count)
//
//	voters  [##][--]      1 of 2 healthy, 2 needed
//	                ^     quorum is lost
func (ms Members) Picture() string {
	if len(ms) == 0 {
		return "no etcd member is known\n"
	}
	var b strings.Builder
	width := 0
	for _, m := range ms {
		width = max(width, len(m.label()))
	}
	for _, m := range ms.sorted() {
		line := fmt.Sprintf("%-*s  %-7s  %-7s  %s", width, m.label(), kind(m), health(m), strings.Join(remarks(m), ", "))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteString("\n" + ms.Bar())
	return b.String()
}

// Bar draws the voters alone, for where the members are listed already.
func (ms Members) Bar() string {
	if ms.voters() == 0 {
		return "no voter is known\n"
	}
	var b strings.Builder
	bar := strings.Repeat("[##]", ms.healthy()) + strings.Repeat("[--]", ms.voters()-ms.healthy())
	fmt.Fprintf(&b, "voters  %s  %d of %d healthy, %d needed\n", bar, ms.healthy(), ms.voters(), ms.Quorum())
	mark := strings.Repeat(" ", 4*ms.Quorum()-1) + "^"
	fmt.Fprintf(&b, "        %-*s  %s\n", len(bar), mark, ms.verdict())
	return b.String()
}

func (ms Members) verdict() string {
	switch spare := ms.Spare(); {
	case spare < 0:
		return "quorum is lost"
	case spare == 0:
		return "quorum, none to spare"
	default:
		return fmt.Sprintf("quorum, %d to spare", spare)
	}
}

func kind(m Member) string {
	if m.Voter {
		return "voter"
	}
	return "learner"
}

func health(m Member) string {
	if m.Healthy {
		return "healthy"
	}
	return "DOWN"
}

func remarks(m Member) []string {
	var out []string
	if m.Leader {
		out = append(out, "leader")
	}
	if !m.Voter {
		out = append(out, "(does not count)")
	}
	for _, a := range m.Alarms {
		out = append(out, "alarm "+a)
	}
	if m.Note != "" {
		out = append(out, m.Note)
	}
	return out
}
