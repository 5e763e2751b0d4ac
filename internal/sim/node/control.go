package node

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
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
func (n *node) lead(c *kubernetes.Clientset) {
	lock := &resourcelock.LeaseLock{
		LeaseMeta: metaOf("kube-system", "kube-controller-manager"), Client: c.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: n.hostname() + "_" + n.bootID},
	}
	scaled := func(d, least time.Duration) time.Duration { return max(n.farm.opt.Clock.Scale(d), least) }
	for n.ctx.Err() == nil {
		e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: scaled(15*time.Second, 10*time.Second), RenewDeadline: scaled(10*time.Second, 7*time.Second), RetryPeriod: scaled(2*time.Second, 2*time.Second),
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) { newControllers(n, c).run(ctx) },
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			n.log.Error("electing a controller manager", "err", err)
			return
		}
		e.Run(klog.NewContext(n.ctx, logr.Discard()))
	}
}

// controllers are the parts of kube-controller-manager and kube-scheduler that
// are modelled. Each looks at the whole cluster when something changes and does
// what is missing, so that none depends on an event that it saw.
type controllers struct {
	node *node
	c    *kubernetes.Clientset
	in   informers.SharedInformerFactory
	wake chan struct{}
}

func newControllers(n *node, c *kubernetes.Clientset) *controllers {
	return &controllers{node: n, c: c, in: informers.NewSharedInformerFactory(c, 0), wake: make(chan struct{}, 1)}
}

func (m *controllers) run(ctx context.Context) {
	core, apps := m.in.Core().V1(), m.in.Apps().V1()
	poke := func(any) {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
	onAny := cache.ResourceEventHandlerFuncs{AddFunc: poke, UpdateFunc: func(_, o any) { poke(o) }, DeleteFunc: poke}
	for _, i := range []cache.SharedIndexInformer{
		core.Nodes().Informer(), core.Pods().Informer(), core.Namespaces().Informer(), core.ServiceAccounts().Informer(), core.ConfigMaps().Informer(),
		apps.DaemonSets().Informer(), apps.Deployments().Informer(), apps.ReplicaSets().Informer(),
		m.in.Certificates().V1().CertificateSigningRequests().Informer(), m.in.Coordination().V1().Leases().Informer(),
	} {
		if _, err := i.AddEventHandler(onAny); err != nil {
			return
		}
	}
	m.in.StartWithContext(ctx)
	defer m.in.Shutdown()
	m.in.WaitForCacheSync(ctx.Done())
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"csr", m.signRequests}, {"namespaces", m.fillNamespaces}, {"nodes", m.judgeNodes},
		{"daemonsets", m.daemonSets}, {"deployments", m.deployments}, {"replicasets", m.replicaSets}, {"scheduler", m.schedule},
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
