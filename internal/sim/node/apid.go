package node

import (
	"context"
	"crypto/tls"
	"sync"
	"time"

	cosi "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/protobuf/server"
	"github.com/siderolabs/talos/pkg/machinery/api/cluster"
	"github.com/siderolabs/talos/pkg/machinery/api/inspect"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	timeapi "github.com/siderolabs/talos/pkg/machinery/api/time"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

const (
	apiPort    = 50000
	trustdPort = 50001
	// largestMessage is Talos's own limit of a message in bytes.
	largestMessage = 32 << 20
)

// apid is the open Talos API of a node.
type apid struct {
	server      *grpc.Server
	maintenance bool
	cert        *certCache
}

// openMaintenance serves the API that anybody may read and that takes a configuration.
func (n *node) openMaintenance() error {
	conf, err := n.maintenanceTLS()
	if err != nil {
		return err
	}
	n.services.set("apid", stateRunning, "Started task apid")
	return n.openAPI(&apid{maintenance: true}, conf)
}

// openControlPlaneAPI serves the API with a certificate that the node signs itself.
func (n *node) openControlPlaneAPI() error {
	c := &certCache{make: n.apiCertificate}
	if err := n.openAPI(&apid{cert: c}, n.mutualTLS(c.get)); err != nil {
		return err
	}
	n.services.set("apid", stateRunning, "Started task apid")
	n.services.health("apid", true, "Health check successful")
	return nil
}

func (n *node) openAPI(a *apid, conf *tls.Config) error {
	guard := &gate{node: n, maintenance: a.maintenance}
	a.server = grpc.NewServer(
		grpc.Creds(credentials.NewTLS(conf)), grpc.MaxRecvMsgSize(largestMessage), grpc.SharedWriteBuffer(true),
		grpc.UnaryInterceptor(guard.unary), grpc.StreamInterceptor(guard.stream),
		grpc.UnknownServiceHandler(guard.unknown),
	)
	api := &talosAPI{node: n}
	machine.RegisterMachineServiceServer(a.server, api)
	machine.RegisterImageServiceServer(a.server, &imageAPI{node: n})
	machine.RegisterLifecycleServiceServer(a.server, &lifecycleAPI{node: n})
	machine.RegisterDebugServiceServer(a.server, machine.UnimplementedDebugServiceServer{})
	cluster.RegisterClusterServiceServer(a.server, &clusterAPI{node: n})
	inspect.RegisterInspectServiceServer(a.server, inspect.UnimplementedInspectServiceServer{})
	storage.RegisterStorageServiceServer(a.server, &storageAPI{node: n})
	timeapi.RegisterTimeServiceServer(a.server, &timeAPI{node: n})
	cosi.RegisterStateServer(a.server, server.NewState(state.Filter(n.resources, n.accessPolicy)))

	listeners, err := n.listen(apiPort)
	if err != nil {
		return err
	}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		for _, l := range listeners {
			_ = l.Close()
		}
		return context.Canceled
	}
	n.listeners = a
	n.mu.Unlock()
	for _, l := range listeners { // not spawned: Serve returns after the calls do, see closeAPI
		go func() { _ = a.server.Serve(l) }()
	}
	return nil
}

// closeAPI ends the API: calls get a moment to finish, then connections are cut.
// It does not wait longer for a call: one at whose end the machine loses its
// power returns only when the machine is off, and with it whoever closes the API.
func (n *node) closeAPI() {
	n.mu.Lock()
	a := n.listeners
	n.listeners = nil
	n.mu.Unlock()
	if a == nil {
		return
	}
	done := make(chan struct{})
	go func() { a.server.GracefulStop(); close(done) }()
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	case <-n.ctx.Done(): // power is gone or the node goes down
	}
	go a.server.Stop() // it would wait for GracefulStop, and that for the call
}

// certCache keeps a certificate until what it is made of changes.
type certCache struct {
	mu   sync.Mutex
	make func() (*tls.Certificate, error)
	have *tls.Certificate

	asking bool // somebody else is being asked for the next one
	stale  bool // what that one is made of has changed since it was asked for
}

func (c *certCache) get() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.have == nil {
		made, err := c.make()
		if err != nil {
			return nil, err
		}
		c.have = made
	}
	return c.have, nil
}

func (c *certCache) renew() {
	c.mu.Lock()
	c.have = nil
	c.mu.Unlock()
}

// ask says whether the next certificate is to be asked for now; while it is being
// asked for, it is noted that yet another one is wanted.
func (c *certCache) ask() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking {
		c.stale = true
		return false
	}
	c.asking, c.stale = true, false
	return true
}

// take serves the certificate that was asked for. It says whether that is the
// last word: not when another one is wanted by now.
func (c *certCache) take(made *tls.Certificate) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.have = made
	c.asking, c.stale = c.stale, false
	return !c.asking
}
