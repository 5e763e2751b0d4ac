package sim_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	iamapi "github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	file "bastide/internal/estate"
	"bastide/internal/iam"
	"bastide/internal/sim"
)

const neighbour = "99999999-9999-4999-8999-999999999999"

// house is a region with one of everything, as its owner sees it, and the same
// again in a project next door.
type house struct {
	t      *testing.T
	access sim.Access
	ids    map[string]string
	made   int
}

func newHouse(t *testing.T) *house {
	t.Helper()
	s := &house{t: t, access: start(t), ids: map[string]string{}}
	s.access.Project = project
	page(t, "POST", s.access.URL+"/sim/seed", `{"projects": [{"id": "`+project+`"}, {"id": "`+neighbour+`"}], "domains": [{"domain": "example.org", "project": "`+project+`"}],
		"registry_images": [{"project": "`+project+`", "region": "fr-par", "namespace": "staging-images", "name": "app", "tags": ["1"]}]}`)
	for _, home := range []string{project, neighbour} {
		prefix := ""
		if home != project {
			prefix = "their-"
		}
		s.make(prefix+"network", "POST", "/vpc/v2/regions/fr-par/private-networks", `{"project_id": "`+home+`", "name": "n"}`)
		s.make(prefix+"server", "POST", "/instance/v1/zones/fr-par-1/servers", `{"project": "`+home+`", "name": "node", "commercial_type": "PLAY2-NANO", "volumes": {"0": {"volume_type": "sbs_volume", "size": 10000000000}}}`)
		s.make(prefix+"volume", "POST", "/block/v1/zones/fr-par-1/volumes", `{"project_id": "`+home+`", "name": "data", "from_empty": {"size": 1000000000}}`)
		s.make(prefix+"secret", "POST", "/secret-manager/v1beta1/regions/fr-par/secrets", `{"project_id": "`+home+`", "name": "s"}`)
		s.make("", "POST", "/secret-manager/v1beta1/regions/fr-par/secrets/"+s.ids[prefix+"secret"]+"/versions", `{"data": "eA=="}`)
	}
	c := client(t, s.access.Environ())
	if err := c.MakeBucket(t.Context(), "staging-app", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutObject(t.Context(), "staging-app", "kept", strings.NewReader("x"), 1, minio.PutObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// call makes a call with a key. Braces in path and body stand for what was made.
func (s *house) call(key, method, path, body string) (int, []byte) {
	s.t.Helper()
	for name, id := range s.ids {
		path, body = strings.ReplaceAll(path, "{"+name+"}", id), strings.ReplaceAll(body, "{"+name+"}", id)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.access.URL+path, bytes.NewBufferString(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// make makes something as the owner and remembers its id under a name.
func (s *house) make(name, method, path, body string) {
	s.t.Helper()
	status, answer := s.call(s.access.SecretKey, method, path, body)
	if status >= 300 {
		s.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	var made struct {
		ID     string
		Server struct{ ID string }
	}
	if err := json.Unmarshal(answer, &made); err != nil {
		s.t.Fatal(err)
	}
	s.ids[name] = made.ID + made.Server.ID
}

// act is one call of the API, or one deed at the store.
type act struct{ name, method, path, body string }

// acts are calls of all products; those at the end are for a project next door.
var acts = []act{
	{"servers", "GET", "/instance/v1/zones/fr-par-1/servers?name=node", ""},
	{"server", "GET", "/instance/v1/zones/fr-par-1/servers/{server}", ""},
	{"addresses", "GET", "/ipam/v1/regions/fr-par/ips?resource_type=instance_private_nic", ""},
	{"balancers", "GET", "/lb/v1/zones/fr-par-1/lbs", ""},
	{"networks", "GET", "/vpc/v2/regions/fr-par/private-networks", ""},
	{"vpcs", "GET", "/vpc/v2/regions/fr-par/vpcs", ""},
	{"gateways", "GET", "/vpc-gw/v2/zones/fr-par-1/gateways", ""},
	{"volumes", "GET", "/block/v1/zones/fr-par-1/volumes", ""},
	{"databases", "GET", "/rdb/v1/regions/fr-par/instances", ""},
	{"images", "GET", "/registry/v1/regions/fr-par/images", ""},
	{"secrets", "GET", "/secret-manager/v1beta1/regions/fr-par/secrets", ""},
	{"password", "GET", "/secret-manager/v1beta1/regions/fr-par/secrets/{secret}/versions/1/access", ""},
	{"zones", "GET", "/domain/v2beta1/dns-zones", ""},
	{"keys", "GET", "/iam/v1alpha1/ssh-keys", ""},
	{"policies", "GET", "/iam/v1alpha1/policies", ""},
	{"projects", "GET", "/account/v3/projects", ""},

	{"server+", "PATCH", "/instance/v1/zones/fr-par-1/servers/{server}", `{"tags": ["x"]}`},
	{"volume+", "POST", "/block/v1/zones/fr-par-1/volumes", `{"project_id": "` + project + `", "name": "v", "from_empty": {"size": 1000000000}}`},
	{"snapshot+", "POST", "/block/v1/zones/fr-par-1/snapshots", `{"project_id": "` + project + `", "name": "v", "volume_id": "{volume}"}`},
	{"attach+", "POST", "/instance/v1/zones/fr-par-1/servers/{server}/attach-volume", `{"volume_id": "{fresh}", "volume_type": "sbs_volume"}`},
	{"volume-", "DELETE", "/block/v1/zones/fr-par-1/volumes/{spare}", ""},
	{"network+", "POST", "/vpc/v2/regions/fr-par/private-networks", `{"project_id": "` + project + `", "name": "n"}`},
	{"address+", "POST", "/ipam/v1/regions/fr-par/ips", `{"project_id": "` + project + `", "source": {"private_network_id": "{network}"}}`},
	{"balancer+", "POST", "/lb/v1/zones/fr-par-1/lbs", `{"project_id": "` + project + `", "name": "web", "description": "", "type": "LB-S", "assign_flexible_ip": true}`},
	{"join+", "POST", "/lb/v1/zones/fr-par-1/lbs/{balancer}/attach-private-network", `{"private_network_id": "{network}"}`},
	{"namespace+", "POST", "/registry/v1/regions/fr-par/namespaces", `{"project_id": "` + project + `", "name": "fresh-{n}"}`},
	{"secret+", "POST", "/secret-manager/v1beta1/regions/fr-par/secrets", `{"project_id": "` + project + `", "name": "s-{n}"}`},
	{"password+", "POST", "/secret-manager/v1beta1/regions/fr-par/secrets/{secret}/versions", `{"data": "eA=="}`},
	{"record+", "PATCH", "/domain/v2beta1/dns-zones/example.org/records", `{"changes": [{"add": {"records": [{"name": "n{n}", "type": "A", "data": "192.0.2.1", "ttl": 60}]}}]}`},
	{"policy+", "POST", "/iam/v1alpha1/policies", `{"name": "p", "no_principal": true, "rules": [{"permission_set_names": ["IAMManager"], "organization_id": "` + project + `"}]}`},

	{"THEIR server", "GET", "/instance/v1/zones/fr-par-1/servers/{their-server}", ""},
	{"THEIR volume+", "POST", "/block/v1/zones/fr-par-1/volumes", `{"project_id": "` + neighbour + `", "name": "v", "from_empty": {"size": 1000000000}}`},
	{"THEIR volume-", "DELETE", "/block/v1/zones/fr-par-1/volumes/{their-volume}", ""},
	{"THEIR password", "GET", "/secret-manager/v1beta1/regions/fr-par/secrets/{their-secret}/versions/1/access", ""},
	{"THEIR secrets", "GET", "/secret-manager/v1beta1/regions/fr-par/secrets?project_id=" + neighbour, ""},
}

// storeActs are deeds at the store, by what an application does.
var storeActs = []string{"buckets", "objects", "object", "object+", "object-"}

// mayAs tries everything with a key.
func (s *house) mayAs(key *iamapi.APIKey) string {
	s.t.Helper()
	s.made++
	s.ids["n"] = fmt.Sprint(s.made)
	for _, name := range []string{"fresh", "spare"} {
		s.make(name, "POST", "/block/v1/zones/fr-par-1/volumes", `{"project_id": "`+project+`", "name": "v", "from_empty": {"size": 1000000000}}`)
	}
	s.make("balancer", "POST", "/lb/v1/zones/fr-par-1/lbs", `{"project_id": "`+project+`", "name": "b", "description": "", "type": "LB-S"}`)
	for ready := false; !ready; { // there is nothing to await but its answer, and the test's own deadline
		_, answer := s.call(s.access.SecretKey, "GET", "/lb/v1/zones/fr-par-1/lbs/{balancer}", "")
		ready = bytes.Contains(answer, []byte(`"status":"ready"`))
	}
	var may []string
	for _, a := range acts {
		status, answer := s.call(*key.SecretKey, a.method, a.path, a.body)
		switch {
		case status < 300:
			may = append(may, a.name)
		case status != http.StatusForbidden || !bytes.Contains(answer, []byte(`"type":"permissions_denied"`)):
			s.t.Errorf("%s: %d %s", a.name, status, answer)
		}
	}
	theirs := s.access
	theirs.AccessKey, theirs.SecretKey = key.AccessKey, *key.SecretKey
	c := &minio.Core{Client: client(s.t, theirs.Environ())}
	for _, d := range deeds(s.t) {
		if !slices.Contains(storeActs, d.name) {
			continue
		}
		if err := d.do(c, "staging-app"); err == nil {
			may = append(may, "S3 "+d.name)
		} else if minio.ToErrorResponse(err).Code != "AccessDenied" {
			s.t.Errorf("S3 %s: %v", d.name, err)
		}
	}
	return strings.Join(may, ", ")
}

// give makes an application with a policy and a key, as bastide iam writes it
// out, or with fewer sets.
func (s *house) give(a iam.Application, sets []string) *iamapi.APIKey {
	s.t.Helper()
	sdk, err := scw.NewClient(scw.WithAPIURL(s.access.URL), scw.WithAuth(s.access.AccessKey, s.access.SecretKey), scw.WithDefaultProjectID(project), scw.WithDefaultOrganizationID(project))
	if err != nil {
		s.t.Fatal(err)
	}
	people, home := iamapi.NewAPI(sdk), a.Project
	app, err := people.CreateApplication(&iamapi.CreateApplicationRequest{Name: a.Name})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := people.CreatePolicy(&iamapi.CreatePolicyRequest{Name: a.Name, ApplicationID: &app.ID, Rules: []*iamapi.RuleSpecs{{PermissionSetNames: &sets, ProjectIDs: &[]string{home}}}}); err != nil {
		s.t.Fatal(err)
	}
	key, err := people.CreateAPIKey(&iamapi.CreateAPIKeyRequest{ApplicationID: &app.ID, DefaultProjectID: &home})
	if err != nil {
		s.t.Fatal(err)
	}
	return key
}

// What bastide iam writes out for each application lets it make the calls that
// it makes, and no other: nothing of another product, nothing that changes what
// it only reads, nothing of IAM, and nothing in the project next door. Without
// any one of the sets it cannot do its work.
func TestWrittenOutRightsOfEachApplication(t *testing.T) {
	e, err := file.Load("../estate/testdata/valid/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e.Scaleway.Project = project
	const everyReading = "servers, server, addresses, balancers, networks, vpcs, gateways, volumes, databases, images, secrets, zones, keys"
	s := newHouse(t)
	for _, c := range []struct {
		name string
		may  string
		// needs is what it really does, of all that it may; empty for all.
		needs string
	}{
		{name: "staging-cloud-controller", may: "servers, server, addresses, balancers, networks, balancer+, join+", needs: "servers, server, addresses, balancers, balancer+, join+"},
		{name: "staging-csi", may: "servers, server, volumes, server+, volume+, snapshot+, attach+, volume-", needs: "server, volumes, volume+, snapshot+, attach+, volume-"},
		{name: "staging-objects", may: "S3 objects, S3 object, S3 object+, S3 object-"},
		{name: "staging-backup", may: "S3 objects, S3 object, S3 object+, S3 object-"},
		{name: "staging-registry-pull", may: "images"},
		{name: "staging-ci", may: everyReading + ", S3 buckets, S3 objects, S3 object"},
		{name: "staging-bastide", may: strings.Replace(everyReading, "secrets,", "secrets, password,", 1) + ", server+, volume+, snapshot+, attach+, volume-, network+, address+, balancer+, join+, namespace+, secret+, password+, record+" +
			", S3 buckets, S3 objects, S3 object, S3 object+, S3 object-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.t = t
			apps := iam.Needed(e)
			i := slices.IndexFunc(apps, func(a iam.Application) bool { return a.Name == c.name })
			if i < 0 {
				t.Fatal("it is not written out")
			}
			app, sets := apps[i], apps[i].Sets()
			if got := s.mayAs(s.give(app, sets)); got != c.may {
				t.Errorf("it may %s\n       want %s", got, c.may)
			}
			if c.name == "staging-bastide" || c.name == "staging-ci" {
				return // each of their sets is taken away in turn from a whole up, in internal/scaleway
			}
			needs := c.needs
			if needs == "" {
				needs = c.may
			}
			for _, set := range sets {
				got := strings.Split(s.mayAs(s.give(app, slices.DeleteFunc(slices.Clone(sets), func(v string) bool { return v == set }))), ", ")
				if !slices.ContainsFunc(strings.Split(needs, ", "), func(n string) bool { return !slices.Contains(got, n) }) {
					t.Errorf("%s is superfluous: without it all its calls are answered", set)
				}
			}
		})
	}
}

// A key sees in listings what is in its projects, and nothing of others.
func TestListingsEndAtTheProject(t *testing.T) {
	s := newHouse(t)
	key := s.give(iam.Application{Name: "a", Project: project}, []string{"SecretManagerReadOnly", "InstancesReadOnly"})
	for path, hidden := range map[string]string{"/secret-manager/v1beta1/regions/fr-par/secrets": "their-secret", "/instance/v1/zones/fr-par-1/servers": "their-server"} {
		status, answer := s.call(*key.SecretKey, "GET", path, "")
		own := strings.TrimPrefix(hidden, "their-")
		if status != http.StatusOK || !bytes.Contains(answer, []byte(s.ids[own])) || bytes.Contains(answer, []byte(s.ids[hidden])) {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
}
