package api

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

// ObjectsDenied are the actions on object storage, object:read and object:write,
// that a secret key lacks. One that has expired lacks both.
func (r *Region) ObjectsDenied(secretKey string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, err := (&call{world: r.world}).credential(secretKey)
	var denied []string
	for _, action := range []string{"read", "write"} {
		if err != nil || !k.may(right{product: "object", action: action}) {
			denied = append(denied, "object:"+action)
		}
	}
	return denied
}
