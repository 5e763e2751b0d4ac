package scaleway

import (
	"fmt"
	"slices"
	"strings"

	"bastide/internal/blueprint"

	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
)

// traps asks for what is allowed, works, and hurts later.
var traps = []question{
	{"open-bastions", []reading{readGateways}, openBastions},
	{"open-ports", []reading{readPorts, readGateways}, openPorts},
	{"default-route", []reading{readEstate}, noDefaultRoute},
	{"public-nodes", []reading{readServers}, publicNodes},
	{"accepting-groups", []reading{readServers, readGroups}, acceptingGroups},
	{"talos-snapshot", []reading{readSnapshots}, missingSnapshot},
}

// openBastions are SSH doors that everybody may knock at; that is how Scaleway
// makes them.
func openBastions(p *Premises, _ *blueprint.Graph) []Finding {
	var out []Finding
	for _, v := range p.gateways {
		if !v.BastionEnabled {
			continue
		}
		for _, r := range v.BastionAllowedIPs {
			if ones, _ := r.Mask.Size(); ones > 0 {
				continue
			}
			fix := "limit it in the Scaleway console, or switch it off"
			if p.cloud.marked(v.Tags) {
				fix = "limit it to admin.cidrs: bastide up ENV"
			}
			out = append(out, Finding{called("gateway", v.Name, v.ID, string(v.Zone)), fmt.Sprintf("its SSH bastion lets in %s, which is everybody", r.String()), fix})
			break
		}
	}
	return out
}

// openPorts are port mappings of the estate's gateway. They have no source
// filter: a mapped port is open to the world.
func openPorts(p *Premises, _ *blueprint.Graph) []Finding {
	ours := map[string]string{}
	for _, v := range p.gateways {
		if p.cloud.marked(v.Tags) {
			ours[v.ID] = v.Name
		}
	}
	var out []Finding
	for _, r := range p.ports {
		if name, estates := ours[r.GatewayID]; estates {
			out = append(out, Finding{fmt.Sprintf("port %d of the gateway %s (%s) in %s", r.PublicPort, name, r.ID, r.Zone),
				fmt.Sprintf("it leads to %s port %d for everybody: a port mapping has no source filter, and bastide makes none", r.PrivateIP, r.PrivatePort),
				fmt.Sprintf("if it is not meant: scw vpc-gw pat-rule delete-v2 %s zone=%s", r.ID, r.Zone)})
		}
	}
	return out
}

// noDefaultRoute is asked as soon as there are nodes: without it they neither
// fetch images nor answer anybody outside.
func noDefaultRoute(p *Premises, _ *blueprint.Graph) []Finding {
	if !p.Inventory.HasServers() {
		return nil
	}
	for _, it := range p.Inventory.Items {
		if spec, ok := it.Spec.(blueprint.GatewayNetwork); ok && spec.DefaultRoute && spec.NAT && strings.HasPrefix(spec.Network, string(blueprint.KindPrivateNetwork)+"/") {
			return nil
		}
	}
	return []Finding{{"the nodes of " + p.cloud.estate.Name, "no gateway gives their private network a default route and translates addresses, so they reach nothing outside", "bastide up ENV"}}
}

// publicNodes have an address that the nodes' firewall and the closed network
// were not made for.
func publicNodes(p *Premises, _ *blueprint.Graph) []Finding {
	if p.cloud.estate.Network.Mode != "private" {
		return nil
	}
	var out []Finding
	for _, s := range p.servers {
		if !p.cloud.marked(s.Tags) || len(s.PublicIPs) == 0 {
			continue
		}
		ip := s.PublicIPs[0]
		out = append(out, Finding{called("server", s.Name, s.ID, string(s.Zone)), fmt.Sprintf("it has the public address %s, and the estate is private", ip.Address),
			fmt.Sprintf("scw instance ip detach %s zone=%s", ip.ID, s.Zone)})
	}
	return out
}

// acceptingGroups are security groups of the estate's servers that let in
// whatever no rule names. The group of a project's first server is one.
func acceptingGroups(p *Premises, _ *blueprint.Graph) []Finding {
	used := map[string][]string{}
	for _, s := range p.servers {
		if p.cloud.marked(s.Tags) && s.SecurityGroup != nil {
			used[s.SecurityGroup.ID] = append(used[s.SecurityGroup.ID], s.Name)
		}
	}
	var out []Finding
	for _, g := range p.groups {
		servers := used[g.ID]
		if len(servers) == 0 || g.InboundDefaultPolicy != instance.SecurityGroupPolicyAccept && g.Stateful {
			continue
		}
		slices.Sort(servers)
		why := "it lets in what no rule names"
		if g.InboundDefaultPolicy != instance.SecurityGroupPolicyAccept {
			why = "it does not follow connections, so answers are dropped too"
		}
		out = append(out, Finding{called("security group", g.Name, g.ID, string(g.Zone)), fmt.Sprintf("%s, and %s use it", why, strings.Join(servers, ", ")), "bastide up ENV"})
	}
	return out
}

// missingSnapshot: nothing that runs needs it, and no node can be made again
// without it.
func missingSnapshot(p *Premises, _ *blueprint.Graph) []Finding {
	wanted := p.cloud.estate.Talos.Snapshot
	for _, s := range p.snapshots {
		if s.Name == wanted || s.ID == wanted {
			return nil
		}
	}
	if wanted == "" {
		return nil
	}
	return []Finding{{"snapshot " + wanted, fmt.Sprintf("%s has none: what runs goes on, and no node can be made", p.cloud.zone), "import the Talos disk again, or name another in talos.snapshot"}}
}
