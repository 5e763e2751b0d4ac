package api

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// nic is a server's interface in a private network.
type nic struct {
	record
	Zone           string
	Server         string
	PrivateNetwork string
	MAC            string
	IPAM           []string
	Attaching      bool // as v2alpha1 shows it; v1 calls it available at once
}

const nicAttaches = 80 * time.Second // on a running server

func (r *Region) nicRoutes(base string) {
	r.route("GET "+base+"/servers/{id}/private_nics", http.StatusOK, listNICs)
	r.route("POST "+base+"/servers/{id}/private_nics", http.StatusCreated, createNIC)
	r.route("GET "+base+"/servers/{id}/private_nics/{nic}", http.StatusOK, getNIC)
	r.route("PATCH "+base+"/servers/{id}/private_nics/{nic}", http.StatusOK, updateNIC)
	r.route("DELETE "+base+"/servers/{id}/private_nics/{nic}", http.StatusNoContent, deleteNIC)
}

func (w *world) nicsOf(serverID string) []*nic {
	return w.NICs.where(func(n *nic) bool { return n.Server == serverID })
}

func (w *world) viewNIC(n *nic) doc {
	return doc{"id": n.ID, "private_network_id": n.PrivateNetwork, "server_id": n.Server, "mac_address": n.MAC, "state": "available",
		"creation_date": stampV1(n.Created), "modification_date": stampV1(n.Updated), "zone": n.Zone, "tags": n.Tags,
		"ipam_ip_ids": list(n.IPAM)}
}

func listNICs(c *call) (any, error) {
	s, err := c.server(c.path("id"))
	if err != nil {
		return nil, err
	}
	items := c.NICs.where(func(n *nic) bool { return n.Server == s.ID && allTags(n.Tags, c.tags()) })
	return pagedV1(c, "private_nics", items, c.viewNIC)
}

func createNIC(c *call) (any, error) {
	s, err := c.server(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		PrivateNetwork string   `json:"private_network_id"`
		Tags           []string `json:"tags"`
		IPs            []string `json:"ip_ids"`
		IPAM           []string `json:"ipam_ip_ids"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	n, err := c.addNIC(s, in.PrivateNetwork, append(in.IPAM, in.IPs...), in.Tags)
	if err != nil {
		return nil, err
	}
	return doc{"private_nic": c.viewNIC(n)}, nil
}

// addNIC attaches a server to a network: at most once to each, to eight at most.
func (c *call) addNIC(s *server, pn string, booked, tags []string) (*nic, error) {
	p, err := c.privateNetwork(pn, regionOf(c.zone()))
	if err == nil {
		err = c.sees(p)
	}
	if err != nil {
		return nil, err
	}
	have := c.nicsOf(s.ID)
	if slices.ContainsFunc(have, func(n *nic) bool { return n.PrivateNetwork == p.ID }) {
		return nil, badRequest("Private NIC already exists")
	}
	if len(have) >= 8 {
		return nil, quotaExceeded("private_nics", 8)
	}
	if len(c.NICs.where(func(n *nic) bool { return n.PrivateNetwork == p.ID })) >= 512 {
		return nil, quotaExceeded("private_network_resources", 512)
	}
	n := &nic{record: newRecord(s.Project, "", tags), Zone: s.Zone, Server: s.ID, PrivateNetwork: p.ID, MAC: c.mac("02:00:00")}
	if n.IPAM, err = c.lend(p, booked, "46", ipamResource{"instance_private_nic", n.ID, n.MAC, s.Name}); err != nil {
		return nil, err
	}
	add(c.world, c.NICs, n)
	if s.State == stateRunning || s.State == stateStarting {
		// The guest does not see it before it renews its leases or reboots.
		n.Attaching = true
		c.after(nicAttaches, func(w *world) {
			if n, ok := w.NICs.get(n.ID); ok {
				n.Attaching = false
				n.touch()
			}
		})
	}
	return n, nil
}

func (w *world) removeNIC(n *nic) {
	w.giveBack(n.IPAM)
	for _, r := range w.Routes.where(func(r *route) bool { return r.Resource == n.ID }) {
		remove(w, w.Routes, r.ID)
	}
	remove(w, w.NICs, n.ID)
}

func (c *call) nic() (*nic, error) {
	if _, err := c.server(c.path("id")); err != nil {
		return nil, err
	}
	n, ok := c.NICs.get(c.path("nic"))
	if !ok {
		// v1 also finds a NIC by its address.
		for _, o := range c.nicsOf(c.path("id")) {
			if strings.EqualFold(o.MAC, c.path("nic")) {
				n, ok = o, true
			}
		}
	}
	if !ok || n.Server != c.path("id") {
		return nil, notFound("instance_private_nic", c.path("nic"))
	}
	return n, nil
}

func getNIC(c *call) (any, error) {
	n, err := c.nic()
	if err != nil {
		return nil, err
	}
	return doc{"private_nic": c.viewNIC(n)}, nil
}

func updateNIC(c *call) (any, error) {
	n, err := c.nic()
	if err != nil {
		return nil, err
	}
	if err := c.rename(&n.record); err != nil {
		return nil, err
	}
	change(c.world, c.NICs, n)
	return doc{"private_nic": c.viewNIC(n)}, nil
}

func deleteNIC(c *call) (any, error) {
	n, err := c.nic()
	if err != nil {
		return nil, err
	}
	c.removeNIC(n)
	return nil, nil
}

func (r *Region) nicV2Routes(base string) {
	r.route("GET "+base+"/private-network-interfaces", http.StatusOK, listNICsV2)
	r.route("POST "+base+"/private-network-interfaces", http.StatusOK, createNICV2)
	r.route("GET "+base+"/private-network-interfaces/{id}", http.StatusOK, getNICV2)
	r.route("PATCH "+base+"/private-network-interfaces/{id}", http.StatusOK, updateNICV2)
	r.route("DELETE "+base+"/private-network-interfaces/{id}", http.StatusNoContent, deleteNICV2)
	r.route("POST "+base+"/private-network-interfaces/{id}/detach-and-delete", http.StatusNoContent, detachNICV2)
	r.route("POST "+base+"/servers/{id}/detach-private-network-interface", http.StatusOK, detachServerNICV2)
}

func viewNICV2(n *nic) doc {
	status := "available"
	if n.Attaching {
		status = "attaching"
	}
	return doc{"id": n.ID, "srn": noSRN, "zone": n.Zone, "private_network_id": n.PrivateNetwork, "project_id": n.Project, "server_id": n.Server,
		"security_group_id": "", "mac_address": n.MAC, "status": status, "ip_ids": list(n.IPAM), "tags": n.Tags,
		"created_at": stamp(n.Created), "updated_at": stamp(n.Updated)}
}

func listNICsV2(c *call) (any, error) {
	servers, pns := c.values("server_ids", "server_id"), c.values("private_network_ids", "private_network_id")
	items := c.NICs.where(func(n *nic) bool {
		return n.Zone == c.zone() && c.matches(&n.record) && oneOf(n.Server, servers) && oneOf(n.PrivateNetwork, pns)
	})
	return pagedByToken(c, "private_network_interfaces", items, viewNICV2)
}

func createNICV2(c *call) (any, error) {
	var in struct {
		PrivateNetwork string   `json:"private_network_id"`
		Server         string   `json:"server_id"`
		IPs            []string `json:"ip_ids"`
		Tags           []string `json:"tags"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	s, err := c.server(in.Server)
	if err != nil {
		return nil, err
	}
	n, err := c.addNIC(s, in.PrivateNetwork, in.IPs, in.Tags)
	if err != nil {
		return nil, err
	}
	return viewNICV2(n), nil
}

func (c *call) nicV2(id string) (*nic, error) {
	if n, ok := c.NICs.get(id); ok && n.Zone == c.zone() {
		return n, nil
	}
	return nil, notFound("instance_private_nic", id)
}

func getNICV2(c *call) (any, error) {
	n, err := c.nicV2(c.path("id"))
	if err != nil {
		return nil, err
	}
	return viewNICV2(n), nil
}

func updateNICV2(c *call) (any, error) {
	n, err := c.nicV2(c.path("id"))
	if err != nil {
		return nil, err
	}
	if err := c.rename(&n.record); err != nil {
		return nil, err
	}
	change(c.world, c.NICs, n)
	return viewNICV2(n), nil
}

func deleteNICV2(c *call) (any, error) {
	n, err := c.nicV2(c.path("id"))
	if err != nil {
		return nil, err
	}
	if c.opts.RefuseNICDelete {
		return nil, precondition("resource_still_in_use", "Can't delete a private network interface attached to a server")
	}
	c.removeNIC(n)
	return nil, nil
}

func detachNICV2(c *call) (any, error) {
	n, err := c.nicV2(c.path("id"))
	if err != nil {
		return nil, err
	}
	c.removeNIC(n)
	return nil, nil
}

func detachServerNICV2(c *call) (any, error) {
	var in struct {
		NIC string `json:"private_network_interface_id"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	n, err := c.nicV2(in.NIC)
	if err != nil {
		return nil, err
	}
	if n.Server != c.path("id") {
		return nil, notFound("instance_private_nic", in.NIC)
	}
	c.removeNIC(n)
	return viewNICV2(n), nil
}

// pagedByToken is the v2alpha1 envelope. It pages by token: page=N is ignored,
// so that clients which ask that way get the first page again.
func pagedByToken[T resource](c *call, name string, items []T, view func(T) doc) (any, error) {
	sortBy(items, c.query("order_by"), "created_at_desc")
	size, from := c.number("page_size", 50), 0
	if t := c.query("page_token"); t != "" {
		from = slices.IndexFunc(items, func(v T) bool { return v.meta().ID == t }) + 1
	}
	rest := items[from:]
	d := doc{"total_count": len(items), name: views(rest[:min(size, len(rest))], view)}
	if len(rest) > size {
		d["next_page_token"] = rest[size-1].meta().ID
	}
	return d, nil
}
