package scaleway_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"bastide/internal/outcome"
	"bastide/internal/sim/fault"
)

// creations are the call that makes each kind of thing, and what a message about
// its failure must name.
var creations = []struct {
	path, method string
	names        []string
}{
	{"/vpc/**/vpcs", "POST", []string{"vpc staging"}},
	{"/vpc/**/private-networks", "POST", []string{"private-network staging"}},
	{"/iam/**/ssh-keys", "POST", []string{"staging-bastide-"}},
	{"/vpc-gw/**/ips", "POST", []string{"gateway-ip staging-gateway"}},
	{"/vpc-gw/**/gateways", "POST", []string{"gateway staging-gateway (VPC-GW-S in fr-par-1)"}},
	{"/vpc-gw/**/gateways/*/bastion-allowed-ips", "PUT", []string{"gateway staging-gateway"}},
	{"/vpc-gw/**/gateways/*", "PATCH", []string{"gateway staging-gateway"}},
	{"/vpc-gw/**/gateway-networks", "POST", []string{"gateway-network staging-gateway"}},
	{"/ipam/**/ips", "POST", []string{"address staging-"}},
	{"/instance/**/security_groups", "POST", []string{"security-group staging-nodes"}},
	{"/instance/**/placement_groups", "POST", []string{"placement-group staging-"}},
	{"/block/**/volumes", "POST", []string{"volume staging-", "of node staging-", "IOPS in fr-par-1"}},
	{"/instance/**/servers", "POST", []string{"server staging-", "in fr-par-1)", "PLAY2-"}},
	{"/instance/**/private_nics", "POST", []string{"private-nic staging-"}},
	{"/instance/**/action", "POST", []string{"staging-", "start"}},
	{"/lb/**/lbs", "POST", []string{"load-balancer staging-api (LB-S in fr-par-1)"}},
	{"/lb/**/attach-private-network", "POST", []string{"lb-attachment staging-api"}},
	{"/lb/**/backends", "POST", []string{"lb-backend staging-api"}},
	{"/lb/**/frontends", "POST", []string{"lb-frontend staging-api"}},
	{"/lb/**/ips", "POST", []string{"edge-ip staging-edge"}},
	{"/registry/**/namespaces", "POST", []string{"registry"}},
	{"/secret-manager/**/secrets", "POST", []string{"secret "}},
	{"/domain/**/records", "PATCH", []string{"dns-record"}},
}

// refusals are permanent: what a message must say, beside the name.
var refusals = map[string]struct {
	rule fault.HTTPRule
	says []string
	not  string
}{
	"quota": {fault.HTTPRule{Status: 403, Body: map[string]any{"type": "quotas_exceeded", "message": "quota exceeded", "details": []map[string]any{{"resource": "some_quota", "quota": 5, "current": 5}}}},
		[]string{"the quota some_quota allows 5 and 5 are in use", "higher quota"}, ""},
	"stock": {fault.HTTPRule{Status: 503, Body: map[string]any{"type": "out_of_stock", "message": "m", "resource": "some type"}},
		[]string{"some type is out of stock in fr-par-1", "another type or zone"}, ""},
	"permission": {fault.HTTPRule{Status: 403, Body: map[string]any{"type": "permissions_denied", "message": "m", "details": []map[string]any{{"action": "write", "resource": "compute_servers"}}}},
		[]string{"SCWXXXXXXXXXXXXXXXXX", "SCW_SECRET_KEY", "write on compute_servers", project, "InstancesFullAccess"}, "run the command again"},
	"argument": {fault.HTTPRule{Status: 400, Body: map[string]any{"type": "invalid_arguments", "message": "m", "details": []map[string]any{{"argument_name": "some_field", "reason": "constraint", "help_message": "too odd"}}}},
		[]string{"some_field (constraint) too odd", "correct the file"}, ""},
	"key": {fault.HTTPRule{Status: 401, Body: map[string]any{"type": "denied_authentication", "message": "m", "method": "api_key", "reason": "expired"}},
		[]string{"SCWXXXXXXXXXXXXXXXXX", "SCW_SECRET_KEY", "expired"}, "run the command again"},
	"bare 403": {fault.HTTPRule{Status: 403, Body: "", Headers: map[string]string{"Content-Type": ""}},
		[]string{"Scaleway answered 403: Forbidden", "SCWXXXXXXXXXXXXXXXXX", project, "permission sets"}, "403: 403"},
	"parent is gone": {fault.HTTPRule{Status: 404, Body: map[string]any{"type": "not_found", "message": "m", "resource": "some_parent", "resource_id": "77777777-7777-4777-8777-777777777777"}},
		[]string{"some_parent 77777777-7777-4777-8777-777777777777", project}, ""},
	"name is taken": {fault.HTTPRule{Status: 409, Body: map[string]any{"message": "name already exists"}},
		[]string{"Scaleway answered 409: name already exists", "Scaleway console"}, ""},
	"precondition": {fault.HTTPRule{Status: 412, Body: map[string]any{"type": "precondition_failed", "message": "m", "precondition": "resource_still_in_use", "help_message": "something uses it"}},
		[]string{"something uses it"}, ""},
	"locked": {fault.HTTPRule{Status: 403, Body: map[string]any{"type": "locked", "message": "m", "resource": "x", "resource_id": "y"}},
		[]string{"locked"}, ""},
}

// A permanent refusal of any change ends a run with exit code 1, after that one
// call, and names the thing, the reason and what helps.
func TestPermanentRefusalOfEveryChange(t *testing.T) {
	notWithRace(t)
	t.Parallel()
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, change := range creations {
				w := scene{nil, smallServices}.fresh(t)
				rule := refusal.rule
				rule.Method, rule.Path = change.method, change.path
				if err := w.region.LoadFaults(fault.Script{HTTP: []fault.HTTPRule{rule}}); err != nil {
					t.Fatal(err)
				}
				seen := &refused{status: rule.Status, calls: map[string]int{}}
				err := w.up(t.Context(), w.cloud(seen.count))
				w.served.drain()
				w.region.Close()
				what := change.method + " " + change.path
				if outcome.CodeOf(err) != outcome.Failed {
					t.Fatalf("%s: want exit code 1, got %d: %v", what, outcome.CodeOf(err), err)
				}
				says, not := refusal.says, refusal.not
				switch {
				case strings.HasSuffix(change.path, "ssh-keys") && (name == "permission" || name == "bare 403"):
					says, not = []string{"no permission", "by hand", sshKey}, "" // a person can do it
				case strings.HasSuffix(change.path, "namespaces") && name == "name is taken":
					says = []string{"the owner is unknown", "choose another name"}
				case strings.HasSuffix(change.path, "action") && name == "parent is gone":
					says = []string{"it cannot be found any more"} // it is the server itself that is gone
				case strings.HasSuffix(change.path, "action") && (name == "stock" || name == "quota"):
					says = slices.Concat(says, []string{"PLAY2-", "in fr-par-1)"}) // what another choice needs
				}
				for _, word := range slices.Concat(change.names, says) {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("%s: %q lacks %q", what, err, word)
					}
				}
				if not != "" && strings.Contains(err.Error(), not) {
					t.Errorf("%s: %q says %q, which cannot help", what, err, not)
				}
				if len(seen.calls) == 0 {
					t.Errorf("%s was never made", what)
				}
				for call, n := range seen.calls {
					// A parent that is gone is looked for once more, after an interrupted deletion.
					if most := map[bool]int{true: 2, false: 1}[name == "parent is gone"]; n > most {
						t.Errorf("%s: %s was sent %d times", what, call, n)
					}
				}
			}
		})
	}
}

// refused counts how often each call, told apart by its body, met a status.
type refused struct {
	mu     sync.Mutex
	status int
	calls  map[string]int
}

func (r *refused) count(next http.RoundTripper) http.RoundTripper {
	return transport(func(req *http.Request) (*http.Response, error) {
		var body []byte
		if req.Body != nil {
			body, _ = io.ReadAll(req.Body)
			req.Body = io.NopCloser(bytes.NewReader(body))
		}
		res, err := next.RoundTrip(req)
		if err == nil && res.StatusCode == r.status && fault.Mutates(req.Method) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.calls[fmt.Sprint(req.Method, " ", req.URL.Path, " ", string(body))]++
		}
		return res, err
	})
}
