package talos

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	documents "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"

	"bastide/internal/estate"
	"bastide/internal/outcome"
)

// patch applies the node's patch files in order: all, role, pool, node. After
// each, the rules are checked again, so that what breaks one is named with its
// file.
//
// A patch's documents were read apart from the configuration; reading the result
// again finds what only the whole can show. What comes back is what was read
// last, and its text.
func (r *Renderer) patch(p config.Provider, n estate.Node, rules rules) (config.Provider, []byte, error) {
	if breach := rules.check(p); breach != nil {
		return nil, nil, breach.refusal("the environment file", n.Name)
	}
	var text []byte
	for _, path := range r.patchesOf(n) {
		file := r.files.patches[path]
		loaded, err := configloader.NewFromBytes(file, configloader.WithAllowPatchDelete())
		if errors.Is(err, configloader.ErrNoConfig) {
			continue // nothing but comments
		}
		if err != nil {
			return nil, nil, r.explain(path, file, err)
		}
		if breach := accepts(loaded); breach != nil {
			return nil, nil, breach.refusal(at(path, lineOf(file, breach.path)), n.Name)
		}
		p, err = configpatcher.StrategicMerge(p, configpatcher.NewStrategicMergePatch(loaded))
		if err != nil {
			return nil, nil, r.unapplied(path, n, err)
		}
		if slices.ContainsFunc(p.Documents(), isDeletion) {
			return nil, nil, r.unapplied(path, n, configloader.ErrLookupFailed)
		}
		if p, text, err = reread(p); err != nil {
			return nil, nil, r.unapplied(path, n, err)
		}
		if breach := rules.check(p); breach != nil {
			return nil, nil, breach.refusal(at(path, lineOf(file, breach.path)), n.Name)
		}
	}
	if text == nil { // nothing was patched
		var err error
		if p, text, err = reread(p); err != nil {
			return nil, nil, fmt.Errorf("read back machine configuration of %s: %w", n.Name, err)
		}
	}
	return p, text, nil
}

// reread writes a configuration in canonical form and reads it back.
func reread(p config.Provider) (config.Provider, []byte, error) {
	ordered, err := canonical(p)
	if err != nil {
		return nil, nil, err
	}
	text, err := encode(ordered)
	if err != nil {
		return nil, nil, err
	}
	p, err = configloader.NewFromBytes(text)
	return p, text, err
}

// isDeletion tells the deletion of a document that found nothing to delete: the
// library keeps it as a document, and encoding that panics.
func isDeletion(d documents.Document) bool {
	_, ok := d.(configloader.Selector)
	return ok
}

func (r *Renderer) patchesOf(n estate.Node) []string {
	patches := r.estate.Talos.Patches
	out := append([]string{}, patches.All...)
	if n.Role == estate.RoleControlPlane {
		out = append(out, patches.ControlPlane...)
	} else {
		out = append(out, patches.Workers...)
	}
	out = append(out, patches.Pools[n.Pool]...)
	return append(out, patches.Nodes[n.Name]...)
}

func (r *Renderer) unapplied(path string, n estate.Node, err error) error {
	if errors.Is(err, configloader.ErrLookupFailed) {
		return outcome.Refuse(path+" does not apply to "+n.Name, "it deletes something that the configuration does not have", "remove that part, or move it to the patches of the nodes that have it").Because(err)
	}
	return outcome.Refuse(path+" does not apply to "+n.Name, "", "correct the patch").Because(err)
}

// flat writes a list of errors on one line.
func flat(err error) error {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "*"))
		if line != "" && !strings.HasSuffix(line, "occurred:") && !strings.HasSuffix(line, "errors occurred:") {
			lines = append(lines, line)
		}
	}
	return fmt.Errorf("%s", strings.Join(lines, "; "))
}

func at(path string, line int) string {
	if line == 0 {
		return path
	}
	return fmt.Sprintf("%s:%d", path, line)
}
