package node

import (
	"context"
	"time"

	apps "k8s.io/api/apps/v1"
	certs "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"

	"bastide/internal/sim/kube"
)

// control does, while the node's API server is up, what Talos and the
// controller manager do on a control plane node: the bootstrap manifests, and
// under a lease the few controllers that an administrator would miss.
func (n *node) control() {
	for n.ctx.Err() == nil {
		if n.apiserver.ready() {
			if c, err := n.adminClient(n.ownDial); err == nil {
				n.spawn(n.applyManifests)
				n.lead(c)
				return
			}
		}
		if n.pause(n.ctx, time.Second) != nil {
			return
		}
	}
}

// lead takes part in the election of the controller manager until the boot ends.
func (n *node) lead(c *kube.Client) {
	scaled := func(d, least time.Duration) time.Duration { return max(n.farm.opt.Clock.Scale(d), least) }
	c.Lead(n.ctx, kube.Election{
		Lease: metaOf("kube-system", "kube-controller-manager"), Identity: n.hostname() + "_" + n.bootID,
		Duration: scaled(15*time.Second, 10*time.Second), Renew: scaled(10*time.Second, 7*time.Second), Retry: 2 * time.Second,
	}, func(ctx context.Context) { newControllers(n, c).run(ctx) })
}

// controllers are the parts of kube-controller-manager and kube-scheduler that
// are modelled. Each looks at the whole cluster when something changes and does
// what is missing, so that none depends on an event that it saw.
type controllers struct {
	node *node
	c    *kube.Client
	wake chan struct{}

	nodes           *kube.Followed[*core.Node]
	pods            *kube.Followed[*core.Pod]
	namespaces      *kube.Followed[*core.Namespace]
	serviceAccounts *kube.Followed[*core.ServiceAccount]
	configMaps      *kube.Followed[*core.ConfigMap]
	daemonSets      *kube.Followed[*apps.DaemonSet]
	deployments     *kube.Followed[*apps.Deployment]
	replicaSets     *kube.Followed[*apps.ReplicaSet]
	signingRequests *kube.Followed[*certs.CertificateSigningRequest]
	leases          *kube.Followed[*coordination.Lease]
}

func newControllers(n *node, c *kube.Client) *controllers {
	return &controllers{
		node: n, c: c, wake: make(chan struct{}, 1),
		nodes: kube.Follow(c.Nodes()), pods: kube.Follow(c.Pods("")), namespaces: kube.Follow(c.Namespaces()),
		serviceAccounts: kube.Follow(c.ServiceAccounts("")), configMaps: kube.Follow(c.ConfigMaps("")),
		daemonSets: kube.Follow(c.DaemonSets("")), deployments: kube.Follow(c.Deployments("")), replicaSets: kube.Follow(c.ReplicaSets("")),
		signingRequests: kube.Follow(c.SigningRequests()), leases: kube.Follow(c.Leases("")),
	}
}

func (m *controllers) run(ctx context.Context) {
	poke := func() {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
	if !kube.Start(ctx, poke, m.nodes, m.pods, m.namespaces, m.serviceAccounts, m.configMaps, m.daemonSets, m.deployments, m.replicaSets, m.signingRequests, m.leases) {
		return
	}
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"csr", m.signRequests}, {"namespaces", m.fillNamespaces}, {"nodes", m.judgeNodes},
		{"daemonsets", m.keepDaemonSets}, {"deployments", m.keepDeployments}, {"replicasets", m.keepReplicaSets}, {"scheduler", m.schedule},
	}
	for ctx.Err() == nil {
		for _, s := range steps {
			if err := s.do(ctx); err != nil && ctx.Err() == nil {
				m.node.logOf("kube-controller-manager").add(s.name + ": " + err.Error())
			}
		}
		// Events come in crowds; a short rest joins them into one look.
		if m.node.pause(ctx, time.Second) != nil {
			return
		}
		t := time.NewTimer(2 * time.Second)
		select {
		case <-ctx.Done():
		case <-m.wake:
		case <-t.C:
		}
		t.Stop()
	}
}
