package api

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

var notInHostname = regexp.MustCompile(`[^a-z0-9-]+`)

// hostname derives a host name from a server's name.
func hostname(name string) string {
	h := strings.Trim(notInHostname.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if len(h) > 63 {
		h = strings.TrimRight(h[:63], "-")
	}
	return h
}

// serverRequest is the body of a creation.
type serverRequest struct {
	Name           string                `json:"name"`
	Project        string                `json:"project"`
	Organization   string                `json:"organization"`
	Type           string                `json:"commercial_type"`
	Image          string                `json:"image"`
	Volumes        map[string]volumeSpec `json:"volumes"`
	DynamicIP      opt[bool]             `json:"dynamic_ip_required"`
	PublicIP       string                `json:"public_ip"`
	PublicIPs      []string              `json:"public_ips"`
	BootType       string                `json:"boot_type"`
	Tags           []string              `json:"tags"`
	SecurityGroup  string                `json:"security_group"`
	PlacementGroup string                `json:"placement_group"`
	AdminKey       string                `json:"admin_password_encryption_ssh_key_id"`
	Protected      bool                  `json:"protected"`
}

// complete refuses a request that names no type, or nothing to boot from.
func (in *serverRequest) complete() error {
	var missing []doc
	lacks := func(argument string) {
		missing = append(missing, wrong(argument, "required", "required key not provided"))
	}
	if in.Type == "" {
		lacks("commercial_type")
	}
	if in.Image == "" && in.Volumes == nil {
		lacks("image")
		lacks("volumes")
	}
	if missing == nil {
		return nil
	}
	return invalidAll(missing)
}

func createServer(c *call) (any, error) {
	var in serverRequest
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := in.complete(); err != nil {
		return nil, err
	}
	owner, err := c.owner(in.Project, in.Organization, projectForbidden("server"))
	if err != nil {
		return nil, err
	}
	t, ok := findType(in.Type, c.zone())
	if !ok {
		return nil, invalid("commercial_type", "constraint", "commercial type "+in.Type+" does not exist in this zone")
	}
	if err := c.withinQuota(owner, in.Type); err != nil {
		return nil, err
	}
	if in.Name == "" {
		in.Name = "srv-" + newID()[:8]
	}
	if in.BootType == "" {
		in.BootType = "local"
	}
	s := &server{record: newRecord(owner, in.Name, in.Tags), Zone: c.zone(), Type: in.Type, BootType: in.BootType,
		Hostname: hostname(in.Name), State: stateStopped, MAC: c.mac("de:00:01"), DynamicIP: in.DynamicIP.or(true),
		Protected: in.Protected, UserData: map[string][]byte{}, AdminKey: in.AdminKey, Volumes: map[string]slot{},
		Location: map[string]string{"zone_id": c.zone(), "platform_id": "14", "cluster_id": "49", "hypervisor_id": "802", "node_id": strconv.Itoa(len(c.Servers.Order) + 1)}}
	if err := c.placeServer(s, in); err != nil {
		return nil, err
	}
	ips, err := c.claimIPs(s, append(in.PublicIPs, nonEmpty(in.PublicIP)...))
	if err != nil {
		return nil, err
	}
	if err := c.fillSlots(s, t, in.Image, in.Volumes); err != nil {
		return nil, err
	}
	for _, ip := range ips {
		ip.Server = s.ID
		c.linkIP(ip)
	}
	return doc{"server": c.viewServer(add(c.world, c.Servers, s))}, nil
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// withinQuota refuses a server beyond the quota of its type, where one is set.
func (c *call) withinQuota(owner, kind string) error {
	limit, limited := c.opts.Quotas[kind]
	if !limited {
		return nil
	}
	n := len(c.Servers.where(func(s *server) bool {
		return s.Type == kind && c.organization(s.Project) == c.organization(owner)
	}))
	if n < limit {
		return nil
	}
	return &refusal{http.StatusForbidden, doc{"type": "quotas_exceeded", "message": "quota(s) exceeded for this resource",
		"details": []doc{{"resource": "cp_servers_type_" + strings.ReplaceAll(kind, "-", "_"), "quota": limit, "current": n}}}}
}

// placeServer settles the groups that a server belongs to.
func (c *call) placeServer(s *server, in serverRequest) error {
	if in.SecurityGroup == "" {
		in.SecurityGroup = c.defaultSecurityGroup(s.Project, s.Zone).ID
	}
	g, err := c.securityGroup(in.SecurityGroup)
	if err != nil {
		return err
	}
	s.SecurityGroup = g.ID
	if in.PlacementGroup == "" {
		return nil
	}
	p, err := c.placementGroup(in.PlacementGroup)
	if err == nil {
		s.PlacementGroup = p.ID
	}
	return err
}
