package estate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// edit changes a text of the full example's copy.
func edit(t *testing.T, dir, from, to string) {
	t.Helper()
	file := filepath.Join(dir, FileName)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(data), from) == 0 {
		t.Fatalf("the example lacks %q", from)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A command is refused for what it needs of the file, and told of what is wrong
// with the rest.
func TestLoadForWhatIsNeeded(t *testing.T) {
	remove := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	change := func(from, to string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { edit(t, dir, from, to) }
	}
	patch, policy := namedIn(t)
	for name, c := range map[string]struct {
		spoil         func(*testing.T, string)
		layout, place string // "ok", "ignored" or "refused"
	}{
		"nothing wrong":     {func(*testing.T, string) {}, "ok", "ok"},
		"no patch":          {remove(patch), "ignored", "ok"}, // destroy does not even look
		"no audit policy":   {remove(policy), "ignored", "ok"},
		"no SSH key":        {remove("keys/second.pub"), "refused", "ok"},
		"an unknown key":    {change("kubernetes:", "colour: blue\nkubernetes:"), "refused", "ignored"},
		"a bad pool":        {change("count: 3", "count: 4"), "refused", "ignored"},
		"a bad name":        {change("name: ", "name: Not_A_Name # "), "refused", "refused"},
		"a misspelled name": {change("name: ", "nmae: "), "refused", "refused"},
		"a bad region":      {change("region: ", "region: mars # "), "refused", "refused"},
		"not YAML":          {change("name: ", "name: [ "), "refused", "refused"},
		"a bad zone":        {change("zone: example.org", "zone: example"), "refused", "refused"},
		"a bad TTL":         {change("ttl: 300", "ttl: 3"), "refused", "ignored"},
		"another version":   {change("bastide/v1", "bastide/v9"), "refused", "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyFull(t)
			c.spoil(t, dir)
			for need, want := range map[Need]string{Layout: c.layout, Place: c.place} {
				e, ignored, err := LoadFor(dir, need)
				got := "ok"
				switch {
				case err != nil:
					got = "refused"
				case len(ignored) > 0:
					got = "ignored"
				}
				if got != want {
					t.Errorf("needing %d: %s, want %s: %v %v", need, got, want, err, ignored)
				}
				if problems := (Problems{}); err != nil && !errors.As(err, &problems) {
					t.Errorf("needing %d: %v has no places", need, err)
				}
				if err == nil && (e.Name == "" || e.Scaleway.Project == "" || len(e.Scaleway.Zones) != 1 || e.Dir != dir || e.DNS.Zone != "example.org") {
					t.Errorf("needing %d: %+v", need, e)
				}
			}
			if _, err := Load(dir); (err == nil) != (name == "nothing wrong") {
				t.Errorf("needing everything: %v", err)
			}
		})
	}
}

// namedIn gives a patch and the audit policy that the full example names.
func namedIn(t *testing.T) (patch, policy string) {
	t.Helper()
	e, err := Load(copyFull(t))
	if err != nil {
		t.Fatal(err)
	}
	return e.patchFiles()[0].file, e.otherFiles()[0].file
}
