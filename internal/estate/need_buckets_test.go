package estate

import "testing"

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
