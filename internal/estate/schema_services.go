package estate

// The keywords of the schema for the services. They use the validation's own
// patterns and lists.
func init() {
	for name, keywords := range map[string]map[string]any{
		"Network.EdgeAddress":          {"enum": edgeAddresses},
		"Bucket.Name":                  {"pattern": bucketName.String()},
		"Bucket.Versioning":            {"enum": versionings},
		"LifecycleRule.Name":           {"minLength": 1, "maxLength": 255},
		"LifecycleRule.ExpireDays":     {"minimum": 0, "maximum": mostRuleDays},
		"LifecycleRule.OldVersionDays": {"minimum": 0, "maximum": mostRuleDays},
		"LifecycleRule.AbortDays":      {"minimum": 0, "maximum": mostRuleDays},
		"CORSRule.Origins":             {"minItems": 1, "uniqueItems": true},
		"CORSRule.Methods":             {"minItems": 1, "uniqueItems": true, "items": map[string]any{"enum": corsMethods}},
		"CORSRule.MaxAgeSeconds":       {"minimum": 0},
		"Registry.Name":                {"pattern": registryName.String()},
		"SecretContainer.Type":         {"enum": secretTypes},
		"SecretContainer.Tags":         {"uniqueItems": true},
		"DNS.TTL":                      {"minimum": shortestTTL, "maximum": longestTTL},
	} {
		constraints[name] = keywords
	}
}
