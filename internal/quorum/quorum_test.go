package quorum

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func voter(name string, healthy bool) Member {
	return Member{Name: name, Voter: true, Healthy: healthy}
}

func TestCanLose(t *testing.T) {
	learner := Member{Name: "c", Healthy: true}
	full := voter("c", true)
	full.Alarms = []string{"NOSPACE"}
	cases := []struct {
		name    string
		members Members
		lose    string
		why     string // empty: it may go
	}{
		{"one of three", Members{voter("a", true), voter("b", true), voter("c", true)}, "a", ""},
		{"one of three with one down", Members{voter("a", true), voter("b", true), voter("c", false)}, "a", "without a 1 of 3 voters would be healthy and 2 are needed"},
		{"the one that is down", Members{voter("a", true), voter("b", true), voter("c", false)}, "c", ""},
		{"the only one", Members{voter("a", true)}, "a", "without a 0 of 1 voters would be healthy and 1 are needed"},
		{"one of two", Members{voter("a", true), voter("b", true)}, "a", "without a 1 of 2"},
		{"while another learns", Members{voter("a", true), voter("b", true), learner}, "a", "c is still a learner"},
		{"the learner itself", Members{voter("a", true), voter("b", true), learner}, "c", ""},
		{"while another is full", Members{voter("a", true), voter("b", true), full}, "a", "c has raised NOSPACE"},
		{"a stranger", Members{voter("a", true)}, "z", "z is not a member"},
		{"nobody known", nil, "a", "a is not a member"},
		{"never started", Members{voter("a", true), voter("b", true), voter("c", true), {ID: 0xbeef}}, "a", "member beef is still a learner"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ok, why := c.members.CanLose(c.lose)
			if ok != (c.why == "") || !strings.Contains(why, c.why) {
				t.Errorf("CanLose(%s) = %v %q, want %q\n%s", c.lose, ok, why, c.why, c.members.Picture())
			}
		})
	}
}

func TestCanRemove(t *testing.T) {
	cases := []struct {
		name    string
		members Members
		remove  string
		why     string
	}{
		// Four voters, one dead: taking out another leaves 2 healthy of 3, which is a quorum.
		{"dead one of three", Members{voter("a", true), voter("b", true), voter("c", false)}, "c", ""},
		{"well one beside a dead one of three", Members{voter("a", true), voter("b", true), voter("c", false)}, "a", "without a 1 of 3"},
		{"when quorum is lost", Members{voter("a", true), voter("b", false), voter("c", false)}, "c", "quorum is lost"},
		{"the last", Members{voter("a", true)}, "a", "a is the last voter"},
		{"a stranger", Members{voter("a", true)}, "b", "b is not a member"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ok, why := c.members.CanRemove(c.remove)
			if ok != (c.why == "") || !strings.Contains(why, c.why) {
				t.Errorf("CanRemove(%s) = %v %q, want %q", c.remove, ok, why, c.why)
			}
		})
	}
}

func TestPicture(t *testing.T) {
	leader := voter("staging-cp-1", true)
	leader.Leader = true
	down := voter("staging-cp-2", false)
	down.Note = "no answer"
	full := voter("staging-cp-4", true)
	full.Alarms = []string{"NOSPACE"}
	cases := []struct {
		name    string
		members Members
		want    string
	}{
		{"none", nil, "no etcd member is known\n"},
		{"all well", Members{voter("b", true), leader, voter("c", true)}, `
b             voter    healthy
c             voter    healthy
staging-cp-1  voter    healthy  leader

voters  [##][##][##]  3 of 3 healthy, 2 needed
               ^      quorum, 1 to spare
`},
		{"one down, one learning", Members{leader, down, {Name: "staging-cp-3", Healthy: true}}, `
staging-cp-1  voter    healthy  leader
staging-cp-2  voter    DOWN     no answer
staging-cp-3  learner  healthy  (does not count)

voters  [##][--]  1 of 2 healthy, 2 needed
               ^  quorum is lost
`},
		{"an alarm", Members{full}, `
staging-cp-4  voter    healthy  alarm NOSPACE

voters  [##]  1 of 1 healthy, 1 needed
           ^  quorum, none to spare
`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.members.Picture(); got != strings.TrimPrefix(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func anyMembers(t *rapid.T) Members {
	n := rapid.IntRange(0, 9).Draw(t, "members")
	ms := make(Members, 0, n)
	for i := range n {
		m := Member{ID: uint64(i + 1), Name: fmt.Sprintf("cp-%d", i+1), Voter: rapid.Bool().Draw(t, "voter"), Healthy: rapid.Bool().Draw(t, "healthy")}
		if rapid.IntRange(0, 9).Draw(t, "alarm") == 0 {
			m.Alarms = []string{"NOSPACE"}
		}
		ms = append(ms, m)
	}
	return ms
}

// Whoever is let go, what was there before is there after: a cluster that
// could write can still write.
func TestLosingOnePermittedMemberKeepsQuorum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := anyMembers(t)
		for i, m := range ms {
			if ok, _ := ms.CanLose(m.Name); !ok {
				continue
			}
			after := append(Members{}, ms...)
			after[i].Healthy = false
			if ms.Has() && !after.Has() {
				t.Fatalf("losing %s was allowed and lost quorum\n%s", m.Name, ms.Picture())
			}
		}
	})
}

func TestRemovingOnePermittedMemberKeepsQuorum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := anyMembers(t)
		for i, m := range ms {
			if ok, _ := ms.CanRemove(m.Name); !ok {
				continue
			}
			after := append(append(Members{}, ms[:i]...), ms[i+1:]...)
			if !after.Has() {
				t.Fatalf("removing %s was allowed and lost quorum\n%s", m.Name, ms.Picture())
			}
		}
	})
}

// Two majorities of one cluster always share a voter.
func TestQuorumIsAMajority(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := anyMembers(t)
		if n := ms.voters(); 2*ms.Quorum() <= n || (n > 0 && ms.Quorum() > n) {
			t.Fatalf("quorum %d of %d voters", ms.Quorum(), n)
		}
	})
}

// A learner changes nothing: not the quorum, not who is healthy.
func TestLearnersDoNotCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := anyMembers(t)
		more := append(append(Members{}, ms...), Member{ID: 99, Name: "new", Healthy: rapid.Bool().Draw(t, "healthy")})
		if ms.Quorum() != more.Quorum() || ms.Has() != more.Has() || ms.Spare() != more.Spare() {
			t.Fatalf("a learner changed the arithmetic\n%s", more.Picture())
		}
	})
}

// The drawing is for people: every member is in it, and no line ends in blanks.
func TestPictureShowsEveryone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := anyMembers(t)
		picture := ms.Picture()
		for _, m := range ms {
			if !strings.Contains(picture, m.Name) {
				t.Fatalf("%s is missing in\n%s", m.Name, picture)
			}
		}
		for line := range strings.Lines(picture) {
			if text := strings.TrimSuffix(line, "\n"); text != strings.TrimRight(text, " ") {
				t.Fatalf("line %q ends in blanks", text)
			}
		}
	})
}
