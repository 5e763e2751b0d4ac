// Package sim is the simulated region: a product of its own that Scaleway's
// SDK, scw, the OpenTofu provider, talosctl, kubectl and ssh take for the real
// one. This file puts its rooms together; what each models is in the rooms and
// in docs/fidelity.md.
package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"bastide/internal/sim/api"
	"bastide/internal/sim/balancer"
	"bastide/internal/sim/clock"
	"bastide/internal/sim/fabric"
	"bastide/internal/sim/fault"
	"bastide/internal/sim/host"
	"bastide/internal/sim/node"
	"bastide/internal/sim/postgres"
	"bastide/internal/sim/s3"
	"bastide/internal/sim/ssh"
)

// Options configures a region.
type Options struct {
	Listen string  // loopback address and port of the API; port 0 takes a free one
	Dir    string  // where disks and process files live; it must exist
	Speed  float64 // how much faster than real time
	Access Access  // credentials and default project; URL, S3, Factory and PID are filled in
	// Deny lists what a key may not do, unless it was made in the region: a
	// product ("lb", "object"), a product and an action ("iam:write",
	// "object:read") or a permission set of IAM.
	Deny []string
	Seed api.Seed // what a person would have prepared
	// Elsewhere is a store of another provider; nil for none.
	Elsewhere *Elsewhere
	Faults    fault.Script
	// EtcdProgram is the argument list that runs this program as an etcd member.
	EtcdProgram []string
	// APIServer is the path of a kube-apiserver.
	APIServer string
	Log       *slog.Logger
}

// Region is a running region.
type Region struct {
	Access Access

	server *http.Server
	store  *s3.Server
	clock  clock.Clock
	host   *host.Host
	parts  []io.Closer
	served chan error
}

// Start brings a region up. It answers when Start returns.
func Start(o Options) (*Region, error) {
	listener, err := listenLoopback(o.Listen)
	if err != nil {
		return nil, err
	}
	r := &Region{Access: o.Access, served: make(chan error, 1)}
	handler, err := r.build(o)
	if err == nil {
		err = errors.Join(r.serveObjects(o, handler), r.serveElsewhere(o, handler), r.serveFactory(o, handler))
	}
	if err == nil {
		err = errors.Join(handler.Seed(o.Seed), handler.LoadFaults(o.Faults))
	}
	if err == nil {
		r.Access.URL, r.Access.PID = "http://"+listener.Addr().String(), os.Getpid()
		err = r.Access.write(o.Dir)
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close(), r.Close())
	}
	r.server = &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { r.served <- r.server.Serve(listener) }()
	return r, nil
}

func (r *Region) build(o Options) (*api.Region, error) {
	c, packets, calls := clock.New(o.Speed), fabric.New(), &calls{speed: o.Speed}
	r.clock, r.host = c, host.New(o.Dir, o.Log)
	r.parts = append(r.parts, r.host)
	block, err := r.reservePublicBlock()
	if err != nil {
		return nil, err
	}
	farm, err := node.New(node.Options{
		Clock: c, Fabric: packets, Dir: o.Dir, EtcdProgram: o.EtcdProgram, APIServerProgram: o.APIServer, Log: o.Log, Host: r.host, Faults: calls,
	})
	if err != nil {
		return nil, err
	}
	gateways := ssh.New(ssh.Options{Fabric: packets, Log: o.Log})
	balancers := balancer.New(c, packets, o.Log)
	databases := postgres.New(postgres.Options{Fabric: packets, Programs: postgres.Find(), Log: o.Log})
	r.parts = append(r.parts, gateways, balancers, databases, farm)
	handler := api.New(api.Options{
		PublicBlock: block, Clock: c, Machines: farm, Trouble: farm, Balancers: balancers, Gateways: gateways, Databases: databases, Log: o.Log, Host: r.host,
		Rights: api.Credential{Deny: o.Deny},
		Objects: func(region, bucket, key string) (api.Object, error) {
			return diskImage(r.store, region, bucket, key) // the store is there before the first call is
		},
	})
	calls.region = handler
	return handler, nil
}

// publicBlocks is how many regions can run on one machine at a time.
const publicBlocks = 60

// reservePublicBlock takes a block of public addresses that no other region on
// this machine uses, by listening on its last address, which is never handed
// out, for as long as the region runs.
func (r *Region) reservePublicBlock() (uint8, error) {
	for block := range uint8(publicBlocks) {
		l, err := net.Listen("tcp", fmt.Sprintf("127.51.%d.255:61001", int(block)*4+3))
		if err == nil {
			r.parts = append(r.parts, l)
			return block, nil
		}
	}
	return 0, fmt.Errorf("no block of 127.51.0.0/16 is free: %d simulated regions run already, or the loopback interface has only 127.0.0.1", publicBlocks)
}

// calls stands between the nodes and the API's fault script and log, which are
// made after them.
type calls struct {
	region *api.Region
	speed  float64
}

// RPC asks the fault script about a call of the Talos API and notes the call.
func (c *calls) RPC(machine, method string, changes bool) node.RPCFault {
	call := c.region.RPC(machine, method, changes)
	out := node.RPCFault{Killed: call.Killed, Served: func(err error) bool { return call.Served(machine, err) }}
	if f := call.Fault; f != nil {
		out.Code, out.Message, out.DropReply = f.Code, f.Message, f.DropReply
		// The script has scaled the delay already; nodes scale what they are given.
		out.Delay = time.Duration(float64(f.Delay) * c.speed)
	}
	return out
}

// Wait blocks until the context ends or the API stops serving.
func (r *Region) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-r.served:
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	}
}

// Close ends everything that the region runs. What is on disk stays.
func (r *Region) Close() error {
	var errs []error
	if r.server != nil {
		errs = append(errs, r.server.Close())
	}
	for _, p := range r.parts {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// listenLoopback refuses every address that other machines could reach: the
// simulator hands out credentials and runs what it is told.
func listenLoopback(addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listen address %q: %w", addr, err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("listen address %q is not in 127.0.0.0/8: the simulated region is for this machine only", addr)
	}
	return net.Listen("tcp", addr)
}
