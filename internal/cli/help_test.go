package cli

import (
	"strings"
	"testing"
)

func TestAskedReadsPastMistakes(t *testing.T) {
	for line, want := range map[string]string{
		"plan env":                            "text",
		"plan env -o json":                    "json",
		"plan --bogus -o json":                "json",
		"plan -o json --bogus":                "json",
		"plan -ojson --bogus":                 "json",
		"plan --bogus=1 --output=json":        "json",
		"frobnicate --output json":            "json",
		"plan -h -o json":                     "json",
		"plan -z -o json":                     "json",
		"plan env --output":                   "text",
		"door env --bogus -- kubectl -o json": "text",
		"door env -o json -- kubectl -o yaml": "json",
	} {
		if got := asked(strings.Fields(line)); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
