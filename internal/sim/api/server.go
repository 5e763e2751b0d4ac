package api

import (
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// server is an Instance. Its state moves only by actions; that its guest runs
// shows nowhere in the API.
type server struct {
	record
	Zone           string
	Type           string
	BootType       string
	Image          string
	Hostname       string
	Volumes        map[string]slot
	State          string
	Detail         string
	MAC            string
	DynamicIP      bool // dynamic_ip_required
	Protected      bool
	SecurityGroup  string
	PlacementGroup string
	UserData       map[string][]byte
	AdminKey       string
	Dynamic        netip.Addr // the address that came with poweron
	DynamicID      string
	Location       map[string]string
	Turn           int // counts actions, so that an older timer does not end a newer one
}

// slot is a volume's place in a server.
type slot struct {
	ID    string
	Block bool // an SBS volume, else a local one
	Boot  bool
}

const (
	stateStopped  = "stopped"
	stateStarting = "starting"
	stateRunning  = "running"
	stateStopping = "stopping"
	stateInPlace  = "stopped in place" // with spaces, as recorded
)

func (r *Region) serverRoutes(base string) {
	r.route("GET "+base+"/servers", http.StatusOK, listServers)
	r.route("POST "+base+"/servers", http.StatusCreated, createServer)
	r.route("GET "+base+"/servers/{id}", http.StatusOK, getServer)
	r.route("PATCH "+base+"/servers/{id}", http.StatusOK, updateServer)
	r.route("PUT "+base+"/servers/{id}", http.StatusOK, updateServer)
	r.route("DELETE "+base+"/servers/{id}", http.StatusNoContent, deleteServer)
	r.route("GET "+base+"/servers/{id}/action", http.StatusOK, listActions)
	r.route("POST "+base+"/servers/{id}/action", http.StatusAccepted, serverAction)
	r.route("POST "+base+"/servers/{id}/attach-volume", http.StatusOK, attachServerVolume)
	r.route("POST "+base+"/servers/{id}/detach-volume", http.StatusOK, detachServerVolume)
	r.route("GET "+base+"/servers/{id}/compatible-types", http.StatusOK, compatibleTypes)
}

func (c *call) viewServer(s *server) doc {
	ips := c.publicIPs(s)
	var first any
	if len(ips) > 0 {
		first = ips[0]
	}
	location := any(nil)
	if s.State != stateStopped && s.Detail != "allocating node" {
		location = s.Location
	}
	d := doc{"id": s.ID, "name": s.Name, "arch": "x86_64", "commercial_type": s.Type, "boot_type": s.BootType,
		"organization": c.organization(s.Project), "project": s.Project, "hostname": s.Hostname, "image": nil,
		"volumes": c.viewSlots(s), "tags": s.Tags, "state": s.State, "protected": s.Protected, "state_detail": s.Detail,
		"public_ip": first, "public_ips": ips, "mac_address": s.MAC, "routed_ip_enabled": true, "ipv6": nil,
		"extra_networks": []doc{}, "dynamic_ip_required": s.DynamicIP, "enable_ipv6": false, "private_ip": nil,
		"creation_date": stampV1(s.Created), "modification_date": stampV1(s.Updated), "bootscript": nil, "security_group": nil,
		"location": location, "maintenances": []doc{}, "allowed_actions": allowedActions(s), "placement_group": nil,
		"private_nics": views(c.nicsOf(s.ID), c.viewNIC), "zone": s.Zone, "filesystems": []doc{}, "end_of_service": false,
		"dns":                                  s.ID + ".pub.instances.scw.cloud",
		"admin_password_encryption_ssh_key_id": orNull(s.AdminKey), "admin_password_encrypted_value": nil}
	if t, ok := findType(s.Type, s.Zone); ok {
		d["arch"], d["end_of_service"] = t.Arch, t.EndOfService
	}
	if s.Image != "" {
		if v, ok := c.viewImageByID(s.Image); ok {
			d["image"] = v
		}
	}
	if g, ok := c.SecurityGroups.get(s.SecurityGroup); ok {
		d["security_group"] = doc{"id": g.ID, "name": g.Name}
	}
	if g, ok := c.PlacementGroups.get(s.PlacementGroup); ok {
		d["placement_group"] = c.viewPlacementGroup(g)
		d["placement_group"].(doc)["policy_respected"] = false // only meaningful on the group itself
	}
	return d
}

func allowedActions(s *server) []string {
	switch s.State {
	case stateStopped:
		return []string{"poweron", "backup"}
	case stateRunning:
		return []string{"poweroff", "terminate", "reboot", "stop_in_place", "backup"}
	case stateInPlace:
		return []string{"poweron", "poweroff", "terminate", "reboot", "backup"}
	}
	return []string{"stop_in_place", "backup"}
}

func (c *call) server(id string) (*server, error) {
	if s, ok := c.Servers.get(id); ok && s.Zone == c.zone() {
		return s, nil
	}
	return nil, notFound("instance_server", id)
}

func listServers(c *call) (any, error) {
	ids, pns, kind := c.values("servers"), c.values("private_networks", "private_network"), c.query("commercial_type")
	state, withIP := strings.ReplaceAll(c.query("state"), "+", " "), c.query("with_ip")
	without, byIP := c.flag("without_ip")
	mac := c.query("private_nic_mac_address")
	items := c.Servers.where(func(s *server) bool {
		ips := c.publicIPs(s)
		inPN, hasMAC := len(pns) == 0, mac == ""
		if !inPN || !hasMAC { // with many servers it is most of the work
			for _, n := range c.nicsOf(s.ID) {
				inPN = inPN || oneOf(n.PrivateNetwork, pns)
				hasMAC = hasMAC || strings.EqualFold(n.MAC, mac)
			}
		}
		hasIP := withIP == ""
		for _, ip := range ips {
			hasIP = hasIP || ip["address"] == withIP
		}
		return s.Zone == c.zone() && c.matchesV1(&s.record) && oneOf(s.ID, ids) && inPN && hasMAC && hasIP &&
			c.query("private_ip") == "" &&
			(kind == "" || s.Type == kind) && (state == "" || s.State == state) && (!byIP || without == (len(ips) == 0))
	})
	return pagedV1(c, "servers", items, c.viewServer)
}

// matchesV1 filters as instance v1 does: all tags must be there.
func (c *call) matchesV1(m *record) bool {
	return oneOf(m.Project, c.values("project")) && oneOf(c.organization(m.Project), c.values("organization")) &&
		strings.Contains(m.Name, c.query("name")) && allTags(m.Tags, c.tags())
}

func getServer(c *call) (any, error) {
	s, err := c.server(c.path("id"))
	if err != nil {
		return nil, err
	}
	return doc{"server": c.viewServer(s)}, nil
}

func updateServer(c *call) (any, error) {
	s, err := c.server(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		BootType      opt[string]                `json:"boot_type"`
		Volumes       opt[map[string]volumeSpec] `json:"volumes"`
		DynamicIP     opt[bool]                  `json:"dynamic_ip_required"`
		PublicIPs     opt[[]string]              `json:"public_ips"`
		Protected     opt[bool]                  `json:"protected"`
		SecurityGroup opt[struct {
			ID string `json:"id"`
		}] `json:"security_group"`
		PlacementGroup opt[string] `json:"placement_group"`
		Type           opt[string] `json:"commercial_type"`
		AdminKey       opt[string] `json:"admin_password_encryption_ssh_key_id"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Type.given && in.Type.value != s.Type {
		if err := c.retype(s, in.Type.value); err != nil {
			return nil, err
		}
	}
	if in.SecurityGroup.given && !in.SecurityGroup.null {
		g, err := c.securityGroup(in.SecurityGroup.value.ID)
		if err != nil {
			return nil, err
		}
		s.SecurityGroup = g.ID
	}
	if in.PlacementGroup.given {
		if err := c.regroup(s, in.PlacementGroup.or("")); err != nil {
			return nil, err
		}
	}
	if in.Volumes.given && !in.Volumes.null {
		if err := c.refillSlots(s, in.Volumes.value); err != nil {
			return nil, err
		}
	}
	in.DynamicIP.set(&s.DynamicIP)
	if in.PublicIPs.given {
		if err := c.replaceIPs(s, in.PublicIPs.value); err != nil {
			return nil, err
		}
	}
	c.dynamicIP(s)
	in.BootType.set(&s.BootType)
	in.Protected.set(&s.Protected)
	in.AdminKey.set(&s.AdminKey)
	if err := c.rename(&s.record); err != nil {
		return nil, err
	}
	change(c.world, c.Servers, s)
	return doc{"server": c.viewServer(s)}, nil
}

// retype changes the type of a server that is stopped and in no placement group.
func (c *call) retype(s *server, kind string) error {
	t, ok := findType(kind, c.zone())
	if !ok {
		return invalid("commercial_type", "constraint", "commercial type "+kind+" does not exist in this zone")
	}
	if s.State != stateStopped {
		return badRequest("instance should be powered off to change its commercial type")
	}
	if s.PlacementGroup != "" {
		return badRequest("instance in a placement group cannot change its commercial type")
	}
	if err := c.checkLocalStorage(s, t); err != nil {
		return err
	}
	s.Type = kind
	return nil
}

// regroup moves a stopped server into a placement group or out of it. On a
// running one the request is accepted and does nothing, as users found out.
func (c *call) regroup(s *server, id string) error {
	if id != "" {
		if _, err := c.placementGroup(id); err != nil {
			return err
		}
	}
	if s.State == stateStopped || id == "" {
		s.PlacementGroup = id
	}
	return nil
}

func deleteServer(c *call) (any, error) {
	s, err := c.server(c.path("id"))
	if err != nil {
		return nil, err
	}
	if s.Protected {
		return nil, precondition("protected_resource", "cannot delete a protected server")
	}
	if s.State != stateStopped {
		return nil, transient("instance_server", s.ID, s.State)
	}
	c.removeServer(s, false)
	return nil, nil
}

// removeServer takes a server away. SBS volumes, booked addresses and flexible
// IPs stay; local volumes go only with a termination. Networks count the server
// as attached for a little longer.
func (w *world) removeServer(s *server, terminated bool) {
	for _, n := range w.nicsOf(s.ID) {
		w.removeNIC(n)
		if p, ok := w.PrivateNetworks.get(n.PrivateNetwork); ok {
			p.BusyUntil = now().Add(w.clock.Scale(2 * time.Second))
		}
	}
	for _, sl := range s.Volumes {
		switch {
		case sl.Block:
			w.detachVolume(sl.ID)
		case terminated:
			w.region.effects.deleteVolume(sl.ID)
			remove(w, w.LocalVolumes, sl.ID)
		default:
			if v, ok := w.LocalVolumes.get(sl.ID); ok {
				v.Server = ""
			}
		}
	}
	for _, ip := range w.FlexibleIPs.where(func(ip *flexibleIP) bool { return ip.Server == s.ID }) {
		ip.Server = ""
		w.linkIP(ip)
	}
	w.dropDynamicIP(s)
	w.region.effects.removeMachine(s.ID)
	remove(w, w.Servers, s.ID)
}

func compatibleTypes(c *call) (any, error) {
	s, err := c.server(c.path("id"))
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, n := range catalogue().names {
		if t := catalogue().types[n]; t.in(s.Zone) && c.checkLocalStorage(s, t) == nil {
			out = append(out, n)
		}
	}
	c.total(len(out))
	return doc{"compatible_types": out}, nil
}
