package estate

import (
	"path/filepath"
	"slices"
	"strings"
)

// Need is how much of an environment's file a command stands on. What is wrong
// with the rest is no reason to refuse it: least of all to take down or to get
// into an estate that is in trouble.
type Need int

const (
	// Everything is the whole file and all files that it names.
	Everything Need = iota
	// Layout is the whole file and its SSH keys: enough to find the machines.
	// Patches and policies are not read.
	Layout
	// Place is the estate's name, where it is at Scaleway and which bucket is its
	// own: enough to know everything that carries its mark and to lock it. Beside
	// them there are only the recipients of its secrets then, for the journal, and
	// the DNS zone, which may be in another project; and of the application's
	// buckets the names that can be read, because a listing of buckets can be short.
	Place
)

// LoadFor reads an estate as Load does, as far as it is needed. Problems of what
// is not needed are returned beside it.
func LoadFor(path string, need Need) (*Estate, Problems, error) {
	file, data, err := read(path)
	if err != nil {
		return nil, nil, err
	}
	e, s := parse(file, data)
	inText := len(s.problems)
	if e != nil {
		e.Dir, e.File = filepath.Dir(file), file
		if need != Place {
			s.checkFiles(e)
		}
	}
	var wrong, ignored Problems
	for i, p := range s.problems {
		if e == nil || need.standsOn(p.Path, i < inText) {
			wrong = append(wrong, p)
		} else {
			ignored = append(ignored, p)
		}
	}
	if need == Place && e != nil {
		buckets := e.bucketNames()
		e = &Estate{APIVersion: e.APIVersion, Kind: e.Kind, Name: e.Name, Dir: e.Dir, File: e.File, Scaleway: e.Scaleway, Store: e.Store, Secrets: e.Secrets, DNS: e.DNS,
			Services: Services{Buckets: buckets}}
		if e.Name == "" || e.Scaleway.Project == "" || e.Scaleway.Region == "" || len(e.Scaleway.Zones) == 0 {
			wrong, ignored = s.problems, nil // a key may be misspelled, so that the problem has another's name
		}
	}
	if err := wrong.inFileOrder().orNil(); err != nil {
		return nil, nil, err
	}
	return e, ignored.inFileOrder(), nil
}

// bucketNames are the application's buckets by name alone, those left out that
// no bucket can have.
func (e *Estate) bucketNames() []Bucket {
	var out []Bucket
	for _, b := range e.Services.Buckets {
		if bucketName.MatchString(b.Name) && !slices.ContainsFunc(out, func(o Bucket) bool { return o.Name == b.Name }) {
			out = append(out, Bucket{Name: b.Name})
		}
	}
	return out
}

// standsOn says whether a problem at a path, of the text itself or of a file
// that it names, is in the way.
func (n Need) standsOn(path string, inText bool) bool {
	top := path
	if i := strings.IndexAny(path, ".["); i >= 0 {
		top = path[:i]
	}
	switch n {
	case Layout:
		return inText || top == "admin"
	case Place:
		return top == "" || slices.Contains([]string{"apiVersion", "kind", "name", "scaleway", "store"}, top) || path == "dns.zone"
	}
	return true
}
