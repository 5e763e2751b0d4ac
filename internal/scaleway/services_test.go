package scaleway_test

import (
	"slices"
	"strings"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/sim/api"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/tags"
	"github.com/scaleway/scaleway-sdk-go/api/domain/v2beta1"
	"github.com/scaleway/scaleway-sdk-go/api/registry/v1"
	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// smallServices is a private estate with all of the small services.
func smallServices() *estate.Estate { return withServices(privateEstate(1)) }

// allServices has the database too.
func allServices() *estate.Estate { return withPostgres(smallServices()) }

func newServicesWorld(t testing.TB, e *estate.Estate) *world {
	t.Helper()
	return scene{nil, func() *estate.Estate { return e }}.fresh(t)
}

// records counts the records of a zone that exists.
func (w *world) records(zone string) int {
	r, err := domain.NewAPI(w.somebody()).ListDNSZoneRecords(&domain.ListDNSZoneRecordsRequest{DNSZone: zone})
	if err != nil {
		w.Fatal(err)
	}
	return int(r.TotalCount)
}

func (w *world) seed(s api.Seed) {
	w.Helper()
	if err := w.region.Seed(s); err != nil {
		w.Fatal(err)
	}
}

// The small services: made, found as wanted, left alone, taken down.
func TestSmallServices(t *testing.T) {
	t.Parallel()
	w := newServicesWorld(t, smallServices())
	w.mustUp()
	w.wantConverged()
	mark := len(w.region.Requests(0))
	w.mustUp()
	if n, which := w.writes(mark); n != 0 {
		t.Errorf("a second run wrote %d times: %s", n, strings.Join(which, "; "))
	}
	if n := len(w.region.Requests(mark)); n > 40 {
		t.Errorf("an inventory took %d calls", n)
	}
	if err := w.raze(t.Context(), w.cloud()); err != nil {
		t.Fatal(err)
	}
	inv, err := w.cloud().Inventory(t.Context())
	if err != nil || !inv.Empty() {
		t.Errorf("inventory after destroy: %+v, %v", inv, err)
	}
}

// wantRefused checks that the plan refuses a step with a reason.
func (w *world) wantRefused(step string, parts ...string) {
	w.Helper()
	_, p, _, err := w.plan(w.Context(), w.cloud())
	if err != nil {
		w.Fatal(err)
	}
	for _, a := range p.Actions {
		if a.Step.ID != step {
			continue
		}
		if a.Op != plan.Refuse {
			w.Errorf("%s: %s, want it refused", step, a.Op)
		}
		for _, part := range parts {
			if !strings.Contains(a.Reason, part) {
				w.Errorf("%s is refused because %q, want %q in it", step, a.Reason, part)
			}
		}
		return
	}
	w.Errorf("%s is not in the plan", step)
}

// A product that the file does not use may be closed to the key: a run goes on
// and says so, a teardown does not end as a proof.
func TestProductsThatTheFileDoesNotUse(t *testing.T) {
	t.Parallel()
	for product, what := range map[string]string{"registry": "the project's registry namespaces", "secret-manager": "the project's secrets", "domain": "the project's DNS zones", "object": "the project's buckets"} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, oneNode())
			w.seed(api.Seed{Permissions: &api.Credential{Deny: []string{product}}})
			w.mustUp()
			inv := w.wantConverged()
			if len(inv.Unread) != 1 || inv.Unread[0] != what || !strings.Contains(strings.Join(inv.Warnings, ""), what) {
				t.Errorf("unread %q, warnings %q", inv.Unread, inv.Warnings)
			}
			wantError(t, inv.Complete(), outcome.Unknown, what, "may not read")
			if err := w.raze(t.Context(), w.cloud()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A product that the file uses must be readable: nothing is made otherwise, and
// the permission is named.
func TestProductsThatTheFileUses(t *testing.T) {
	t.Parallel()
	for product, set := range map[string]string{"registry": "ContainerRegistryFullAccess", "secret-manager": "SecretManagerFullAccess", "domain": "DomainsDNSFullAccess", "object": "ObjectStorageFullAccess"} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := scenes["services"].fresh(t)
			w.seed(api.Seed{Permissions: &api.Credential{Deny: []string{product}}})
			wantError(t, w.up(t.Context(), w.cloud()), outcome.Unknown, set)
			if n, which := w.writes(0); n > 0 {
				t.Errorf("%d writes: %s", n, which)
			}
		})
	}
}

func (w *world) minio() *minio.Core {
	w.Helper()
	return w.minioOf(project)
}

func (w *world) minioOf(project string) *minio.Core {
	w.Helper()
	c, err := minio.NewCore(strings.TrimPrefix(w.s3, "http://"), &minio.Options{Region: "fr-par", BucketLookup: minio.BucketLookupPath,
		Creds: credentials.NewStaticV4("SCWXXXXXXXXXXXXXXXXX@"+project, "22222222-2222-4222-8222-222222222222", "")})
	if err != nil {
		w.Fatal(err)
	}
	return c
}

// Field report 47: names of buckets and of registry namespaces are unique among
// all customers. One that is taken is refused, and that nobody can say whose it
// is is said as well.
func TestFieldReport47NamesThatAreTaken(t *testing.T) {
	t.Parallel()
	w := scenes["services"].ready(t)
	const another = "99999999-9999-4999-8999-999999999999"
	if err := w.minioOf(another).MakeBucket(t.Context(), "staging-app", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	w.wantRefused("bucket/staging-app", "the name staging-app is taken", "owner is unknown", "choose another")
	w.seed(api.Seed{RegistryTaken: []api.SeedTaken{{Region: "fr-par", Name: "staging-images"}}})
	w.estate.Services.Buckets = nil
	wantError(t, w.up(t.Context(), w.cloud()), outcome.Failed, "registry namespace staging-images", "the owner is unknown", "choose another name")
}

// What has a wanted name without the mark is not taken over: the plan says what
// to do to hand it over, and once that is done it is the estate's.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	w := scenes["services"].ready(t)
	m, other := w.minio(), w.somebody()
	if err := m.MakeBucket(t.Context(), "staging-app", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	inv, err := w.cloud().Inventory(t.Context())
	if err != nil || !slices.ContainsFunc(inv.Warnings, func(s string) bool {
		return strings.Contains(s, "the bucket staging-app is there, empty and without any tag")
	}) {
		t.Errorf("warnings %q, %v", inv.Warnings, err) // up would take it up, as one that was left half made
	}
	if _, err := m.Client.PutObject(t.Context(), "staging-app", "x", strings.NewReader("x"), 1, minio.PutObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	registries, secrets, domains := registry.NewAPI(other), secret.NewAPI(other), domain.NewAPI(other)
	n := must(registries.CreateNamespace(&registry.CreateNamespaceRequest{Name: "staging-images", Description: "ours"}))(t)
	s := must(secrets.CreateSecret(&secret.CreateSecretRequest{Name: "session-key", Path: scw.StringPtr("/app"), Type: secret.SecretTypeOpaque}))(t)
	must(domains.UpdateDNSZoneRecords(&domain.UpdateDNSZoneRecordsRequest{DNSZone: "example.org", DisallowNewZoneCreation: true, Changes: []*domain.RecordChange{
		{Add: &domain.RecordChangeAdd{Records: []*domain.Record{{Name: "k8s.staging", Type: domain.RecordTypeA, Data: "192.0.2.1", TTL: 300}}}}}}))(t)
	w.wantRefused("bucket/staging-app", "without the estate's mark", "bastide:estate=staging and bastide:step=bucket/staging-app")
	w.wantRefused("registry/staging-images", "without the estate's mark", "[bastide:estate=staging]")
	w.wantRefused("secret/app/session-key", "without the estate's mark", "bastide:estate=staging and bastide:step=secret/app/session-key")
	w.wantRefused("dns-record/k8s.staging.example.org", "k8s.staging.example.org A 192.0.2.1, which is not the estate's", "with the comment bastide:estate=staging")

	marks := must(tags.NewTags(map[string]string{"bastide:estate": "staging", "bastide:step": "bucket/staging-app"}, false))(t)
	if err := m.SetBucketTagging(t.Context(), "staging-app", marks); err != nil {
		t.Fatal(err)
	}
	must(registries.UpdateNamespace(&registry.UpdateNamespaceRequest{NamespaceID: n.ID, Description: scw.StringPtr("ours [bastide:estate=staging]")}))(t)
	must(secrets.UpdateSecret(&secret.UpdateSecretRequest{SecretID: s.ID, Tags: &[]string{"bastide:estate=staging", "bastide:step=secret/app/session-key"}}))(t)
	must(domains.UpdateDNSZoneRecords(&domain.UpdateDNSZoneRecordsRequest{DNSZone: "example.org", DisallowNewZoneCreation: true, Changes: []*domain.RecordChange{
		{Set: &domain.RecordChangeSet{IDFields: &domain.RecordIdentifier{Name: "k8s.staging", Type: domain.RecordTypeA}, Records: []*domain.Record{
			{Name: "k8s.staging", Type: domain.RecordTypeA, Data: "192.0.2.1", TTL: 300, Comment: scw.StringPtr("by hand bastide:estate=staging")}}}}}}))(t)
	w.mustUp()
	w.wantConverged()
	if found := w.find("secret/app/session-key"); found.CloudID != s.ID {
		t.Errorf("the secret is %s, want %s", found.CloudID, s.ID)
	}
}

// A record of others that would answer for the estate's own name is refused and
// named, of whichever type; a text beside it is nobody's business.
func TestForeignRecordsOfTheEstatesName(t *testing.T) {
	t.Parallel()
	w := scenes["services"].ready(t)
	domains := domain.NewAPI(w.somebody())
	change := func(c domain.RecordChange) {
		t.Helper()
		must(domains.UpdateDNSZoneRecords(&domain.UpdateDNSZoneRecordsRequest{DNSZone: "example.org", DisallowNewZoneCreation: true, Changes: []*domain.RecordChange{&c}}))(t)
	}
	for _, r := range []domain.Record{{Type: domain.RecordTypeA, Data: "192.0.2.1"}, {Type: domain.RecordTypeAAAA, Data: "2001:db8::1"},
		{Type: domain.RecordTypeCNAME, Data: "elsewhere.example.net."}, {Type: domain.RecordTypeALIAS, Data: "elsewhere.example.net."}} {
		r.Name, r.TTL = "k8s.staging", 300
		change(domain.RecordChange{Add: &domain.RecordChangeAdd{Records: []*domain.Record{&r}}})
		w.wantRefused("dns-record/k8s.staging.example.org", "k8s.staging.example.org "+string(r.Type)+" "+r.Data+", which is not the estate's")
		change(domain.RecordChange{Delete: &domain.RecordChangeDelete{IDFields: &domain.RecordIdentifier{Name: r.Name, Type: r.Type}}})
	}
	change(domain.RecordChange{Add: &domain.RecordChangeAdd{Records: []*domain.Record{{Name: "k8s.staging", Type: domain.RecordTypeTXT, Data: "\"ours\"", TTL: 300}}}})
	w.mustUp()
	w.wantConverged()

	// Beside a record that is made already, too.
	change(domain.RecordChange{Add: &domain.RecordChangeAdd{Records: []*domain.Record{{Name: "k8s.staging", Type: domain.RecordTypeAAAA, Data: "2001:db8::1", TTL: 300}}}})
	w.wantRefused("dns-record/k8s.staging.example.org", "AAAA 2001:db8::1")
}

// Field report 48: a zone keeps names and targets in another form than they were
// written in. What was made is recognised, whatever its form; nothing of others
// is touched; only the estate's own records go.
func TestFieldReport48RecordsReadBackDifferently(t *testing.T) {
	t.Parallel()
	e := withServices(oneNode())
	e.DNS = &estate.DNS{Zone: "Example.ORG.", API: "K8S.Staging.", Edge: "*", TTL: 300}
	w := scene{oneNode, func() *estate.Estate { return e }}.ready(t)
	domains := domain.NewAPI(w.somebody())
	// A CNAME in capitals and without its final dot, which the zone completes.
	must(domains.UpdateDNSZoneRecords(&domain.UpdateDNSZoneRecordsRequest{DNSZone: "example.org", DisallowNewZoneCreation: true, Changes: []*domain.RecordChange{
		{Add: &domain.RecordChangeAdd{Records: []*domain.Record{{Name: "WWW", Type: domain.RecordTypeCNAME, Data: "K8S.Staging", TTL: 300}}}}}}))(t)
	before := w.records("example.org")
	w.mustUp()
	w.wantConverged()
	mark := len(w.region.Requests(0))
	w.mustUp()
	if n, which := w.writes(mark); n > 0 {
		t.Errorf("a second run wrote %d times: %s", n, which)
	}
	if n := w.records("example.org"); n != before+2 {
		t.Errorf("%d records, want %d", n, before+2)
	}
	for _, step := range []string{"dns-record/k8s.staging.example.org", "dns-record/*.example.org"} {
		w.find(step)
	}
	if err := w.destroy(t.Context(), w.cloud()); err != nil { // records hold no data
		t.Fatal(err)
	}
	if n := w.records("example.org"); n != before {
		t.Errorf("%d records are left, want the %d of others", n, before)
	}
}

// A zone that does not exist is never made, whoever asks for a record in it.
func TestZoneIsNeverMade(t *testing.T) {
	t.Parallel()
	e := withServices(oneNode())
	e.DNS.Zone = "sub.example.org"
	w := scene{oneNode, func() *estate.Estate { return e }}.ready(t)
	w.wantRefused("dns-record/k8s.staging.sub.example.org", "no DNS zone sub.example.org", "never makes one")
	if zones := must(domain.NewAPI(w.somebody()).ListDNSZones(&domain.ListDNSZonesRequest{}))(t); zones.TotalCount != 1 {
		t.Errorf("%d zones", zones.TotalCount)
	}
	for _, r := range w.region.Requests(0) {
		if r.Mutating && strings.HasPrefix(r.Path, "/domain/") {
			t.Errorf("%s %s", r.Method, r.Path)
		}
	}
}

// The content of a secret is never asked for.
func TestSecretContentIsNeverRead(t *testing.T) {
	t.Parallel()
	w := scenes["services"].fresh(t)
	w.mustUp()
	s := w.find("secret/smtp")
	must(secret.NewAPI(w.somebody()).CreateSecretVersion(&secret.CreateSecretVersionRequest{SecretID: s.CloudID, Data: []byte(`{"a":"b"}`)}))(t)
	mark := len(w.region.Requests(0))
	w.estate.Services.Secrets[1].Tags = []string{"new"}
	w.mustUp()
	w.wantConverged()
	for _, r := range w.region.Requests(mark) {
		if strings.Contains(r.Path, "/versions") {
			t.Errorf("%s %s", r.Method, r.Path)
		}
	}
}

// A protected secret is not deleted; one that was deleted less than seven days ago
// is brought back with its content, as it keeps its name.
func TestSecretsThatStayOrComeBack(t *testing.T) {
	t.Parallel()
	e := withServices(oneNode())
	e.Services.Secrets[0].Protected = true
	w := scene{oneNode, func() *estate.Estate { return e }}.fresh(t)
	w.mustUp()
	first := w.find("secret/app/session-key").CloudID
	mark := len(w.region.Requests(0))
	wantError(t, w.destroy(t.Context(), w.cloud(), blueprint.DataSecrets), outcome.Refused, "secret app/session-key", "protected", "protected: false")
	if n, which := w.writes(mark); n > 0 {
		t.Errorf("a refused teardown wrote %v", which)
	}
	w.estate.Services.Secrets[0].Protected = false
	w.mustUp()
	if err := w.destroy(t.Context(), w.cloud(), blueprint.DataSecrets); err != nil {
		t.Fatal(err)
	}
	w.mustUp()
	w.wantConverged()
	if again := w.find("secret/app/session-key"); again.CloudID != first {
		t.Errorf("the secret is %s, want %s again", again.CloudID, first)
	}
}

// A deleted secret of others keeps its name: the plan refuses the step, before
// anything is made that is paid for.
func TestTheNameOfADeletedSecretOfOthers(t *testing.T) {
	t.Parallel()
	w := scenes["services"].fresh(t)
	secrets := secret.NewAPI(w.somebody())
	s := must(secrets.CreateSecret(&secret.CreateSecretRequest{Name: "session-key", Path: scw.StringPtr("/app"), Type: secret.SecretTypeOpaque}))(t)
	own := must(secrets.CreateSecret(&secret.CreateSecretRequest{Name: "smtp", Path: scw.StringPtr("/"), Type: secret.SecretTypeOpaque,
		Tags: []string{"bastide:estate=staging", "bastide:step=secret/smtp"}}))(t)
	for _, id := range []string{s.ID, own.ID} {
		if err := secrets.DeleteSecret(&secret.DeleteSecretRequest{SecretID: id}); err != nil {
			t.Fatal(err)
		}
	}
	w.wantRefused("secret/app/session-key", "was deleted on ", "keeps the name for seven days", "choose another name")
	w.wantRefused("secret/smtp", "it is of the type opaque, which cannot be changed")
	w.estate.Services.Secrets[0].Name, w.estate.Services.Secrets[1].Type = "app/other-key", "opaque"
	w.mustUp()
	w.wantConverged()
	if again := w.find("secret/smtp"); again.CloudID != own.ID {
		t.Errorf("the secret is %s, want %s again", again.CloudID, own.ID)
	}
}
