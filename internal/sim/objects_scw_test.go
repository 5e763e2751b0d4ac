package sim_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"bastide/internal/sim/program"
)

// TestOfficialCLI runs scw object against the region.
func TestOfficialCLI(t *testing.T) {
	scw := program.Need(t, "scw")
	access := start(t)
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), scw, append([]string{"object", "bucket"}, args...)...)
		cmd.Env = append(access.Environ(), "HOME="+t.TempDir(), "PATH="+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("scw object bucket %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	has := func(out string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%q is not in:\n%s", w, out)
			}
		}
	}
	has(run("create", "name=from-scw", "enable-versioning=true", "tags.0=estate=staging", "acl=private"), "from-scw")
	has(run("list", "-o", "json"), `"from-scw"`)
	has(run("get", "name=from-scw", "with-size=true", "-o", "json"), "from-scw", "estate", "staging", "FULL_CONTROL")
	run("update", "name=from-scw", "acl=public-read", "enable-versioning=false")
	has(run("get", "name=from-scw", "-o", "json"), "AllUsers")
	run("delete", "name=from-scw")
	if out := run("list", "-o", "json"); strings.Contains(out, "from-scw") {
		t.Errorf("the bucket is still listed: %s", out)
	}
}
