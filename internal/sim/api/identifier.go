package api

import (
	"encoding/json"
	"net/http"
	"sort"
	"strings"
)

// Identifiers are UUIDs everywhere. What is none is refused before anything is
// looked up, so that "not found" always means a well-formed id: regional forms
// such as "fr-par/<uuid>", which providers use inside, are no ids either.

// checkIdentifiers looks at the ids in a call's path, query and body.
func (c *call) checkIdentifiers() error {
	switch {
	case strings.HasPrefix(c.req.URL.Path, "/instance/v1/"):
		return c.checkIdentifiersV1()
	case strings.HasPrefix(c.req.URL.Path, "/product-catalog/"):
		return nil // its ids are names of products, too
	}
	if argument, id := c.pathIdentifier(); id != "" && !uuidPattern.MatchString(id) {
		return notUUID(argument)
	}
	query := c.fields()
	for _, name := range sortedKeys(query) {
		if isIdentifier(name) && !allUUIDs(c.values(name)) {
			return notUUID(name)
		}
	}
	body := map[string]any{}
	if json.Unmarshal(c.body, &body) != nil {
		return nil // the handler says what is wrong with it
	}
	for _, name := range sortedKeys(body) {
		if isIdentifier(name) && !allUUIDs(texts(body[name])) {
			return notUUID(name)
		}
	}
	return nil
}

// checkIdentifiersV1 is the same for instance v1: its fields for ids have no
// common ending, it takes an address for a flexible IP in the path, and it has
// words of its own.
func (c *call) checkIdentifiersV1() error {
	body := map[string]any{}
	if strings.Contains(c.req.URL.Path, "/user_data/") || json.Unmarshal(c.body, &body) != nil {
		return nil
	}
	for _, name := range []string{"image", "organization", "placement_group", "private_network_id", "project", "root_volume",
		"security_group", "server", "volume_id"} {
		if id, ok := body[name].(string); ok && id != "" && !uuidPattern.MatchString(id) {
			return &refusal{http.StatusBadRequest, doc{"type": "invalid_arguments", "message": "Validation Error",
				"details": []doc{wrong(name, "constraint", "not a valid value")}}}
		}
	}
	return nil
}

func notUUID(argument string) error { return invalid(argument, "format", "value must be a valid UUID") }

// pathIdentifier is the id in a path and the argument that it is: "vpc_id" in
// /vpcs/{id}.
func (c *call) pathIdentifier() (argument, id string) {
	if id = c.path("id"); id == "" {
		return "", ""
	}
	segments := strings.Split(c.req.URL.Path, "/")
	for i, s := range segments {
		if s == id && i > 0 {
			kind := strings.ReplaceAll(segments[i-1], "-", "_")
			if y, ok := strings.CutSuffix(kind, "ies"); ok {
				return y + "y_id", id
			}
			return strings.TrimSuffix(kind, "s") + "_id", id
		}
	}
	return "id", id
}

func isIdentifier(name string) bool {
	return name != "zone_id" && (strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "_ids"))
}

// allUUIDs says whether all texts that are not empty are UUIDs.
func allUUIDs(list []string) bool {
	for _, s := range list {
		if s != "" && !uuidPattern.MatchString(s) {
			return false
		}
	}
	return true
}

// texts are the strings of a JSON value: one, or a list of them.
func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, x := range v {
			if s, ok := x.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
