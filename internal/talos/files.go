package talos

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v4"

	"bastide/internal/estate"
	"bastide/internal/outcome"
)

// maxPatch bounds a file that the estate names, in bytes.
const maxPatch = 1 << 20

// files is what the estate's files held.
type files struct {
	patches     map[string][]byte // by path as written in the estate
	auditPolicy map[string]any
	admission   []admissionPlugin
}

type admissionPlugin struct {
	name          string
	configuration map[string]any
}

func readFiles(e *estate.Estate) (files, error) {
	f := files{patches: map[string][]byte{}}
	for _, path := range patchPaths(e.Talos.Patches) {
		text, err := readFile(e, path)
		if err != nil {
			return files{}, err
		}
		if err := f.addPatch(path, text); err != nil {
			return files{}, err
		}
	}
	if path := e.Kubernetes.APIServer.AuditPolicy; path != "" {
		policy, err := readObject(e, path, "audit.k8s.io/v1", "Policy")
		if err != nil {
			return files{}, err
		}
		f.auditPolicy = policy
	}
	for _, a := range e.Kubernetes.Admission {
		configuration, err := readObject(e, a.Configuration, "", "")
		if err != nil {
			return files{}, err
		}
		f.admission = append(f.admission, admissionPlugin{a.Name, configuration})
	}
	return f, nil
}

// addPatch takes the text of a patch, if it is YAML of a bearable size.
func (f files) addPatch(path string, text []byte) error {
	if _, err := estate.Documents(text); err != nil {
		return unreadable(path, err)
	}
	f.patches[path] = text
	return nil
}

// unreadable names the line of a file that is not YAML.
func unreadable(path string, err error) error {
	where := path
	if t := new(estate.TextError); errors.As(err, &t) {
		where = at(path, t.Line)
	}
	return outcome.Refuse(where+" cannot be read", "", "correct the file").Because(err)
}

// patchPaths lists every patch file that any node may use.
func patchPaths(p estate.Patches) []string {
	all := slices.Concat(p.All, p.ControlPlane, p.Workers)
	for _, key := range slices.Sorted(maps.Keys(p.Pools)) {
		all = append(all, p.Pools[key]...)
	}
	for _, key := range slices.Sorted(maps.Keys(p.Nodes)) {
		all = append(all, p.Nodes[key]...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func readFile(e *estate.Estate, path string) ([]byte, error) {
	where := path
	if !filepath.IsAbs(where) {
		where = filepath.Join(e.Dir, path)
	}
	text, err := estate.ReadFile(where, maxPatch)
	if err != nil {
		return nil, outcome.Refuse("could not read "+path+", which the environment file names", "", "correct the path or the file").Because(err)
	}
	return text, nil
}

// readObject reads one Kubernetes style object; an empty kind accepts any.
func readObject(e *estate.Estate, path, apiVersion, kind string) (map[string]any, error) {
	text, err := readFile(e, path)
	if err != nil {
		return nil, err
	}
	docs, err := estate.Documents(text)
	if err != nil {
		return nil, unreadable(path, err)
	}
	object := map[string]any{}
	if len(docs) > 1 {
		return nil, outcome.Refuse(at(path, docs[1].Line)+" starts a second document", "one is read here, and the others would be ignored", "keep one document in the file")
	}
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, outcome.Refuse(path+" is not a YAML object", "", "correct the file").Because(err)
	}
	switch {
	case len(object) == 0:
		err = errors.New("it is empty")
	case object["apiVersion"] == nil || object["kind"] == nil:
		err = errors.New("it lacks apiVersion or kind")
	case kind != "" && (object["apiVersion"] != apiVersion || object["kind"] != kind):
		err = fmt.Errorf("it is a %v of %v, not a %s of %s", object["kind"], object["apiVersion"], kind, apiVersion)
	}
	if err != nil {
		return nil, outcome.Refuse(path+" is not what the environment file says it is", "", "correct the file").Because(err)
	}
	return object, nil
}
