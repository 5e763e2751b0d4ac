package estate

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the messages next to the invalid examples")

// Each invalid example has one fault, and next to it the exact message that it
// gives. With -update the messages are rewritten, to be reviewed as a diff.
func TestInvalidExamples(t *testing.T) {
	files, err := filepath.Glob("testdata/invalid/*.yaml")
	if err != nil || len(files) < 60 {
		t.Fatalf("found %d invalid examples (%v), want at least 60", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			_, err := Load(file)
			var problems Problems
			if !errors.As(err, &problems) {
				t.Fatalf("got %v, want problems", err)
			}
			got := strings.ReplaceAll(problems.Error(), filepath.Dir(file)+"/", "") + "\n"
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("no message recorded; run with -update and review: %v", err)
			}
			if got != string(want) {
				t.Errorf("message changed\n got: %swant: %s", got, want)
			}
		})
	}
}

// Every problem says what, why and what to do, and names its place.
func TestProblemsAreWhole(t *testing.T) {
	files, _ := filepath.Glob("testdata/invalid/*.yaml")
	for _, file := range files {
		_, err := Load(file)
		var problems Problems
		if !errors.As(err, &problems) {
			t.Fatalf("%s: got %v", file, err)
		}
		for _, p := range problems {
			if p.File != file || p.Line < 1 || p.Column < 1 || p.What == "" || p.Why == "" || p.Hint == "" {
				t.Errorf("%s: incomplete problem %+v", file, p)
			}
		}
	}
}

func TestValidExamples(t *testing.T) {
	files, _ := filepath.Glob("testdata/valid/*.yaml")
	for _, name := range []string{"minimal.yaml", "full.yaml"} {
		if _, err := Load(filepath.Join("testdata/valid", name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(files) == 0 {
		t.Error("no valid examples")
	}
}
