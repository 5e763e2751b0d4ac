package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Access is how clients reach a running region. It is kept in the region's
// folder, so that another process can find it.
type Access struct {
	URL       string `json:"url"`
	S3        string `json:"s3"`      // object storage, addressed by path
	Factory   string `json:"factory"` // the Image Factory
	PID       int    `json:"pid"`
	AccessKey string `json:"accessKey"`
	SecretKey string `json:"secretKey"`
	Project   string `json:"project"`
	Region    string `json:"region"`
	Zone      string `json:"zone"`
	// Elsewhere is the store of another provider, and the secret key to it; empty
	// without one.
	Elsewhere       string `json:"elsewhere,omitempty"`
	ElsewhereSecret string `json:"elsewhereSecret,omitempty"`
}

// FactoryVariable names the environment variable with the Image Factory's
// address.
const FactoryVariable = "BASTIDE_FACTORY_URL"

const accessFile = "region.json"

// AccessKey is the simulated region's access key; it has the form that clients
// check for.
const AccessKey = "SCWBASTIDEREHEARSAL0"

func (a Access) write(dir string) error {
	data, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, accessFile), append(data, '\n'), 0o600)
}

// ReadAccess finds the region that runs in dir.
func ReadAccess(dir string) (Access, error) {
	var a Access
	data, err := os.ReadFile(filepath.Join(dir, accessFile))
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("%s: %w", filepath.Join(dir, accessFile), err)
	}
	return a, nil
}

// Environ lists the variables that point the Scaleway SDK, scw and the OpenTofu
// provider at the region, and bastide at its Image Factory, and at the store
// elsewhere where there is one.
func (a Access) Environ() []string {
	out := []string{
		"SCW_API_URL=" + a.URL,
		"SCW_S3_ENDPOINT=" + a.S3,
		FactoryVariable + "=" + a.Factory,
		"SCW_S3_USE_PATH_STYLE=true",
		"SCW_ACCESS_KEY=" + a.AccessKey,
		"SCW_SECRET_KEY=" + a.SecretKey,
		"SCW_DEFAULT_PROJECT_ID=" + a.Project,
		"SCW_DEFAULT_ORGANIZATION_ID=" + a.Project,
		"SCW_DEFAULT_REGION=" + a.Region,
		"SCW_DEFAULT_ZONE=" + a.Zone,
		"SCW_DISABLE_CHECK_VERSION=true", // scw asks GitHub for its newest release otherwise
	}
	if a.Elsewhere != "" {
		out = append(out, "BASTIDE_REPLICA_ENDPOINT="+a.Elsewhere, "BASTIDE_REPLICA_ACCESS_KEY="+elsewhereKey, "BASTIDE_REPLICA_SECRET_KEY="+a.ElsewhereSecret)
	}
	return out
}

// Exports writes an environment as lines for a shell to read.
func Exports(environ []string) string {
	var b strings.Builder
	for _, kv := range environ {
		k, v, _ := strings.Cut(kv, "=")
		fmt.Fprintf(&b, "export %s='%s'\n", k, strings.ReplaceAll(v, "'", `'\''`))
	}
	return b.String()
}

// Alive says whether the region's process exists.
func (a Access) Alive() bool { return a.PID > 0 && syscall.Kill(a.PID, 0) == nil }

// Public is what may be printed: everything but the secret keys.
func (a Access) Public() Access {
	a.SecretKey = "***"
	if a.ElsewhereSecret != "" {
		a.ElsewhereSecret = "***"
	}
	return a
}

// DefaultDir is where sim serve and sim env meet when no folder is named: one
// per user, in a folder that other users cannot write to where there is one.
func DefaultDir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "bastide-sim")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("bastide-sim-%d", os.Getuid()))
}
