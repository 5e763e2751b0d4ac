package session

import (
	"context"
	"fmt"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/scaleway"
	"bastide/internal/talos"
)

// Survey is what the file asks for beside what is there.
type Survey struct {
	Inventory *scaleway.Inventory
	Graph     *blueprint.Graph
	Live      plan.Live
	Cluster   *talos.Cluster // nil while there is no secrets bundle

	// installers are what running nodes would be upgraded from.
	installers talos.Installers

	source   string     // where the image's file was read from, where that was looked for
	stranger error      // a node is another cluster's
	shut     error      // why the door did not open, while nothing is being made that could open it
	barred   error      // what shuts the way to live nodes by Scaleway's own word
	stale    bool       // the bastion knows none of the SSH keys
	known    plan.Known // what a run that is under way has made
	made     bool       // that run makes or changes the gateway
}

// Plan compares the two.
func (s *Survey) Plan() plan.Plan { return plan.Make(s.Graph, s.Live) }

// Barred is why the nodes could not be asked though there are some: Scaleway says
// that the way to them is shut. It is nil when it says nothing of the kind.
func (s *Survey) Barred() error { return s.barred }

// Stale says that the nodes could not be read because the bastion knows none of
// the SSH keys. A survey under the estate's lock has it read the project's keys
// again, which one that only looks may not.
func (s *Survey) Stale() bool { return s.stale }

// Survey reads the cloud and, where nodes exist, the nodes. It writes nothing,
// save that under the estate's lock a bastion may be made to read its keys again.
// Servers without a bundle, or with another estate's, end it.
func (s *Session) Survey(ctx context.Context) (*Survey, error) {
	v, err := s.survey(ctx)
	if v != nil && v.stranger != nil {
		return nil, v.stranger
	}
	return v, err
}

// survey leaves it to its caller what follows from a node that is another
// cluster's.
func (s *Session) survey(ctx context.Context) (*Survey, error) {
	v, err := s.SurveyCloud(ctx)
	if err != nil {
		return nil, err
	}
	return v, s.surveyCluster(ctx, v)
}

// SurveyCloud reads the cloud alone: it needs no bundle and asks no node, and
// knows nothing of the cluster's steps.
func (s *Session) SurveyCloud(ctx context.Context) (*Survey, error) {
	cloud, err := s.Cloud(ctx)
	if err != nil {
		return nil, err
	}
	inv, err := cloud.Inventory(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range inv.Warnings {
		s.config.Notice(w)
	}
	g, err := blueprint.Build(s.Estate, inv.Booked(), s.Estate.Admin.PublicKeys)
	if err != nil {
		return nil, outcome.Refuse("the estate cannot be laid out", err.Error(), "change the file").Because(err)
	}
	if err := s.proveSnapshots(ctx, g, inv, inv.Needed); err != nil {
		return nil, err
	}
	v := &Survey{Inventory: inv, Graph: g, Live: inv.Live(g)}
	return v, s.lookForImage(ctx, v)
}

func (s *Session) surveyCluster(ctx context.Context, v *Survey) error {
	there, err := s.Vault().Exists()
	if err != nil {
		return err
	}
	if !there {
		if v.Inventory.HasServers() {
			return outcome.Refuse("servers of "+s.Estate.Name+" exist, its secrets bundle does not",
				fmt.Sprintf("%s is not there, and a new bundle would be another cluster's", s.Vault().Path),
				fmt.Sprintf("bring it back from its copies with bastide secrets restore %[1]s, or take a bundle in with bastide secrets import %[1]s", s.config.Path))
		}
		s.config.Notice("there is no secrets bundle yet; make one with bastide secrets new " + s.config.Path)
		return nil
	}
	bundle, err := s.Unlock()
	if err != nil {
		return err
	}
	if v.Inventory.HasServers() {
		v.barred = s.barred(v)
	}
	v.Cluster, err = talos.New(talos.Options{Estate: s.Estate, Bundle: bundle, Graph: v.Graph, Dial: s.dialer(ctx, v), Note: s.config.Note,
		Limits: talos.Limits{Patience: s.config.Patience}})
	if err != nil {
		return err
	}
	// Nodes are asked while their configurations are rendered: the one waits
	// for answers, the other computes.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := make(chan talos.Seen, 1)
	if v.Inventory.HasServers() {
		live := v.Live
		go func() { seen <- v.Cluster.Look(ctx, live) }()
	}
	warnings, err := v.Cluster.Renderer().Complete(v.Graph, v.Inventory.GatewayIP())
	for _, w := range warnings {
		s.config.Notice(w)
	}
	if err != nil || !v.Inventory.HasServers() {
		return err
	}
	looked := <-seen
	v.stranger = v.Cluster.Stranger(looked)
	live, err := v.Cluster.Interpret(ctx, v.Graph, v.Live, looked)
	if err != nil {
		return err
	}
	v.Live.Merge(live)
	v.installers, err = v.Cluster.Installers(v.Graph, looked)
	return err
}
