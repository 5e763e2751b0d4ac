package blueprint

import (
	"fmt"
	"time"
)

// Timing of the API's load balancer. A control plane node that dies is out of
// rotation after about ten seconds; sessions stay open an hour without traffic,
// because watches and log streams are often silent.
const (
	CheckDelay   = 5 * time.Second
	CheckTimeout = 3 * time.Second
	CheckRetries = 2
	DialTimeout  = 5 * time.Second
	IdleTimeout  = time.Hour
)

// The load balancer's ways, in the words of Scaleway's API.
const (
	OldestTLS     = "ssl_compatibility_level_intermediate"
	Protocol      = "tcp"
	Algorithm     = "roundrobin"
	Stickiness    = "none"
	ProxyProtocol = "proxy_protocol_none"
	OnMarkedDown  = "shutdown_sessions"
)

// ForwardingText is how connections are handed on, in the API's words.
func ForwardingText(protocol, algorithm, sticky, proxy, onMarkedDown string) string {
	return fmt.Sprintf("%s, %s, sticky sessions %s, %s, when a server is down %s", protocol, algorithm, sticky, proxy, onMarkedDown)
}

// TimeoutsText is how long a server may be silent, a connection to it may take
// and a tunnel may be idle.
func TimeoutsText(server, connect, tunnel time.Duration) string {
	return fmt.Sprintf("server %s, connect %s, tunnel %s", server, connect, tunnel)
}

// CheckText is how a server is found to be down.
func CheckText(kind string, port int, delay, timeout time.Duration, retries int) string {
	return fmt.Sprintf("%s on %d every %s, at most %s, %d retries", kind, port, delay, timeout, retries)
}
