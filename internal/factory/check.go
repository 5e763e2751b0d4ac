package factory

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"bastide/internal/estate"
	"bastide/internal/outcome"
)

// Check asks whether an image of the file can be made: that the Factory has the
// version, and each of the extensions for it. Without that a wrong name shows
// only when the image is built, as a refusal that names no other.
func (f *Factory) Check(ctx context.Context, t estate.Talos) error {
	what := fmt.Sprintf("whether there is an image of Talos %s with these extensions is not known", t.Version)
	text, err := f.call(ctx, http.MethodGet, "/version/"+t.Version+"/extensions/official", nil)
	if missing(err) {
		return f.noVersion(ctx, t.Version)
	}
	if err != nil {
		return f.explain(what, err)
	}
	var have []struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(text, &have); err != nil {
		return f.explain(what, errNonsense)
	}
	names := make([]string, 0, len(have))
	known := map[string]bool{}
	for _, e := range have {
		names, known[e.Name] = append(names, e.Name), true
	}
	for i, name := range t.Extensions {
		if !known[name] {
			return outcome.Refuse(fmt.Sprintf("talos.extensions[%d]: %s is no extension of Talos %s", i, name, t.Version),
				fmt.Sprintf("the Image Factory %s lists %d for that version, and this is none of them", f.base, len(names)), suggest(name, names))
		}
	}
	return nil
}

// noVersion is the refusal of a version that the Factory does not have.
func (f *Factory) noVersion(ctx context.Context, version string) error {
	what := fmt.Sprintf("talos.version: there is no image of Talos %s", version)
	text, err := f.call(ctx, http.MethodGet, "/versions", nil)
	if err != nil {
		return f.explain(what, err)
	}
	var have []string
	if err := json.Unmarshal(text, &have); err != nil {
		return f.explain(what, errNonsense)
	}
	minor := version[:max(0, strings.LastIndexByte(version, '.'))+1]
	var same []string
	for _, v := range have {
		if v == version {
			return outcome.CannotTell(what, fmt.Sprintf("the Image Factory %s has the version and says that it knows no extensions of it", f.base), "run the command again; if it stays so, look there with a browser")
		}
		if strings.HasPrefix(v, minor) {
			same = append(same, v)
		}
	}
	do := "choose a version that it has"
	if len(same) > 0 {
		do = "choose one of " + strings.Join(same[max(0, len(same)-5):], ", ")
	}
	return outcome.Refuse(what, fmt.Sprintf("the Image Factory %s does not have it", f.base), do)
}

// suggest names the extensions that may have been meant, the nearest first: by
// the whole name, by its part behind the vendor, or because one is in the other.
func suggest(name string, known []string) string {
	var near []string
	add := func(k string) {
		for _, n := range near {
			if n == k {
				return
			}
		}
		if k != "" && len(near) < 3 {
			near = append(near, k)
		}
	}
	add(estate.Nearest(name, known))
	_, bare, _ := strings.Cut(name, "/")
	for _, k := range known {
		if _, other, _ := strings.Cut(k, "/"); other == bare || estate.Nearest(bare, []string{other}) != "" {
			add(k)
		}
	}
	for _, k := range known {
		if _, other, _ := strings.Cut(k, "/"); len(bare) > 2 && len(other) > 2 && (strings.Contains(other, bare) || strings.Contains(bare, other)) {
			add(k)
		}
	}
	if len(near) == 0 {
		return "see which there are: the Factory lists them at /version/VERSION/extensions/official"
	}
	return "did you mean " + strings.Join(near, ", or ") + "?"
}
