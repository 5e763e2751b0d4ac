package scaleway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"
)

type knowing map[string]string

func (k knowing) Get(step string) (plan.Observed, bool) {
	id, ok := k[step]
	return plan.Observed{Step: step, CloudID: id}, ok
}

// A permanent refusal names the node, the type, the zone or the quota, and ends
// at once. (Field report 45.)
func TestFieldReport45RefusalsSayWhat(t *testing.T) {
	server := blueprint.Step{ID: "server/staging-cp-1", Kind: blueprint.KindServer, Name: "staging-cp-1", Node: "staging-cp-1",
		Spec: blueprint.Server{Zone: "fr-par-1", Type: "PLAY2-NANO", SecurityGroup: "security-group/g"}}
	for name, test := range map[string]struct {
		reply reply
		want  []string
	}{
		"stock": {reply{status: 403, body: `{"type":"out_of_stock","message":"m","resource":"PLAY2-NANO"}`},
			[]string{"server staging-cp-1 (PLAY2-NANO in fr-par-1)", "PLAY2-NANO is out of stock in fr-par-1", "another type or zone"}},
		"quota": {reply{status: 403, body: `{"type":"quotas_exceeded","message":"m","details":[{"resource":"cp_servers_type_PLAY2_NANO","quota":5,"current":5}]}`},
			[]string{"server staging-cp-1", "cp_servers_type_PLAY2_NANO allows 5 and 5 are in use", "higher quota"}},
		"permission": {reply{status: 403, body: `{"type":"permissions_denied","message":"m","details":[{"resource":"compute_servers","action":"write"}]}`},
			[]string{"server staging-cp-1", "lacks the permission write on compute_servers"}},
		"argument": {reply{status: 400, body: `{"type":"invalid_arguments","message":"m","details":[{"argument_name":"commercial_type","reason":"constraint","help_message":"unknown type"}]}`},
			[]string{"server staging-cp-1", "commercial_type (constraint) unknown type"}},
		"old style argument": {reply{status: 400, body: `{"type":"invalid_request_error","message":"m","fields":{"volumes":["too small"]}}`},
			[]string{"server staging-cp-1", "volumes"}},
	} {
		t.Run(name, func(t *testing.T) {
			posts := 0
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				at := reply{status: 200, body: `{"servers":[],"total_count":0}`}
				if r.Method == http.MethodPost {
					posts++
					at = test.reply
				}
				(&script{replies: []reply{at}}).ServeHTTP(w, r)
			})
			c, _ := testCloud(t, h)
			_, err := c.Apply(t.Context(), plan.Action{Step: server, Op: plan.Create}, knowing{"security-group/g": "g"})
			if outcome.CodeOf(err) != outcome.Failed || posts != 1 {
				t.Fatalf("want one attempt and exit code 1, got %d and %v", posts, err)
			}
			for _, w := range test.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q lacks %q", err, w)
				}
			}
		})
	}
}

// Field report 42, seen from here: what the file names has to be usable before
// anything is made.
func TestFieldReport42SnapshotIsLookedAtFirst(t *testing.T) {
	snapshot := func(id, name, status string) string {
		return fmt.Sprintf(`{"id":%q,"name":%q,"status":%q,"size":10000000000}`, id, name, status)
	}
	const id = "77777777-7777-4777-8777-777777777777"
	for name, test := range map[string]struct {
		ref, body string
		status    int
		want      string
		code      outcome.Code
	}{
		"by name":            {"talos", `{"snapshots":[` + snapshot(id, "talos", "available") + `],"total_count":1}`, 200, "", outcome.Done},
		"by id":              {id, snapshot(id, "talos", "in_use"), 200, "", outcome.Done},
		"lookalike":          {"talos", `{"snapshots":[` + snapshot(id, "talos-old", "available") + `],"total_count":1}`, 200, "no snapshot of that name in fr-par-1", outcome.Refused},
		"two":                {"talos", `{"snapshots":[` + snapshot("a", "talos", "available") + "," + snapshot("b", "talos", "available") + `],"total_count":2}`, 200, "2 snapshots in fr-par-1", outcome.Refused},
		"being made":         {"talos", `{"snapshots":[` + snapshot(id, "talos", "creating") + `],"total_count":1}`, 200, "still being made", outcome.Refused},
		"error":              {"talos", `{"snapshots":[` + snapshot(id, "talos", "error") + `],"total_count":1}`, 200, "it is error (" + id, outcome.Refused},
		"missing id":         {id, `{"type":"not_found","resource":"snapshot","resource_id":"` + id + `","message":"resource is not found"}`, 404, "no such snapshot", outcome.Refused},
		"somebody else's id": {id, `{"type":"permissions_denied","message":"m","details":[{"action":"read","resource":"snapshot"}]}`, 403, "lacks the permission read on snapshot", outcome.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := testCloud(t, &script{replies: []reply{{status: test.status, body: test.body}}})
			c.estate.Talos.Snapshot = test.ref
			s, err := c.ResolveSnapshot(t.Context())
			if outcome.CodeOf(err) != test.code || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Fatalf("want %d %q, got %d %v", test.code, test.want, outcome.CodeOf(err), err)
			}
			if err == nil && (s.ID != id || s.Size != estate.Size(10e9)) {
				t.Fatalf("got %+v", s)
			}
		})
	}
}
