package estate

import (
	"crypto/rand"
	"crypto/rsa"
	"os"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func fullText(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/valid/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Field report 62: the API was open to the internet by a range nobody checked.
// Of seven ways to fill in the admin ranges one is right.
func TestFieldReport62OnlyARealAdminRangeIsAccepted(t *testing.T) {
	for value, accepted := range map[string]bool{
		`[]`: false, `["0.0.0.0/0"]`: false, `["198.51.100.7/0"]`: false, `["::/0"]`: false, `["198.51.100.7"]`: false, `["YOUR_IP/32"]`: false,
		`["0.0.0.0/1", "128.0.0.0/1"]`: false, `["0.0.0.0/2", "64.0.0.0/2", "128.0.0.0/2", "192.0.0.0/2"]`: false,
		`["198.51.100.7/32"]`: true,
	} {
		paths := refusedPaths(t, mutate(t, fullText(t), "admin.cidrs", value))
		if (len(paths) == 0) != accepted {
			t.Errorf("%s: accepted is %v, want %v (%v)", value, len(paths) == 0, accepted, paths)
		}
		for _, path := range paths {
			if !strings.HasPrefix(path, "admin.cidrs") {
				t.Errorf("%s: refused at %s, want admin.cidrs", value, path)
			}
		}
	}
}

// A whole world made of ranges that are each narrow enough is still too many.
func TestFieldReport62ManyNarrowRangesAreRefused(t *testing.T) {
	var ranges []string
	for _, second := range []string{"0", "1", "2", "3", "4"} {
		ranges = append(ranges, "8."+second+".0.0/16")
	}
	paths := refusedPaths(t, mutate(t, fullText(t), "admin.cidrs", "["+strings.Join(ranges, ",")+"]"))
	if strings.Join(paths, " ") != "admin.cidrs" {
		t.Errorf("got %v, want admin.cidrs refused", paths)
	}
}

// Field report 12: a guide's advertise-address 0.0.0.0 and nested certSANs were
// silently merged. The whole kind: no flag that Talos or this file decides
// passes, and no key that does not exist.
func TestFieldReport12OwnedArgumentsAreRefused(t *testing.T) {
	for path, owned := range map[string]ownedArgs{
		"kubernetes.apiServer.extraArgs": apiServerArgs, "kubernetes.etcd.extraArgs": etcdArgs, "kubernetes.kubelet.extraArgs": kubeletArgs,
	} {
		for _, flags := range owned {
			for _, flag := range flags {
				if got := refusedPaths(t, mutate(t, fullText(t), path+"."+flag, `"0.0.0.0"`)); len(got) != 1 || got[0] != path+"."+flag {
					t.Errorf("%s.%s: refused %v", path, flag, got)
				}
			}
		}
	}
	if got := refusedPaths(t, mutate(t, fullText(t), "kubernetes.apiServer.apiServer.certSANs", "[k8s.example.org]")); len(got) != 1 {
		t.Errorf("nested certSANs: refused %v", got)
	}
}

// Field report 61: a name derived from the estate's became longer than allowed.
// Whatever the file accepts, every node's name is a host name.
func TestFieldReport61AcceptedNamesFit(t *testing.T) {
	text := mutate(t, fullText(t), "name", strings.Repeat("n", MaxNameLength))
	text = mutate(t, text, "talos.patches", "{}")
	for length := 1; length <= 64; length++ {
		e, err := Parse("x.yaml", mutate(t, text, "pools[0].name", strings.Repeat("p", length)))
		if err != nil {
			if length+MaxNameLength+3 <= 63 {
				t.Errorf("a pool's name of %d characters fits and is refused: %v", length, err)
			}
			continue
		}
		for _, n := range e.Nodes() {
			if len(n.Name) > 63 {
				t.Errorf("accepted, but the node is called %s (%d characters)", n.Name, len(n.Name))
			}
		}
	}
}

// Field report 61: the same name was derived in several places, and differently.
// There is one derivation; what it gives is a name that the file would accept, the
// same for the same file, another for another project or estate.
func TestFieldReport61OneNameOfTheBucket(t *testing.T) {
	e, err := Parse("x.yaml", mutate(t, fullText(t), "store", "{}"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, project := range []string{e.Scaleway.Project, "22222222-2222-4222-8222-222222222222"} {
		for _, name := range []string{"a", e.Name, strings.Repeat("n", MaxNameLength)} {
			one := &Estate{Name: name, Scaleway: Scaleway{Project: project}}
			bucket := one.BucketName()
			if bucket != one.BucketName() || names[bucket] {
				t.Errorf("%s of %s: %s", name, project, bucket)
			}
			names[bucket] = true
			if got := refusedPaths(t, mutate(t, fullText(t), "store.bucket", bucket)); len(got) != 0 {
				t.Errorf("%s could not be written in the file", bucket)
			}
		}
	}
	given, err := Parse("x.yaml", fullText(t))
	if err != nil {
		t.Fatal(err)
	}
	if given.BucketName() != "staging-estate-1" {
		t.Errorf("the file's name is not taken: %s", given.BucketName())
	}
}

func TestShortRSAKeysAreRefused(t *testing.T) {
	for bits, accepted := range map[int]bool{1024: false, 2048: true} {
		private, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			t.Fatal(err)
		}
		public, err := ssh.NewPublicKey(&private.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))
		if got := refusedPaths(t, mutate(t, fullText(t), "admin.sshKeys", "['"+line+"']")); (len(got) == 0) != accepted {
			t.Errorf("%d bits: refused %v, want accepted %v", bits, got, accepted)
		}
	}
}
