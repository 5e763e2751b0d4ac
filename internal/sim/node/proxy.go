package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Metadata by which a client names the nodes that a call is for, and by which
// one node's API tells another that it already chose.
const (
	nodeKey  = "node"
	nodesKey = "nodes"
	fromKey  = "proxyfrom"
	roleKey  = "talos-role"
)

// peer returns the connection to another node's API.
func (n *node) peer(ctx context.Context, target string) (context.Context, *grpc.ClientConn, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	md = md.Copy()
	md.Set(roleKey, rolesOf(ctx).Strings()...)
	md.Set(fromKey, n.hostname())
	for _, k := range []string{":authority", nodeKey, nodesKey} {
		delete(md, k)
	}
	out := metadata.NewOutgoingContext(ctx, md)

	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.peers[target]; c != nil {
		return out, c, nil
	}
	if n.closed {
		return nil, nil, status.Error(codes.Unavailable, "the node is going down")
	}
	n.mu.Unlock()
	conf, err := n.proxyTLS()
	n.mu.Lock()
	if err != nil {
		return nil, nil, status.Error(codes.Internal, err.Error())
	}
	c, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(target, fmt.Sprint(apiPort)),
		grpc.WithTransportCredentials(credentials.NewTLS(conf)),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return n.dial(ctx, "tcp", addr) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largestMessage)),
	)
	if err != nil {
		return nil, nil, status.Error(codes.Internal, err.Error())
	}
	n.peers[target] = c
	return out, c, nil
}

// methodTypes returns what a method takes and returns.
func methodTypes(method string) (in, out protoreflect.MessageType, err error) {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return nil, nil, status.Errorf(codes.Unimplemented, "unknown method %s", method)
	}
	m, ok := d.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, nil, status.Errorf(codes.Unimplemented, "unknown method %s", method)
	}
	if in, err = protoregistry.GlobalTypes.FindMessageByName(m.Input().FullName()); err != nil {
		return nil, nil, err
	}
	out, err = protoregistry.GlobalTypes.FindMessageByName(m.Output().FullName())
	return in, out, err
}

// passOn sends a call to one other node and returns its answer as it is.
func (n *node) passOn(ctx context.Context, method string, req any, target string) (proto.Message, error) {
	_, out, err := methodTypes(method)
	if err != nil {
		return nil, err
	}
	ctx, conn, err := n.peer(ctx, target)
	if err != nil {
		return nil, err
	}
	reply := out.New().Interface()
	if err := conn.Invoke(ctx, method, req, reply); err != nil {
		return nil, err
	}
	return reply, nil
}

// fanOut sends a call to many nodes and joins the answers; each message says
// which node it is from, and a failure is a message too.
func (n *node) fanOut(ctx context.Context, method string, req any, targets []string) (proto.Message, error) {
	_, out, err := methodTypes(method)
	if err != nil {
		return nil, err
	}
	replies := make([]proto.Message, len(targets))
	var wg sync.WaitGroup
	for i, target := range targets {
		wg.Go(func() {
			reply, err := n.passOn(ctx, method, req, target)
			if err != nil {
				reply = failure(out, target, err)
			} else {
				sign := &common.Metadata{Hostname: target}
				eachMessage(reply, func(m protoreflect.Message) { setMetadata(m, sign) })
			}
			replies[i] = reply
		})
	}
	wg.Wait()
	joined := out.New().Interface()
	for _, r := range replies {
		proto.Merge(joined, r)
	}
	return joined, nil
}

// failure is the answer of a node that could not be asked.
func failure(out protoreflect.MessageType, target string, err error) proto.Message {
	r := out.New()
	f := r.Descriptor().Fields().ByNumber(1)
	if f == nil || !f.IsList() {
		return r.Interface()
	}
	list := r.Mutable(f).List()
	item := list.NewElement()
	setMetadata(item.Message(), &common.Metadata{Hostname: target, Error: err.Error(), Status: status.Convert(err).Proto()})
	list.Append(item)
	return r.Interface()
}

func eachMessage(reply proto.Message, do func(protoreflect.Message)) {
	r := reply.ProtoReflect()
	f := r.Descriptor().Fields().ByNumber(1)
	if f == nil || !f.IsList() || f.Message() == nil {
		return
	}
	list := r.Mutable(f).List()
	for i := range list.Len() {
		do(list.Get(i).Message())
	}
}

func setMetadata(m protoreflect.Message, md *common.Metadata) {
	f := m.Descriptor().Fields().ByName("metadata")
	if f != nil && f.Message() != nil && f.Message().FullName() == md.ProtoReflect().Descriptor().FullName() {
		m.Set(f, protoreflect.ValueOfMessage(proto.Clone(md).ProtoReflect()))
	}
}

// passOnStream connects two streams; marked tells whether each message is to
// say which node it is from.
func (n *node) passOnStream(ss grpc.ServerStream, info *grpc.StreamServerInfo, target string, marked bool) error {
	in, out, err := methodTypes(info.FullMethod)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ss.Context())
	defer cancel()
	ctx, conn, err := n.peer(ctx, target)
	if err != nil {
		return err
	}
	cs, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: info.IsServerStream, ClientStreams: info.IsClientStream}, info.FullMethod)
	if err != nil {
		return err
	}
	go func() {
		for {
			m := in.New().Interface()
			if ss.RecvMsg(m) != nil {
				_ = cs.CloseSend()
				return
			}
			if cs.SendMsg(m) != nil {
				return
			}
			if !info.IsClientStream {
				_ = cs.CloseSend()
				return
			}
		}
	}()
	for {
		m := out.New().Interface()
		if err := cs.RecvMsg(m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if marked {
			setMetadata(m.ProtoReflect(), &common.Metadata{Hostname: target})
		}
		if err := ss.SendMsg(m); err != nil {
			return err
		}
	}
}

// fanOutStream reads one request, asks many nodes, and mixes their messages.
func (n *node) fanOutStream(ss grpc.ServerStream, info *grpc.StreamServerInfo, targets []string) error {
	if info.IsClientStream {
		return status.Errorf(codes.InvalidArgument, "one-2-many proxying is not supported for method %s", info.FullMethod)
	}
	in, out, err := methodTypes(info.FullMethod)
	if err != nil {
		return err
	}
	req := in.New().Interface()
	if err := ss.RecvMsg(req); err != nil {
		return err
	}
	shared := &sharedStream{ServerStream: ss, request: req}
	var wg sync.WaitGroup
	for _, target := range targets {
		wg.Go(func() {
			if err := n.passOnStream(shared, info, target, true); err != nil {
				m := out.New()
				setMetadata(m, &common.Metadata{Hostname: target, Error: err.Error(), Status: status.Convert(err).Proto()})
				_ = shared.SendMsg(m.Interface())
			}
		})
	}
	wg.Wait()
	return nil
}

// sharedStream lets several streams read the same request and write in turn.
type sharedStream struct {
	grpc.ServerStream
	request proto.Message
	mu      sync.Mutex
}

func (s *sharedStream) RecvMsg(m any) error {
	proto.Merge(m.(proto.Message), s.request)
	return nil
}

func (s *sharedStream) SendMsg(m any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ServerStream.SendMsg(m)
}
