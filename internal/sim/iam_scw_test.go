package sim_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	file "bastide/internal/estate"
	"bastide/internal/iam"
	"bastide/internal/sim/program"
)

// TestWrittenOutRightsArePasted runs what bastide iam prints, with scw, against
// the region: every name in it exists there, and every application gets its key.
func TestWrittenOutRightsArePasted(t *testing.T) {
	scw := program.Need(t, "scw")
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell to paste into")
	}
	e, err := file.Load("../estate/testdata/valid/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	access := start(t)
	e.Scaleway.Project = access.Project
	cmd := exec.CommandContext(t.Context(), sh, "-e")
	cmd.Stdin = strings.NewReader("scw() { " + scw + ` "$@"; }` + "\n" + iam.Script(e))
	cmd.Env = append(access.Environ(), "HOME="+t.TempDir(), "PATH="+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if keys, apps := strings.Count(string(out), "AccessKey"), len(iam.Needed(e)); keys != apps {
		t.Errorf("%d keys for %d applications:\n%s", keys, apps, out)
	}
}
