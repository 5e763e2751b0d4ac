package scaleway_test

import (
	"slices"
	"strings"
	"testing"
)

// The two halves are moved with nothing between the calls that open a window and
// the calls that close it: the version is disabled right after it was written, and
// enabled right after the database has its password. The instance's tag, which
// takes its time, comes later.
func TestTheOrderOfARotation(t *testing.T) {
	t.Parallel()
	w := newPostgresWorld(t, postgresEstate())
	w.mustUp()
	store, instance := w.secretID("app"), w.instance().ID
	w.rotate("app", 2)
	mark := len(w.region.Requests(0))
	w.mustUp()
	versions := "/secret-manager/v1beta1/regions/fr-par/secrets/" + store + "/versions"
	want := []string{"POST " + versions, "POST " + versions + "/2/disable", "PATCH /rdb/v1/regions/fr-par/instances/" + instance + "/users/app", "POST " + versions + "/2/enable",
		"PATCH /rdb/v1/regions/fr-par/instances/" + instance, "PATCH " + versions + "/2", "POST " + versions + "/1/disable"}
	var got []string
	for _, r := range w.region.Requests(mark) {
		if r.Mutating && (strings.HasPrefix(r.Path, "/rdb/") || strings.HasPrefix(r.Path, "/secret-manager/")) {
			got = append(got, r.Method+" "+r.Path)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the calls were\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
