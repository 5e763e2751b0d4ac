package estate

import (
	"fmt"
	"slices"
	"strings"
)

// validate checks what the estate says, with no connection and no file. Parts
// come before wholes: a rule over several values runs after those on each.
func (s *source) validate(e *Estate) {
	s.validateName(e)
	s.validateScaleway(&e.Scaleway)
	s.validateRecipients(e.Secrets.Recipients)
	s.validateStore(&e.Store)
	s.validateReplica(e)
	s.validateTalos(&e.Talos)
	s.validateVersions(e)
	s.validateKubernetes(&e.Kubernetes)
	s.validateNetwork(&e.Network)
	s.validateAdmin(&e.Admin)
	s.validateAPI(&e.API)
	s.validateControlPlane(e)
	s.validatePools(e)
	s.validatePostgres(e.Services.Postgres)
	s.validateRoom(e)
	s.validatePatches(e)
	s.validateServices(e)
}

// oneOf refuses a value that is not in the list.
func (s *source) oneOf(path, value string, known []string, why string) {
	if value == "" || slices.Contains(known, value) {
		return
	}
	hint := "write " + oneOfText(known)
	if near := nearest(value, known); near != "" {
		hint = "did you mean " + near + "?"
	}
	s.refuse(path, fmt.Sprintf("%q is not known", brief(value)), why, hint)
}

func oneOfText(known []string) string {
	if len(known) == 1 {
		return known[0]
	}
	return "one of " + strings.Join(known, ", ")
}

// noRepeat refuses an element that the list already holds.
func (s *source) noRepeat(path string, values []string) {
	first := map[string]int{}
	for i, v := range values {
		if at, twice := first[v]; twice && v != "" {
			s.refuse(indexed(path, i), "repeats "+indexed(path, at), "each is counted once", "remove one of the two")
			continue
		}
		first[v] = i
	}
}

// noEmpty refuses empty elements of a list of texts.
func (s *source) noEmpty(path string, values []string, example string) {
	for i, v := range values {
		if v == "" {
			s.refuse(indexed(path, i), "is empty", "an empty element names nothing", "write "+example+", or remove the element")
		}
	}
}
