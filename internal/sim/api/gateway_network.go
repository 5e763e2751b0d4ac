package api

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// gatewayNetwork is a gateway's leg in a private network.
type gatewayNetwork struct {
	record
	Zone           string
	Gateway        string
	PrivateNetwork string
	IPAM           string
	Masquerade     bool
	PushDefault    bool
	MAC            string
	Status         string // created, configuring, ready, detaching
}

type patRule struct {
	record
	Zone        string
	Gateway     string
	PublicPort  int
	PrivateIP   netip.Addr
	PrivatePort int
	Protocol    string
}

const (
	networkConfigures = 3 * time.Second
	networkReady      = 13 * time.Second
	networkDetaches   = 4 * time.Second
)

func (r *Region) gatewayNetworkRoutes(base string) {
	r.route("GET "+base+"/gateway-networks", http.StatusOK, listGatewayNetworks)
	r.route("POST "+base+"/gateway-networks", http.StatusOK, createGatewayNetwork)
	r.route("GET "+base+"/gateway-networks/{id}", http.StatusOK, getGatewayNetwork)
	r.route("PATCH "+base+"/gateway-networks/{id}", http.StatusOK, updateGatewayNetwork)
	r.route("DELETE "+base+"/gateway-networks/{id}", http.StatusOK, deleteGatewayNetwork)
}

func (c *call) viewGatewayNetwork(n *gatewayNetwork) doc {
	d := doc{"id": n.ID, "srn": noSRN, "gateway_id": n.Gateway, "private_network_id": n.PrivateNetwork, "ipam_ip_id": n.IPAM,
		"masquerade_enabled": n.Masquerade, "push_default_route": n.PushDefault, "status": n.Status, "zone": n.Zone,
		"created_at": stamp(n.Created), "updated_at": stamp(n.Updated)}
	if n.Status == "ready" || n.Status == "detaching" {
		d["mac_address"] = strings.ToUpper(n.MAC) // not known before
	}
	return d
}

func listGatewayNetworks(c *call) (any, error) {
	status, gateways, pns := c.known("status"), c.values("gateway_ids", "gateway_id"), c.values("private_network_ids")
	masquerade, filter := c.flag("masquerade_enabled")
	items := c.GatewayNetworks.where(func(n *gatewayNetwork) bool {
		return n.Zone == c.zone() && oneOf(n.Status, status) && oneOf(n.Gateway, gateways) && oneOf(n.PrivateNetwork, pns) &&
			(!filter || n.Masquerade == masquerade)
	})
	return paged(c, "gateway_networks", items, c.viewGatewayNetwork)
}

func createGatewayNetwork(c *call) (any, error) {
	var in struct {
		Gateway        string `json:"gateway_id"`
		PrivateNetwork string `json:"private_network_id"`
		Masquerade     bool   `json:"enable_masquerade"`
		PushDefault    bool   `json:"push_default_route"`
		IPAM           string `json:"ipam_ip_id"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	g, err := c.steadyGateway(in.Gateway)
	if err != nil {
		return nil, err
	}
	p, err := c.privateNetwork(in.PrivateNetwork, regionOf(c.zone()))
	if err == nil {
		err = c.sees(p)
	}
	if err != nil {
		return nil, err
	}
	if err := c.mayAttach(g, p, in.PushDefault); err != nil {
		return nil, err
	}
	n := &gatewayNetwork{record: newRecord(g.Project, "", nil), Zone: c.zone(), Gateway: g.ID, PrivateNetwork: p.ID,
		Masquerade: in.Masquerade || in.PushDefault, PushDefault: in.PushDefault, MAC: c.mac("02:00:00"), Status: "created"}
	var booked []string
	if in.IPAM != "" {
		booked = []string{in.IPAM}
	}
	ids, err := c.lend(p, booked, "4", ipamResource{"vpc_gateway_network", n.ID, n.MAC, g.Name})
	if err != nil {
		return nil, err
	}
	n.IPAM = ids[0]
	add(c.world, c.GatewayNetworks, n)
	c.configure(g, networkReady-time.Second)
	c.stages(
		stage{at: networkConfigures, do: func(w *world) bool { return w.networkStatus(n.ID, "created", "configuring") }},
		stage{at: networkReady, do: func(w *world) bool { return w.networkStatus(n.ID, "configuring", "ready") }})
	return c.viewGatewayNetwork(n), nil
}

// mayAttach refuses a second leg in the same network, a second default route
// and a ninth network.
func (c *call) mayAttach(g *gateway, p *privateNetwork, pushDefault bool) error {
	legs := 0
	for _, n := range c.GatewayNetworks.all() {
		if n.Gateway == g.ID {
			legs++
		}
		if n.PrivateNetwork == p.ID && n.Gateway == g.ID {
			return conflict("private network is already attached to the gateway")
		}
		if n.PrivateNetwork == p.ID && n.PushDefault && pushDefault {
			return precondition("resource_still_in_use", "Private Network already has a default route")
		}
	}
	if legs >= 8 {
		return quotaExceeded("gateway_networks", 8)
	}
	return nil
}

// networkStatus moves a gateway network on, if it is still where it was.
func (w *world) networkStatus(id, from, to string) bool {
	n, ok := w.GatewayNetworks.get(id)
	if !ok || n.Status != from {
		return false
	}
	n.Status = to
	n.touch()
	if g, ok := w.Gateways.get(n.Gateway); ok {
		w.applyGateway(g)
	}
	return true
}

// defaultGateway is the gateway that gives a network its default route.
func (w *world) defaultGateway(pn string) (*gateway, *gatewayNetwork) {
	for _, n := range w.GatewayNetworks.all() {
		if n.PrivateNetwork == pn && n.PushDefault && n.Status == "ready" {
			if g, ok := w.Gateways.get(n.Gateway); ok {
				return g, n
			}
		}
	}
	return nil, nil
}

func (c *call) gatewayNetwork() (*gatewayNetwork, error) {
	if n, ok := c.GatewayNetworks.get(c.path("id")); ok && n.Zone == c.zone() {
		return n, nil
	}
	return nil, notFound("gateway_network", c.path("id"))
}

func getGatewayNetwork(c *call) (any, error) {
	n, err := c.gatewayNetwork()
	if err != nil {
		return nil, err
	}
	return c.viewGatewayNetwork(n), nil
}

func updateGatewayNetwork(c *call) (any, error) {
	n, err := c.gatewayNetwork()
	if err != nil {
		return nil, err
	}
	g, err := c.steadyGateway(n.Gateway)
	if err != nil {
		return nil, err
	}
	if n.Status != "ready" {
		return nil, transient("gateway_network", n.ID, n.Status)
	}
	var in struct {
		Masquerade  opt[bool]   `json:"enable_masquerade"`
		PushDefault opt[bool]   `json:"push_default_route"`
		IPAM        opt[string] `json:"ipam_ip_id"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if id := in.IPAM.or(""); id != "" && id != n.IPAM {
		p, err := c.privateNetwork(n.PrivateNetwork, regionOf(c.zone()))
		if err != nil {
			return nil, err
		}
		ids, err := c.lend(p, []string{id}, "4", ipamResource{"vpc_gateway_network", n.ID, n.MAC, g.Name})
		if err != nil {
			return nil, err
		}
		c.giveBack([]string{n.IPAM})
		n.IPAM = ids[0]
	}
	in.Masquerade.set(&n.Masquerade)
	in.PushDefault.set(&n.PushDefault)
	n.Masquerade = n.Masquerade || n.PushDefault
	n.Status = "configuring"
	change(c.world, c.GatewayNetworks, n)
	c.configure(g, gatewayConfigures)
	c.after(gatewayConfigures, func(w *world) { w.networkStatus(n.ID, "configuring", "ready") })
	return c.viewGatewayNetwork(n), nil
}

func deleteGatewayNetwork(c *call) (any, error) {
	n, err := c.gatewayNetwork()
	if err != nil {
		return nil, err
	}
	g, err := c.steadyGateway(n.Gateway)
	if err != nil {
		return nil, err
	}
	if n.Status == "detaching" {
		return nil, transient("gateway_network", n.ID, n.Status)
	}
	n.Status = "detaching"
	change(c.world, c.GatewayNetworks, n)
	c.applyGateway(g)
	c.configure(g, networkDetaches)
	c.after(networkDetaches, func(w *world) {
		w.giveBack([]string{n.IPAM})
		remove(w, w.GatewayNetworks, n.ID)
	}, g.ID)
	return c.viewGatewayNetwork(n), nil
}

func (w *world) mac(prefix string) string {
	w.NextMAC++
	return fmt.Sprintf("%s:%02x:%02x:%02x", prefix, byte(0x12+w.NextMAC>>16), byte(w.NextMAC>>8), byte(w.NextMAC))
}
