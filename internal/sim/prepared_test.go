package sim_test

import (
	"reflect"
	"testing"

	"bastide/internal/sim"
	"bastide/internal/sim/api"
)

// A seed file says which domains, names and rights there are, besides what a
// person prepares at Scaleway.
func TestSeedFile(t *testing.T) {
	const project = "11111111-1111-4111-8111-111111111111"
	s, elsewhere, err := sim.ParseSeed([]byte(`{"project": "` + project + `", "domains": ["example.org"],
		"registryTaken": [{"region": "fr-par", "name": "staging"}], "permissions": {"deny": ["iam"], "only": ["InstancesFullAccess"]},
		"elsewhere": {"region": "eu-west-1", "buckets": ["copies"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := api.Seed{
		Projects:      []api.SeedProject{{ID: project}},
		Domains:       []api.SeedDomain{{Domain: "example.org", Project: project}},
		RegistryTaken: []api.SeedTaken{{Region: "fr-par", Name: "staging"}},
		Permissions:   &api.Credential{Deny: []string{"iam"}, PermissionSets: []string{"InstancesFullAccess"}},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("%+v\nwant %+v", s, want)
	}
	if there := (sim.Elsewhere{Region: "eu-west-1", Buckets: []string{"copies"}}); elsewhere == nil || !reflect.DeepEqual(*elsewhere, there) {
		t.Errorf("elsewhere: %+v", elsewhere)
	}
	if _, _, err := sim.ParseSeed([]byte(`{"permisions": {}}`)); err == nil {
		t.Error("a misspelt key was read over")
	}
}
