package node

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bastide/internal/sim/kube"
)

// endpoints are the control plane addresses that the node knows of: what the
// cluster endpoint's name resolves to, and the kubernetes EndpointSlice once it
// could be read. There is no discovery service in the simulated region.
func (n *node) endpoints() []netip.Addr {
	list, err := safe.StateListAll[*k8s.Endpoint](n.ctx, n.resources)
	if err != nil {
		return nil
	}
	var all []netip.Addr
	for e := range list.All() {
		for _, a := range e.TypedSpec().Addresses {
			if !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	return all
}

func (n *node) setEndpoints(id string, addrs []netip.Addr) {
	r := k8s.NewEndpoint(k8s.ControlPlaneNamespaceName, id)
	r.TypedSpec().Addresses = addrs
	n.put(r)
}

// trackEndpoints follows both sources until the boot ends. A worker reads the
// EndpointSlice with its kubelet's identity, which it first has to have; a
// control plane node with its administrator's, through the cluster endpoint.
func (n *node) trackEndpoints() {
	n.spawn(func() {
		for {
			if addrs, err := n.lookup(n.config().Cluster().Endpoint().Hostname()); err == nil {
				n.setEndpoints(k8s.ControlPlaneKubernetesEndpointsID, addrs)
			}
			if n.pause(n.ctx, 30*time.Second) != nil {
				return
			}
		}
	})
	for n.ctx.Err() == nil {
		if err := n.watchEndpointSlice(n.ctx); err != nil && n.ctx.Err() == nil {
			n.logOf("controller-runtime").add("error watching Kubernetes endpoint slice: " + err.Error())
		}
		if n.pause(n.ctx, endpointPeriod) != nil {
			return
		}
	}
}

func (n *node) watchEndpointSlice(ctx context.Context) error {
	var (
		c   *kube.Client
		err error
	)
	if n.isControlPlane() {
		c, err = n.adminClient(n.endpointDial)
	} else {
		c, err = n.kubelet.client()
	}
	if err != nil {
		return err
	}
	slices := c.EndpointSlices("default")
	list, err := slices.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=kubernetes"})
	if err != nil {
		return err
	}
	for i := range list.Items {
		n.takeSlice(&list.Items[i])
	}
	w, err := slices.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=kubernetes", ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-w.ResultChan():
			if !ok {
				return errors.New("watch closed")
			}
			if s, ok := e.Object.(*discovery.EndpointSlice); ok {
				n.takeSlice(s)
			}
		}
	}
}

func (n *node) takeSlice(s *discovery.EndpointSlice) {
	var addrs []netip.Addr
	for _, e := range s.Endpoints {
		for _, a := range e.Addresses {
			if p, err := netip.ParseAddr(a); err == nil {
				addrs = append(addrs, p)
			}
		}
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	n.setEndpoints(k8s.ControlPlaneAPIServerEndpointsID, addrs)
}
