// Package program finds the programs that the simulator and the tests run and
// that are built apart from this one, with make tools.
package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Dir is where make puts them: BASTIDE_TOOLS, else the bin folder of the cache.
// It is empty when neither has a place.
func Dir(getenv func(string) string) string {
	if dir := getenv("BASTIDE_TOOLS"); dir != "" {
		return dir
	}
	if dir := getenv("BASTIDE_CACHE"); dir != "" {
		return filepath.Join(dir, "bin")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".cache", "bastide", "bin")
	}
	return ""
}

// Find looks for a program where make puts it, then in PATH.
func Find(getenv func(string) string, name string) (string, error) {
	if dir := Dir(getenv); dir != "" {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	if file, err := exec.LookPath(name); err == nil {
		return file, nil
	}
	return "", fmt.Errorf("%s is neither in %s nor in PATH", name, Dir(getenv))
}

// Test is the part of testing.TB that Need uses; the package itself is not
// wanted in a released binary.
type Test interface {
	Helper()
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Need finds a program for a test. Without it the test is skipped, except in CI,
// where make has built it and its absence would hide a failure.
func Need(t Test, name string) string {
	t.Helper()
	file, err := Find(os.Getenv, name)
	switch {
	case err != nil && os.Getenv("CI") != "":
		t.Fatalf("%v: make tools builds it", err)
	case err != nil:
		t.Skipf("%v: make tools builds it", err)
	}
	return file
}
