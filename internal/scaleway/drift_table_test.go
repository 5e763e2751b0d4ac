package scaleway_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/plan"

	"github.com/minio/minio-go/v7/pkg/cors"
	"github.com/minio/minio-go/v7/pkg/lifecycle"
	"github.com/minio/minio-go/v7/pkg/tags"
	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/api/domain/v2beta1"
	"github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	"github.com/scaleway/scaleway-sdk-go/api/ipam/v1"
	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/registry/v1"
	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/api/vpc/v2"
	"github.com/scaleway/scaleway-sdk-go/api/vpcgw/v2"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// handChange is one attribute that somebody changes by hand in the console, and
// what the plan then says of it.
type handChange struct {
	step, attribute string
	by              func(w *world, c *scw.Client, id string)
	have, want      string // a part of each value
	refused         bool   // up cannot change it back
}

const theKey = "ssh-key/staging-bastide-"

var handChanges = []handChange{
	{step: "vpc/staging", attribute: "name", have: "other", want: "staging", by: func(w *world, c *scw.Client, id string) {
		must(vpc.NewAPI(c).UpdateVPC(&vpc.UpdateVPCRequest{VpcID: id, Name: scw.StringPtr("other")}))(w)
	}},
	{step: "private-network/staging", attribute: "name", have: "other", want: "staging", by: func(w *world, c *scw.Client, id string) {
		must(vpc.NewAPI(c).UpdatePrivateNetwork(&vpc.UpdatePrivateNetworkRequest{PrivateNetworkID: id, Name: scw.StringPtr("other")}))(w)
	}},
	{step: theKey, attribute: "disabled", have: "true", want: "false", by: func(w *world, c *scw.Client, id string) {
		must(iam.NewAPI(c).UpdateSSHKey(&iam.UpdateSSHKeyRequest{SSHKeyID: id, Disabled: scw.BoolPtr(true)}))(w)
	}},
	{step: "gateway/staging-gateway", attribute: "name", have: "other", want: "staging-gateway", by: gateway(func(r *vpcgw.UpdateGatewayRequest) { r.Name = scw.StringPtr("other") })},
	{step: "gateway/staging-gateway", attribute: "bastion", have: "on, port 2222", want: "on, port 61000", by: gateway(func(r *vpcgw.UpdateGatewayRequest) { r.BastionPort = scw.Uint32Ptr(2222) })},
	{step: "gateway/staging-gateway", attribute: "bastion ranges", have: "0.0.0.0/0", want: "198.51.100.7/32", by: func(w *world, c *scw.Client, id string) {
		must(vpcgw.NewAPI(c).SetBastionAllowedIPs(&vpcgw.SetBastionAllowedIPsRequest{GatewayID: id, IPRanges: []string{"0.0.0.0/0"}}))(w)
	}},
	{step: "gateway/staging-gateway", attribute: "type", have: "VPC-GW-M", want: "VPC-GW-S", refused: true, by: func(w *world, c *scw.Client, id string) {
		must(vpcgw.NewAPI(c).UpgradeGateway(&vpcgw.UpgradeGatewayRequest{GatewayID: id, Type: scw.StringPtr("VPC-GW-M")}))(w)
	}},
	{step: "gateway-network/staging-gateway", attribute: "nat", have: "false", want: "true", by: func(w *world, c *scw.Client, id string) {
		must(vpcgw.NewAPI(c).UpdateGatewayNetwork(&vpcgw.UpdateGatewayNetworkRequest{GatewayNetworkID: id, EnableMasquerade: scw.BoolPtr(false), PushDefaultRoute: scw.BoolPtr(false)}))(w) // the one implies the other
	}},
	{step: "gateway-network/staging-gateway", attribute: "default route", have: "false", want: "true", by: func(w *world, c *scw.Client, id string) {
		must(vpcgw.NewAPI(c).UpdateGatewayNetwork(&vpcgw.UpdateGatewayNetworkRequest{GatewayNetworkID: id, PushDefaultRoute: scw.BoolPtr(false)}))(w)
	}},
	{step: "gateway-network/staging-gateway", attribute: "address", have: "foreign:", want: "address/staging-gateway", refused: true, by: func(w *world, c *scw.Client, id string) {
		network := w.find("private-network/staging").CloudID
		ip := must(ipam.NewAPI(c).BookIP(&ipam.BookIPRequest{Source: &ipam.Source{PrivateNetworkID: &network}}))(w)
		must(vpcgw.NewAPI(c).UpdateGatewayNetwork(&vpcgw.UpdateGatewayNetworkRequest{GatewayNetworkID: id, IpamIPID: &ip.ID}))(w)
	}},
	{step: "security-group/staging-nodes", attribute: "name", have: "other", want: "staging-nodes", by: group(func(r *instance.UpdateSecurityGroupRequest) { r.Name = scw.StringPtr("other") })},
	{step: "security-group/staging-nodes", attribute: "description", have: "other", want: "made by bastide", by: group(func(r *instance.UpdateSecurityGroupRequest) { r.Description = scw.StringPtr("other") })},
	{step: "security-group/staging-nodes", attribute: "stateful", have: "false", want: "true", by: group(func(r *instance.UpdateSecurityGroupRequest) { r.Stateful = scw.BoolPtr(false) })},
	{step: "security-group/staging-nodes", attribute: "inbound default", have: "accept", want: "drop", by: group(func(r *instance.UpdateSecurityGroupRequest) {
		r.InboundDefaultPolicy = instance.SecurityGroupPolicyAccept
	})},
	{step: "security-group/staging-nodes", attribute: "outbound default", have: "drop", want: "accept", by: group(func(r *instance.UpdateSecurityGroupRequest) {
		r.OutboundDefaultPolicy = instance.SecurityGroupPolicyDrop
	})},
	{step: "security-group/staging-nodes", attribute: "blocks mail", have: "false", want: "true", by: group(func(r *instance.UpdateSecurityGroupRequest) { r.EnableDefaultSecurity = scw.BoolPtr(false) })},
	{step: "security-group/staging-nodes", attribute: "rules", have: "inbound accept TCP 50000", by: func(w *world, c *scw.Client, id string) {
		must(instance.NewAPI(c).CreateSecurityGroupRule(&instance.CreateSecurityGroupRuleRequest{SecurityGroupID: id, Protocol: instance.SecurityGroupRuleProtocolTCP,
			Direction: instance.SecurityGroupRuleDirectionInbound, Action: instance.SecurityGroupRuleActionAccept, IPRange: everywhere(), DestPortFrom: scw.Uint32Ptr(50000)}))(w)
	}},
	{step: "placement-group/staging-system", attribute: "name", have: "other", want: "staging-system", by: placement(func(r *instance.UpdatePlacementGroupRequest) { r.Name = scw.StringPtr("other") })},
	{step: "placement-group/staging-system", attribute: "policy", have: "low_latency", want: "max_availability", by: placement(func(r *instance.UpdatePlacementGroupRequest) {
		low := instance.PlacementGroupPolicyTypeLowLatency
		r.PolicyType = &low
	})},
	{step: "placement-group/staging-system", attribute: "mode", have: "enforced", want: "optional", by: placement(func(r *instance.UpdatePlacementGroupRequest) {
		enforced := instance.PlacementGroupPolicyModeEnforced
		r.PolicyMode = &enforced
	})},
	{step: "volume/staging-system-1", attribute: "name", have: "other", want: "staging-system-1", by: volume(func(r *block.UpdateVolumeRequest) { r.Name = scw.StringPtr("other") })},
	{step: "volume/staging-system-1", attribute: "iops", have: "15000", want: "5000", by: volume(func(r *block.UpdateVolumeRequest) { r.PerfIops = scw.Uint32Ptr(15000) })},
	{step: "volume/staging-system-1", attribute: "size", have: "30GB", want: "20GB", refused: true, by: volume(func(r *block.UpdateVolumeRequest) {
		size := scw.Size(30e9)
		r.Size = &size
	})},
	{step: "server/staging-system-1", attribute: "name", have: "other", want: "staging-system-1", by: server(func(r *instance.UpdateServerRequest) { r.Name = scw.StringPtr("other") })},
	{step: "server/staging-system-1", attribute: "dynamic address", have: "true", want: "false", refused: true, by: server(func(r *instance.UpdateServerRequest) { r.DynamicIPRequired = scw.BoolPtr(true) })},
	{step: "server/staging-system-1", attribute: "security group", have: "foreign:", want: "security-group/staging-nodes", by: func(w *world, c *scw.Client, id string) {
		api := instance.NewAPI(c)
		all := must(api.ListSecurityGroups(&instance.ListSecurityGroupsRequest{ProjectDefault: scw.BoolPtr(true)}))(w)
		must(api.UpdateServer(&instance.UpdateServerRequest{ServerID: id, SecurityGroup: &instance.SecurityGroupTemplate{ID: all.SecurityGroups[0].ID, Name: "x"}}))(w)
	}},
	{step: "server/staging-system-1", attribute: "placement group", have: "", want: "placement-group/staging-system", refused: true, by: func(w *world, c *scw.Client, id string) {
		must(instance.NewAPI(c).UpdateServer(&instance.UpdateServerRequest{ServerID: w.stop(c, id), PlacementGroup: &instance.NullableStringValue{Null: true}}))(w)
	}},
	{step: "server/staging-system-1", attribute: "volumes", have: "", want: "volume/staging-system-1", refused: true, by: func(w *world, c *scw.Client, id string) {
		must(instance.NewAPI(c).DetachServerVolume(&instance.DetachServerVolumeRequest{ServerID: w.stop(c, id), VolumeID: w.find("volume/staging-system-1").CloudID}))(w)
	}},
	{step: "server/staging-system-1", attribute: "public addresses", have: "1", want: "0", refused: true, by: func(w *world, c *scw.Client, id string) {
		must(instance.NewAPI(c).CreateIP(&instance.CreateIPRequest{Server: &id, Type: instance.IPTypeRoutedIPv4}))(w)
	}},
	{step: "server/staging-system-1", attribute: "type", have: "PLAY2-NANO", want: "PLAY2-MICRO", refused: true, by: func(w *world, c *scw.Client, id string) {
		must(instance.NewAPI(c).UpdateServer(&instance.UpdateServerRequest{ServerID: w.stop(c, id), PlacementGroup: &instance.NullableStringValue{Null: true}}))(w)
		must(instance.NewAPI(c).UpdateServer(&instance.UpdateServerRequest{ServerID: id, CommercialType: scw.StringPtr("PLAY2-NANO")}))(w)
	}},
	{step: "power/staging-system-1", attribute: "state", have: "stopped", want: "running", by: func(w *world, c *scw.Client, id string) { w.stop(c, id) }},
	{step: "load-balancer/staging-api", attribute: "name", have: "other", want: "staging-api", by: balancer(func(r *lb.ZonedAPIUpdateLBRequest) { r.Name = "other" })},
	{step: "load-balancer/staging-api", attribute: "description", have: "other", want: "made by bastide", by: balancer(func(r *lb.ZonedAPIUpdateLBRequest) { r.Description = "other" })},
	{step: "load-balancer/staging-api", attribute: "tls", have: "old", want: "intermediate", by: balancer(func(r *lb.ZonedAPIUpdateLBRequest) {
		r.SslCompatibilityLevel = lb.SSLCompatibilityLevelSslCompatibilityLevelOld
	})},
	{step: "load-balancer/staging-api", attribute: "type", have: "LB-GP-M", want: "LB-S", refused: true, by: func(w *world, c *scw.Client, id string) {
		must(lb.NewZonedAPI(c).MigrateLB(&lb.ZonedAPIMigrateLBRequest{LBID: id, Type: "LB-GP-M"}))(w)
	}},
	{step: "lb-backend/staging-api", attribute: "name", have: "other", want: "staging-api", by: backend(func(r *lb.ZonedAPIUpdateBackendRequest) { r.Name = "other" })},
	{step: "lb-backend/staging-api", attribute: "port", have: "443", want: "6443", by: backend(func(r *lb.ZonedAPIUpdateBackendRequest) { r.ForwardPort = 443 })},
	{step: "lb-backend/staging-api", attribute: "forwarding", have: "leastconn", want: "roundrobin", by: backend(func(r *lb.ZonedAPIUpdateBackendRequest) {
		r.ForwardPortAlgorithm = lb.ForwardPortAlgorithmLeastconn
	})},
	{step: "lb-backend/staging-api", attribute: "timeouts", have: "server 1m0s", want: "server 1h0m0s", by: backend(func(r *lb.ZonedAPIUpdateBackendRequest) { r.TimeoutServer = scw.TimeDurationPtr(time.Minute) })},
	{step: "lb-backend/staging-api", attribute: "servers", have: "172.16.0.99", want: "172.16.0.4 172.16.0.5 172.16.0.6", by: func(w *world, c *scw.Client, id string) {
		must(lb.NewZonedAPI(c).SetBackendServers(&lb.ZonedAPISetBackendServersRequest{BackendID: id, ServerIP: []string{"172.16.0.99"}}))(w)
	}},
	{step: "lb-backend/staging-api", attribute: "health check", have: "tcp on 6443 every 1m0s", want: "tcp on 6443 every 5s", by: func(w *world, c *scw.Client, id string) {
		must(lb.NewZonedAPI(c).UpdateHealthCheck(&lb.ZonedAPIUpdateHealthCheckRequest{BackendID: id, Port: 6443, CheckDelay: scw.TimeDurationPtr(time.Minute),
			CheckTimeout: scw.TimeDurationPtr(3 * time.Second), CheckMaxRetries: 2, TCPConfig: &lb.HealthCheckTCPConfig{}}))(w)
	}},
	{step: "lb-frontend/staging-api", attribute: "name", have: "other", want: "staging-api", by: frontend(func(_ *world, r *lb.ZonedAPIUpdateFrontendRequest) { r.Name = "other" })},
	{step: "lb-frontend/staging-api", attribute: "port", have: "443", want: "6443", by: frontend(func(_ *world, r *lb.ZonedAPIUpdateFrontendRequest) { r.InboundPort = 443 })},
	{step: "lb-frontend/staging-api", attribute: "idle timeout", have: "1m0s", want: "1h0m0s", by: frontend(func(_ *world, r *lb.ZonedAPIUpdateFrontendRequest) {
		r.TimeoutClient = scw.TimeDurationPtr(time.Minute)
	})},
	{step: "lb-frontend/staging-api", attribute: "backend", have: "foreign:", want: "lb-backend/staging-api", by: frontend(func(w *world, r *lb.ZonedAPIUpdateFrontendRequest) {
		r.BackendID = must(lb.NewZonedAPI(w.somebody()).CreateBackend(&lb.ZonedAPICreateBackendRequest{LBID: w.find("load-balancer/staging-api").CloudID, Name: "another",
			ForwardProtocol: lb.ProtocolTCP, ForwardPort: 443, ForwardPortAlgorithm: lb.ForwardPortAlgorithmRoundrobin, StickySessions: lb.StickySessionsTypeNone,
			HealthCheck: &lb.HealthCheck{Port: 443, CheckMaxRetries: 1, TCPConfig: &lb.HealthCheckTCPConfig{}}}))(w).ID
	})},
	{step: "registry/staging-images", attribute: "public", have: "true", want: "false", by: func(w *world, c *scw.Client, id string) {
		must(registry.NewAPI(c).UpdateNamespace(&registry.UpdateNamespaceRequest{NamespaceID: id, IsPublic: scw.BoolPtr(true)}))(w)
	}},
	{step: "registry/staging-images", attribute: "description", have: "other", want: "images of the platform", by: func(w *world, c *scw.Client, id string) {
		must(registry.NewAPI(c).UpdateNamespace(&registry.UpdateNamespaceRequest{NamespaceID: id, Description: scw.StringPtr("[bastide:estate=staging] other")}))(w)
	}},
	{step: "secret/app/session-key", attribute: "name", have: "other", want: "session-key", by: container(func(r *secret.UpdateSecretRequest) { r.Name = scw.StringPtr("other") })},
	{step: "secret/app/session-key", attribute: "path", have: "/other", want: "/app", by: container(func(r *secret.UpdateSecretRequest) { r.Path = scw.StringPtr("/other") })},
	{step: "secret/app/session-key", attribute: "tags", have: "other", want: "team-platform", by: container(func(r *secret.UpdateSecretRequest) {
		r.Tags = &[]string{"bastide:estate=staging", "bastide:step=secret/app/session-key", "other"}
	})},
	{step: "secret/app/session-key", attribute: "protected", have: "true", want: "false", by: func(w *world, c *scw.Client, id string) {
		must(secret.NewAPI(c).ProtectSecret(&secret.ProtectSecretRequest{SecretID: id}))(w)
	}},
	{step: "dns-record/edge.example.org", attribute: "ttl", have: "600", want: "300", by: dnsRecord(func(r *domain.Record) { r.TTL = 600 })},
	{step: "dns-record/edge.example.org", attribute: "values", have: "192.0.2.1", want: "127.51.", by: dnsRecord(func(r *domain.Record) { r.Data = "192.0.2.1" })},
	{step: "dns-record/edge.example.org", attribute: "type", have: "AAAA", want: "A", refused: true, by: dnsRecord(func(r *domain.Record) { r.Type, r.Data = domain.RecordTypeAAAA, "2001:db8::1" })},
	{step: "bucket/staging-app", attribute: "access", have: "public: a policy lets everybody in", want: "private", by: func(w *world, _ *scw.Client, id string) {
		w.did(w.minio().PutBucketPolicy(w.Context(), id, `{"Version":"2023-04-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"`+id+`/*"}]}`))
	}},
	{step: "bucket/staging-app", attribute: "versioning", have: "disabled", want: "enabled", by: func(w *world, _ *scw.Client, id string) {
		w.did(w.minio().SuspendVersioning(w.Context(), id))
	}},
	{step: "bucket/staging-app", attribute: "tags", have: "team=other", want: "team=platform", by: func(w *world, _ *scw.Client, id string) {
		marks := must(tags.NewTags(map[string]string{"bastide:estate": "staging", "bastide:step": "bucket/staging-app", "team": "other"}, false))(w)
		w.did(w.minio().SetBucketTagging(w.Context(), id, marks))
	}},
	{step: "bucket/staging-app", attribute: "lifecycle", have: `other "" expire 1`, want: `old-logs "logs/" expire 30`, by: func(w *world, _ *scw.Client, id string) {
		w.did(w.minio().SetBucketLifecycle(w.Context(), id, &lifecycle.Configuration{Rules: []lifecycle.Rule{{ID: "other", Status: "Enabled", Expiration: lifecycle.Expiration{Days: 1}}}}))
	}},
	{step: "bucket/staging-app", attribute: "cors", have: "GET from *", want: "GET PUT from https://app.example.org", by: func(w *world, _ *scw.Client, id string) {
		w.did(w.minio().SetBucketCors(w.Context(), id, cors.NewConfig([]cors.Rule{{AllowedMethod: []string{"GET"}, AllowedOrigin: []string{"*"}}})))
	}},
}

// born are attributes that a thing has for life: no call of the API changes them,
// so nobody can by hand.
var born = map[blueprint.Kind][]string{
	blueprint.KindPrivateNetwork: {"vpc", "range"},
	blueprint.KindSSHKey:         {"key"},
	blueprint.KindGatewayIP:      {"zone", "address"},
	blueprint.KindGateway:        {"zone", "ip"},
	blueprint.KindAddress:        {"network", "address"},
	blueprint.KindGatewayNetwork: {"gateway", "network"},
	blueprint.KindSecurityGroup:  {"zone"},
	blueprint.KindPlacementGroup: {"zone"},
	blueprint.KindVolume:         {"zone", "snapshot"},
	blueprint.KindServer:         {"zone"},
	blueprint.KindPrivateNIC:     {"server", "network", "address"},
	blueprint.KindPower:          {"server"},
	blueprint.KindLoadBalancer:   {"zone", "private"},
	blueprint.KindLBAttachment:   {"load balancer", "network", "address"},
	blueprint.KindLBBackend:      {"load balancer"},
	blueprint.KindLBFrontend:     {"load balancer"},
	blueprint.KindSecret:         {"type"},
	blueprint.KindEdgeIP:         {"zone", "address"},
	blueprint.KindDNSRecord:      {"zone"},
}

// Every attribute that somebody changes by hand is in the plan with both values,
// and what can be changed back is, by the next run.
func TestEveryAttributeChangedByHand(t *testing.T) {
	notWithRace(t)
	t.Parallel()
	for _, h := range handChanges {
		t.Run(h.step+" "+h.attribute, func(t *testing.T) {
			t.Parallel()
			w := scene{nil, smallServices}.fresh(t)
			w.mustUp()
			step := w.stepLike(h.step)
			h.by(w, w.somebody(), w.find(step).CloudID)
			a := w.atRest(step, func(a plan.Action) bool { return len(a.Changes) > 0 })
			i := slices.IndexFunc(a.Changes, func(c plan.Change) bool { return c.Attribute == h.attribute })
			if i < 0 {
				t.Fatalf("%s %+v %s", a.Op, a.Changes, a.Reason)
			}
			if c := a.Changes[i]; !strings.Contains(c.Have, h.have) || !strings.Contains(c.Want, h.want) || c.Have == c.Want {
				t.Errorf("have %q, want %q", c.Have, c.Want)
			}
			if want := map[bool]plan.Op{true: plan.Refuse, false: plan.Update}[h.refused]; a.Op != want {
				t.Fatalf("%s, want %s: %s", a.Op, want, a.Reason)
			}
			if h.refused {
				return
			}
			w.mustUp()
			_, p, _, err := w.plan(t.Context(), w.cloud())
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range p.Actions {
				if a.Op != plan.Keep {
					t.Errorf("after another run: %s: %s: %s %+v", a.Step.ID, a.Op, a.Reason, a.Changes)
				}
			}
		})
	}
}

// No attribute is forgotten: each is changed by hand above, or cannot be.
func TestEveryAttributeIsCovered(t *testing.T) {
	covered := map[string]bool{}
	for _, h := range handChanges {
		kind, _, _ := strings.Cut(h.step, "/")
		covered[kind+" "+h.attribute] = true
	}
	for kind, names := range born {
		for _, n := range names {
			if covered[string(kind)+" "+n] {
				t.Errorf("%s %s is said to be unchangeable and is changed", kind, n)
			}
			covered[string(kind)+" "+n] = true
		}
	}
	g, err := blueprint.Build(smallServices(), nil, []string{sshKey})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range g.Steps {
		for _, a := range s.Spec.Attributes() {
			if !s.Kind.Cluster() && !covered[string(s.Kind)+" "+a.Name] {
				t.Errorf("nobody changes %s of a %s by hand", a.Name, s.Kind)
				covered[string(s.Kind)+" "+a.Name] = true
			}
		}
	}
}

// A thing whose step tag is lost or another's is not made twice: the plan says
// which tag is wanted.
func TestLostStepTags(t *testing.T) {
	t.Parallel()
	none := []string{"bastide:estate=staging"}
	for step, by := range map[string]func(w *world, c *scw.Client, id string){
		"vpc/staging": func(w *world, c *scw.Client, id string) {
			must(vpc.NewAPI(c).UpdateVPC(&vpc.UpdateVPCRequest{VpcID: id, Tags: &none}))(w)
		},
		"private-network/staging": func(w *world, c *scw.Client, id string) {
			must(vpc.NewAPI(c).UpdatePrivateNetwork(&vpc.UpdatePrivateNetworkRequest{PrivateNetworkID: id, Tags: &none}))(w)
		},
		"gateway-ip/staging-gateway": func(w *world, c *scw.Client, id string) {
			must(vpcgw.NewAPI(c).UpdateIP(&vpcgw.UpdateIPRequest{IPID: id, Tags: &none}))(w)
		},
		"gateway/staging-gateway":        gateway(func(r *vpcgw.UpdateGatewayRequest) { r.Tags = &none }),
		"security-group/staging-nodes":   group(func(r *instance.UpdateSecurityGroupRequest) { r.Tags = &none }),
		"placement-group/staging-system": placement(func(r *instance.UpdatePlacementGroupRequest) { r.Tags = &none }),
		"volume/staging-system-1":        volume(func(r *block.UpdateVolumeRequest) { r.Tags = &none }),
		"server/staging-system-1":        server(func(r *instance.UpdateServerRequest) { r.Tags = &none }),
		"load-balancer/staging-api":      balancer(func(r *lb.ZonedAPIUpdateLBRequest) { r.Tags = none }),
		"secret/app/session-key":         container(func(r *secret.UpdateSecretRequest) { r.Tags = &none }),
		"edge-ip/staging-edge": func(w *world, c *scw.Client, id string) {
			must(lb.NewZonedAPI(c).UpdateIP(&lb.ZonedAPIUpdateIPRequest{IPID: id, Tags: &none}))(w)
		},
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := scene{nil, smallServices}.fresh(t)
			w.mustUp()
			by(w, w.somebody(), w.find(step).CloudID)
			if a := w.atRest(step, func(a plan.Action) bool { return a.Op == plan.Refuse }); a.Op != plan.Refuse || !strings.Contains(a.Reason, "bastide:step="+step) {
				t.Errorf("%s: %s", a.Op, a.Reason)
			}
		})
	}
}

// atRest is what the plan says of a step once it has come to what is awaited.
func (w *world) atRest(step string, awaited func(plan.Action) bool) plan.Action {
	w.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if a := w.action(step); awaited(a) || time.Now().After(end) {
			return a
		}
	}
}

// stepLike completes the ID of a step that ends in a digest.
func (w *world) stepLike(prefix string) string {
	w.Helper()
	g, err := blueprint.Build(w.estate, nil, []string{sshKey})
	if err != nil {
		w.Fatal(err)
	}
	for _, s := range g.Steps {
		if strings.HasPrefix(s.ID, prefix) {
			return s.ID
		}
	}
	w.Fatalf("no step %s", prefix)
	return ""
}
