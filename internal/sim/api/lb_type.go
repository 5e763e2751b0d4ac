package api

import (
	"slices"
	"strings"
)

// lbTypes are the offers, with their bandwidth in Mbit/s.
var lbTypes = []struct {
	name      string
	bandwidth int
}{{"LB-S", 200}, {"LB-GP-M", 500}, {"LB-GP-L", 1000}, {"LB-GP-XL", 4000}}

func knownLBType(t string) bool {
	return slices.ContainsFunc(lbTypes, func(k struct {
		name      string
		bandwidth int
	}) bool {
		return strings.EqualFold(k.name, t)
	})
}

func migrateLB(c *call) (any, error) {
	l, err := c.readyLB(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Type string `json:"type"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if !knownLBType(in.Type) {
		return nil, invalid("type", "constraint", "load balancer type "+in.Type+" does not exist")
	}
	l.Type, l.Status = in.Type, "migrating"
	change(c.world, c.LBs, l)
	c.after(lbMigrates, func(w *world) { w.lbBecomes(l.ID, "migrating", "ready") })
	return c.viewLB(l), nil
}

func listLBTypes(c *call) (any, error) {
	out := []doc{}
	for _, t := range lbTypes {
		out = append(out, doc{"name": t.name, "stock_status": "available", "description": "", "region": regionOf(c.zone()), "zone": c.zone()})
	}
	return doc{"lb_types": out, "total_count": len(out)}, nil
}
