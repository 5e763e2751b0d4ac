package blueprint

import "slices"

// Data is a class of data that outlives a cluster. A destroy keeps what holds it
// unless the class is named, because no second run brings it back.
type Data string

// The classes, as --delete-data names them.
const (
	DataPostgres Data = "postgres" // the database and the passwords of its users
	DataBuckets  Data = "buckets"  // the application's buckets, old versions included
	DataRegistry Data = "registry" // the images in the registry's namespace
	DataSecrets  Data = "secrets"  // Secret Manager containers
	DataStore    Data = "store"    // the estate's own bucket: journal and backups
	DataVolumes  Data = "volumes"  // volumes and snapshots that the cluster made for its pods
)

// DataClasses are all classes, in the order in which they are named.
var DataClasses = []Data{DataPostgres, DataBuckets, DataRegistry, DataSecrets, DataStore, DataVolumes}

// dataKinds says which kinds hold data. The nodes' own volumes are not among
// them: what is on them is the cluster itself, which is what a destroy destroys.
var dataKinds = map[Kind]Data{
	KindPostgres: DataPostgres, KindPostgresDatabase: DataPostgres, KindPostgresUser: DataPostgres, KindPostgresSecret: DataPostgres,
	KindBucket: DataBuckets, KindRegistry: DataRegistry, KindSecret: DataSecrets, KindStore: DataStore,
	KindClusterVolume: DataVolumes, KindClusterSnapshot: DataVolumes,
}

// Data is the class of data that a kind holds; empty for none.
func (k Kind) Data() Data { return dataKinds[k] }

// DataOf says which names are classes, and the first one that is none.
func DataOf(names []string) (classes []Data, unknown string) {
	for _, name := range names {
		if !slices.Contains(DataClasses, Data(name)) {
			return nil, name
		}
		classes = append(classes, Data(name))
	}
	return classes, ""
}

// StandsOn are the steps that a thing cannot exist without, as its spec names
// them: while it is kept, so are they.
func StandsOn(spec Spec) []string {
	switch s := spec.(type) {
	case Postgres:
		return []string{s.Network}
	case PostgresDatabase:
		return []string{s.Postgres}
	case PostgresUser:
		return []string{s.Postgres}
	case PrivateNetwork:
		return []string{s.VPC}
	}
	return nil
}
