// Package sim is the simulated region: a product of its own that Scaleway's
// SDK, scw, the OpenTofu provider, talosctl, kubectl and ssh take for the real
// one. This file puts its rooms together; what each models is in the rooms and
// in docs/fidelity.md.
package sim

import (
	"context"
	"errors"
	"fmt"
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
	"bastide/internal/sim/node"
	"bastide/internal/sim/ssh"
)

// Options configures a region.
type Options struct {
	Listen string   // loopback address and port of the API; port 0 takes a free one
	Dir    string   // where disks and process files live; it must exist
	Speed  float64  // how much faster than real time
	Access Access   // credentials and default project; URL and PID are filled in
	Seed   api.Seed // what a person would have prepared
	Faults fault.Script
	// EtcdProgram is the argument list that runs this program as an etcd member.
	EtcdProgram []string
	// APIServer is the path of a kube-apiserver.
	APIServer string
	Log       *slog.Logger
}

// Region is a running region.
type Region struct {
	Access Access

	server   *http.Server
	farm     *node.Farm
	gateways *ssh.Gateways
	lbs      *balancer.Balancers
	served   chan error
}

// Start brings a region up. It answers when Start returns.
func Start(o Options) (*Region, error) {
	listener, err := listenLoopback(o.Listen)
	if err != nil {
		return nil, err
	}
	c, net := clock.New(o.Speed), fabric.New()
	faults := fault.NewEngine(c)
	farm, err := node.New(node.Options{
		Clock: c, Fabric: net, Dir: o.Dir, EtcdProgram: o.EtcdProgram, APIServerProgram: o.APIServer, Log: o.Log, Faults: faults,
	})
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	r := &Region{
		Access: o.Access, farm: farm, served: make(chan error, 1),
		gateways: ssh.New(ssh.Options{Fabric: net, Log: o.Log}),
		lbs:      balancer.New(balancer.Options{Fabric: net, Clock: c, Log: o.Log}),
	}
	handler := api.New(api.Options{
		Clock: c, Machines: farm, Trouble: farm, Balancers: r.lbs, Gateways: r.gateways, Faults: faults, Log: o.Log,
	})
	handler.Seed(o.Seed)
	if err := handler.Faults(o.Faults); err != nil {
		return nil, err
	}
	r.Access.URL, r.Access.PID = "http://"+listener.Addr().String(), os.Getpid()
	if err := r.Access.write(o.Dir); err != nil {
		return nil, err
	}
	r.server = &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { r.served <- r.server.Serve(listener) }()
	return r, nil
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
	return errors.Join(r.server.Close(), r.gateways.Close(), r.lbs.Close(), r.farm.Close())
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
