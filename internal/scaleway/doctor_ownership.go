package scaleway

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"bastide/internal/blueprint"
)

// ownership asks whose things are: what carries the estate's mark without a
// reason, and what looks like the estate's without the mark.
var ownership = []question{
	{"unexplained-marks", []reading{readEstate}, unexplained},
	{"in-the-way", []reading{readEstate}, inTheWay},
	{"taken-names", []reading{readEstate}, takenNames},
	{"names-without-mark", []reading{readServers, readVolumes, readVPCs, readNetworks, readGateways, readGatewayIPs, readBalancers, readGroups}, namesakes},
	{"cluster-load-balancers", []reading{readEstate}, func(p *Premises, _ *blueprint.Graph) []Finding { return p.ofCluster(blueprint.KindClusterBalancer) }},
	{"cluster-volumes", []reading{readEstate}, func(p *Premises, _ *blueprint.Graph) []Finding { return p.ofCluster(blueprint.KindClusterVolume) }},
	{"cluster-snapshots", []reading{readEstate}, func(p *Premises, _ *blueprint.Graph) []Finding { return p.ofCluster(blueprint.KindClusterSnapshot) }},
}

// removeWith are the commands of scw that remove one thing of a kind, by its ID
// in a zone or region.
var removeWith = map[blueprint.Kind]string{
	blueprint.KindServer:          "scw instance server delete ID zone=PLACE",
	blueprint.KindVolume:          "scw block volume delete ID zone=PLACE",
	blueprint.KindClusterVolume:   "scw block volume delete ID zone=PLACE",
	blueprint.KindClusterSnapshot: "scw block snapshot delete ID zone=PLACE",
	blueprint.KindSnapshot:        "bastide image prune ENV",
	blueprint.KindLoadBalancer:    "scw lb lb delete ID zone=PLACE",
	blueprint.KindClusterBalancer: "scw lb lb delete ID release-ip=true zone=PLACE",
	blueprint.KindGateway:         "scw vpc-gw gateway delete-v2 ID zone=PLACE",
	blueprint.KindGatewayIP:       "scw vpc-gw ip delete-v2 ID zone=PLACE",
	blueprint.KindSecurityGroup:   "scw instance security-group delete ID zone=PLACE",
	blueprint.KindPlacementGroup:  "scw instance placement-group delete ID zone=PLACE",
	blueprint.KindAddress:         "scw ipam ip delete ID region=PLACE",
	blueprint.KindPrivateNetwork:  "scw vpc private-network delete ID region=PLACE",
	blueprint.KindVPC:             "scw vpc vpc delete ID region=PLACE",
	blueprint.KindSSHKey:          "scw iam ssh-key delete ID",
}

// removal is how a person removes one thing.
func (p *Premises) removal(kind blueprint.Kind, id, zone string) string {
	command, known := removeWith[kind]
	if !known {
		return "remove it in the Scaleway console"
	}
	if zone == "" {
		zone = string(p.cloud.region)
	}
	return strings.NewReplacer("ID", id, "PLACE", zone).Replace(command)
}

func called(kind, name, id, zone string) string {
	if zone != "" {
		zone = " in " + zone
	}
	if name == "" {
		return fmt.Sprintf("%s %s%s", kind, id, zone)
	}
	return fmt.Sprintf("%s %s (%s)%s", kind, name, id, zone)
}

// unexplained are things with the mark for which the file has no step.
func unexplained(p *Premises, g *blueprint.Graph) []Finding {
	var out []Finding
	for _, it := range p.Inventory.Items {
		step, wanted := g.Step(it.Step)
		var why string
		switch {
		case it.Kind == blueprint.KindPower, it.Kind == blueprint.KindClusterBalancer, it.Kind == blueprint.KindClusterVolume, it.Kind == blueprint.KindClusterSnapshot:
			continue // told with its server, or by checks of their own
		case isLeaving(it.Status):
			continue
		case it.Kind == blueprint.KindSnapshot && !it.Second && it.Step != "" && p.Inventory.madeOf(it.CloudID):
			continue // an earlier image, of which something is made
		case it.Second:
			why = "it carries the mark of " + it.Step + ", and so does an older one"
		case it.useless:
			why = "its import failed, and nothing can be made of it"
		case it.Step == "":
			why = "it carries the estate's mark and claims no step"
		case !wanted || step.Kind != it.Kind:
			why = "it carries the estate's mark and the file does not ask for it"
			if it.left.why != "" {
				out = append(out, Finding{called(string(it.Kind), it.Name, it.CloudID, it.Zone), it.left.why, it.left.fix})
				continue
			}
		default:
			continue
		}
		out = append(out, Finding{called(string(it.Kind), it.Name, it.CloudID, it.Zone), why, "if it is not needed: " + p.removal(it.Kind, it.CloudID, it.Zone)})
	}
	return out
}

// inTheWay is what would stop a destroy.
func inTheWay(p *Premises, _ *blueprint.Graph) []Finding {
	var out []Finding
	for _, f := range p.Inventory.Foreign {
		out = append(out, Finding{f.What, f.Why + " without the estate's mark, and stops a destroy", "remove or detach it; if it is the estate's, give it its mark back, see names-without-mark"})
	}
	return out
}

// takenNames are the steps in whose place something without the mark is, of the
// kinds that can be there once only.
func takenNames(p *Premises, g *blueprint.Graph) []Finding {
	var out []Finding
	for _, step := range slices.Sorted(maps.Keys(p.Inventory.squatters)) {
		if _, asked := g.Step(step); !asked {
			continue // a name that the file does not want
		}
		fix := "choose another name in the file, or remove what has it"
		if strings.HasPrefix(step, string(blueprint.KindPostgres)) { // data, or a password that somebody may need
			fix = "hand it over, or rename or move it; do not delete it before you know what is in it"
		}
		out = append(out, Finding{step, p.Inventory.squatters[step], fix})
	}
	return out
}

// namesakes are things that have the name of something of the estate and no
// mark of any estate: they may have lost it.
func namesakes(p *Premises, g *blueprint.Graph) []Finding {
	names := map[blueprint.Kind]map[string]string{}
	for _, s := range g.Steps {
		if names[s.Kind] == nil {
			names[s.Kind] = map[string]string{}
		}
		names[s.Kind][s.Name] = s.ID
	}
	var out []Finding
	look := func(kind blueprint.Kind, name, id, zone string, tags []string) {
		step, wanted := names[kind][name]
		if !wanted || ofSomeEstate(tags) || has(tags, tagCloudController) {
			return
		}
		out = append(out, Finding{called(string(kind), name, id, zone), "it has the name of " + step + " and carries no mark: bastide neither uses nor removes it",
			fmt.Sprintf("if it is the estate's, give it the tags %s%s and %s%s", blueprint.TagEstate, g.Estate, blueprint.TagStep, step)})
	}
	for _, v := range p.servers {
		look(blueprint.KindServer, v.Name, v.ID, string(v.Zone), v.Tags)
	}
	for _, v := range p.volumes {
		look(blueprint.KindVolume, v.Name, v.ID, string(v.Zone), v.Tags)
	}
	for _, v := range p.vpcs {
		look(blueprint.KindVPC, v.Name, v.ID, "", v.Tags)
	}
	for _, v := range p.networks {
		look(blueprint.KindPrivateNetwork, v.Name, v.ID, "", v.Tags)
	}
	for _, v := range p.gateways {
		look(blueprint.KindGateway, v.Name, v.ID, string(v.Zone), v.Tags)
	}
	lost := p.cloud.lostMarks(p.gateways, p.gatewayIPs, p.cloud.bonds(p.networks, p.gatewayIPs, false))
	for _, step := range slices.Sorted(maps.Keys(lost)) {
		l := lost[step]
		what := called(string(l.kind), l.name, l.id, l.zone)
		if _, wanted := g.Step(step); wanted && l.fix != "" && !slices.ContainsFunc(out, func(f Finding) bool { return f.What == what }) {
			out = append(out, Finding{what, "it " + l.how, l.fix})
		}
	}
	for _, v := range p.balancers {
		look(blueprint.KindLoadBalancer, v.Name, v.ID, string(v.Zone), v.Tags)
	}
	for _, v := range p.groups {
		look(blueprint.KindSecurityGroup, v.Name, v.ID, string(v.Zone), v.Tags)
	}
	return out
}

// ofSomeEstate says that tags carry the mark of an estate, this one or another:
// another's is that estate's business.
func ofSomeEstate(tags []string) bool {
	return slices.ContainsFunc(tags, func(t string) bool { return strings.HasPrefix(t, blueprint.TagEstate) })
}

// ofCluster are the things of one kind that a cluster made: those that nothing
// ties to this one, and those of this one when it has no node any more.
func (p *Premises) ofCluster(kind blueprint.Kind) []Finding {
	var out []Finding
	for _, l := range p.Inventory.Lookalikes {
		if l.Kind == kind {
			out = append(out, Finding{called(string(kind), l.Name, l.ID, l.Zone), l.Why, "if no cluster needs it: " + p.removal(kind, l.ID, l.Zone)})
		}
	}
	if p.Inventory.HasServers() {
		return out
	}
	for _, it := range p.Inventory.Items {
		if it.Kind != kind {
			continue
		}
		fix := "bastide destroy ENV"
		if class := kind.Data(); class != "" {
			fix += fmt.Sprintf(" --delete-data %s", class)
		}
		out = append(out, Finding{called(string(kind), it.Name, it.CloudID, it.Zone), "the estate's cluster made it and has no node any more", "if it is not needed: " + fix})
	}
	return out
}
