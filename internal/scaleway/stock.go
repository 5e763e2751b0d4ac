package scaleway

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// CheckStock refuses a plan that would make servers of a type that the zone does
// not have or has run out of, before anything is made: Scaleway tells only when
// the server is made or started, half way through. What is scarce is a warning.
func (c *Cloud) CheckStock(ctx context.Context, p plan.Plan) (warnings []string, err error) {
	wanted := map[string][]string{}
	for _, a := range p.Actions {
		if s, ok := a.Step.Spec.(blueprint.Server); ok && a.Op == plan.Create {
			wanted[s.Type] = append(wanted[s.Type], a.Step.Name)
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	stock, err := c.stock(ctx)
	if err != nil {
		return nil, err
	}
	types := make([]string, 0, len(wanted))
	for t := range wanted {
		types = append(types, t)
	}
	sort.Strings(types)
	for _, t := range types {
		what := fmt.Sprintf("%s cannot be made", strings.Join(wanted[t], ", "))
		do := "choose another type or zone in the file, or try again later"
		switch stock[t] {
		case "":
			return nil, outcome.Refuse(what, fmt.Sprintf("%s does not offer the type %s", c.zone, t), "choose another type or zone in the file")
		case instance.ServerTypesAvailabilityShortage:
			return nil, outcome.Refuse(what, fmt.Sprintf("%s is out of stock in %s", t, c.zone), do)
		case instance.ServerTypesAvailabilityScarce:
			warnings = append(warnings, fmt.Sprintf("%s is scarce in %s; %s may not get one", t, c.zone, strings.Join(wanted[t], ", ")))
		}
	}
	return warnings, nil
}

// stock reads the availability of every type in the zone.
func (c *Cloud) stock(ctx context.Context) (map[string]instance.ServerTypesAvailability, error) {
	type named struct {
		name  string
		stock instance.ServerTypesAvailability
	}
	all, err := list(ctx, c, "Instance types", func(v *named) string { return v.name }, func(ctx context.Context, n *int32, size *uint32) ([]*named, uint64, error) {
		r, err := c.instances.GetServerTypesAvailability(&instance.GetServerTypesAvailabilityRequest{Zone: c.zone, Page: n, PerPage: size}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		var names []*named
		for name, s := range r.Servers {
			if s != nil {
				names = append(names, &named{name, s.Availability})
			}
		}
		return names, uint64(r.TotalCount), nil
	})
	out := map[string]instance.ServerTypesAvailability{}
	for _, v := range all {
		out[v.name] = v.stock
	}
	return out, err
}
