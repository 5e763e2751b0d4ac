package api_test

import (
	"errors"
	"testing"

	account "github.com/scaleway/scaleway-sdk-go/api/account/v3"
	block "github.com/scaleway/scaleway-sdk-go/api/block/v1"
	iam "github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	ipam "github.com/scaleway/scaleway-sdk-go/api/ipam/v1"
	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/marketplace/v2"
	product_catalog "github.com/scaleway/scaleway-sdk-go/api/product_catalog/v2alpha1"
	"github.com/scaleway/scaleway-sdk-go/api/vpc/v2"
	"github.com/scaleway/scaleway-sdk-go/api/vpcgw/v2"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// The official SDK reads every kind of answer and knows every kind of error.
func TestOfficialSDK(t *testing.T) {
	r := newRegion(t)
	client, err := scw.NewClient(scw.WithAPIURL(r.url), scw.WithAuth("SCWXXXXXXXXXXXXXXXXX", token), scw.WithHTTPClient(r.client),
		scw.WithDefaultProjectID(project), scw.WithDefaultOrganizationID(project), scw.WithDefaultRegion("fr-par"), scw.WithDefaultZone(zone))
	if err != nil {
		t.Fatal(err)
	}
	try := func(what string, count int, err error, atLeast int) {
		t.Helper()
		if err != nil || count < atLeast {
			t.Errorf("%s: %d, %v", what, count, err)
		}
	}
	all := scw.WithAllPages()
	vpcAPI, ipamAPI, gwAPI, blockAPI := vpc.NewAPI(client), ipam.NewAPI(client), vpcgw.NewAPI(client), block.NewAPI(client)
	lbAPI, computeAPI := lb.NewZonedAPI(client), instance.NewAPI(client)

	pn, err := vpcAPI.CreatePrivateNetwork(&vpc.CreatePrivateNetworkRequest{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	ip, err := ipamAPI.BookIP(&ipam.BookIPRequest{Source: &ipam.Source{PrivateNetworkID: &pn.ID}})
	if err != nil || ip.Address.String()[len(ip.Address.String())-3:] != "/22" {
		t.Fatalf("an address is shown with its network's mask: %v, %v", ip, err)
	}
	if _, err := iam.NewAPI(client).CreateSSHKey(&iam.CreateSSHKeyRequest{Name: "k", PublicKey: sshKey}); err != nil {
		t.Error(err)
	}
	gw, err := gwAPI.CreateGateway(&vpcgw.CreateGatewayRequest{Name: "g", Type: "VPC-GW-S", EnableBastion: true})
	if err != nil {
		t.Fatal(err)
	}
	r.untilStatus(gws+"/"+gw.ID, "running")
	gn, err := gwAPI.CreateGatewayNetwork(&vpcgw.CreateGatewayNetworkRequest{GatewayID: gw.ID, PrivateNetworkID: pn.ID, PushDefaultRoute: true})
	if err != nil {
		t.Fatal(err)
	}
	r.untilStatus(gwNets+"/"+gn.ID, "ready")
	r.untilStatus(gws+"/"+gw.ID, "running")
	added, err := gwAPI.AddBastionAllowedIPs(&vpcgw.AddBastionAllowedIPsRequest{GatewayID: gw.ID, IPRange: ip.Address})
	if err != nil {
		t.Fatal(err)
	}
	try("allowed ranges", len(added.IPRanges), err, 2)
	r.untilStatus(gws+"/"+gw.ID, "running")
	// The SDK writes the range into the path as Go prints the struct, which no
	// server can read: ranges are taken away by setting the list.
	var unreadable *scw.InvalidArgumentsError
	if err := gwAPI.DeleteBastionAllowedIPs(&vpcgw.DeleteBastionAllowedIPsRequest{GatewayID: gw.ID, IPRange: added.IPRanges[0]}); !errors.As(err, &unreadable) {
		t.Errorf("the SDK's deletion of a range: %v", err)
	}
	r.do("DELETE", gws+"/"+gw.ID+"/bastion-allowed-ips/0.0.0.0/0", nil)
	r.untilStatus(gws+"/"+gw.ID, "running")
	if _, err := gwAPI.CreatePatRule(&vpcgw.CreatePatRuleRequest{GatewayID: gw.ID, PublicPort: 6443, PrivateIP: ip.Address.IP, PrivatePort: 6443}); err != nil {
		t.Error(err)
	}
	image, err := marketplace.NewAPI(client).GetLocalImageByLabel(&marketplace.GetLocalImageByLabelRequest{ImageLabel: "ubuntu_jammy", CommercialType: "PLAY2-NANO", Type: marketplace.LocalImageTypeInstanceSbs})
	if err != nil {
		t.Fatal(err)
	}
	server, err := computeAPI.CreateServer(&instance.CreateServerRequest{Name: "s", CommercialType: "PLAY2-NANO", Image: &image.ID})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := computeAPI.CreatePrivateNIC(&instance.CreatePrivateNICRequest{ServerID: server.Server.ID, PrivateNetworkID: pn.ID, IpamIPIDs: []string{ip.ID}}); err != nil {
		t.Error(err)
	}
	balancer, err := lbAPI.CreateLB(&lb.ZonedAPICreateLBRequest{Name: "l", Type: "LB-S"})
	if err != nil {
		t.Fatal(err)
	}
	r.untilStatus(lbs+"/"+balancer.ID, "ready")
	backend, err := lbAPI.CreateBackend(&lb.ZonedAPICreateBackendRequest{LBID: balancer.ID, Name: "b", ForwardProtocol: "tcp", ForwardPort: 6443,
		HealthCheck: &lb.HealthCheck{Port: 6443, CheckMaxRetries: 2, HTTPSConfig: &lb.HealthCheckHTTPSConfig{URI: "/readyz", Method: "GET", Code: scw.Int32Ptr(401)}}})
	if err != nil || backend.HealthCheck.HTTPSConfig == nil || *backend.HealthCheck.HTTPSConfig.Code != 401 {
		t.Fatalf("%+v, %v", backend, err)
	}
	frontend, err := lbAPI.CreateFrontend(&lb.ZonedAPICreateFrontendRequest{LBID: balancer.ID, Name: "f", InboundPort: 6443, BackendID: backend.ID})
	if err != nil {
		t.Fatal(err)
	}
	allow := "198.51.100.7/32"
	world := "0.0.0.0/0"
	if _, err := lbAPI.SetACLs(&lb.ZonedAPISetACLsRequest{FrontendID: frontend.ID, ACLs: []*lb.ACLSpec{
		{Name: "admin", Index: 1, Action: &lb.ACLAction{Type: "allow"}, Match: &lb.ACLMatch{IPSubnet: []*string{&allow}}},
		{Name: "rest", Index: 2, Action: &lb.ACLAction{Type: "deny"}, Match: &lb.ACLMatch{IPSubnet: []*string{&world}}},
	}}); err != nil {
		t.Error(err)
	}
	r.eventually("the balancer lets one address in", func() bool {
		b := r.hall.balancers[balancer.ID]
		return len(b.Frontends) == 1 && b.Frontends[0].AllowOnly && len(b.Frontends[0].Allow) == 1 && b.Frontends[0].Backend.CheckHTTPS && b.Frontends[0].Backend.CheckCode == 401
	})

	vpcs, err := vpcAPI.ListVPCs(&vpc.ListVPCsRequest{}, all)
	try("VPCs", int(vpcs.TotalCount), err, 1)
	routes, err := vpc.NewRoutesWithNexthopAPI(client).ListRoutesWithNexthop(&vpc.RoutesWithNexthopAPIListRoutesWithNexthopRequest{}, all)
	try("routes", int(routes.TotalCount), err, 3)
	addresses, err := ipamAPI.ListIPs(&ipam.ListIPsRequest{PrivateNetworkID: &pn.ID}, all)
	try("addresses", int(addresses.TotalCount), err, 2)
	gateways, err := gwAPI.ListGateways(&vpcgw.ListGatewaysRequest{}, all)
	try("gateways", int(gateways.TotalCount), err, 1)
	pats, err := gwAPI.ListPatRules(&vpcgw.ListPatRulesRequest{GatewayIDs: []string{gw.ID}}, all)
	try("PAT rules", int(pats.TotalCount), err, 1)
	vols, err := blockAPI.ListVolumes(&block.ListVolumesRequest{}, all)
	try("volumes", int(vols.TotalCount), err, 1)
	kinds, err := blockAPI.ListVolumeTypes(&block.ListVolumeTypesRequest{})
	try("volume types", len(kinds.VolumeTypes), err, 2)
	backends, err := lbAPI.ListBackends(&lb.ZonedAPIListBackendsRequest{LBID: balancer.ID}, all)
	try("backends", int(backends.TotalCount), err, 1)
	machines, err := computeAPI.ListServers(&instance.ListServersRequest{}, all)
	try("servers", int(machines.TotalCount), err, 1)
	types, err := computeAPI.ListServersTypes(&instance.ListServersTypesRequest{}, all)
	try("types", len(types.Servers), err, 135)
	stock, err := computeAPI.GetServerTypesAvailability(&instance.GetServerTypesAvailabilityRequest{}, all)
	try("stock", len(stock.Servers), err, 135)
	images, err := computeAPI.ListImages(&instance.ListImagesRequest{}, all)
	try("images", int(images.TotalCount), err, 10)
	sgs, err := computeAPI.ListSecurityGroups(&instance.ListSecurityGroupsRequest{}, all)
	try("groups", int(sgs.TotalCount), err, 1)
	rules, err := computeAPI.ListSecurityGroupRules(&instance.ListSecurityGroupRulesRequest{SecurityGroupID: sgs.SecurityGroups[0].ID}, all)
	try("mail rules", int(rules.TotalCount), err, 6)
	prices, err := product_catalog.NewPublicCatalogAPI(client).ListPublicCatalogProducts(&product_catalog.PublicCatalogAPIListPublicCatalogProductsRequest{}, all)
	try("prices", int(prices.TotalCount), err, 135)
	quotas, err := iam.NewAPI(client).ListQuota(&iam.ListQuotaRequest{}, all)
	try("quotas", int(quotas.TotalCount), err, 3)
	projects, err := account.NewProjectAPI(client).ListProjects(&account.ProjectAPIListProjectsRequest{}, all)
	try("projects", int(projects.TotalCount), err, 1)
	if m, err := client.GetAPIMetadata(); err != nil || m.Domain == "" {
		t.Errorf("metadata %+v, %v", m, err)
	}

	var missing *scw.ResourceNotFoundError
	if _, err := vpcAPI.GetVPC(&vpc.GetVPCRequest{VpcID: ip.ID}); !errors.As(err, &missing) || missing.Resource != "vpc" {
		t.Errorf("a missing VPC: %v", err)
	}
	var untyped *scw.ResponseError
	if _, err := lbAPI.GetLB(&lb.ZonedAPIGetLBRequest{LBID: ip.ID}); !errors.As(err, &untyped) || untyped.StatusCode != 404 {
		t.Errorf("a missing load balancer: %v", err)
	}
	var unmet *scw.PreconditionFailedError
	if err := vpcAPI.DeletePrivateNetwork(&vpc.DeletePrivateNetworkRequest{PrivateNetworkID: pn.ID}); !errors.As(err, &unmet) || unmet.Precondition != "resource_still_in_use" {
		t.Errorf("a network in use: %v", err)
	}
	var wrong *scw.InvalidArgumentsError
	if _, err := blockAPI.CreateVolume(&block.CreateVolumeRequest{Name: "v", PerfIops: scw.Uint32Ptr(1), FromEmpty: &block.CreateVolumeRequestFromEmpty{Size: scw.GB}}); !errors.As(err, &wrong) {
		t.Errorf("odd IOPS: %v", err)
	}
}
