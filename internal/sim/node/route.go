package node

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// route is where a call goes: nowhere else, to one node, or to many.
type route struct {
	one  string
	many []string
}

// oneToMany lists the services whose calls may go to many nodes at once.
var oneToMany = []string{
	"/machine.MachineService/", "/cluster.ClusterService/", "/inspect.InspectService/",
	"/storage.StorageService/", "/time.TimeService/",
}

// route reads where a call is meant to go. Maintenance ignores it; a worker,
// which has no certificate to speak to others with, only accepts itself.
func (g *gate) route(ctx context.Context, method string) (route, error) {
	md, ok := metadata.FromIncomingContext(ctx)
	if !ok || g.maintenance || len(md[fromKey]) > 0 {
		return route{}, nil
	}
	one, many := md[nodeKey], md[nodesKey]
	if len(md[nodeKey]) > 1 {
		return route{}, status.Error(codes.InvalidArgument, "node metadata must be single-valued")
	}
	forwards := g.node.isControlPlane()
	if !forwards {
		if len(one) == 1 && g.node.isLocal(one[0]) {
			one = nil
		}
		if len(many) == 1 && g.node.isLocal(many[0]) {
			many = nil
		}
	}
	switch {
	case len(many) > 0:
		if !slices.ContainsFunc(oneToMany, func(p string) bool { return strings.HasPrefix(method, p) }) {
			return route{}, status.Errorf(codes.InvalidArgument, "one-2-many proxying is not supported for method %s", method)
		}
		if !forwards {
			return route{}, status.Error(codes.PermissionDenied, "no request forwarding")
		}
		for _, target := range many {
			if badTarget(target) {
				return route{}, status.Errorf(codes.Internal, "invalid target %q", target)
			}
		}
		return route{many: many}, nil
	case len(one) > 0:
		if !forwards {
			return route{}, status.Error(codes.PermissionDenied, "no request forwarding")
		}
		if badTarget(one[0]) {
			return route{}, status.Errorf(codes.Internal, "invalid target %q", one[0])
		}
		return route{one: one[0]}, nil
	}
	return route{}, nil
}

// badTarget tells whether a target is empty or carries a port.
func badTarget(t string) bool {
	_, _, err := net.SplitHostPort(t)
	return t == "" || err == nil
}

func (n *node) isLocal(target string) bool {
	if target == "localhost" || target == "127.0.0.1" || target == "::1" || target == n.hostname() {
		return true
	}
	return slices.ContainsFunc(n.addresses(), func(a netip.Addr) bool { return a.String() == target })
}
