package scaleway_test

import (
	"net"
	"time"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/api/domain/v2beta1"
	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	"github.com/scaleway/scaleway-sdk-go/api/lb/v1"
	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/api/vpcgw/v2"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

func (w *world) did(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// stop powers a server off and waits until it is.
func (w *world) stop(c *scw.Client, id string) string {
	w.Helper()
	w.did(instance.NewAPI(c).ServerActionAndWait(&instance.ServerActionAndWaitRequest{ServerID: id, Action: instance.ServerActionPoweroff, RetryInterval: scw.TimeDurationPtr(time.Millisecond)}))
	return id
}

func gateway(set func(*vpcgw.UpdateGatewayRequest)) func(*world, *scw.Client, string) {
	return func(w *world, c *scw.Client, id string) {
		r := &vpcgw.UpdateGatewayRequest{GatewayID: id}
		set(r)
		must(vpcgw.NewAPI(c).UpdateGateway(r))(w)
	}
}

func group(set func(*instance.UpdateSecurityGroupRequest)) func(*world, *scw.Client, string) {
	return func(w *world, c *scw.Client, id string) {
		r := &instance.UpdateSecurityGroupRequest{SecurityGroupID: id}
		set(r)
		must(instance.NewAPI(c).UpdateSecurityGroup(r))(w)
	}
}

func placement(set func(*instance.UpdatePlacementGroupRequest)) func(*world, *scw.Client, string) {
	return func(w *world, c *scw.Client, id string) {
		r := &instance.UpdatePlacementGroupRequest{PlacementGroupID: id}
		set(r)
		must(instance.NewAPI(c).UpdatePlacementGroup(r))(w)
	}
}

func volume(set func(*block.UpdateVolumeRequest)) func(*world, *scw.Client, string) {
	return func(w *world, c *scw.Client, id string) {
		r := &block.UpdateVolumeRequest{VolumeID: id}
		set(r)
		must(block.NewAPI(c).UpdateVolume(r))(w)
	}
}

func server(set func(*instance.UpdateServerRequest)) func(*world, *scw.Client, string) {
	return func(w *world, c *scw.Client, id string) {
		r := &instance.UpdateServerRequest{ServerID: id}
		set(r)
		must(instance.NewAPI(c).UpdateServer(r))(w)
	}
}

func container(set func(*secret.UpdateSecretRequest)) func(*world, *scw.Client, string) {
	return func(w *world, c *scw.Client, id string) {
		r := &secret.UpdateSecretRequest{SecretID: id}
		set(r)
		must(secret.NewAPI(c).UpdateSecret(r))(w)
	}
}

func balancer(set func(*lb.ZonedAPIUpdateLBRequest)) func(*world, *scw.Client, string) {
	return func(w *world, c *scw.Client, id string) {
		v := must(lb.NewZonedAPI(c).GetLB(&lb.ZonedAPIGetLBRequest{LBID: id}))(w)
		r := &lb.ZonedAPIUpdateLBRequest{LBID: id, Name: v.Name, Description: v.Description, Tags: v.Tags, SslCompatibilityLevel: v.SslCompatibilityLevel}
		set(r)
		must(lb.NewZonedAPI(c).UpdateLB(r))(w)
	}
}

func backend(set func(*lb.ZonedAPIUpdateBackendRequest)) func(*world, *scw.Client, string) {
	return func(w *world, c *scw.Client, id string) {
		v := must(lb.NewZonedAPI(c).GetBackend(&lb.ZonedAPIGetBackendRequest{BackendID: id}))(w)
		r := &lb.ZonedAPIUpdateBackendRequest{BackendID: id, Name: v.Name, ForwardProtocol: v.ForwardProtocol, ForwardPort: v.ForwardPort, ForwardPortAlgorithm: v.ForwardPortAlgorithm,
			StickySessions: v.StickySessions, ProxyProtocol: v.ProxyProtocol, OnMarkedDownAction: v.OnMarkedDownAction, TimeoutServer: v.TimeoutServer, TimeoutConnect: v.TimeoutConnect, TimeoutTunnel: v.TimeoutTunnel}
		set(r)
		must(lb.NewZonedAPI(c).UpdateBackend(r))(w)
	}
}

func frontend(set func(*world, *lb.ZonedAPIUpdateFrontendRequest)) func(*world, *scw.Client, string) {
	return func(w *world, c *scw.Client, id string) {
		v := must(lb.NewZonedAPI(c).GetFrontend(&lb.ZonedAPIGetFrontendRequest{FrontendID: id}))(w)
		r := &lb.ZonedAPIUpdateFrontendRequest{FrontendID: id, Name: v.Name, InboundPort: v.InboundPort, BackendID: v.Backend.ID, TimeoutClient: v.TimeoutClient}
		set(w, r)
		must(lb.NewZonedAPI(c).UpdateFrontend(r))(w)
	}
}

// dnsRecord changes the estate's record of the edge and leaves its comment.
func dnsRecord(set func(*domain.Record)) func(*world, *scw.Client, string) {
	return func(w *world, c *scw.Client, id string) {
		api := domain.NewAPI(c)
		v := must(api.ListDNSZoneRecords(&domain.ListDNSZoneRecordsRequest{DNSZone: "example.org", ID: &id}))(w).Records[0]
		set(v)
		must(api.UpdateDNSZoneRecords(&domain.UpdateDNSZoneRecordsRequest{DNSZone: "example.org", DisallowNewZoneCreation: true,
			Changes: []*domain.RecordChange{{Set: &domain.RecordChangeSet{ID: &id, Records: []*domain.Record{v}}}}}))(w)
	}
}

func everywhere() scw.IPNet {
	return scw.IPNet{IPNet: net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}}
}
