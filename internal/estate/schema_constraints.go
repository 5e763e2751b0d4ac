package estate

// constraints are the keywords of the schema for what the validation checks on
// one value, by field of the Go types. They use the validation's own patterns
// and lists; a test keeps every name here a field that exists.
var constraints = map[string]map[string]any{
	"Estate.APIVersion":             {"const": APIVersion},
	"Estate.Kind":                   {"const": Kind},
	"Estate.Name":                   {"pattern": dnsLabel.String(), "maxLength": MaxNameLength},
	"Scaleway.Project":              {"pattern": canonicalUUID.String()},
	"Scaleway.Region":               {"enum": regions},
	"Scaleway.Zones":                {"minItems": 1, "maxItems": 1},
	"Secrets.Recipients":            {"minItems": 1, "uniqueItems": true},
	"Store.Bucket":                  {"pattern": bucketName.String()},
	"Replica.Endpoint":              {"pattern": replicaAddress.String()},
	"Replica.Region":                {"pattern": replicaRegion.String()},
	"Replica.Bucket":                {"pattern": bucketName.String()},
	"Talos.Version":                 {"pattern": talosVersion.String()},
	"Talos.Extensions":              {"uniqueItems": true, "items": map[string]any{"type": "string", "pattern": extensionName.String()}},
	"Talos.KernelArgs":              {"uniqueItems": true, "items": map[string]any{"type": "string", "pattern": kernelArgument.String()}},
	"Image.Source":                  {"enum": imageSources},
	"Kubernetes.Version":            {"pattern": kubernetesVersion.String()},
	"AdmissionPlugin.Name":          {"pattern": pluginName.String()},
	"APIServer.ExtraArgs":           argumentNames(),
	"Etcd.ExtraArgs":                argumentNames(),
	"Kubelet.ExtraArgs":             argumentNames(),
	"Network.Mode":                  {"enum": networkModes},
	"Gateway.Type":                  {"enum": gatewayTypes},
	"Admin.CIDRs":                   {"minItems": 1, "uniqueItems": true},
	"Admin.Door":                    {"enum": doors},
	"Admin.SSHKeys":                 {"minItems": 1, "uniqueItems": true},
	"API.LoadBalancer":              {"enum": loadBalancerTypes},
	"API.Names":                     {"uniqueItems": true},
	"ControlPlane.Count":            {"enum": []int{1, 3, 5, 7}},
	"ControlPlane.Type":             {"enum": usableTypes(controlPlaneMemory)},
	"Pool.Name":                     {"pattern": dnsLabel.String(), "not": map[string]any{"enum": reservedPools}},
	"Pool.Count":                    {"minimum": 0, "maximum": maxNodes},
	"Pool.Type":                     {"enum": usableTypes(workerMemory)},
	"Disk.IOPS":                     {"enum": volumeIOPS},
	"Taint.Effect":                  {"enum": taintEffects},
	"AdmissionPlugin.Configuration": {"minLength": 1},

	"Postgres.Engine":              {"enum": postgresEngines},
	"Postgres.Type":                {"pattern": databaseType.String()},
	"Postgres.Settings":            {"propertyNames": map[string]any{"pattern": settingName.String()}},
	"Postgres.Databases":           {"uniqueItems": true, "items": databaseNames()},
	"Postgres.Users":               {"minItems": 1},
	"DatabaseVolume.IOPS":          {"enum": volumeIOPS},
	"DatabaseBackup.EveryHours":    {"minimum": 1, "maximum": mostBackupHours},
	"DatabaseBackup.KeepDays":      {"minimum": 1, "maximum": mostBackupDays},
	"DatabaseUser.Name":            databaseNames(),
	"DatabaseUser.PasswordVersion": {"minimum": 1, "maximum": maxPasswordVersion},
	"DatabaseUser.Privileges":      {"additionalProperties": map[string]any{"enum": permissions}},
}

func argumentNames() map[string]any {
	return map[string]any{"propertyNames": map[string]any{"pattern": flagName.String()}}
}

func databaseNames() map[string]any {
	return map[string]any{"type": "string", "pattern": databaseName.String(), "not": map[string]any{"enum": reservedDatabaseNames}}
}

// usableTypes lists the Instance types that a node of the given need can be.
func usableTypes(memory Size) []string {
	var names []string
	for _, t := range instanceTypes() {
		s := newSource("")
		if s.validateType("type", t.Name, memory, "a node"); len(s.problems) == 0 {
			names = append(names, t.Name)
		}
	}
	return names
}
