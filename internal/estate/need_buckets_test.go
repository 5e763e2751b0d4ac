package estate

import (
	"strings"
	"testing"
)

// Whoever takes an estate down knows its buckets by name, also when the rest of
// the services is wrong.
func TestPlaceKnowsTheBuckets(t *testing.T) {
	dir := copyFull(t)
	whole, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	edit(t, dir, "buckets:", "buckets:\n    - {name: Not_A_Bucket}\n    - {name: another-app, versioning: perhaps}")
	e, ignored, err := LoadFor(dir, Place)
	if err != nil || len(ignored) == 0 {
		t.Fatalf("%v, ignored %v", err, ignored)
	}
	want := []string{"another-app"}
	for _, b := range whole.Services.Buckets {
		want = append(want, b.Name)
	}
	if len(want) < 2 || len(e.Services.Buckets) != len(want) {
		t.Fatalf("got %+v, want %q", e.Services.Buckets, want)
	}
	for i, b := range e.Services.Buckets {
		if b.Name != want[i] || b.Versioning != "" || b.Tags != nil {
			t.Errorf("got %+v, want the name %s alone", b, want[i])
		}
	}
}

// What Object Storage may refuse in a bucket's tags is refused offline.
func TestBucketTagCharacters(t *testing.T) {
	for tag, sound := range map[string]bool{
		`"team": "platform"`: true, `"a b+c-d=e.f_g:h/i@j": "A 1+-=._:/@"`: true, `"empty": ""`: true,
		`"é": "x"`: false, `"x": "é"`: false, `"x?": "y"`: false, `"x": "a,b"`: false, `"x": "a&b"`: false, `"x": "a<b"`: false, `"x": "a\tb"`: false, `"x": "a\n"`: false,
	} {
		dir := copyFull(t)
		edit(t, dir, "buckets:", "buckets:\n    - {name: another-app, tags: {"+tag+"}}")
		_, err := Load(dir)
		if got := err == nil; got != sound {
			t.Errorf("%s: %v, want it accepted: %v", tag, err, sound)
		}
		if err != nil && !strings.Contains(err.Error(), "services.buckets[0].tags") {
			t.Errorf("%s: %v does not say where", tag, err)
		}
	}
}
