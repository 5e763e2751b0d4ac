// Package scaleway is the cloud layer: it finds, makes, changes and removes the
// resources of an estate at Scaleway through the official SDK.
//
// What the SDK does not do is done here, once: transport.go retries and sets
// time limits, paging.go reads listings to their end, wait.go waits for a wanted
// state. Then there is one file per kind of resource. The package prints
// nothing and keeps nothing: what exists at Scaleway is the only state.
//
// Three rules hold everywhere. Only what carries the estate's mark is changed
// or deleted. A thing counts as absent only after a complete listing or a
// not-found on it; anything else is an error with exit code 4. Nothing is made
// before looking whether it is already there, so that a run may be killed and
// repeated at any point.
package scaleway
