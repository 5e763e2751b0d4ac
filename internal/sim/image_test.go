package sim_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/minio/minio-go/v7"
	talos "github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"bastide/internal/sim"
)

// site is a region whose Image Factory and object storage are used as a person
// would.
type site struct {
	*testing.T
	access sim.Access
	store  *minio.Client
}

// newSite starts a region whose key may not do what deny lists.
func newSite(t *testing.T, deny ...string) *site {
	s := &site{T: t, access: start(t, deny...)}
	if !slices.Contains(s.access.Environ(), "BASTIDE_FACTORY_URL="+s.access.Factory) {
		t.Fatalf("the Factory is not among %v", s.access.Environ())
	}
	s.store = client(t, s.access.Environ())
	if err := s.store.MakeBucket(t.Context(), "images", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// call makes a call of Scaleway's API.
func (s *site) call(method, path string, in body) body {
	s.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		s.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.Context(), method, s.access.URL+path, bytes.NewReader(text))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", s.access.SecretKey)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err = io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		s.Fatalf("%s %s: %d, %v: %s", method, path, resp.StatusCode, err, text)
	}
	out := body{}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &out); err != nil {
			s.Fatal(err)
		}
	}
	return out
}

const snapshots = "/block/v1/zones/fr-par-1/snapshots"

// imported imports an object and waits until that has ended.
func (s *site) imported(key string) body {
	s.Helper()
	made := s.call("POST", snapshots+"/import-from-object-storage", body{"bucket": "images", "key": key, "name": key, "project_id": project})
	if made["status"] != "creating" {
		s.Errorf("%s: at first %v", key, made["status"])
	}
	for {
		if now := s.call("GET", fmt.Sprint(snapshots, "/", made["id"]), nil); now["status"] != "creating" {
			return now
		}
		select {
		case <-s.Context().Done():
			s.Fatal("the import does not end")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// download fetches an image from the Factory.
func (s *site) download(schematic, file string) []byte {
	s.Helper()
	resp, err := http.Post(s.access.Factory+"/schematics", "application/yaml", strings.NewReader(schematic))
	if err != nil {
		s.Fatal(err)
	}
	var made struct{ ID string }
	if err := errors.Join(json.NewDecoder(resp.Body).Decode(&made), resp.Body.Close()); err != nil || resp.StatusCode != http.StatusCreated {
		s.Fatalf("%d, %v", resp.StatusCode, err)
	}
	return []byte(page(s.T, "GET", s.access.Factory+"/image/"+made.ID+"/v1.13.5/"+file, ""))
}

func (s *site) put(key string, content []byte) {
	s.Helper()
	if _, err := s.store.PutObject(s.Context(), "images", key, bytes.NewReader(content), int64(len(content)), minio.PutObjectOptions{PartSize: 8 << 20}); err != nil {
		s.Fatal(err)
	}
}

// boot makes a server from a snapshot and returns its public address.
func (s *site) boot(snapshot any) string {
	s.Helper()
	ip := s.call("POST", "/instance/v1/zones/fr-par-1/ips", body{"project": project, "type": "routed_ipv4"})["ip"].(body)
	made := s.call("POST", "/instance/v1/zones/fr-par-1/servers", body{"name": "node", "project": project, "commercial_type": "PLAY2-NANO",
		"public_ips": []any{ip["id"]}, "volumes": body{"0": body{"base_snapshot": snapshot, "volume_type": "sbs_volume", "boot": true}}})
	s.call("POST", fmt.Sprint("/instance/v1/zones/fr-par-1/servers/", made["server"].(body)["id"], "/action"), body{"action": "poweron"})
	return fmt.Sprint(ip["address"])
}

// TestAnImageBoots goes the whole way: schematic, download, upload in parts,
// import, volume, machine.
func TestAnImageBoots(t *testing.T) {
	s := newSite(t)
	image := s.download("customization: {extraKernelArgs: [quiet], systemExtensions: {officialExtensions: [siderolabs/gvisor]}}", "scaleway-amd64.qcow2")
	s.put("talos", image)
	lost := bytes.Clone(image)
	clear(lost[16<<20 : 17<<20])
	s.put("lost", lost)
	broken := s.imported("lost") // a good QCOW2 image, but not what the Factory made
	good := s.imported("talos")
	if good["status"] != "available" || good["size"] != 5e9 || broken["status"] != "available" {
		t.Fatalf("%v, %v", good, broken)
	}
	dead := s.boot(broken["id"])
	found := s.node(s.boot(good["id"]))
	if want := "gvisor v1.13.5,schematic 328a19678044f4bbf19630131ef2a940bd26136d7a1ac2fe524a0a4f33e5d23c,talos.platform=scaleway "; !strings.HasPrefix(found, want) || !strings.HasSuffix(found, " quiet") {
		t.Errorf("the node has %s", found)
	}
	// By now the other one, booted first, would have an API too.
	if _, err := s.talos(dead).Version(t.Context()); err == nil {
		t.Error("a damaged disk boots")
	}
}

func (s *site) talos(address string) *talos.Client {
	s.Helper()
	c, err := talos.New(s.Context(), talos.WithTLSConfig(&tls.Config{InsecureSkipVerify: true}), talos.WithEndpoints(address))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = c.Close() })
	return c
}

// node waits for a machine in maintenance and tells what runs on it.
func (s *site) node(address string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	c := s.talos(address)
	for {
		if _, err := c.Version(ctx); err == nil {
			break
		} else if ctx.Err() != nil {
			s.Fatal(err)
		}
	}
	var all []string
	list, err := safe.StateListAll[*runtime.ExtensionStatus](ctx, c.COSI)
	if err != nil {
		s.Fatal(err)
	}
	for e := range list.All() {
		all = append(all, e.TypedSpec().Metadata.Name+" "+e.TypedSpec().Metadata.Version)
	}
	cmdline, err := safe.StateGetByID[*runtime.KernelCmdline](ctx, c.COSI, runtime.KernelCmdlineID)
	if err != nil {
		s.Fatal(err)
	}
	return strings.Join(append(all, cmdline.TypedSpec().Cmdline), ",")
}

// What is no whole QCOW2 image ends in error, and late.
func TestWrongObjectsEndInError(t *testing.T) {
	s := newSite(t)
	image := s.download("{}", "scaleway-amd64.qcow2")
	for key, content := range map[string][]byte{
		"cut": image[:len(image)*6/10], "raw": make([]byte, 8<<20), "gzip": append([]byte("\x1f\x8b\x08\x00"), image[:4096]...),
		"zst": append([]byte("\x28\xb5\x2f\xfd"), image[:4096]...), "html": []byte("<html><body>Not Found</body></html>"), "header": image[:104],
	} {
		s.put(key, content)
		if done := s.imported(key); done["status"] != "error" {
			t.Errorf("%s: %v", key, done["status"])
		}
	}
	if done := s.imported("missing"); done["status"] != "error" {
		t.Errorf("a missing object: %v", done["status"])
	}
	s.put("other region", image)
	made := s.call("POST", "/block/v1/zones/nl-ams-1/snapshots/import-from-object-storage", body{"bucket": "images", "key": "other region", "name": "x", "project_id": project})
	for made["status"] == "creating" {
		made = s.call("GET", fmt.Sprint("/block/v1/zones/nl-ams-1/snapshots/", made["id"]), nil)
	}
	if made["status"] != "error" {
		t.Errorf("a bucket of another region: %v", made["status"])
	}
}

// A fault script makes a good import fail or last, once.
func TestImportsAreTroubled(t *testing.T) {
	s := newSite(t)
	s.put("talos", s.download("{}", "scaleway-amd64.qcow2"))
	page(t, "POST", s.access.URL+"/sim/faults", "events:\n  - {node: talos, event: snapshot-import-error}\n  - {node: talos, event: snapshot-import-slow, params: {for: 5m}}\n")
	if done := s.imported("talos"); done["status"] != "error" {
		t.Errorf("at first: %v", done["status"])
	}
	if done := s.imported("talos"); done["status"] != "available" {
		t.Errorf("then: %v", done["status"])
	}
	if delays := page(t, "GET", s.access.URL+"/sim/delays", ""); !strings.Contains(delays, `"8m32s"`) || !strings.Contains(delays, `"3m32s"`) || !strings.Contains(delays, `"30s"`) {
		t.Error(delays)
	}
}

// An import reads with the rights of the key that asks for it.
func TestImportsNeedTheRightToRead(t *testing.T) {
	s := newSite(t, "object:read")
	s.put("talos", s.download("{}", "scaleway-amd64.qcow2"))
	if done := s.imported("talos"); done["status"] != "error" {
		t.Errorf("%v", done["status"])
	}
}
