package session

import (
	"context"

	"bastide/internal/talos"
)

// Dialer is the way to the nodes, for tests outside of the package.
var Dialer = func(s *Session, v *Survey) talos.Dialer { return s.dialer(context.Background(), v) }

// OpenDoor opens a door, or gives it up when the context ends.
var OpenDoor = openDoor
