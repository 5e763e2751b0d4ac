package session

// Dialer is the way to the nodes, for tests outside of the package.
var Dialer = (*Session).dialer
