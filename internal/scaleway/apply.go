package scaleway

import (
	"context"
	"fmt"

	"bastide/internal/blueprint"
	"bastide/internal/plan"
)

// job is one step being carried out.
type job struct {
	step  blueprint.Step
	known plan.Known
}

func (j job) id(step string) (string, error) { return idOf(j.known, step) }

// name is how messages call what the step is about: its kind, its name and, for
// things of a node, the node.
func (j job) name() string { return fmt.Sprintf("the %s %s", j.step.Kind, j.step.Name) }

// done is the observation after a step was carried out.
func (j job) done(id, zone, status string, spec blueprint.Spec) plan.Observed {
	return plan.Observed{Step: j.step.ID, CloudID: id, Zone: zone, Status: status, Settled: true, Spec: spec}
}

// Apply brings a cloud step to what is wanted, from whatever is there: nothing,
// a part of it that an interrupted run left, or the thing with other settings.
// Create, Update and Wait are therefore the same work, and repeating it is
// safe. It returns when the thing is settled.
func (c *Cloud) Apply(ctx context.Context, a plan.Action, known plan.Known) (plan.Observed, error) {
	j := job{a.Step, known}
	o, err := c.apply(ctx, j)
	if notFound(err) && ctx.Err() == nil {
		// What was found was on its way out, after an interrupted deletion.
		o, err = c.apply(ctx, j)
	}
	if err != nil {
		return o, c.failed(fmt.Sprintf("%s could not be brought to what the file says", describe(j.step)), err)
	}
	return o, nil
}

func (c *Cloud) apply(ctx context.Context, j job) (plan.Observed, error) {
	switch want := j.step.Spec.(type) {
	case blueprint.VPC:
		return c.applyVPC(ctx, j, want)
	case blueprint.PrivateNetwork:
		return c.applyNetwork(ctx, j, want)
	case blueprint.SSHKey:
		return c.applyKey(ctx, j, want)
	case blueprint.GatewayIP:
		return c.applyGatewayIP(ctx, j, want)
	case blueprint.Gateway:
		return c.applyGateway(ctx, j, want)
	case blueprint.Address:
		return c.applyAddress(ctx, j, want)
	case blueprint.GatewayNetwork:
		return c.applyGatewayNetwork(ctx, j, want)
	case blueprint.SecurityGroup:
		return c.applySecurityGroup(ctx, j, want)
	case blueprint.PlacementGroup:
		return c.applyPlacementGroup(ctx, j, want)
	case blueprint.Snapshot:
		return c.applySnapshot(ctx, j, want)
	case blueprint.Volume:
		return c.applyVolume(ctx, j, want)
	case blueprint.Server:
		return c.applyServer(ctx, j, want)
	case blueprint.PrivateNIC:
		return c.applyNIC(ctx, j, want)
	case blueprint.Power:
		return c.applyPower(ctx, j, want)
	case blueprint.LoadBalancer:
		return c.applyBalancer(ctx, j, want)
	case blueprint.LBAttachment:
		return c.applyAttachment(ctx, j, want)
	case blueprint.LBBackend:
		return c.applyBackend(ctx, j, want)
	case blueprint.LBFrontend:
		return c.applyFrontend(ctx, j, want)
	case blueprint.Postgres:
		return c.applyPostgres(ctx, j, want)
	case blueprint.PostgresDatabase:
		return c.applyPostgresDatabase(ctx, j, want)
	case blueprint.PostgresSecret:
		return c.applyPostgresSecret(ctx, j, want)
	case blueprint.PostgresUser:
		return c.applyPostgresUser(ctx, j, want)
	}
	return c.applyService(ctx, j)
}

// describe names a step with what a person needs to act on a permanent refusal:
// node, type and zone.
func describe(s blueprint.Step) string {
	text := fmt.Sprintf("%s %s", s.Kind, s.Name)
	if s.Node != "" && s.Node != s.Name {
		text += " of node " + s.Node
	}
	switch spec := s.Spec.(type) {
	case blueprint.Server:
		text += fmt.Sprintf(" (%s in %s)", spec.Type, spec.Zone)
	case blueprint.Volume:
		text += fmt.Sprintf(" (%s with %d IOPS in %s)", spec.Size, spec.IOPS, spec.Zone)
	case blueprint.Gateway:
		text += fmt.Sprintf(" (%s in %s)", spec.Type, spec.Zone)
	case blueprint.LoadBalancer:
		text += fmt.Sprintf(" (%s in %s)", spec.Type, spec.Zone)
	case blueprint.Postgres:
		text += fmt.Sprintf(" (%s on %s with %s)", spec.Engine, spec.Type, spec.Size)
	}
	return text
}
