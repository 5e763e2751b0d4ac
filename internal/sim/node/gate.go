package node

import (
	"context"
	"fmt"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

var errNotAuthorized = status.Error(codes.PermissionDenied, "not authorized")

// gate stands before every call of the API: it finds out who asks, sends the
// call on when it is for another node, applies faults, and checks the role.
type gate struct {
	node        *node
	maintenance bool
}

type rolesKey struct{}

// rolesOf returns the roles of the caller.
func rolesOf(ctx context.Context) role.Set {
	set, _ := ctx.Value(rolesKey{}).(role.Set)
	return set
}

// roles of a caller are the organizations of its certificate. Only another
// node's API, whose certificate says so, may speak for somebody else.
func (g *gate) roles(ctx context.Context) role.Set {
	if g.maintenance {
		return role.MakeSet(role.Reader)
	}
	p, ok := peer.FromContext(ctx)
	if !ok {
		return role.MakeSet()
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return role.MakeSet()
	}
	set, _ := role.Parse(info.State.PeerCertificates[0].Subject.Organization)
	if set.Includes(role.Impersonator) {
		if md, ok := metadata.FromIncomingContext(ctx); ok && len(md[roleKey]) > 0 {
			set, _ = role.Parse(md[roleKey])
		}
	}
	return set
}

func (g *gate) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx = context.WithValue(ctx, rolesKey{}, g.roles(ctx))
	to, err := g.route(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	switch {
	case to.many != nil:
		return g.node.fanOut(ctx, info.FullMethod, req, to.many)
	case to.one != "":
		return g.node.passOn(ctx, info.FullMethod, req, to.one)
	}
	if err := g.authorize(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	f := g.faults(info.FullMethod, changes(info.FullMethod, req))
	if err := g.suffer(ctx, f); err != nil {
		return nil, g.answered(f, err)
	}
	reply, err := handler(ctx, req)
	if err := g.answered(f, err); err != nil {
		return nil, err
	}
	return reply, nil
}

func (g *gate) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx := context.WithValue(ss.Context(), rolesKey{}, g.roles(ss.Context()))
	ss = &streamWith{ss, ctx}
	to, err := g.route(ctx, info.FullMethod)
	if err != nil {
		return err
	}
	switch {
	case to.many != nil:
		return g.node.fanOutStream(ss, info, to.many)
	case to.one != "":
		return g.node.passOnStream(ss, info, to.one, false)
	}
	if err := g.authorize(ctx, info.FullMethod); err != nil {
		return err
	}
	f := g.faults(info.FullMethod, changes(info.FullMethod, nil))
	if err := g.suffer(ctx, f); err != nil {
		return g.answered(f, err)
	}
	return g.answered(f, handler(srv, ss))
}

// unknown answers for methods that no service has.
func (g *gate) unknown(_ any, ss grpc.ServerStream) error {
	if !g.roles(ss.Context()).Includes(role.Admin) {
		return errNotAuthorized
	}
	method, _ := grpc.MethodFromServerStream(ss)
	return status.Errorf(codes.Unimplemented, "unknown method %s", method)
}

// authorize applies Talos's table of roles; a method that is not in it is for
// administrators.
func (g *gate) authorize(ctx context.Context, method string) error {
	allowed, ok := rules[method]
	if !ok {
		allowed = role.MakeSet(role.Admin)
	}
	if rolesOf(ctx).IncludesAny(allowed) {
		return nil
	}
	return errNotAuthorized
}

var errDropped = status.Error(codes.Unavailable, "error reading from server: EOF")

// faults asks what happens to a call that this node is about to serve.
func (g *gate) faults(method string, changes bool) RPCFault {
	if g.node.farm.opt.Faults == nil {
		return RPCFault{Served: func(error) bool { return false }}
	}
	return g.node.farm.opt.Faults.RPC(g.node.hw.Name, method[strings.LastIndexByte(method, '/')+1:], changes)
}

// suffer is what happens before a call is served, if it is served at all.
func (g *gate) suffer(ctx context.Context, f RPCFault) error {
	if f.Killed || g.node.ctx.Err() != nil { // its caller or its power was lost before it took effect
		return errDropped
	}
	if f.Delay > 0 {
		if err := g.node.spend(ctx, f.Delay); err != nil {
			return status.FromContextError(err).Err()
		}
	}
	if f.Code != codes.OK {
		return status.Error(f.Code, f.Message)
	}
	return nil
}

// answered is what the caller gets to see of a call that ended with err.
func (g *gate) answered(f RPCFault, err error) error {
	if silent := f.Served(err); silent || f.DropReply || g.node.ctx.Err() != nil {
		return errDropped
	}
	return err
}

type streamWith struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *streamWith) Context() context.Context { return s.ctx }

// accessPolicy is what the resource API lets a caller do: read known types in
// known namespaces, secrets only as an administrator.
func (n *node) accessPolicy(ctx context.Context, access state.Access) error {
	if !access.Verb.Readonly() {
		return status.Error(codes.PermissionDenied, "write access is not allowed")
	}
	rd, err := safe.StateGet[*meta.ResourceDefinition](ctx, n.resources, resource.NewMetadata(
		meta.NamespaceName, meta.ResourceDefinitionType, strings.ToLower(access.ResourceType), resource.VersionUndefined))
	if state.IsNotFoundError(err) {
		return status.Error(codes.PermissionDenied, fmt.Sprintf("resource type %q is not supported", access.ResourceType))
	}
	if err != nil {
		return err
	}
	if rd.TypedSpec().Sensitivity == meta.Sensitive && !rolesOf(ctx).Includes(role.Admin) {
		return errNotAuthorized
	}
	_, err = safe.StateGet[*meta.Namespace](ctx, n.resources, resource.NewMetadata(
		meta.NamespaceName, meta.NamespaceType, access.ResourceNamespace, resource.VersionUndefined))
	if state.IsNotFoundError(err) {
		return status.Error(codes.PermissionDenied, fmt.Sprintf("namespace %q is not supported", access.ResourceNamespace))
	}
	return err
}
