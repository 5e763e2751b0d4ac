package scaleway

import (
	"fmt"

	"bastide/internal/blueprint"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
)

// unused asks for what costs money or blocks deletions and serves nobody. What
// carries the mark of an estate is that estate's: see unexplained-marks.
var unused = []question{
	{"unused-flexible-addresses", []reading{readInstanceIPs}, unusedInstanceIPs},
	{"unused-gateway-addresses", []reading{readGatewayIPs}, unusedGatewayIPs},
	{"unused-load-balancer-addresses", []reading{readBalancerIPs}, unusedBalancerIPs},
	{"unused-private-addresses", []reading{readAddresses}, unusedAddresses},
	{"unused-volumes", []reading{readVolumes}, unusedVolumes},
	{"unused-snapshots", []reading{readSnapshots, readVolumes}, unusedSnapshots},
	{"interfaces-without-server", []reading{readInterfaces, readServers}, lostInterfaces},
	{"idle-load-balancers", []reading{readBalancers}, idleBalancers},
	{"idle-gateways", []reading{readGateways}, idleGateways},
}

func unusedInstanceIPs(p *Premises, _ *blueprint.Graph) []Finding {
	var out []Finding
	for _, v := range p.instanceIPs {
		if v.Server == nil && !ofSomeEstate(v.Tags) {
			out = append(out, Finding{called("flexible address", addressText(v.Address.String(), v.Prefix.String()), v.ID, string(v.Zone)), "it is reserved, is paid for and belongs to no server",
				fmt.Sprintf("if it is not needed: scw instance ip delete %s zone=%s", v.ID, v.Zone)})
		}
	}
	return out
}

// addressText is an address, or the prefix of a family that has only that.
func addressText(address, prefix string) string {
	if address == "" || address == "<nil>" {
		return prefix
	}
	return address
}

func unusedGatewayIPs(p *Premises, _ *blueprint.Graph) []Finding {
	var out []Finding
	for _, v := range p.gatewayIPs {
		if (v.GatewayID == nil || *v.GatewayID == "") && !ofSomeEstate(v.Tags) {
			out = append(out, Finding{called("gateway address", v.Address.String(), v.ID, string(v.Zone)), "it is reserved, is paid for and belongs to no gateway",
				"if it is not needed: " + p.removal(blueprint.KindGatewayIP, v.ID, string(v.Zone))})
		}
	}
	return out
}

func unusedBalancerIPs(p *Premises, _ *blueprint.Graph) []Finding {
	var out []Finding
	for _, v := range p.balancerIPs {
		if (v.LBID == nil || *v.LBID == "") && !ofSomeEstate(v.Tags) {
			out = append(out, Finding{called("load balancer address", v.IPAddress, v.ID, string(v.Zone)), "it is reserved, is paid for and belongs to no load balancer",
				fmt.Sprintf("if it is not needed: scw lb ip delete %s zone=%s", v.ID, v.Zone)})
		}
	}
	return out
}

// unusedAddresses are bookings that nothing has: they keep their private network
// from being deleted. Public addresses are shown by IPAM as well, in a zone.
func unusedAddresses(p *Premises, _ *blueprint.Graph) []Finding {
	var out []Finding
	for _, v := range p.addresses {
		if (v.Resource == nil || v.Resource.ID == "") && !ofSomeEstate(v.Tags) && v.Source != nil && (v.Source.SubnetID != nil || v.Source.PrivateNetworkID != nil) {
			out = append(out, Finding{called("private address", addressOf(v).String(), v.ID, ""), "it is booked, belongs to nothing, and keeps its network from being deleted",
				"if it is not needed: " + p.removal(blueprint.KindAddress, v.ID, "")})
		}
	}
	return out
}

func unusedVolumes(p *Premises, _ *blueprint.Graph) []Finding {
	var out []Finding
	for _, v := range p.volumes {
		switch {
		case ofSomeEstate(v.Tags), byDriver(v.Name, v.Tags, claimName), len(v.References) > 0, v.Status == block.VolumeStatusCreating:
			continue
		}
		out = append(out, Finding{called("volume", v.Name, v.ID, string(v.Zone)), "it is paid for and no server has it",
			"if what is on it is not needed: " + p.removal(blueprint.KindVolume, v.ID, string(v.Zone))})
	}
	return out
}

// unusedSnapshots leaves out what the file names: an imported disk never had a
// volume.
func unusedSnapshots(p *Premises, _ *blueprint.Graph) []Finding {
	volumes := map[string]bool{}
	for _, v := range p.volumes {
		volumes[v.ID] = true
	}
	wanted := p.cloud.estate.Talos.Snapshot
	var out []Finding
	for _, s := range p.snapshots {
		switch {
		case ofSomeEstate(s.Tags), byDriver(s.Name, s.Tags, snapshotName), len(s.References) > 0, s.Name == wanted, s.ID == wanted,
			s.ParentVolume != nil && volumes[s.ParentVolume.ID], s.Status == block.SnapshotStatusCreating:
			continue
		}
		out = append(out, Finding{called("snapshot", s.Name, s.ID, string(s.Zone)), "it is paid for, its volume is gone or never was, and nothing is made from it now",
			"if it is not needed, also by another estate's talos.snapshot: " + p.removal(blueprint.KindClusterSnapshot, s.ID, string(s.Zone))})
	}
	return out
}

// lostInterfaces keep their private network from being deleted and are shown by
// no server.
func lostInterfaces(p *Premises, _ *blueprint.Graph) []Finding {
	servers := map[string]bool{}
	for _, s := range p.servers {
		servers[s.ID] = true
	}
	var out []Finding
	for _, n := range p.interfaces {
		if !servers[n.ServerID] && !ofSomeEstate(n.Tags) {
			out = append(out, Finding{called("private interface", n.MacAddress, n.ID, string(n.Zone)), fmt.Sprintf("its server is gone, and it keeps the private network %s from being deleted", n.PrivateNetworkID),
				"remove it in the Scaleway console"})
		}
	}
	return out
}

func idleBalancers(p *Premises, _ *blueprint.Graph) []Finding {
	var out []Finding
	for _, b := range p.balancers {
		if b.BackendCount == 0 && b.FrontendCount == 0 && !ofSomeEstate(b.Tags) && !has(b.Tags, tagCloudController) {
			out = append(out, Finding{called("load balancer", b.Name, b.ID, string(b.Zone)), "it is paid for and has neither frontend nor backend",
				"if it is not needed: " + p.removal(blueprint.KindLoadBalancer, b.ID, string(b.Zone))})
		}
	}
	return out
}

func idleGateways(p *Premises, _ *blueprint.Graph) []Finding {
	var out []Finding
	for _, v := range p.gateways {
		if len(v.GatewayNetworks) == 0 && !ofSomeEstate(v.Tags) {
			out = append(out, Finding{called("gateway", v.Name, v.ID, string(v.Zone)), "it is paid for and is in no private network",
				"if it is not needed: " + p.removal(blueprint.KindGateway, v.ID, string(v.Zone))})
		}
	}
	return out
}
