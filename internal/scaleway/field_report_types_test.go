package scaleway_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"bastide/internal/estate"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// minimalText is a file whose node type and disk are still to be put in.
const minimalText = `apiVersion: bastide/v1
kind: Estate
name: staging
scaleway: {project: 11111111-1111-4111-8111-111111111111, region: fr-par, zones: [fr-par-1]}
secrets: {recipients: [age10e40esrxsw2a3ds84sxh09jmejd82nz6hx780amfe6q6mewhy47q78jat8]}
talos: {version: v1.13.5, snapshot: talos}
kubernetes: {version: 1.36.3}
network: {cidr: 172.16.0.0/22}
admin: {cidrs: [198.51.100.7/32], sshKeys: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIU4iuVzrmvsScxT00jocBpiiEcqjE+8doGxCaJd4rbI"]}
controlPlane: {type: PLAY2-NANO}
pools: [{name: system, count: 1, type: TYPE, disk: DISK}]
`

func accepted(kind, disk string) error {
	_, err := estate.Parse("estate.yaml", []byte(strings.NewReplacer("TYPE", kind, "DISK", disk).Replace(minimalText)))
	return err
}

// Field report 44: what an offer does not take was found out half way, by a 400
// from the API. A file never asks for local disks, and every type that it accepts
// takes the volumes that a node has: with the smallest and the largest size that
// it accepts the API makes volume and server.
func TestFieldReport44AcceptedTypesTakeTheirVolumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, privateEstate(0))
	c := w.somebody()
	servers := instance.NewAPI(c)
	offered := must(servers.ListServersTypes(&instance.ListServersTypesRequest{}, scw.WithAllPages()))(t).Servers
	list, err := os.Open("../estate/instance_types.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = list.Close() }()
	taken, refused := 0, 0
	for lines := bufio.NewScanner(list); lines.Scan(); {
		kind, _, _ := strings.Cut(lines.Text(), " ")
		if err := accepted(kind, "{size: 7GB}"); err != nil {
			refused++
			if !strings.Contains(err.Error(), "pools[0].type") {
				t.Errorf("%s: %v", kind, err)
			}
			continue
		}
		if offered[kind] == nil {
			continue // of another zone; whether this one has it is asked when it matters
		}
		taken++
		size := scw.Size(7e9)
		v := must(block.NewAPI(c).CreateVolume(&block.CreateVolumeRequest{Name: kind, PerfIops: scw.Uint32Ptr(5000), FromEmpty: &block.CreateVolumeRequestFromEmpty{Size: size}}))(t)
		must(block.NewAPI(c).WaitForVolumeAndReferences(&block.WaitForVolumeAndReferencesRequest{VolumeID: v.ID, RetryInterval: scw.TimeDurationPtr(1e6)}))(t)
		if _, err := servers.CreateServer(&instance.CreateServerRequest{Name: kind, CommercialType: kind, DynamicIPRequired: scw.BoolPtr(false),
			Volumes: map[string]*instance.VolumeServerTemplate{"0": {ID: &v.ID, VolumeType: instance.VolumeVolumeTypeSbsVolume, Boot: scw.BoolPtr(true)}}}); err != nil {
			t.Errorf("the file accepts %s and the API does not: %v", kind, err)
		}
	}
	if taken < 20 || refused < 20 {
		t.Errorf("%d types were made and %d refused; the list has more", taken, refused)
	}
}

// Each constraint of a volume is known before anything is asked for.
func TestFieldReport44VolumesThatCannotBe(t *testing.T) {
	t.Parallel()
	for disk, part := range map[string]string{
		"{size: 12GB, type: l_ssd}": "type", "{size: 6GB}": "too small", "{size: 10001GB}": "too large", "{size: 7500MB}": "whole number of GB",
		"{size: 20GB, iops: 10000}": "5000 or 15000",
	} {
		if err := accepted("DEV1-S", disk); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", disk, err)
		}
	}
	w := newWorld(t, privateEstate(0))
	// The API's own answer to a local disk that is too large, which nobody meets.
	size := scw.Size(100e9)
	_, err := instance.NewAPI(w.somebody()).CreateServer(&instance.CreateServerRequest{Name: "x", CommercialType: "DEV1-S", DynamicIPRequired: scw.BoolPtr(false),
		Image: scw.StringPtr("ubuntu_jammy"), Volumes: map[string]*instance.VolumeServerTemplate{"0": {Size: &size, VolumeType: instance.VolumeVolumeTypeLSSD}}})
	if err == nil {
		t.Error("the API takes a local disk of any size")
	}
	for _, r := range w.region.Requests(0) {
		if r.Mutating && r.Status < 300 {
			t.Errorf("%s %s", r.Method, r.Path)
		}
	}
}
