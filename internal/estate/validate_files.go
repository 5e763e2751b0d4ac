package estate

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// namedFile is a file that the estate refers to.
type namedFile struct {
	path string // where in the estate file it is named
	file string // as written
}

// patchFiles lists the patch files in the order in which they are applied.
func (e *Estate) patchFiles() []namedFile {
	var files []namedFile
	add := func(path string, names []string) {
		for i, name := range names {
			files = append(files, namedFile{indexed(path, i), name})
		}
	}
	p := e.Talos.Patches
	add("talos.patches.all", p.All)
	add("talos.patches.controlPlane", p.ControlPlane)
	add("talos.patches.workers", p.Workers)
	for _, pool := range slices.Sorted(maps.Keys(p.Pools)) {
		add(keyed("talos.patches.pools", pool), p.Pools[pool])
	}
	for _, node := range slices.Sorted(maps.Keys(p.Nodes)) {
		add(keyed("talos.patches.nodes", node), p.Nodes[node])
	}
	return files
}

// otherFiles lists the audit policy and the admission configurations.
func (e *Estate) otherFiles() []namedFile {
	var files []namedFile
	if policy := e.Kubernetes.APIServer.AuditPolicy; policy != "" {
		files = append(files, namedFile{"kubernetes.apiServer.auditPolicy", policy})
	}
	for i, a := range e.Kubernetes.Admission {
		if a.Configuration != "" {
			files = append(files, namedFile{indexed("kubernetes.admission", i) + ".configuration", a.Configuration})
		}
	}
	return files
}

// validatePatches checks that patches are for pools and nodes of this file,
// and that files are named in a way that works on every machine.
func (s *source) validatePatches(e *Estate) {
	if s.nodesAreKnown(e) && e.nodeCount() <= maxAttached { // a longer list is refused, and need not be made
		pools, nodes := []string{}, []string{}
		for _, p := range e.Pools {
			pools = append(pools, p.Name)
		}
		for _, n := range e.Nodes() {
			nodes = append(nodes, n.Name)
		}
		s.knownKeys("talos.patches.pools", slices.Sorted(maps.Keys(e.Talos.Patches.Pools)), pools, "pool")
		s.knownKeys("talos.patches.nodes", slices.Sorted(maps.Keys(e.Talos.Patches.Nodes)), nodes, "node")
	}
	for _, f := range append(e.patchFiles(), e.otherFiles()...) {
		switch {
		case f.file == "":
			s.refuse(f.path, "is empty", "it names no file", "write a path relative to this file, or remove the element")
		case filepath.IsAbs(f.file), strings.HasPrefix(f.file, "~"):
			s.refuse(f.path, fmt.Sprintf("%q is not a relative path", brief(f.file)), "the file belongs beside the estate, so that others who check it out have it too", "move the file next to this one and write its path from here")
		}
	}
}

func (e *Estate) nodeCount() int {
	nodes := e.ControlPlane.Count
	for _, p := range e.Pools {
		nodes += p.Count
	}
	return nodes
}

// nodesAreKnown says whether names and counts of all pools were accepted. If
// not, what depends on the list of nodes is left unsaid: it would only follow
// from what has been refused, and a refused count can be absurd.
func (s *source) nodesAreKnown(e *Estate) bool {
	known := !s.silenced("name") && !s.silenced("controlPlane.count") && !s.silenced("pools")
	for i := range e.Pools {
		path := indexed("pools", i)
		known = known && !s.silenced(path+".name") && !s.silenced(path+".count")
	}
	return known
}

func (s *source) knownKeys(path string, keys, known []string, what string) {
	for _, key := range keys {
		if slices.Contains(known, key) {
			continue
		}
		hint := "there is none in this file"
		if len(known) > 0 {
			hint = "write one of " + brief(strings.Join(known, ", "))
		}
		if near := nearest(key, known); near != "" {
			hint = "did you mean " + near + "?"
		}
		if what == "pool" && key == ControlPlanePool {
			hint = "write patches for control plane nodes under talos.patches.controlPlane"
		}
		s.refuse(keyed(path, key), fmt.Sprintf("%q is not a %s of this estate", brief(key), what), "the patch would be applied to nothing", hint)
	}
}
