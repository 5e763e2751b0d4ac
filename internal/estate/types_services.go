package estate

// Services are the managed services beside the cluster.
type Services struct {
	Postgres *Postgres         `yaml:"postgres"` // a managed PostgreSQL instance that only the private network reaches
	Buckets  []Bucket          `yaml:"buckets"`  // the application's buckets
	Registry *Registry         `yaml:"registry"` // a container registry namespace
	Secrets  []SecretContainer `yaml:"secrets"`  // containers in Secret Manager; what is in them is never read or written
}

// Postgres is a managed PostgreSQL instance.
type Postgres struct {
	Engine           string            `yaml:"engine" estate:"default=PostgreSQL-16"`   // such as PostgreSQL-16; it cannot be changed later
	Type             string            `yaml:"type" estate:"required,example=DB-DEV-S"` // node type, such as DB-DEV-S
	HighAvailability bool              `yaml:"highAvailability"`                        // a second node stands by
	Volume           DatabaseVolume    `yaml:"volume"`
	Backup           DatabaseBackup    `yaml:"backup"`
	Settings         map[string]string `yaml:"settings"`  // of the engine, such as max_connections
	Databases        []string          `yaml:"databases"` // names
	Users            []DatabaseUser    `yaml:"users"`     // the first is the instance's first user
}

// DatabaseVolume is the block storage of a managed database.
type DatabaseVolume struct {
	Size Size `yaml:"size" estate:"default=10GB"` // whole decimal GB; it can grow and never shrink
	IOPS int  `yaml:"iops" estate:"default=5000"` // 5000 or 15000
}

// DatabaseBackup is Scaleway's automatic backup of a managed database.
type DatabaseBackup struct {
	EveryHours int  `yaml:"everyHours" estate:"default=24"` // hours between two backups
	KeepDays   int  `yaml:"keepDays" estate:"default=7"`    // days that a backup is kept
	Disabled   bool `yaml:"disabled"`                       // no automatic backups
}

// DatabaseUser is a user of the database. bastide makes the password and keeps
// it in Secret Manager and the database, nowhere else.
type DatabaseUser struct {
	Name            string            `yaml:"name" estate:"required,example=app"` // role name
	Admin           bool              `yaml:"admin"`                              // may create databases and roles
	PasswordVersion int               `yaml:"passwordVersion" estate:"default=1"` // raise it to make a new password
	Privileges      map[string]string `yaml:"privileges"`                         // by database: all, readwrite, readonly or none; all of every database when left out
}

// Bucket is a bucket of Object Storage. Names are unique among all customers.
type Bucket struct {
	Name       string            `yaml:"name" estate:"required,example=staging-app"` // unique among all customers
	Versioning string            `yaml:"versioning" estate:"default=enabled"`        // enabled or disabled
	Tags       map[string]string `yaml:"tags"`                                       // beside those of bastide
	Lifecycle  []LifecycleRule   `yaml:"lifecycle"`                                  // when objects expire
	CORS       []CORSRule        `yaml:"cors"`                                       // which web pages may use it
}

// LifecycleRule lets objects of a bucket expire.
type LifecycleRule struct {
	Name           string `yaml:"name" estate:"required,example=old-logs"` // unique in the bucket
	Prefix         string `yaml:"prefix"`                                  // of the objects' keys; all objects when left out
	ExpireDays     int    `yaml:"expireDays"`                              // days after which an object is deleted; 0 keeps it
	OldVersionDays int    `yaml:"oldVersionDays"`                          // days after which a version that was replaced is deleted; 0 keeps it
	AbortDays      int    `yaml:"abortDays"`                               // days after which an unfinished upload is given up; 0 keeps it
}

// CORSRule lets browsers use a bucket.
type CORSRule struct {
	Origins       []string `yaml:"origins" estate:"required,example=[https://app.example.org]"` // of the web pages
	Methods       []string `yaml:"methods" estate:"required,example=[GET]"`                     // GET, PUT, POST, DELETE, HEAD
	Headers       []string `yaml:"headers"`                                                     // that a request may have
	ExposeHeaders []string `yaml:"exposeHeaders"`                                               // that a script may read
	MaxAgeSeconds int      `yaml:"maxAgeSeconds"`                                               // seconds that a browser remembers the answer
}

// Registry is a namespace of the container registry. Names are unique among all
// customers in the region.
type Registry struct {
	Name        string `yaml:"name" estate:"required,example=staging"` // unique among all customers in the region
	Description string `yaml:"description"`                            // for people
	Public      bool   `yaml:"public"`                                 // anyone may pull
}

// SecretContainer is a secret of Secret Manager without its content.
type SecretContainer struct {
	Name      string   `yaml:"name" estate:"required,example=app/session-key"` // with its path: app/session-key is session-key in /app
	Type      string   `yaml:"type" estate:"default=opaque"`                   // opaque, certificate, key_value, basic_credentials, database_credentials or ssh_key
	Tags      []string `yaml:"tags"`                                           // beside those of bastide
	Protected bool     `yaml:"protected"`                                      // Scaleway refuses to delete it
}

// DNS are records that point at the estate.
type DNS struct {
	Zone string `yaml:"zone" estate:"required,example=example.org"` // zone at Scaleway; it is never created
	API  string `yaml:"api"`                                        // name, relative to the zone, of the Kubernetes API: the load balancer's private address
	Edge string `yaml:"edge"`                                       // name, relative to the zone, of the edge: the address that network.edgeAddress reserves
	TTL  int    `yaml:"ttl" estate:"default=300"`                   // seconds
}
