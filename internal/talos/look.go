package talos

import (
	"context"
	"slices"
	"sync"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/plan"
)

// sight is what observing saw of one node.
type sight struct {
	node    estate.Node
	joined  bool // a worker that is known to have been part of the cluster
	off     bool // the cloud says that its machine is there and is off, or on its way there
	powered bool // the cloud says that its machine runs and is in the network
	contact contact
	texts   texts   // while they have not been read
	holding holding // what they mean
	stage   stage
	err     error // why it could not be read although it is ours
	looks   int   // how often it was looked at
}

// Seen is what nodes, etcd and Kubernetes said when they were looked at.
type Seen struct {
	sights []sight
	health EtcdHealth
	known  []KubernetesNode
}

// atOnce is how many nodes are asked at one time: as many as two connections to
// the bastion carry well. The deadline of a request must not run out while it
// stands in line behind hundreds of others.
const atOnce = 64

// inTurn calls f for 0 to n-1, some at the same time, and returns after all.
func inTurn(n, atOnce int, f func(int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	wg.Wait()
}

// Look asks nodes, etcd and Kubernetes at the same time: together they take as
// long as the slowest of them. The cloud's observations say which run at all.
func (c *Cluster) Look(ctx context.Context, cloud plan.Live) Seen {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var health EtcdHealth
	known := make(chan []KubernetesNode, 1)
	var etcd sync.WaitGroup
	if slices.ContainsFunc(c.controlPlaneNodes(), func(n estate.Node) bool { return powered(cloud, n) }) {
		etcd.Go(func() { health = c.EtcdHealth(ctx, c.Off(cloud)...) })
		go func() {
			nodes, _ := c.KubernetesNodes(ctx)
			known <- nodes
		}()
	}
	sights := c.lookAt(ctx, cloud)
	etcd.Wait()
	if slices.ContainsFunc(sights, func(s sight) bool { return s.looks > 1 }) {
		health = c.EtcdHealth(ctx, c.Off(cloud)...) // nodes came up meanwhile
	}
	if !health.Bootstrapped() {
		return Seen{sights, health, nil} // without etcd there is no Kubernetes API to wait for
	}
	seen := Seen{sights, health, <-known}
	c.lookAgain(ctx, seen)
	return seen
}

// lookAgain waits for workers that refuse although they have joined: they
// restart, and do not wait for the cluster as new ones do.
func (c *Cluster) lookAgain(ctx context.Context, seen Seen) {
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i := range seen.sights {
		s := &seen.sights[i]
		if s.contact.state == Refusing && s.node.Role == estate.RoleWorker && c.joined(s.node, seen.health, seen.known) {
			s.joined = true
			wg.Go(func() { c.lookLong(ctx, s, slots) })
		}
	}
	wg.Wait()
}

// lookAt looks at all nodes at once, and again at those that do not answer
// until patience is over.
func (c *Cluster) lookAt(ctx context.Context, cloud plan.Live) []sight {
	nodes := c.estate.Nodes()
	sights := make([]sight, len(nodes))
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, n := range nodes {
		sights[i] = sight{node: n, powered: powered(cloud, n), off: goesOff(cloud, n)}
		if sights[i].powered {
			wg.Go(func() { c.lookLong(ctx, &sights[i], slots) })
		}
	}
	wg.Wait()
	return sights
}

// powered says whether the cloud's part of a node is complete.
func powered(cloud plan.Live, n estate.Node) bool {
	o, ok := cloud.Steps[string(blueprint.KindPower)+"/"+n.Name]
	if !ok {
		return false
	}
	p, ok := o.Spec.(blueprint.Power)
	if !ok || p.State != "running" {
		return false
	}
	_, ok = cloud.Steps[string(blueprint.KindPrivateNIC)+"/"+n.Name]
	return ok
}

// goesOff says whether a node's machine exists and is off or stopping.
func goesOff(cloud plan.Live, n estate.Node) bool {
	p, ok := cloud.Steps[string(blueprint.KindPower)+"/"+n.Name].Spec.(blueprint.Power)
	return ok && p.State != "running"
}

// lookLong holds a slot while it looks and none while it waits: nodes that do
// not answer must not keep the others waiting.
func (c *Cluster) lookLong(ctx context.Context, s *sight, slots chan struct{}) {
	_ = c.until(ctx, c.limits.Patience, func(ctx context.Context) error {
		slots <- struct{}{}
		c.look(ctx, s)
		<-slots
		switch {
		case s.contact.state == Ours && s.err != nil && ambiguous(s.err):
			c.note(s.node.Name, "it is in the middle of a restart")
			return nil
		case s.contact.state == Unreachable:
			if s.contact.hopeless == nil { // else nothing is waited for
				c.note(s.node.Name, "its Talos API does not answer: "+s.contact.why)
			}
			return s.contact.hopeless
		case s.contact.state == Refusing && (s.joined || s.node.Role == estate.RoleControlPlane):
			return nil // a worker may refuse for as long as the cluster is not up
		}
		return errStop
	}, func(time.Duration) error { return nil })
}

func (c *Cluster) look(ctx context.Context, s *sight) {
	seen, session, err := c.visit(ctx, s.node)
	if session != nil {
		defer session.close()
	}
	if ctx.Err() != nil && s.looks > 0 {
		return // cut short: what was seen before says more
	}
	s.looks++
	if s.contact, s.err = seen, err; session == nil {
		return
	}
	var stageErr error
	var both sync.WaitGroup
	both.Go(func() { s.texts, s.err = session.configurations(ctx) })
	both.Go(func() { s.stage, stageErr = session.stage(ctx) })
	if both.Wait(); s.err == nil {
		s.err = stageErr
	}
}
