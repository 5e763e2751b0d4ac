package scaleway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// listServers lists servers that have all of the tags.
func (c *Cloud) listServers(ctx context.Context, tags []string) ([]*instance.Server, error) {
	return list(ctx, c, "servers", func(v *instance.Server) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*instance.Server, uint64, error) {
		r, err := c.instances.ListServers(&instance.ListServersRequest{Zone: c.zone, Project: &c.project, Tags: tags, Page: n, PerPage: size,
			Order: instance.ListServersRequestOrderCreationDateAsc}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		for _, s := range r.Servers {
			prune(s)
		}
		return r.Servers, uint64(r.TotalCount), nil
	})
}

// applyServer makes the Instance, stopped, without an image and without any
// public address: it boots from the volume that was made before.
func (c *Cloud) applyServer(ctx context.Context, j job, want blueprint.Server) (plan.Observed, error) {
	group, err := j.id(want.SecurityGroup)
	if err != nil {
		return plan.Observed{}, err
	}
	s, fresh, err := ensureNew(ctx, c, forServer,
		func(ctx context.Context) (*instance.Server, bool, error) {
			all, err := c.listServers(ctx, c.tags(j.step))
			return claimed(c, j.step, all, err, func(v *instance.Server) []string { return v.Tags })
		},
		func(ctx context.Context) (*instance.Server, error) { return c.createServer(ctx, j, want, group) })
	if err != nil {
		return plan.Observed{}, err
	}
	if s.SecurityGroup == nil || s.SecurityGroup.ID != group {
		if err := c.steady(ctx, forGroup, func(ctx context.Context) error {
			_, err := c.instances.UpdateServer(&instance.UpdateServerRequest{Zone: c.zone, ServerID: s.ID,
				SecurityGroup: &instance.SecurityGroupTemplate{ID: group, Name: j.step.Name}}, scw.WithContext(ctx))
			return err
		}); err != nil {
			return plan.Observed{}, err
		}
	}
	if s.Name != want.Name || s.DynamicIPRequired != want.DynamicIP {
		if err := c.steady(ctx, forGroup, func(ctx context.Context) error {
			_, err := c.instances.UpdateServer(&instance.UpdateServerRequest{Zone: c.zone, ServerID: s.ID, Name: &want.Name, DynamicIPRequired: &want.DynamicIP}, scw.WithContext(ctx))
			return err
		}); err != nil {
			return plan.Observed{}, err
		}
	}
	if s, err = c.serverVisible(ctx, j, s.ID, fresh); err != nil {
		return plan.Observed{}, err
	}
	if n := publicAddresses(s); n > want.PublicIPs {
		return plan.Observed{}, outcome.Fail(fmt.Sprintf("%s has a public address", j.name()), fmt.Sprintf("it has %d and must have none", n),
			"detach it in the Scaleway console; then run the command again")
	}
	return j.done(s.ID, want.Zone, string(s.State), want), nil
}

func (c *Cloud) createServer(ctx context.Context, j job, want blueprint.Server, group string) (*instance.Server, error) {
	req := &instance.CreateServerRequest{Zone: c.zone, Project: &c.project, Name: j.step.Name, Tags: c.tags(j.step), CommercialType: want.Type,
		DynamicIPRequired: &want.DynamicIP, SecurityGroup: &group, Volumes: map[string]*instance.VolumeServerTemplate{}}
	for i, step := range want.Volumes {
		volume, err := j.id(step)
		if err != nil {
			return nil, err
		}
		if err := c.volumeFree(ctx, "the "+step, volume); err != nil {
			return nil, err
		}
		req.Volumes[strconv.Itoa(i)] = &instance.VolumeServerTemplate{ID: &volume, VolumeType: instance.VolumeVolumeTypeSbsVolume, Boot: scw.BoolPtr(i == 0)}
	}
	if want.PlacementGroup != "" {
		placement, err := j.id(want.PlacementGroup)
		if err != nil {
			return nil, err
		}
		req.PlacementGroup = &placement
	}
	r, err := c.instances.CreateServer(req, scw.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	return given(prune(r.Server))
}

func (c *Cloud) serverVisible(ctx context.Context, j job, id string, fresh bool) (*instance.Server, error) {
	return until(ctx, c, waiting{what: j.name(), to: "appear", limit: forVisible, fresh: fresh}, c.readServer(id), func(s *instance.Server) verdict {
		return verdict{done: true, status: string(s.State)}
	})
}

func (c *Cloud) readServer(id string) func(context.Context) (*instance.Server, error) {
	return func(ctx context.Context) (*instance.Server, error) {
		r, err := c.instances.GetServer(&instance.GetServerRequest{Zone: c.zone, ServerID: id}, scw.WithContext(ctx))
		if err != nil {
			return nil, err
		}
		return given(prune(r.Server))
	}
}

// prune drops empty entries from a server, so that nothing further down has to
// reckon with them.
func prune(s *instance.Server) *instance.Server {
	if s != nil {
		s.PrivateNics = slices.DeleteFunc(s.PrivateNics, func(n *instance.PrivateNIC) bool { return n == nil })
	}
	return s
}

// given turns an answer whose envelope is empty into an error: whether there is
// anything cannot be told from it.
func given[T any](v *T) (*T, error) {
	if v == nil {
		return nil, &lostError{method: "the", path: "call", err: errors.New("the answer is empty")}
	}
	return v, nil
}

// publicAddresses counts addresses once, although an older field repeats one.
func publicAddresses(s *instance.Server) int {
	seen := map[string]bool{}
	for _, ip := range append([]*instance.ServerIP{s.PublicIP}, s.PublicIPs...) {
		if ip != nil && ip.ID != "" {
			seen[ip.ID] = true
		}
	}
	return len(seen)
}

// serverSpec lists volumes in the order in which the server has them, the
// booting one first.
func (r refs) serverSpec(s *instance.Server) blueprint.Server {
	spec := blueprint.Server{Name: s.Name, Zone: string(s.Zone), Type: s.CommercialType, PublicIPs: publicAddresses(s), DynamicIP: s.DynamicIPRequired}
	keys := make([]string, 0, len(s.Volumes))
	for k, v := range s.Volumes {
		if v != nil {
			keys = append(keys, k)
		}
	}
	sort.Slice(keys, func(i, j int) bool {
		a, _ := strconv.Atoi(keys[i])
		b, _ := strconv.Atoi(keys[j])
		return a < b
	})
	for _, k := range keys {
		// Volumes that the cluster's storage driver attaches come and go; only
		// what the server boots from must be ours.
		if step := r.step(s.Volumes[k].ID); k == "0" || !strings.HasPrefix(step, foreign) {
			spec.Volumes = append(spec.Volumes, step)
		}
	}
	if s.SecurityGroup != nil {
		spec.SecurityGroup = r.step(s.SecurityGroup.ID)
	}
	if s.PlacementGroup != nil {
		spec.PlacementGroup = r.step(s.PlacementGroup.ID)
	}
	return spec
}
