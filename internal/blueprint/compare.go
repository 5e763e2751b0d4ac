package blueprint

import (
	"fmt"
	"sort"
	"strings"
)

func (s VPC) Attributes() []Attribute { return []Attribute{inPlace("name", s.Name)} }

func (s PrivateNetwork) Attributes() []Attribute {
	return []Attribute{routine("name", s.Name), fixed("vpc", s.VPC), fixed("range", s.CIDR.String())}
}

func (s SSHKey) Attributes() []Attribute {
	return []Attribute{fixed("key", s.PublicKey), routine("disabled", fmt.Sprint(s.Disabled))}
}

func (s GatewayIP) Attributes() []Attribute {
	return []Attribute{fixed("zone", s.Zone), assigned("address", s.Address)}
}

func (s Gateway) Attributes() []Attribute {
	return []Attribute{
		routine("name", s.Name), fixed("zone", s.Zone), fixed("type", strings.ToUpper(s.Type)), fixed("ip", s.IP),
		inPlace("bastion", s.bastion()), inPlace("bastion ranges", joinPrefixes(s.BastionAllowed)),
	}
}

// bastion is the port on which the bastion listens, or that it is off.
func (s Gateway) bastion() string {
	if s.BastionPort == 0 {
		return "off"
	}
	return fmt.Sprintf("on, port %d", s.BastionPort)
}

func (s Address) Attributes() []Attribute {
	return []Attribute{fixed("network", s.Network), fixed("address", s.Address.String())}
}

func (s GatewayNetwork) Attributes() []Attribute {
	return []Attribute{
		fixed("gateway", s.Gateway), fixed("network", s.Network), fixed("address", s.Address),
		inPlace("nat", fmt.Sprint(s.NAT)), inPlace("default route", fmt.Sprint(s.DefaultRoute)),
	}
}

func (s SecurityGroup) Attributes() []Attribute {
	rules := make([]string, 0, len(s.Rules))
	for _, r := range s.Rules {
		rules = append(rules, r.String())
	}
	sort.Strings(rules) // the order of rules changes between reads
	return []Attribute{
		routine("name", s.Name), routine("description", s.Description), fixed("zone", s.Zone), inPlace("stateful", fmt.Sprint(s.Stateful)),
		inPlace("inbound default", s.InboundDefault), inPlace("outbound default", s.OutboundDefault),
		routine("blocks mail", fmt.Sprint(s.BlocksMail)), inPlace("rules", strings.Join(rules, "; ")),
	}
}

// String writes a rule as one line.
func (r Rule) String() string {
	port := ""
	if r.PortFrom != 0 {
		port = fmt.Sprintf(" %d", r.PortFrom)
		if r.PortTo > r.PortFrom {
			port += fmt.Sprintf("-%d", r.PortTo)
		}
	}
	return fmt.Sprintf("%s %s %s%s %s", r.Direction, r.Action, r.Protocol, port, r.Range)
}

func (s PlacementGroup) Attributes() []Attribute {
	return []Attribute{routine("name", s.Name), fixed("zone", s.Zone), inPlace("policy", s.Policy), inPlace("mode", s.Mode)}
}

func (s Volume) Attributes() []Attribute {
	origin := fixed("snapshot", s.Snapshot)
	if s.Image != "" {
		origin = fixed("image", s.Image)
	}
	return []Attribute{
		routine("name", s.Name), fixed("zone", s.Zone), grow("size", s.Size.String()), inPlace("iops", fmt.Sprint(s.IOPS)),
		origin,
	}
}

func (s Server) Attributes() []Attribute {
	return []Attribute{
		routine("name", s.Name), fixed("zone", s.Zone), fixed("type", s.Type), fixed("volumes", strings.Join(s.Volumes, " ")),
		inPlace("security group", s.SecurityGroup), fixed("placement group", s.PlacementGroup),
		fixed("public addresses", fmt.Sprint(s.PublicIPs)), routine("dynamic address", fmt.Sprint(s.DynamicIP)),
	}
}

func (s PrivateNIC) Attributes() []Attribute {
	return []Attribute{fixed("server", s.Server), fixed("network", s.Network), fixed("address", s.Address)}
}

func (s Power) Attributes() []Attribute {
	return []Attribute{fixed("server", s.Server), inPlace("state", s.State)}
}

func (s LoadBalancer) Attributes() []Attribute {
	return []Attribute{
		routine("name", s.Name), routine("description", s.Description), fixed("zone", s.Zone), fixed("type", strings.ToUpper(s.Type)),
		fixed("private", fmt.Sprint(s.Private)), routine("tls", s.TLS),
	}
}

func (s LBAttachment) Attributes() []Attribute {
	return []Attribute{fixed("load balancer", s.LoadBalancer), fixed("network", s.Network), fixed("address", s.Address)}
}

func (s LBBackend) Attributes() []Attribute {
	servers := make([]string, 0, len(s.Servers))
	for _, a := range s.Servers {
		servers = append(servers, a.String())
	}
	sort.Strings(servers)
	return []Attribute{
		fixed("load balancer", s.LoadBalancer), routine("name", s.Name), inPlace("port", fmt.Sprint(s.Port)),
		inPlace("servers", strings.Join(servers, " ")), routine("forwarding", s.Forwarding), routine("timeouts", s.Timeouts), routine("health check", s.Check),
	}
}

func (s LBFrontend) Attributes() []Attribute {
	return []Attribute{
		fixed("load balancer", s.LoadBalancer), routine("name", s.Name), inPlace("backend", s.Backend), inPlace("port", fmt.Sprint(s.Port)),
		routine("idle timeout", s.Idle.String()),
	}
}

func (s Machine) Attributes() []Attribute {
	return []Attribute{{Name: "configuration", Value: s.Digest, Unknown: s.Pending, Mutable: InPlace}}
}

func (s EtcdBootstrap) Attributes() []Attribute {
	return []Attribute{fixed("bootstrapped", fmt.Sprint(s.Done))}
}

func (s EtcdMembers) Attributes() []Attribute {
	return []Attribute{inPlace("voters", strings.Join(s.Voters, " "))}
}

func (s KubernetesNodes) Attributes() []Attribute {
	return []Attribute{inPlace("ready", strings.Join(s.Ready, " "))}
}
