package session

import (
	"context"
	"sync"

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
	Version    string // of the Kubernetes API
	APIErr     error  // why the Kubernetes API did not answer
}

// Status reads the cloud and, where there are nodes and a bundle, the cluster.
func (s *Session) Status(ctx context.Context) (*Status, error) {
	v, err := s.Survey(ctx)
	if err != nil {
		return nil, err
	}
	st := &Status{Survey: v, Inventory: v.Inventory}
	if v.Cluster == nil || !v.Inventory.HasServers() || !v.Inventory.GatewayIP().IsValid() {
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
	wg.Wait()
	return st, nil
}
