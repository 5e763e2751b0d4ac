package api

var gatewayTypes = []struct {
	name      string
	bandwidth int // Mbit/s
}{{"VPC-GW-S", 100}, {"VPC-GW-M", 1000}, {"VPC-GW-L", 10000}, {"VPC-GW-XL", 20000}}

func bandwidth(kind string) int {
	for _, t := range gatewayTypes {
		if t.name == kind {
			return t.bandwidth
		}
	}
	return 0
}

func upgradeGateway(c *call) (any, error) {
	g, err := c.steadyGateway(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Type string `json:"type"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Type != "" {
		if bandwidth(in.Type) < bandwidth(g.Type) {
			return nil, invalid("type", "constraint", "gateway cannot become a "+in.Type)
		}
		g.Type = in.Type
	}
	d := c.viewGateway(g)
	// A gateway looks failed for a moment in the middle of an upgrade.
	c.configure(g, 4*gatewayConfigures)
	c.stages(
		stage{at: gatewayConfigures, do: func(w *world) bool { return w.upgrading(g, "failed") }},
		stage{at: 2 * gatewayConfigures, do: func(w *world) bool { return w.upgrading(g, "configuring") }})
	return d, nil
}

func (w *world) upgrading(g *gateway, status string) bool {
	g, ok := w.Gateways.get(g.ID)
	if !ok || g.Status == "deleting" || g.Status == "running" {
		return false
	}
	g.Status = status
	return true
}

func listGatewayTypes(c *call) (any, error) {
	out := []doc{}
	for _, t := range gatewayTypes {
		out = append(out, doc{"name": t.name, "bandwidth": t.bandwidth, "zone": c.zone()})
	}
	return doc{"types": out}, nil
}
