package scaleway_test

import (
	"strings"
	"testing"
)

// The whole private estate: made, found as wanted, left alone, taken down.
func TestPrivateEstate(t *testing.T) {
	w := newWorld(t, privateEstate(2))
	w.mustUp()
	inv := w.wantConverged()
	if !inv.GatewayIP().IsValid() {
		t.Error("no gateway address")
	}
	mark := len(w.region.Requests(0))
	w.mustUp()
	if n, which := w.writes(mark); n != 0 {
		t.Errorf("a second run wrote %d times: %s", n, strings.Join(which, "; "))
	}
	if err := w.destroy(t.Context(), w.cloud()); err != nil {
		t.Fatal(err)
	}
	w.wantNothingLeft()
}
