package door

import (
	"net"
	"net/netip"
	"strings"
)

// childEnvironment is the parent's environment with the way in added. Nothing
// else changes: SCW_* and the rest are the user's.
func childEnvironment(parent []string, inside netip.Prefix, proxyURL, kubeconfig, talosconfig string) []string {
	drop := map[string]bool{}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "KUBECONFIG", "TALOSCONFIG"} {
		drop[name] = true
	}
	var out []string
	var exceptions string
	for _, entry := range parent {
		name, value, _ := strings.Cut(entry, "=")
		if !drop[name] {
			out = append(out, entry)
		}
		// Both spellings are in use; programs that read both prefer the first.
		if name == "NO_PROXY" || (name == "no_proxy" && exceptions == "") {
			exceptions = value
		}
	}
	out = append(out, "HTTPS_PROXY="+proxyURL, "https_proxy="+proxyURL, "KUBECONFIG="+kubeconfig, "TALOSCONFIG="+talosconfig)
	if kept := exceptionsOutside(exceptions, inside); kept != "" {
		out = append(out, "NO_PROXY="+kept, "no_proxy="+kept)
	}
	return out
}

// exceptionsOutside removes from a NO_PROXY list what would keep a program
// from using the proxy for private addresses. Lists with all of 172.16.0.0/12
// are common, and with them kubectl would try to connect directly. What else
// such an entry covered goes through the proxy, which connects directly too.
func exceptionsOutside(list string, inside netip.Prefix) string {
	var kept []string
	for _, entry := range strings.Split(list, ",") {
		entry = strings.TrimSpace(entry)
		if entry != "" && !covers(entry, inside) {
			kept = append(kept, entry)
		}
	}
	return strings.Join(kept, ",")
}

// covers says whether a NO_PROXY entry matches an address of the network.
func covers(entry string, inside netip.Prefix) bool {
	if entry == "*" {
		return true
	}
	if p, err := netip.ParsePrefix(entry); err == nil {
		return p.Overlaps(inside)
	}
	if host, _, err := net.SplitHostPort(entry); err == nil {
		entry = host
	}
	if a, err := netip.ParseAddr(strings.Trim(entry, "[]")); err == nil {
		return inside.Contains(a.Unmap())
	}
	// Some programs match by text: "172.16." as a beginning, ".11" as an end.
	first := inside.Masked().Addr().String()
	return strings.Trim(entry, "0123456789.*") == "" && (strings.HasPrefix(first, strings.TrimRight(entry, "*")) || strings.HasPrefix(entry, "."))
}
