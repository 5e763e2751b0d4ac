package api

import "strings"

// Object storage has a protocol, a handler and keys of its own, but the same
// rights: this is what it asks the region.

// KeyMade finds a key that was made in the region by its access key.
func (r *Region) KeyMade(accessKey string) (secretKey, project string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.world.APIKeys.get(accessKey)
	if !ok {
		return "", "", false
	}
	return k.Secret, k.DefaultHome, true
}

// ObjectRight says whether a secret key has the right to an action on buckets,
// objects or policies in a project, and which rule of the fault script took it
// away, if one did. A key that has expired has no rights. Each call counts as one that needs
// the right.
func (r *Region) ObjectRight(secretKey, project, thing, action string) (ok bool, rule string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	need := right{product: "object", action: action, kind: thing, project: project}
	k, err := (&call{world: r.world}).credential(secretKey)
	if err != nil || !k.may(need) {
		return false, ""
	}
	name, hit := r.faults.Permission(func(names []string) bool { return denied(names, need) })
	if hit {
		rule = ruled(name)
	}
	return !hit, rule
}

// ruled is what the log says of a call from which the fault script took a right.
func ruled(rule string) string { return strings.TrimSpace("permission " + rule) }
