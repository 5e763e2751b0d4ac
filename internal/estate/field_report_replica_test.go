package estate

import (
	"strings"
	"testing"
)

// Field report 10: the "off-site" copy was on the provider's endpoint on which
// the estate's own store is, and that came out when the cluster was live. However
// such an address is written, the file is refused, with the place in it.
func TestFieldReport10ReplicaInTheSameFailureDomain(t *testing.T) {
	const home = "store.replica.endpoint"
	for _, c := range []struct{ endpoint, says string }{
		{"https://s3.fr-par.scw.cloud", "as the estate's own store is"},
		{"https://S3.fr-par.scw.cloud/", "as the estate's own store is"},
		{"HTTPS://s3.FR-PAR.SCW.Cloud", "as the estate's own store is"},
		{"https://s3.fr-par.scw.cloud//", "as the estate's own store is"},
		{"https://s3.fr-par.scw.cloud:443", "as the estate's own store is"},
		{"https://s3.fr-par.scw.cloud:0443/", "as the estate's own store is"},
		{"https://s3.fr-par.scw.cloud.", "as the estate's own store is"},
		{"https://s3.fr-par.scw.cloud.:443/", "as the estate's own store is"},
		{"https://s3.fr-par.scw.cloud:8443", "as the estate's own store is"},
		{"https://staging-copies.s3.fr-par.scw.cloud", "as the estate's own store is"},
		{"https://other.s3.fr-par.scw.cloud", "as the estate's own store is"},
		{"https://staging-copies.s3-website.fr-par.scw.cloud", "as the estate's own store is"},
		{"https://s3.s3.fr-par.scw.cloud", "as the estate's own store is"},
		{"https://scw.cloud", "does not say in which region"},
		{"https://s3.scw.cloud", "does not say in which region"},
		{"https://s3.uk-lon.scw.cloud", "does not say in which region"},
		{"https://s3.scaleway.com", "does not say in which region"},
		{"https://staging-copies.s3.nl-ams.scw.cloud", "is not the address of object storage in nl-ams"},
		{"https://staging-copies.s3.example.net", "has the bucket's name in it"},
		{"http://s3.fr-par.scw.cloud", "is not encrypted"},
		{"http://s3.example.net", "is not encrypted"},
		{"http://10.0.0.1:9000", "is not encrypted"},
		{"https://key:sesame@s3.example.net", "holds a user name or a key"},
		{"https://sesame@s3.fr-par.scw.cloud", "holds a user name or a key"},
		{"https://s3.example.net@s3.fr-par.scw.cloud", "holds a user name or a key"},
		{"https://s3.example.net/staging-copies", "has more than a scheme"},
		{"https://s3.example.net/?a=b", "has more than a scheme"},
		{"https://s3.example.net?", "has more than a scheme"},
		{"'https://s3.example.net#a'", "has more than a scheme"},
		{"s3.fr-par.scw.cloud", "is not the https address"},
		{"//s3.fr-par.scw.cloud", "is not the https address"},
		{"s3://staging-copies", "is not the https address"},
		{"https://", "is not the https address"},
		{"https:s3.fr-par.scw.cloud", "is not the https address"},
		{`"https://s3.fr-par.scw.cloud "`, "has white space around it"},
		{"https://s3.fr%2Dpar.scw.cloud", "is not the https address"},
		{"https://s3.fr-par。scw。cloud", "neither a plain name nor an IP address"},
		{"https://s3.fr-par.scw.cloud..", "neither a plain name nor an IP address"},
		{"https://ſ3.fr-par.scw.cloud", "neither a plain name nor an IP address"},
		{"https://127.1", "neither a plain name nor an IP address"},
		{"https://0x7f.0x1", "neither a plain name nor an IP address"},
		{"https://s3.example.net:0", "has a port that is none"},
		{"https://s3.example.net:70000", "has a port that is none"},
		{`""`, ""},
	} {
		e, err := Parse("x.yaml", mutate(t, fullText(t), home, c.endpoint))
		if c.says == "" && err != nil {
			continue
		}
		if err == nil {
			t.Errorf("%s is accepted: %+v", c.endpoint, e.Store.Replica)
			continue
		}
		problems := err.(Problems) //nolint:errorlint // Parse gives nothing else
		if len(problems) != 1 || problems[0].Path != home || problems[0].Line < 13 || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, want %q: %v", c.endpoint, c.says, err)
		}
		if strings.Contains(err.Error(), "sesame") {
			t.Errorf("the message repeats what may be a key: %v", err)
		}
	}
}

// A host name of somebody's own that leads to Scaleway is not seen by its text;
// the region that signatures for it must name is.
func TestFieldReport10AnAliasIsKnownByItsRegion(t *testing.T) {
	text := mutate(t, fullText(t), "store.replica.endpoint", "https://backup.example.org")
	if got := refusedPaths(t, mutate(t, text, "store.replica.region", "fr-par")); len(got) != 1 || got[0] != "store.replica.region" {
		t.Errorf("refused %v", got)
	}
}

// A store elsewhere is taken; one that is nearer than it could be, with a warning
// that says what it shares with the estate.
func TestFieldReport10ReplicasElsewhere(t *testing.T) {
	for _, c := range []struct{ endpoint, region, warns string }{
		{"https://s3.example.net", "eu-west-1", ""},
		{"https://S3.Example.net:443/", "eu-west-1", ""},
		{"https://s3.fr-par.scw.cloud.example.net", "eu-west-1", ""},
		{"https://s3.fr-par.notscw.cloud", "eu-west-1", ""},
		{"https://198.51.100.9:9000", "eu-west-1", ""},
		{"https://[2001:db8::1]:9000", "eu-west-1", ""},
		{"https://s3.nl-ams.scw.cloud", "nl-ams", "another region fails by itself; a locked account"},
		{"http://127.0.0.1:9000", "eu-west-1", "is on this machine"},
		{"http://localhost:9000", "eu-west-1", "is on this machine"},
		{"http://[::1]:9000", "eu-west-1", "is on this machine"},
	} {
		e, err := Parse("x.yaml", mutate(t, mutate(t, fullText(t), "store.replica.endpoint", c.endpoint), "store.replica.region", c.region))
		if err != nil {
			t.Errorf("%s: %v", c.endpoint, err)
			continue
		}
		var warnings string
		for _, w := range e.Warnings() {
			if w.Path == "store.replica.endpoint" {
				warnings += w.Error()
			}
		}
		if (c.warns == "") != (warnings == "") || !strings.Contains(warnings, c.warns) {
			t.Errorf("%s warns: %q, want %q", c.endpoint, warnings, c.warns)
		}
	}
	if got := refusedPaths(t, mutate(t, mutate(t, fullText(t), "store.replica.endpoint", "https://s3.nl-ams.scw.cloud"), "store.replica.region", "pl-waw")); len(got) != 1 || got[0] != "store.replica.region" {
		t.Errorf("a region that is not the address's: refused %v", got)
	}
}

// Two addresses of one store meet, whatever the spelling.
func TestEndpointsThatMeet(t *testing.T) {
	for _, c := range []struct {
		one, other string
		meet       bool
	}{
		{"https://s3.example.net", "HTTPS://S3.EXAMPLE.NET.:443/", true},
		{"https://s3.example.net:9000", "https://s3.example.net", true},
		{"https://b.s3.example.net", "https://s3.example.net", true},
		{"https://s3.example.net", "https://s3.example.org", false},
		{"https://xs3.example.net", "https://s3.example.net", false},
		{"http://127.0.0.1:9000", "http://localhost:9000", true},
		{"http://127.0.0.1:9000", "http://[::1]:9000", true},
		{"http://127.0.0.1:9000", "http://127.0.0.1:9001", false},
		{"https://[::ffff:198.51.100.9]", "https://198.51.100.9", true},
	} {
		one, wrong, _ := ParseEndpoint(c.one)
		other, also, _ := ParseEndpoint(c.other)
		if wrong+also != "" {
			t.Fatalf("%s, %s: %s %s", c.one, c.other, wrong, also)
		}
		if one.Meets(other) != c.meet || other.Meets(one) != c.meet {
			t.Errorf("%s meets %s: %v", c.one, c.other, one.Meets(other))
		}
	}
}
