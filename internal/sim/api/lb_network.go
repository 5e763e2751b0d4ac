package api

import (
	"net/http"
	"net/netip"
	"strings"
	"time"

	"bastide/internal/sim/hardware"
)

// lbAttachment is a load balancer's leg in a private network.
type lbAttachment struct {
	record
	LB             string
	PrivateNetwork string
	IPAM           []string
	Booked         bool // the address was named by the request
	Status         string
}

func (r *Region) lbAttachmentRoutes(base string) {
	r.route("GET "+base+"/lbs/{id}/private-networks", http.StatusOK, listLBNetworks)
	r.route("POST "+base+"/lbs/{id}/attach-private-network", http.StatusOK, attachLBNetwork)
	r.route("POST "+base+"/lbs/{id}/detach-private-network", http.StatusNoContent, detachLBNetwork)
}

func (c *call) viewAttachment(a *lbAttachment) doc { return c.viewAttachmentOf(a, false) }

func (c *call) viewAttachmentOf(a *lbAttachment, machines bool) doc {
	d := doc{"private_network_id": a.PrivateNetwork, "ipam_ids": list(a.IPAM), "dhcp_config": doc{"ip_id": nil},
		"status": a.Status, "created_at": stamp(a.Created), "updated_at": stamp(a.Updated)}
	// An address that the load balancer is yet to find shows only when it is ready.
	if !a.Booked && a.Status == "pending" {
		d["ipam_ids"] = []string{}
	} else if len(a.IPAM) > 0 {
		d["dhcp_config"] = doc{"ip_id": a.IPAM[0]}
	}
	d["lb"] = c.viewLBWithin(a.LB, machines)
	return d
}

func listLBNetworks(c *call) (any, error) {
	l, err := c.lb(c.path("id"))
	if err != nil {
		return nil, err
	}
	items := c.Attachments.where(func(a *lbAttachment) bool { return a.LB == l.ID })
	return paged(c, "private_network", items, c.viewAttachment)
}

func attachLBNetwork(c *call) (any, error) {
	l, err := c.readyLB(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		PrivateNetwork string   `json:"private_network_id"`
		IPAM           []string `json:"ipam_ids"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	p, ok := c.PrivateNetworks.get(in.PrivateNetwork)
	if !ok || p.Region != regionOf(c.zone()) {
		return nil, missingLB("privateNetwork")
	}
	if err := c.sees(p); err != nil {
		return nil, err
	}
	legs := c.Attachments.where(func(a *lbAttachment) bool { return a.LB == l.ID })
	for _, a := range legs {
		if a.PrivateNetwork == p.ID {
			return nil, untyped(http.StatusConflict, "private network is already attached to the load balancer")
		}
	}
	if len(legs) >= 8 {
		return nil, quotaExceeded("lb_private_networks", 8)
	}
	if len(in.IPAM) > 1 {
		return nil, invalid("ipam_ids", "constraint", "only one IPv4 address is accepted")
	}
	a := &lbAttachment{record: newRecord(l.Project, "", nil), LB: l.ID, PrivateNetwork: p.ID, Booked: len(in.IPAM) > 0, Status: "pending"}
	if a.IPAM, err = c.lend(p, in.IPAM, "4", ipamResource{"lb_server", l.ID, c.mac("02:00:00"), l.Name}); err != nil {
		return nil, err
	}
	add(c.world, c.Attachments, a)
	c.after(lbAttaches, func(w *world) {
		if a, ok := w.Attachments.get(a.ID); ok && a.Status == "pending" {
			a.Status = "ready"
			a.touch()
			w.applyLBID(l.ID)
		}
	})
	return c.viewAttachmentOf(a, true), nil
}

func detachLBNetwork(c *call) (any, error) {
	l, err := c.lb(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		PrivateNetwork string `json:"private_network_id"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	for _, a := range c.Attachments.all() {
		if a.LB != l.ID || a.PrivateNetwork != in.PrivateNetwork {
			continue
		}
		a.Status = "pending"
		change(c.world, c.Attachments, a)
		c.applyLB(l)
		id := a.ID
		c.after(lbDetaches, func(w *world) {
			if a, ok := w.Attachments.get(id); ok {
				w.giveBack(a.IPAM)
				remove(w, w.Attachments, id)
			}
		}, l.ID)
		return nil, nil
	}
	return nil, missingLB("privateNetwork")
}

func (w *world) applyLBID(id string) {
	if l, ok := w.LBs.get(id); ok {
		w.applyLB(l)
	}
}

// applyLB hands a load balancer that is ready to the hardware.
func (w *world) applyLB(l *lb) {
	if l.Status != "ready" {
		return
	}
	h := hardware.Balancer{ID: l.ID}
	for _, id := range l.IPs {
		if ip, ok := w.LBIPs.get(id); ok && ip.Address.Is4() {
			h.PublicIPs = append(h.PublicIPs, ip.Address)
		}
	}
	for _, a := range w.Attachments.all() {
		if a.LB == l.ID && a.Status == "ready" {
			h.Attachments = append(h.Attachments, hardware.Attachment{NetworkID: a.PrivateNetwork, Address: w.address4(a.IPAM).Addr()})
		}
	}
	for _, f := range w.Frontends.all() {
		if b, ok := w.Backends.get(f.Backend); ok && f.LB == l.ID {
			hf := hardware.Frontend{Port: f.Port, Backend: b.hardware()}
			hf.AllowOnly, hf.Allow = w.allowed(f)
			h.Frontends = append(h.Frontends, hf)
		}
	}
	w.region.effects.balance(h)
}

// hardware is a backend as far as connections are concerned.
func (b *backend) hardware() hardware.Backend {
	ms := func(p *int64, otherwise time.Duration) time.Duration {
		if p == nil {
			return otherwise
		}
		return time.Duration(*p) * time.Millisecond
	}
	h := hardware.Backend{Port: b.ForwardPort, CheckPort: b.Check.Port, CheckRetries: b.Check.MaxRetries,
		CheckDelay: ms(b.Check.Delay, time.Minute), CheckTimeout: ms(b.Check.Timeout, 30*time.Second),
		ConnectTimeout: ms(b.TimeoutConnect, 5*time.Second)}
	for _, s := range b.Servers {
		if a, err := netip.ParseAddr(s); err == nil {
			h.Servers = append(h.Servers, a)
		}
	}
	if b.Check.HTTPS != nil {
		h.CheckHTTPS = true
		h.CheckURI, _ = b.Check.HTTPS["uri"].(string)
		if code, ok := b.Check.HTTPS["code"].(float64); ok {
			h.CheckCode = int(code)
		}
	}
	return h
}

// allowed reads a frontend's access list as the hardware takes it: the ranges
// of the allow rules before a rule that denies everybody.
func (w *world) allowed(f *frontend) (bool, []netip.Prefix) {
	var allow []netip.Prefix
	for _, a := range w.aclsOf(f.ID) {
		ranges := a.ranges()
		switch kind, _ := a.Action["type"].(string); kind {
		case "allow":
			allow = append(allow, ranges...)
		case "deny":
			for _, r := range ranges {
				if r.Bits() == 0 {
					return true, allow
				}
			}
		}
	}
	return false, nil
}

func (a *lbACL) ranges() []netip.Prefix {
	var out []netip.Prefix
	subnets, _ := a.Match["ip_subnet"].([]any)
	for _, s := range subnets {
		text, _ := s.(string)
		if !strings.Contains(text, "/") {
			if ip, err := netip.ParseAddr(text); err == nil {
				out = append(out, netip.PrefixFrom(ip, ip.BitLen()))
			}
		} else if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, p)
		}
	}
	return out
}
