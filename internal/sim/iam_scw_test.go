package sim_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	iamapi "github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	file "bastide/internal/estate"
	"bastide/internal/iam"
	"bastide/internal/sim/program"
)

// TestWrittenOutRightsArePasted runs what bastide iam prints, with scw, against
// the region: every name in it exists there, and every application gets its key.
func TestWrittenOutRightsArePasted(t *testing.T) {
	tool := program.Need(t, "scw")
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell to paste into")
	}
	e, err := file.Load("../estate/testdata/valid/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	access := start(t)
	e.Scaleway.Project = access.Project
	cmd := exec.CommandContext(t.Context(), sh, "-e")
	cmd.Stdin = strings.NewReader("scw() { " + tool + ` "$@"; }` + "\n" + iam.Script(e))
	cmd.Env = append(access.Environ(), "HOME="+t.TempDir(), "PATH="+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if keys, apps := strings.Count(string(out), "AccessKey"), len(iam.Needed(e)); keys != apps {
		t.Errorf("%d keys for %d applications:\n%s", keys, apps, out)
	}
	sdk, err := scw.NewClient(scw.WithAPIURL(access.URL), scw.WithAuth(access.AccessKey, access.SecretKey), scw.WithDefaultProjectID(access.Project), scw.WithDefaultOrganizationID(access.Project))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range iam.Needed(e) {
		made(t, iamapi.NewAPI(sdk), a)
	}
}

// made looks at what pasting has made of an application: one policy with one
// rule, of these sets and in this project alone, and a key that ends.
func made(t *testing.T, people *iamapi.API, a iam.Application) {
	t.Helper()
	apps, err := people.ListApplications(&iamapi.ListApplicationsRequest{Name: &a.Name})
	if err != nil || len(apps.Applications) != 1 {
		t.Fatalf("%s: %v, %+v", a.Name, err, apps)
	}
	id := apps.Applications[0].ID
	policies, err := people.ListPolicies(&iamapi.ListPoliciesRequest{ApplicationIDs: []string{id}})
	if err != nil || len(policies.Policies) != 1 {
		t.Fatalf("%s: %v, %+v", a.Name, err, policies)
	}
	rules, err := people.ListRules(&iamapi.ListRulesRequest{PolicyID: policies.Policies[0].ID})
	if err != nil || len(rules.Rules) != 1 {
		t.Fatalf("%s: %v, %+v", a.Name, err, rules)
	}
	r := rules.Rules[0]
	if r.ProjectIDs == nil || !slices.Equal(*r.ProjectIDs, []string{a.Project}) || r.OrganizationID != nil {
		t.Errorf("%s: the rule is about %+v, %v", a.Name, r.ProjectIDs, r.OrganizationID)
	}
	if r.PermissionSetNames == nil || !slices.Equal(slices.Sorted(slices.Values(*r.PermissionSetNames)), a.Sets()) {
		t.Errorf("%s: the rule has %v, want %v", a.Name, r.PermissionSetNames, a.Sets())
	}
	keys, err := people.ListAPIKeys(&iamapi.ListAPIKeysRequest{BearerID: &id})
	if err != nil || len(keys.APIKeys) != 1 || keys.APIKeys[0].ExpiresAt == nil || keys.APIKeys[0].DefaultProjectID != a.Project {
		t.Errorf("%s: %v, %+v", a.Name, err, keys)
	}
}
