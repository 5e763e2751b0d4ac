package api

import (
	"net/http"
	"net/netip"
	"slices"
	"time"

	"bastide/internal/sim/hardware"
)

// gateway is a zonal public gateway. Every change sends it through configuring,
// and while it is neither running nor stopped it takes no other.
type gateway struct {
	record
	Zone        string
	Type        string
	IP          string // id of its gatewayIP
	SMTP        bool
	Bastion     bool
	BastionPort int
	Allowed     []netip.Prefix // bastion_allowed_ips
	Keys        []string       // SSH keys as last pushed to it
	Status      string
	Settled     int // counts changes, so that an older timer does not end a newer one
}

type gatewayIP struct {
	record
	Zone    string
	Address netip.Addr
	Reverse string
	Gateway string
}

// How long a gateway takes for things, as recorded.
const (
	gatewayAllocates  = 6 * time.Second
	gatewayConfigures = 6 * time.Second
	gatewayGoes       = 2 * time.Second
)

func (r *Region) gatewayRoutes() {
	const base = "/vpc-gw/v2/zones/{zone}"
	r.route("GET "+base+"/gateways", http.StatusOK, listGateways)
	r.route("POST "+base+"/gateways", http.StatusOK, createGateway)
	r.route("GET "+base+"/gateways/{id}", http.StatusOK, getGateway)
	r.route("PATCH "+base+"/gateways/{id}", http.StatusOK, updateGateway)
	r.route("DELETE "+base+"/gateways/{id}", http.StatusOK, deleteGateway)
	r.route("POST "+base+"/gateways/{id}/upgrade", http.StatusOK, upgradeGateway)
	r.route("POST "+base+"/gateways/{id}/refresh-ssh-keys", http.StatusOK, refreshSSHKeys)
	r.route("POST "+base+"/gateways/{id}/bastion-allowed-ips", http.StatusOK, addAllowedIPs)
	r.route("PUT "+base+"/gateways/{id}/bastion-allowed-ips", http.StatusOK, setAllowedIPs)
	r.route("DELETE "+base+"/gateways/{id}/bastion-allowed-ips/{ip}", http.StatusNoContent, deleteAllowedIP)
	r.route("DELETE "+base+"/gateways/{id}/bastion-allowed-ips/{ip}/{bits}", http.StatusNoContent, deleteAllowedIP)
	r.route("GET "+base+"/gateway-types", http.StatusOK, listGatewayTypes)
	r.gatewayNetworkRoutes(base)
	r.patRoutes(base)
	r.gatewayIPRoutes(base)
}

func (c *call) viewGateway(g *gateway) doc {
	d := doc{"id": g.ID, "srn": noSRN, "name": g.Name, "organization_id": c.organization(g.Project), "project_id": g.Project, "tags": g.Tags,
		"created_at": stamp(g.Created), "updated_at": stamp(g.Updated), "zone": g.Zone, "type": g.Type,
		"bandwidth": bandwidth(g.Type), "status": g.Status, "is_legacy": false, "version": "0.7.8", "smtp_enabled": g.SMTP,
		"bastion_enabled": g.Bastion, "bastion_port": g.BastionPort, "bastion_allowed_ips": prefixes(g.Allowed), "ipv4": nil,
		"can_upgrade_to": nil}
	if ip, ok := c.GatewayIPs.get(g.IP); ok {
		d["ipv4"] = c.viewGatewayIP(ip)
	}
	nets := c.GatewayNetworks.where(func(n *gatewayNetwork) bool { return n.Gateway == g.ID })
	d["gateway_networks"] = views(nets, c.viewGatewayNetwork)
	return d
}

func prefixes(ps []netip.Prefix) []string {
	out := []string{}
	for _, p := range ps {
		out = append(out, p.String())
	}
	return out
}

func listGateways(c *call) (any, error) {
	types, status, pns := c.values("types"), c.known("status"), c.values("private_network_ids")
	items := c.Gateways.where(func(g *gateway) bool {
		inPN := len(pns) == 0 || c.GatewayNetworks.any(func(n *gatewayNetwork) bool {
			return n.Gateway == g.ID && oneOf(n.PrivateNetwork, pns)
		})
		return g.Zone == c.zone() && c.matches(&g.record) && oneOf(g.Type, types) && oneOf(g.Status, status) && inPN
	})
	return paged(c, "gateways", items, c.viewGateway)
}

func createGateway(c *call) (any, error) {
	var in struct {
		Project string   `json:"project_id"`
		Name    string   `json:"name"`
		Tags    []string `json:"tags"`
		Type    string   `json:"type"`
		IP      string   `json:"ip_id"`
		SMTP    bool     `json:"enable_smtp"`
		Bastion bool     `json:"enable_bastion"`
		Port    int      `json:"bastion_port"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, "", projectNotFound)
	if err != nil {
		return nil, err
	}
	if bandwidth(in.Type) == 0 {
		return nil, invalid("type", "constraint", "gateway type "+in.Type+" does not exist")
	}
	if in.Port == 0 {
		in.Port = 61000
	} else if err := checkBastionPort(in.Port); err != nil {
		return nil, err
	}
	if in.Name == "" {
		in.Name = "gw-" + newID()[:8]
	}
	var ip *gatewayIP
	if in.IP == "" {
		ip = c.newGatewayIP(owner, nil)
	} else if ip, err = c.gatewayIP(in.IP); err != nil {
		return nil, err
	} else if ip.Gateway != "" {
		return nil, stillInUse("IP is already attached to a gateway")
	}
	g := &gateway{record: newRecord(owner, in.Name, in.Tags), Zone: c.zone(), Type: in.Type, IP: ip.ID, SMTP: in.SMTP,
		Bastion: in.Bastion, BastionPort: in.Port, Allowed: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")},
		Keys: c.authorizedKeys(owner), Status: "allocating"}
	ip.Gateway = g.ID
	add(c.world, c.Gateways, g)
	c.settle(g, gatewayAllocates)
	d := c.viewGateway(g)
	delete(d, "version") // not known yet
	return d, nil
}

func (c *call) gateway(id string) (*gateway, error) {
	if g, ok := c.Gateways.get(id); ok && g.Zone == c.zone() {
		return g, nil
	}
	return nil, notFound("gateway", id)
}

// steadyGateway finds a gateway that can take a change.
func (c *call) steadyGateway(id string) (*gateway, error) {
	g, err := c.gateway(id)
	if err == nil && g.Status != "running" && g.Status != "stopped" && g.Status != "failed" {
		return nil, transient("gateway", g.ID, g.Status)
	}
	return g, err
}

// configure sends a gateway through configuring; what changed is in force when
// it runs again.
func (w *world) configure(g *gateway, d time.Duration) {
	g.Status = "configuring"
	change(w, w.Gateways, g)
	w.settle(g, d)
}

func (w *world) settle(g *gateway, d time.Duration) {
	g.Settled++
	turn := g.Settled
	w.after(d, func(w *world) {
		if g, ok := w.Gateways.get(g.ID); ok && g.Settled == turn && g.Status != "deleting" {
			g.Status = "running"
			g.touch()
			w.applyGateway(g)
		}
	})
}

// applyGateway hands a running gateway's configuration to the hardware.
func (w *world) applyGateway(g *gateway) {
	if g.Status != "running" {
		return
	}
	h := hardware.Gateway{ID: g.ID, BastionEnabled: g.Bastion, BastionPort: g.BastionPort,
		BastionAllowed: slices.Clone(g.Allowed), AuthorizedKeys: slices.Clone(g.Keys)}
	if ip, ok := w.GatewayIPs.get(g.IP); ok {
		h.PublicIP = ip.Address
	}
	for _, n := range w.GatewayNetworks.all() {
		if n.Gateway == g.ID && n.Status == "ready" {
			h.Attachments = append(h.Attachments, hardware.Attachment{
				NetworkID: n.PrivateNetwork, Address: w.address4([]string{n.IPAM}).Addr()})
		}
	}
	w.region.effects.open(h)
}

func getGateway(c *call) (any, error) {
	g, err := c.gateway(c.path("id"))
	if err != nil {
		return nil, err
	}
	return c.viewGateway(g), nil
}

func updateGateway(c *call) (any, error) {
	g, err := c.steadyGateway(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Bastion opt[bool] `json:"enable_bastion"`
		Port    opt[int]  `json:"bastion_port"`
		SMTP    opt[bool] `json:"enable_smtp"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Port.given && !in.Port.null {
		if err := checkBastionPort(in.Port.value); err != nil {
			return nil, err
		}
		g.BastionPort = in.Port.value
	}
	if err := c.rename(&g.record); err != nil {
		return nil, err
	}
	in.Bastion.set(&g.Bastion)
	in.SMTP.set(&g.SMTP)
	d := c.viewGateway(g) // the answer still says running
	c.configure(g, gatewayConfigures)
	return d, nil
}

func deleteGateway(c *call) (any, error) {
	g, err := c.gateway(c.path("id"))
	if err != nil {
		return nil, err
	}
	if g.Status == "deleting" || g.Status == "configuring" || g.Status == "allocating" {
		return nil, transient("gateway", g.ID, g.Status)
	}
	deleteIP, _ := c.flag("delete_ip")
	g.Status = "deleting"
	change(c.world, c.Gateways, g)
	c.region.effects.closeGateway(g.ID)
	c.after(gatewayGoes, func(w *world) { w.removeGateway(g.ID, deleteIP) }, g.ID)
	return c.viewGateway(g), nil
}

func (w *world) removeGateway(id string, deleteIP bool) {
	g, ok := w.Gateways.get(id)
	if !ok {
		return
	}
	for _, n := range w.GatewayNetworks.where(func(n *gatewayNetwork) bool { return n.Gateway == id }) {
		w.giveBack([]string{n.IPAM})
		remove(w, w.GatewayNetworks, n.ID)
	}
	for _, p := range w.PATRules.where(func(p *patRule) bool { return p.Gateway == id }) {
		remove(w, w.PATRules, p.ID)
	}
	if ip, ok := w.GatewayIPs.get(g.IP); ok {
		ip.Gateway = ""
		if deleteIP {
			w.freePublic(ip.Address)
			remove(w, w.GatewayIPs, ip.ID)
		}
	}
	remove(w, w.Gateways, id)
}
