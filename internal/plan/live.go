// Package plan compares the estate as it should be with what was observed and
// says what has to happen, in which order and at what cost to what runs. It is
// pure: values in, values out.
package plan

import "bastide/internal/blueprint"

// Observed is one thing that exists, in the same terms as the step that wants
// it. References in Spec are step IDs again; a reference to something foreign
// is "foreign:" and its Scaleway ID.
type Observed struct {
	Step    string // step ID
	CloudID string // Scaleway's ID; empty for cluster steps
	Zone    string
	Status  string // the provider's own word
	Settled bool   // false while Status is on its way to another
	Broken  string // why it can never become what is wanted (status error, locked); empty when it can
	Spec    blueprint.Spec
	Digest  string // of the content of an object, where it was proven; empty for all else
	// Cost is what changing it to what is wanted costs, where the observer knows
	// better than the kind of step tells; Detail shows the difference, line by
	// line and without secrets. Both are empty where there is none.
	Cost   Disruption
	Detail []string
}

// Stray carries the estate's mark although no step explains it: a node that
// the file no longer asks for, a second resource that claims the same step.
type Stray struct {
	Kind    blueprint.Kind
	Step    string // the step that its tag names
	CloudID string
	Name    string
	Why     string
	Spec    blueprint.Spec // what it is, for its price; nil where that is not known
}

// Live is everything observed.
type Live struct {
	Steps  map[string]Observed
	Strays []Stray
	// Unreachable says, by step ID, why a cluster step could not be observed
	// although what it stands on exists. Such a step is unknown, not absent.
	Unreachable map[string]string
}

// Merge adds other observations.
func (l *Live) Merge(other Live) {
	if l.Steps == nil {
		l.Steps = map[string]Observed{}
	}
	for k, v := range other.Steps {
		l.Steps[k] = v
	}
	l.Strays = append(l.Strays, other.Strays...)
	if l.Unreachable == nil {
		l.Unreachable = map[string]string{}
	}
	for k, v := range other.Unreachable {
		l.Unreachable[k] = v
	}
}

// Known resolves step IDs to what is live while a plan is carried out.
type Known interface {
	Get(stepID string) (Observed, bool)
}
