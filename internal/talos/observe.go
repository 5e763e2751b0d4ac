package talos

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"
)

// Observe reads the cluster steps of a graph. The cloud's observations say
// which machines run at all: a step whose machine does not run is absent, not
// unreachable. A node that answers as part of another cluster refuses
// everything, before any write.
func (c *Cluster) Observe(ctx context.Context, g *blueprint.Graph, cloud plan.Live) (plan.Live, error) {
	seen := c.Look(ctx, cloud)
	if err := c.Stranger(seen); err != nil {
		return plan.Live{}, err
	}
	return c.Interpret(ctx, g, cloud, seen)
}

// Interpret says what was seen in the terms of a graph. Of a node that is
// another cluster's nothing is known; whether that ends everything is for
// Stranger's caller to decide.
func (c *Cluster) Interpret(ctx context.Context, g *blueprint.Graph, cloud plan.Live, seen Seen) (plan.Live, error) {
	live := plan.Live{Steps: map[string]plan.Observed{}, Unreachable: map[string]string{}}
	if err := turnedAway(seen.sights); err != nil {
		return live, err
	}
	if ctx.Err() != nil {
		return live, ended(ctx, func() error { return unread(seen.sights) })
	}
	c.readTexts(g, seen.sights)
	for _, s := range seen.sights {
		c.observeMachine(&live, g, s, seen.health, seen.known)
	}
	c.explainChanges(&live, g, seen.sights, cloud)
	if seen.health.Bootstrapped() {
		c.observeEtcd(&live, seen.health)
		c.observeKubernetes(&live, seen.known, seen.sights)
	} else {
		c.observeNoEtcd(&live, g, seen.sights)
	}
	return live, nil
}

// readTexts reads the configurations of the nodes beside what is wanted of them.
func (c *Cluster) readTexts(g *blueprint.Graph, sights []sight) {
	inTurn(len(sights), runtime.GOMAXPROCS(0), func(i int) {
		s := &sights[i]
		if s.contact.state != Ours || s.err != nil {
			return
		}
		wanted := ""
		if step, ok := g.Step(string(blueprint.KindMachine) + "/" + s.node.Name); ok {
			wanted = step.Spec.(blueprint.Machine).Digest
		}
		var err error
		if s.holding, err = s.texts.holding(wanted); err != nil {
			s.err = c.clean(err)
		}
	})
}

// Stranger is the refusal of a node that is another cluster's, if there is one.
func (c *Cluster) Stranger(seen Seen) error {
	for _, s := range seen.sights {
		if s.contact.state == Foreign {
			return c.stranger(s.node.Name, s.contact)
		}
	}
	return nil
}

// turnedAway says that the way in refuses whoever asks: no node can be read.
func turnedAway(sights []sight) error {
	for _, s := range sights {
		if outcome.CodeOf(s.contact.hopeless) == outcome.Refused {
			return s.contact.hopeless
		}
	}
	return nil
}

// unread says which nodes could not be read in the time that there was.
func unread(sights []sight) error {
	var names, why []string
	for _, s := range sights {
		text := s.contact.why
		if s.err != nil {
			text = s.err.Error()
		}
		if s.powered && (s.contact.state != Ours && s.contact.state != Maintenance || s.err != nil) {
			names, why = append(names, s.node.Name), append(why, strings.TrimSpace(fmt.Sprintf("%s is %s %s", s.node.Name, s.contact.state, text)))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return outcome.CannotTell("the state of "+strings.Join(names, ", ")+" is not known", strings.Join(why, "; "), "see that it can be reached, then run the command again")
}

func (c *Cluster) stranger(node string, seen contact) error {
	return outcome.Refuse(fmt.Sprintf("%s belongs to another cluster", node),
		fmt.Sprintf("it answers with a certificate of %s, and the secrets bundle is of %s", seen.fingerprint, c.bundle.Fingerprint()),
		"use the environment and the secrets bundle that belong to this cluster; nothing was changed")
}

func (c *Cluster) observeMachine(live *plan.Live, g *blueprint.Graph, s sight, health EtcdHealth, known []KubernetesNode) {
	id := string(blueprint.KindMachine) + "/" + s.node.Name
	if _, ok := g.Step(id); !ok {
		return
	}
	waiting := func(status string) {
		live.Steps[id] = plan.Observed{Step: id, Status: status, Spec: c.wanted(g, id)}
	}
	if s.off {
		waiting("off; what it holds shows when it runs")
		return
	}
	if !s.powered {
		return
	}
	switch s.contact.state {
	case Maintenance:
		return // absent: it has no configuration
	case Foreign:
		live.Unreachable[id] = "it belongs to another cluster, " + s.contact.fingerprint
	case Ours:
		switch {
		case s.err != nil:
			live.Unreachable[id] = s.err.Error()
		case s.holding.staged:
			live.Steps[id] = plan.Observed{Step: id, Status: "holding a change that waits for a reboot", Spec: blueprint.Machine{Node: s.node.Name, Role: s.node.Role, Digest: s.holding.digest}}
		default:
			live.Steps[id] = plan.Observed{Step: id, Status: s.stage.String(), Settled: true, Spec: blueprint.Machine{Node: s.node.Name, Role: s.node.Role, Digest: s.holding.digest}}
		}
	default:
		joined := c.joined(s.node, health, known)
		switch {
		case health.unlisted() && s.node.Role == estate.RoleControlPlane:
			// etcd runs and its member list cannot be read, as when quorum is
			// lost: this node may well be a voter.
			live.Unreachable[id] = "etcd's members cannot be listed and its Talos API does not answer: " + s.contact.why
		case joined:
			live.Unreachable[id] = "it is part of the cluster and its Talos API does not answer: " + s.contact.why
		case s.contact.state == Refusing && s.node.Role == estate.RoleWorker:
			// Configured or still booting: which one shows only when its
			// kubelet has joined and its API comes up.
			waiting("not answering yet, as a worker does not before it has joined")
		case health.Bootstrapped():
			waiting("not answering yet and not part of the cluster")
		default:
			live.Unreachable[id] = s.contact.why
		}
	}
}

// explainChanges shows how nodes differ from what is wanted of them, and
// whether it takes a reboot to change that.
func (c *Cluster) explainChanges(live *plan.Live, g *blueprint.Graph, sights []sight, cloud plan.Live) {
	addresses := c.addresses
	addresses.Gateway = c.gatewayOf(liveSteps(cloud.Steps))
	for _, s := range sights {
		id := string(blueprint.KindMachine) + "/" + s.node.Name
		o, seen := live.Steps[id]
		step, planned := g.Step(id)
		if !seen || !planned || s.contact.state != Ours || !addresses.Gateway.IsValid() {
			continue
		}
		if want := step.Spec.(blueprint.Machine).Digest; want == "" || want == s.holding.digest {
			continue
		}
		config, err := c.renderer.Node(s.node, addresses)
		if err != nil {
			continue // applying refuses it, with the reason
		}
		change, err := Compare(s.holding.active, config.bytes)
		if err != nil {
			o.Detail = []string{"the difference cannot be shown: " + c.clean(err).Error()}
		} else {
			o.Detail = change.Lines
		}
		switch o.Cost = plan.Restart; {
		case change.Reboot:
			o.Cost = plan.Reboot
		case change.Idle:
			o.Cost = plan.None
			o.Detail = append(o.Detail, "written without a restart: the node reads it at its next upgrade, and runs what it runs until then")
		}
		live.Steps[id] = o
	}
}

// liveSteps lets what was observed answer as what is known.
type liveSteps map[string]plan.Observed

func (l liveSteps) Get(id string) (plan.Observed, bool) { o, ok := l[id]; return o, ok }

// wanted stands in for what cannot be read yet: applying looks again.
func (c *Cluster) wanted(g *blueprint.Graph, id string) blueprint.Spec {
	step, _ := g.Step(id)
	m := step.Spec.(blueprint.Machine)
	m.Pending = ""
	return m
}

// joined says whether a node is known to be part of the running cluster.
func (c *Cluster) joined(n estate.Node, health EtcdHealth, known []KubernetesNode) bool {
	for _, m := range health.Members {
		if m.Name == n.Name {
			return true
		}
	}
	return slices.ContainsFunc(known, func(k KubernetesNode) bool { return k.Name == n.Name })
}

func (c *Cluster) observeEtcd(live *plan.Live, health EtcdHealth) {
	bootstrap, members := c.stepOf(blueprint.KindEtcdBootstrap), c.stepOf(blueprint.KindEtcdMembers)
	live.Steps[bootstrap] = plan.Observed{Step: bootstrap, Status: "bootstrapped", Settled: true, Spec: blueprint.EtcdBootstrap{Done: true}}
	for _, n := range c.controlPlaneNodes() {
		if why := live.Unreachable[string(blueprint.KindMachine)+"/"+n.Name]; why != "" && health.unlisted() {
			live.Unreachable[members] = n.Name + ": " + why
			return
		}
	}
	o := plan.Observed{Step: members, Status: "healthy", Settled: true, Spec: blueprint.EtcdMembers{Voters: health.Voters()}}
	if missing := c.missing(health, health.Voters()); len(missing) > 0 || health.Split != "" {
		o.Settled, o.Status = false, "not healthy: "+strings.ReplaceAll(health.Describe(), "\n", "; ")
	}
	live.Steps[members] = o
}

// observeNoEtcd is for when no node says that it is part of an etcd cluster. Not
// bootstrapped is only what is certain: whether a node that could not be read
// has an etcd is not known, and one whose machine is off tells when it runs.
// What stands on etcd, Kubernetes included, is then as little known.
func (c *Cluster) observeNoEtcd(live *plan.Live, g *blueprint.Graph, sights []sight) {
	steps := []string{c.stepOf(blueprint.KindEtcdBootstrap), c.stepOf(blueprint.KindEtcdMembers), c.stepOf(blueprint.KindKubernetesNodes)}
	for _, n := range c.controlPlaneNodes() {
		if why := live.Unreachable[string(blueprint.KindMachine)+"/"+n.Name]; why != "" {
			for _, id := range steps {
				live.Unreachable[id] = n.Name + " could not be asked: " + why
			}
			return
		}
	}
	var off []string
	for _, s := range sights {
		if s.off && s.node.Role == estate.RoleControlPlane {
			off = append(off, s.node.Name)
		}
	}
	if len(off) == 0 {
		return
	}
	for _, id := range steps {
		if step, ok := g.Step(id); ok { // as wanted, so that applying looks again
			live.Steps[id] = plan.Observed{Step: id, Status: "not known while machines are off: " + strings.Join(off, ", "), Spec: step.Spec}
		}
	}
}

func (c *Cluster) observeKubernetes(live *plan.Live, known []KubernetesNode, sights []sight) {
	known = slices.Clone(known)
	for i := range known {
		for _, s := range sights {
			if s.node.Name == known[i].Name && known[i].Ready {
				known[i].unlessReady(s)
			}
		}
	}
	id := c.stepOf(blueprint.KindKubernetesNodes)
	ready := readyNames(known, c.estate.Nodes())
	o := plan.Observed{Step: id, Status: "ready", Settled: true, Spec: blueprint.KubernetesNodes{Ready: ready}}
	if len(known) == 0 {
		o.Status, o.Settled = "the Kubernetes API does not answer", false
	}
	live.Steps[id] = o
}

func (c *Cluster) stepOf(kind blueprint.Kind) string {
	return string(kind) + "/" + c.estate.Name
}
