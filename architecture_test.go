package bastide_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// room says which other rooms of the house a room may lean on, and why no
// others. What is not listed is not allowed.
type room struct {
	may []string
	why string
}

// house is the direction of imports. "sim/" stands for every room under it.
var house = map[string]room{
	"outcome":   {nil, "every room explains itself with it, so it leans on none"},
	"quorum":    {nil, "arithmetic: values in, values out"},
	"estate":    {[]string{"outcome"}, "the file is read without knowing what will be built from it"},
	"blueprint": {[]string{"estate"}, "a pure function of the file; it must not be able to ask the cloud"},
	"plan":      {[]string{"blueprint", "estate"}, "pure comparison; it must not be able to change what it compares"},
	"price":     {[]string{"blueprint", "plan"}, "arithmetic over a plan; prices are given to it"},
	"picture":   {[]string{"blueprint", "plan"}, "it draws values and can ask nobody"},
	"iam":       {[]string{"estate"}, "which rights an estate needs follows from the file alone; nobody here may ask for any"},
	"vault":     {[]string{"estate", "outcome"}, "few may touch secrets, and secrets need nobody"},
	"image":     {[]string{"outcome"}, "bytes in, bytes out: what a disk image is does not depend on who offers it or where it goes"},
	"door":      {[]string{"estate", "outcome"}, "a way in knows addresses and keys, not what is behind them"},
	"scaleway":  {[]string{"blueprint", "plan", "price", "estate", "outcome", "vault"}, "the cloud layer knows nothing of Talos; it makes the passwords of databases"},
	"store":     {[]string{"scaleway", "blueprint", "outcome"}, "the estate's bucket keeps what it is given, sealed by whoever holds the keys; it knows no secret and no plan"},
	"talos":     {[]string{"blueprint", "plan", "estate", "outcome", "quorum", "vault"}, "the cluster layer knows nothing of Scaleway"},
	"run":       {[]string{"blueprint", "plan", "outcome"}, "it walks any plan with any executor"},
	"factory":   {[]string{"estate", "outcome"}, "it asks one service about what the file names; bytes of images are not its business"},
	"ui":        {[]string{"blueprint", "plan", "price", "outcome"}, "it prints values and fetches none"},
	"session": {[]string{"outcome", "estate", "blueprint", "plan", "price", "vault", "door", "scaleway", "store", "factory", "image", "talos", "run"},
		"it brings the product's rooms together and prints nothing"},
	"rehearsal": {[]string{"outcome", "estate", "vault", "door", "sim"},
		"it runs this program as a user would and must not reach into it"},
	"cli": {[]string{"outcome", "estate", "iam", "plan", "price", "picture", "vault", "scaleway", "store", "talos", "run", "session", "rehearsal", "ui", "image", "sim", "sim/fault", "sim/node", "sim/program"},
		"commands parse and print; what they do is in the session"},
	"sim": {[]string{"estate", "sim/"}, "the simulator shares no logic with the product, or one mistake would hide in both"},
}

func TestImportsPointDownwards(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir("internal", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file)), "internal/")
		top, _, _ := strings.Cut(dir, "/")
		r, ok := house[top]
		if !ok {
			t.Errorf("%s: the room %q is not in the plan of the house; add it to architecture_test.go with a reason", file, top)
			return nil
		}
		seen[top] = true
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			target, _ := strconv.Unquote(spec.Path.Value)
			if to, ok := strings.CutPrefix(target, "bastide/internal/"); ok && !allowed(top, r, to) {
				t.Errorf("%s imports %s: %s may not, because %s", file, path.Base(target), top, r.why)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range house {
		if !seen[name] {
			t.Errorf("the plan of the house lists the room %q, which does not exist", name)
		}
	}
}

func allowed(from string, r room, to string) bool {
	top, _, _ := strings.Cut(to, "/")
	if top == from {
		return true
	}
	for _, m := range r.may {
		if to == m || top == m || (strings.HasSuffix(m, "/") && strings.HasPrefix(to, m)) {
			return true
		}
	}
	return false
}
