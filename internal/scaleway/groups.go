package scaleway

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

func (c *Cloud) listSecurityGroups(ctx context.Context, tags []string) ([]*instance.SecurityGroup, error) {
	return list(ctx, c, "security groups", func(v *instance.SecurityGroup) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*instance.SecurityGroup, uint64, error) {
		r, err := c.instances.ListSecurityGroups(&instance.ListSecurityGroupsRequest{Zone: c.zone, Project: &c.project, Tags: tags, Page: n, PerPage: size}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.SecurityGroups, uint64(r.TotalCount), nil
	})
}

func (c *Cloud) listRules(ctx context.Context, group string) ([]*instance.SecurityGroupRule, error) {
	return list(ctx, c, "rules of security group "+group, func(v *instance.SecurityGroupRule) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*instance.SecurityGroupRule, uint64, error) {
		r, err := c.instances.ListSecurityGroupRules(&instance.ListSecurityGroupRulesRequest{Zone: c.zone, SecurityGroupID: group, Page: n, PerPage: size}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.Rules, uint64(r.TotalCount), nil
	})
}

func (c *Cloud) listPlacementGroups(ctx context.Context, tags []string) ([]*instance.PlacementGroup, error) {
	return list(ctx, c, "placement groups", func(v *instance.PlacementGroup) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*instance.PlacementGroup, uint64, error) {
		r, err := c.instances.ListPlacementGroups(&instance.ListPlacementGroupsRequest{Zone: c.zone, Project: &c.project, Tags: tags, Page: n, PerPage: size}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.PlacementGroups, uint64(r.TotalCount), nil
	})
}

// applySecurityGroup makes the nodes' own group. The one that a zone gives to
// servers without a group is open and, in a new zone, not even stateful.
func (c *Cloud) applySecurityGroup(ctx context.Context, j job, want blueprint.SecurityGroup) (plan.Observed, error) {
	in, out := instance.SecurityGroupPolicy(want.InboundDefault), instance.SecurityGroupPolicy(want.OutboundDefault)
	g, fresh, err := ensureNew(ctx, c, forGroup,
		func(ctx context.Context) (*instance.SecurityGroup, bool, error) {
			all, err := c.listSecurityGroups(ctx, c.tags(j.step))
			return claimed(c, j.step, all, err, func(v *instance.SecurityGroup) []string { return v.Tags })
		},
		func(ctx context.Context) (*instance.SecurityGroup, error) {
			r, err := c.instances.CreateSecurityGroup(&instance.CreateSecurityGroupRequest{Zone: c.zone, Project: &c.project, Name: j.step.Name, Tags: c.tags(j.step),
				Description: want.Description, Stateful: want.Stateful, InboundDefaultPolicy: in, OutboundDefaultPolicy: out,
				EnableDefaultSecurity: &want.BlocksMail}, scw.WithContext(ctx))
			if err != nil {
				return nil, err
			}
			return given(r.SecurityGroup)
		})
	if err != nil {
		return plan.Observed{}, err
	}
	if g, err = c.waitGroup(ctx, j, g.ID, fresh); err != nil {
		return plan.Observed{}, err
	}
	if g.Stateful != want.Stateful || g.InboundDefaultPolicy != in || g.OutboundDefaultPolicy != out || g.Name != want.Name || g.Description != want.Description || g.EnableDefaultSecurity != want.BlocksMail {
		if err := c.steady(ctx, forGroup, func(ctx context.Context) error {
			_, err := c.instances.UpdateSecurityGroup(&instance.UpdateSecurityGroupRequest{Zone: c.zone, SecurityGroupID: g.ID, Name: &want.Name, Description: &want.Description, EnableDefaultSecurity: &want.BlocksMail, Stateful: &want.Stateful,
				InboundDefaultPolicy: in, OutboundDefaultPolicy: out}, scw.WithContext(ctx))
			return err
		}); err != nil {
			return plan.Observed{}, err
		}
	}
	if err := c.applyRules(ctx, g.ID, want); err != nil {
		return plan.Observed{}, err
	}
	if g, err = c.waitGroup(ctx, j, g.ID, fresh); err != nil {
		return plan.Observed{}, err
	}
	return j.done(g.ID, want.Zone, string(g.State), want), nil
}

func (c *Cloud) waitGroup(ctx context.Context, j job, id string, fresh bool) (*instance.SecurityGroup, error) {
	return until(ctx, c, waiting{what: j.name(), to: "come into force", limit: forGroup, fresh: fresh},
		func(ctx context.Context) (*instance.SecurityGroup, error) {
			r, err := c.instances.GetSecurityGroup(&instance.GetSecurityGroupRequest{Zone: c.zone, SecurityGroupID: id}, scw.WithContext(ctx))
			if err != nil {
				return nil, err
			}
			return given(r.SecurityGroup)
		},
		func(g *instance.SecurityGroup) verdict {
			v := verdict{done: g.State == instance.SecurityGroupStateAvailable, status: string(g.State)}
			if g.State == instance.SecurityGroupStateSyncingError {
				v.failed = "Scaleway could not put it into force"
			}
			return v
		})
}

// applyRules replaces the group's rules where they differ.
func (c *Cloud) applyRules(ctx context.Context, group string, want blueprint.SecurityGroup) error {
	live, err := c.listRules(ctx, group)
	if err != nil {
		return err
	}
	have := blueprint.SecurityGroup{Rules: rulesOf(live)}
	if ruleText(have.Rules) == ruleText(want.Rules) {
		return nil
	}
	set := &instance.SetSecurityGroupRulesRequest{Zone: c.zone, SecurityGroupID: group, Rules: []*instance.SetSecurityGroupRulesRequestRule{}}
	for _, r := range want.Rules {
		rule := &instance.SetSecurityGroupRulesRequestRule{Action: instance.SecurityGroupRuleAction(r.Action), Protocol: instance.SecurityGroupRuleProtocol(r.Protocol),
			Direction: instance.SecurityGroupRuleDirection(r.Direction), IPRange: ipNet(r.Range), Editable: scw.BoolPtr(true)}
		// A port that is left out, or 0, means every port.
		if r.PortFrom != 0 {
			rule.DestPortFrom = scw.Uint32Ptr(uint32(r.PortFrom))
			rule.DestPortTo = scw.Uint32Ptr(uint32(max(r.PortFrom, r.PortTo)))
		} else if p := strings.ToUpper(r.Protocol); p == "TCP" || p == "UDP" {
			return fmt.Errorf("the rule %q names no port and would open every one", r)
		}
		set.Rules = append(set.Rules, rule)
	}
	return c.steady(ctx, forGroup, func(ctx context.Context) error {
		_, err := c.instances.SetSecurityGroupRules(set, scw.WithContext(ctx))
		return err
	})
}

// rulesOf leaves out the rules against outgoing mail that Scaleway adds to every
// group and that cannot be edited.
func rulesOf(live []*instance.SecurityGroupRule) []blueprint.Rule {
	var out []blueprint.Rule
	for _, r := range live {
		if !r.Editable {
			continue
		}
		rule := blueprint.Rule{Action: string(r.Action), Protocol: string(r.Protocol), Direction: string(r.Direction)}
		rule.Range, _ = prefix(r.IPRange)
		if r.DestPortFrom != nil {
			rule.PortFrom, rule.PortTo = int(*r.DestPortFrom), int(*r.DestPortFrom)
		}
		if r.DestPortTo != nil {
			rule.PortTo = int(*r.DestPortTo)
		}
		out = append(out, rule)
	}
	return out
}

func ruleText(rules []blueprint.Rule) string {
	lines := make([]string, 0, len(rules))
	for _, r := range rules {
		lines = append(lines, r.String())
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

func (c *Cloud) applyPlacementGroup(ctx context.Context, j job, want blueprint.PlacementGroup) (plan.Observed, error) {
	kind, mode := instance.PlacementGroupPolicyType(want.Policy), instance.PlacementGroupPolicyMode(want.Mode)
	g, err := ensure(ctx, c, forGroup,
		func(ctx context.Context) (*instance.PlacementGroup, bool, error) {
			all, err := c.listPlacementGroups(ctx, c.tags(j.step))
			return claimed(c, j.step, all, err, func(v *instance.PlacementGroup) []string { return v.Tags })
		},
		func(ctx context.Context) (*instance.PlacementGroup, error) {
			r, err := c.instances.CreatePlacementGroup(&instance.CreatePlacementGroupRequest{Zone: c.zone, Project: &c.project, Name: j.step.Name, Tags: c.tags(j.step),
				PolicyType: kind, PolicyMode: mode}, scw.WithContext(ctx))
			if err != nil {
				return nil, err
			}
			return given(r.PlacementGroup)
		})
	if err != nil {
		return plan.Observed{}, err
	}
	if g.PolicyType != kind || g.PolicyMode != mode || g.Name != want.Name {
		if err := c.steady(ctx, forGroup, func(ctx context.Context) error {
			_, err := c.instances.UpdatePlacementGroup(&instance.UpdatePlacementGroupRequest{Zone: c.zone, PlacementGroupID: g.ID, Name: &want.Name, PolicyType: &kind, PolicyMode: &mode}, scw.WithContext(ctx))
			return err
		}); err != nil {
			return plan.Observed{}, err
		}
	}
	return j.done(g.ID, want.Zone, present, want), nil
}

func (r *reader) groups() {
	for _, g := range r.f.groups {
		it := Item{Kind: blueprint.KindSecurityGroup, Step: stepOf(g.Tags), Name: g.Name, CloudID: g.ID, Zone: string(g.Zone), Status: string(g.State),
			Settled: g.State == instance.SecurityGroupStateAvailable, Created: moment(g.CreationDate),
			Spec: blueprint.SecurityGroup{Name: g.Name, Description: g.Description, Zone: string(g.Zone), Stateful: g.Stateful, InboundDefault: string(g.InboundDefaultPolicy),
				OutboundDefault: string(g.OutboundDefaultPolicy), BlocksMail: g.EnableDefaultSecurity, Rules: rulesOf(r.f.rules[g.ID])}}
		if g.State == instance.SecurityGroupStateSyncingError {
			it.Broken = "Scaleway could not put it into force"
		}
		r.add(it)
	}
	for _, g := range r.f.placements {
		if r.marked(g.Tags) {
			r.add(Item{Kind: blueprint.KindPlacementGroup, Step: stepOf(g.Tags), Name: g.Name, CloudID: g.ID, Zone: string(g.Zone), Settled: true,
				Spec: blueprint.PlacementGroup{Name: g.Name, Zone: string(g.Zone), Policy: string(g.PolicyType), Mode: string(g.PolicyMode)}})
		}
	}
}
