package session

import (
	"context"
	"errors"
	"sync"

	"bastide/internal/outcome"
	"bastide/internal/scaleway"
	"bastide/internal/talos"
)

// Status is what an estate is now, read from everywhere at once.
type Status struct {
	Survey     *Survey
	Inventory  *scaleway.Inventory
	Nodes      []talos.NodeStatus
	Etcd       *talos.EtcdHealth
	Endpoint   string
	Kubernetes []talos.KubernetesNode
	Version    string        // of the Kubernetes API
	APIErr     error         // why the Kubernetes API did not answer
	Checks     []talos.Check // as those that end up
	Stranger   error         // the refusal of a node that is another cluster's; the others are shown all the same
}

// Status reads the cloud and, where there are nodes and a bundle, the cluster.
// What could not be read because the command's time was over is an error, and no
// state that a node is in.
func (s *Session) Status(ctx context.Context) (*Status, error) {
	v, err := s.survey(ctx)
	if err != nil {
		return nil, err
	}
	st := &Status{Survey: v, Inventory: v.Inventory, Stranger: v.stranger}
	if v.Cluster == nil || !v.Inventory.HasServers() || !v.Inventory.GatewayIP().IsValid() || v.barred != nil {
		return st, nil
	}
	st.Endpoint = talos.AddressesOf(v.Graph, s.Estate, v.Inventory.GatewayIP()).Endpoint()
	off := v.Cluster.Off(v.Live)
	var wg sync.WaitGroup
	wg.Go(func() { st.Nodes = v.Cluster.Nodes(ctx, off...) })
	wg.Go(func() {
		health := v.Cluster.EtcdHealth(ctx, off...)
		st.Etcd = &health
	})
	wg.Go(func() {
		if st.Kubernetes, st.APIErr = v.Cluster.KubernetesNodes(ctx); st.APIErr == nil {
			st.Version, st.APIErr = v.Cluster.KubernetesVersion(ctx)
		}
	})
	wg.Go(func() { st.Checks = v.Cluster.Verify(ctx, v.Inventory.GatewayIP(), off...) })
	wg.Wait()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, outcome.CannotTell("the state of "+s.Estate.Name+" is not known", "the command's time was over while its nodes were asked", "give it more time").Because(ctx.Err())
	}
	return st, ctx.Err()
}
