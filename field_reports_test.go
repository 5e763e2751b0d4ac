package bastide_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// answered are the numbers of the public field reports that are answered so far.
var answered = []string{"01", "03", "04", "08", "09", "10", "12", "13", "14", "15", "17", "18", "19", "20", "21", "22", "23", "33", "36", "37", "38", "39", "40", "41",
	"42", "43", "44", "45", "46", "47", "48", "49", "57", "58", "59", "60", "61", "62", "65", "66", "67"}

var (
	reportTest  = regexp.MustCompile(`(?m)^func (TestFieldReport(\d\d)[A-Z]\w*)\(t `)
	reportScene = regexp.MustCompile(`^field-report-(\d\d)`)
	namedTest   = regexp.MustCompile("`(TestFieldReport\\d\\d\\w*)`")
)

// Every answered field report has tests that carry its number, the page that
// lists them has a line for it, and what the page names exists.
func TestFieldReportsHaveTests(t *testing.T) {
	tests := testsByReport(t)
	page, err := os.ReadFile("docs/field-reports.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			lines[strings.TrimSpace(cells[1])] = line
		}
	}
	for _, n := range answered {
		t.Logf("%s: %s", n, strings.Join(tests[n], ", "))
		if len(tests[n]) == 0 {
			t.Errorf("field report %s has no test: name one TestFieldReport%s..., or a scene field-report-%s...", n, n, n)
		}
		if lines[n] == "" {
			t.Errorf("docs/field-reports.md has no line for %s", n)
		}
	}
	var all []string
	for _, names := range tests {
		all = append(all, names...)
	}
	for _, m := range namedTest.FindAllStringSubmatch(string(page), -1) {
		if !slices.Contains(all, m[1]) {
			t.Errorf("docs/field-reports.md names %s, which does not exist", m[1])
		}
	}
}

// testsByReport finds tests and scenes by the number in their names.
func testsByReport(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, root := range []string{"internal", "stories"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if m := reportScene.FindStringSubmatch(d.Name()); m != nil {
				out[m[1]] = append(out[m[1]], d.Name())
			}
			if !strings.HasSuffix(path, "_test.go") {
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range reportTest.FindAllStringSubmatch(string(text), -1) {
				out[m[2]] = append(out[m[2]], m[1])
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(out) == 0 {
		t.Fatal(fmt.Errorf("no test carries a number"))
	}
	return out
}
