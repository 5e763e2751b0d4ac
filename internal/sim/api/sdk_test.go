package api_test

import (
	"errors"
	"testing"

	account "github.com/scaleway/scaleway-sdk-go/api/account/v3"
	block "github.com/scaleway/scaleway-sdk-go/api/block/v1"
	domain "github.com/scaleway/scaleway-sdk-go/api/domain/v2beta1"
	iam "github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	ipam "github.com/scaleway/scaleway-sdk-go/api/ipam/v1"
	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/marketplace/v2"
	product_catalog "github.com/scaleway/scaleway-sdk-go/api/product_catalog/v2alpha1"
	registrysdk "github.com/scaleway/scaleway-sdk-go/api/registry/v1"
	secret "github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/api/vpc/v2"
	"github.com/scaleway/scaleway-sdk-go/api/vpcgw/v2"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"bastide/internal/sim/api"
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
	// Without a place the SDK asks for its default region, where no Instances are sold: those are a zone's.
	pricesAPI, place := product_catalog.NewPublicCatalogAPI(client), scw.Zone(zone)
	prices, err := pricesAPI.ListPublicCatalogProducts(&product_catalog.PublicCatalogAPIListPublicCatalogProductsRequest{Zone: &place}, all)
	try("prices of a zone", int(prices.TotalCount), err, 150)
	prices, err = pricesAPI.ListPublicCatalogProducts(&product_catalog.PublicCatalogAPIListPublicCatalogProductsRequest{}, all)
	try("prices of a region", int(prices.TotalCount), err, 7)
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

// The official SDK works with secrets, registries, names and keys, and tells
// their refusals apart.
func TestOfficialSDKOnSmallProducts(t *testing.T) {
	r := newRegion(t)
	client, err := scw.NewClient(scw.WithAPIURL(r.url), scw.WithAuth("SCWXXXXXXXXXXXXXXXXX", token), scw.WithHTTPClient(r.client),
		scw.WithDefaultProjectID(project), scw.WithDefaultOrganizationID(project), scw.WithDefaultRegion("fr-par"))
	if err != nil {
		t.Fatal(err)
	}
	secretAPI := secret.NewAPI(client)
	s, err := secretAPI.CreateSecret(&secret.CreateSecretRequest{Name: "join", Tags: []string{"estate"}, Path: scw.StringPtr("/staging"), Protected: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := secretAPI.CreateSecretVersion(&secret.CreateSecretVersionRequest{SecretID: s.ID, Data: []byte("value")}); err != nil {
		t.Fatal(err)
	}
	v, err := secretAPI.AccessSecretVersionByPath(&secret.AccessSecretVersionByPathRequest{Revision: "latest", SecretPath: "/staging", SecretName: "join", ProjectID: project})
	if err != nil || string(v.Data) != "value" {
		t.Errorf("%v, %v", v, err)
	}
	var unmet *scw.PreconditionFailedError
	if err := secretAPI.DeleteSecret(&secret.DeleteSecretRequest{SecretID: s.ID}); !errors.As(err, &unmet) || unmet.Precondition != "protected_resource" {
		t.Errorf("a protected secret: %v", err)
	}
	policy := &secret.EphemeralPolicy{TimeToLive: scw.NewDurationFromTimeDuration(90 * 60 * 1e9), Action: secret.EphemeralPolicyActionDisable}
	e, err := secretAPI.CreateSecret(&secret.CreateSecretRequest{Name: "short", EphemeralPolicy: policy})
	if err != nil || e.EphemeralPolicy.TimeToLive.Seconds != 5400 {
		t.Errorf("%+v, %v", e, err)
	}

	registryAPI := registrysdk.NewAPI(client)
	n, err := registryAPI.CreateNamespace(&registrysdk.CreateNamespaceRequest{Name: "staging"})
	if err != nil || n.Status != registrysdk.NamespaceStatusReady {
		t.Fatalf("%v, %v", n, err)
	}
	var untyped *scw.ResponseError
	if _, err := registryAPI.CreateNamespace(&registrysdk.CreateNamespaceRequest{Name: "staging"}); !errors.As(err, &untyped) || untyped.StatusCode != 409 {
		t.Errorf("a taken name: %v", err)
	}
	if _, err := registryAPI.DeleteNamespace(&registrysdk.DeleteNamespaceRequest{NamespaceID: n.ID}); err != nil {
		t.Error(err)
	}

	dns := domain.NewAPI(client)
	change := &domain.RecordChange{Set: &domain.RecordChangeSet{IDFields: &domain.RecordIdentifier{Name: "api", Type: domain.RecordTypeA},
		Records: []*domain.Record{{Name: "api", Type: domain.RecordTypeA, Data: "192.0.2.1", TTL: 60}}}}
	if _, err := dns.UpdateDNSZoneRecords(&domain.UpdateDNSZoneRecordsRequest{DNSZone: "staging.example.org", Changes: []*domain.RecordChange{change}}); err != nil {
		t.Fatal(err)
	}
	found, err := dns.ListDNSZoneRecords(&domain.ListDNSZoneRecordsRequest{DNSZone: "staging.example.org", Type: domain.RecordTypeA}, scw.WithAllPages())
	if err != nil || len(found.Records) != 1 || found.Records[0].Data != "192.0.2.1" {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := dns.DeleteDNSZone(&domain.DeleteDNSZoneRequest{DNSZone: "example.org"}); !errors.As(err, &untyped) || untyped.StatusCode != 403 {
		t.Errorf("a root zone: %v", err)
	}

	var denied *scw.PermissionsDeniedError
	if err := r.Seed(api.Seed{Permissions: &api.Credential{Deny: []string{"IAMManager"}}}); err != nil {
		t.Fatal(err)
	}
	iamAPI := iam.NewAPI(client)
	if _, err := iamAPI.ListApplications(&iam.ListApplicationsRequest{}); !errors.As(err, &denied) || denied.Details[0].Resource != "application" {
		t.Errorf("a key without IAM: %v", err)
	}
	if _, err := iamAPI.ListSSHKeys(&iam.ListSSHKeysRequest{}); err != nil {
		t.Error(err)
	}
}
