package api

import (
	"slices"
	"sort"
	"strings"
)

// browseSecrets shows one folder: its secrets and the folders in it, by name.
func browseSecrets(c *call) (any, error) {
	prefix := "/" + strings.Trim(c.query("prefix"), "/")
	kinds := c.known("type")
	items, folders := []doc{}, map[string]bool{}
	for _, s := range c.visibleSecrets(func(s *secret) bool {
		return s.Leaving == nil && oneOf(s.Project, c.values("project_id")) && anyTag(s.Tags, c.tags()) && oneOf(s.Type, kinds)
	}) {
		if s.Path == prefix {
			items = append(items, doc{"name": s.Name, "created_at": stamp(s.Created), "updated_at": stamp(s.Updated),
				"secret": doc{"id": s.ID, "tags": s.Tags, "version_count": s.count(), "protected": s.Protected,
					"ephemeral_policy": viewPolicy(s.Policy), "type": s.Type}})
			continue
		}
		below, inside := strings.CutPrefix(s.Path, strings.TrimSuffix(prefix, "/")+"/")
		if folder, _, _ := strings.Cut(below, "/"); inside && !folders[folder] {
			folders[folder] = true
			items = append(items, doc{"name": folder, "created_at": stamp(s.Created), "updated_at": stamp(s.Updated), "folder": doc{}})
		}
	}
	sort.SliceStable(items, func(i, j int) bool {
		if c.query("order_by") == "name_desc" {
			i, j = j, i
		}
		return items[i]["name"].(string) < items[j]["name"].(string)
	})
	total := len(items)
	return doc{"items": list(page(c, items, "page_size", 20)), "current_path": prefix, "total_count": total}, nil
}

func listSecretTags(c *call) (any, error) {
	tags := []string{}
	for _, s := range c.visibleSecrets(func(s *secret) bool { return s.Leaving == nil && oneOf(s.Project, c.values("project_id")) }) {
		tags = append(tags, s.Tags...)
	}
	return pageOfNames(c, "tags", tags), nil
}

func listSecretTypes(c *call) (any, error) {
	var types []string
	for _, s := range c.visibleSecrets(func(s *secret) bool { return s.Leaving == nil && oneOf(s.Project, c.values("project_id")) }) {
		types = append(types, s.Type)
	}
	return pageOfNames(c, "types", types), nil
}

func pageOfNames(c *call, name string, all []string) doc {
	sort.Strings(all)
	all = slices.Compact(all)
	return doc{name: list(page(c, all, "page_size", 20)), "total_count": len(all)}
}
