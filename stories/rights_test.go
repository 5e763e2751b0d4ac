package stories

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// rights limits the region's key to what bastide iam writes out for one of the
// estate's applications, without the permission sets that are named with a minus.
func rights(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: rights ENV APPLICATION [-SET...]")
	}
	text, err := exec.Command(bastide, "iam", ts.MkAbs(args[0]), "--output", "json").Output()
	ts.Check(err)
	var said struct {
		Value struct {
			Applications []struct {
				Name   string
				Grants []struct{ PermissionSet string }
			}
		}
	}
	ts.Check(json.Unmarshal(text, &said))
	sets := []string{}
	for _, a := range said.Value.Applications {
		if a.Name != args[1] {
			continue
		}
		for _, g := range a.Grants {
			sets = append(sets, g.PermissionSet)
		}
	}
	for _, without := range args[2:] {
		i := slices.Index(sets, strings.TrimPrefix(without, "-"))
		if i < 0 {
			ts.Fatalf("%s has no %s: %v", args[1], without, sets)
		}
		sets = slices.Delete(sets, i, i+1)
	}
	if len(sets) == 0 {
		ts.Fatalf("no rights are written out for %s", args[1])
	}
	body, err := json.Marshal(map[string]any{"permissions": map[string]any{"permission_sets": sets}})
	ts.Check(err)
	resp, err := http.Post(ts.Getenv("SCW_API_URL")+"/sim/seed", "application/json", strings.NewReader(string(body)))
	ts.Check(err)
	_ = resp.Body.Close()
	if resp.StatusCode >= 300 {
		ts.Fatalf("POST /sim/seed: %s", resp.Status)
	}
}
