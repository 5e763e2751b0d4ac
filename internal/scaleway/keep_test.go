package scaleway_test

import (
	"slices"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/scaleway"
)

// furnished is an estate that holds data of every class, read in the order in
// which an inventory has it.
func furnished() *scaleway.Inventory {
	at := func(kind blueprint.Kind, name string, spec blueprint.Spec) scaleway.Item {
		return scaleway.Item{Kind: kind, Step: string(kind) + "/" + name, Name: name, CloudID: "id-of-" + string(kind), Settled: true, Spec: spec}
	}
	return &scaleway.Inventory{Items: []scaleway.Item{
		at(blueprint.KindVPC, "staging", blueprint.VPC{Name: "staging"}),
		at(blueprint.KindPrivateNetwork, "staging", blueprint.PrivateNetwork{VPC: "vpc/staging"}),
		at(blueprint.KindGatewayIP, "staging-gateway", blueprint.GatewayIP{}),
		at(blueprint.KindGateway, "staging-gateway", blueprint.Gateway{}),
		at(blueprint.KindAddress, "staging-cp-1", blueprint.Address{Network: "private-network/staging"}),
		at(blueprint.KindVolume, "staging-cp-1", blueprint.Volume{}),
		at(blueprint.KindServer, "staging-cp-1", blueprint.Server{}),
		at(blueprint.KindPostgres, "staging-postgres", blueprint.Postgres{Network: "private-network/staging"}),
		at(blueprint.KindPostgresDatabase, "app", blueprint.PostgresDatabase{Postgres: "postgres/staging-postgres"}),
		at(blueprint.KindPostgresSecret, "app", blueprint.PostgresSecret{Path: "/bastide/staging/postgres"}),
		at(blueprint.KindPostgresUser, "app", blueprint.PostgresUser{Postgres: "postgres/staging-postgres"}),
		at(blueprint.KindBucket, "staging-app", blueprint.Bucket{}),
		at(blueprint.KindRegistry, "staging", blueprint.Registry{}),
		at(blueprint.KindSecret, "app/session-key", blueprint.Secret{}),
		at(blueprint.KindEdgeIP, "staging-edge", blueprint.EdgeIP{}),
		at(blueprint.KindDNSRecord, "edge.example.org", blueprint.DNSRecord{Target: "edge-ip/staging-edge"}),
		{Kind: blueprint.KindStore, Name: "staging-bastide", CloudID: "id-of-store"},
		{Kind: blueprint.KindClusterVolume, Name: "pvc-1", CloudID: "id-of-cluster-volume"},
	}}
}

func TestDataIsKeptUnlessNamed(t *testing.T) {
	t.Parallel()
	data := []string{"postgres", "postgres-database", "postgres-secret", "postgres-user", "bucket", "registry", "secret", "store", "cluster-volume"}
	under := []string{"vpc", "private-network"}
	without := func(kinds ...string) []string {
		return slices.DeleteFunc(append(slices.Clone(under), data...), func(k string) bool { return slices.Contains(kinds, k) })
	}
	for _, c := range []struct {
		name  string
		named []blueprint.Data
		kept  []string
	}{
		{"nothing is named", nil, without()},
		{"a bucket is named", []blueprint.Data{blueprint.DataBuckets}, without("bucket")},
		{"secrets are not the passwords of users", []blueprint.Data{blueprint.DataSecrets}, without("secret")},
		{"what only PostgreSQL stood on goes with it", []blueprint.Data{blueprint.DataPostgres},
			without("vpc", "private-network", "postgres", "postgres-database", "postgres-secret", "postgres-user")},
		{"everything is named", blueprint.DataClasses, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv, w := furnished(), newWorld(t, privateEstate(1))
			got, err := w.cloud().Teardown(inv, c.named)
			if err != nil {
				t.Fatal(err)
			}
			var kept []string
			for _, k := range got.Kept {
				kept = append(kept, string(k.Item.Kind))
				if k.Why == "" || (k.Class == "") != slices.Contains(under, string(k.Item.Kind)) {
					t.Errorf("%s is kept because %q, as data of class %q", k.Item.Kind, k.Why, k.Class)
				}
			}
			slices.Sort(kept)
			want := slices.Clone(c.kept)
			slices.Sort(want)
			if !slices.Equal(kept, want) {
				t.Errorf("kept %v, want %v", kept, want)
			}
			wantOrdered(t, inv, got)
		})
	}
}

// wantOrdered checks that a teardown is whole: what is not kept goes, or goes
// along, and nothing waits for what stays.
func wantOrdered(t *testing.T, inv *scaleway.Inventory, td scaleway.Teardown) {
	t.Helper()
	done, seen := map[string]bool{}, map[string]bool{}
	for _, r := range td.Removals {
		for _, first := range r.After {
			if !done[first] {
				t.Errorf("%s waits for %s, which comes later or not at all", r.ID, first)
			}
		}
		done[r.ID], seen[r.Item.CloudID] = true, true
	}
	for _, k := range td.Kept {
		if seen[k.Item.CloudID] {
			t.Errorf("the %s %s is kept and removed", k.Item.Kind, k.Item.Name)
		}
		seen[k.Item.CloudID] = true
	}
	for _, it := range inv.Items {
		if !seen[it.CloudID] && it.Kind != blueprint.KindPostgresDatabase && it.Kind != blueprint.KindPostgresUser {
			t.Errorf("the %s %s is neither kept nor removed", it.Kind, it.Name)
		}
	}
}

// Two private networks claim one step; which of them PostgreSQL is in cannot be
// told from the step alone, so both stay.
func TestBothNetworksOfOneStepAreKept(t *testing.T) {
	t.Parallel()
	inv, w := furnished(), newWorld(t, privateEstate(1))
	second := inv.Items[1]
	second.CloudID, second.Second = "id-of-another", true
	inv.Items = append(inv.Items, second)
	got, err := w.cloud().Teardown(inv, []blueprint.Data{blueprint.DataBuckets})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range got.Removals {
		if r.Item.Kind == blueprint.KindPrivateNetwork {
			t.Errorf("the network %s goes from under PostgreSQL", r.Item.CloudID)
		}
	}
}
