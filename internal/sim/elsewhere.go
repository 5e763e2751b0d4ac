package sim

import (
	"path/filepath"

	"github.com/google/uuid"

	"bastide/internal/sim/api"
	"bastide/internal/sim/clock"
	"bastide/internal/sim/s3"
)

// Elsewhere is an S3 store of another provider: another endpoint, other keys,
// buckets that a person made. The region's faults and request log see its calls
// as those of the host "elsewhere".
type Elsewhere struct {
	Region  string   `json:"region"` // what the provider calls it
	Buckets []string `json:"buckets"`
}

// elsewhereKey is the access key of that store, which no key of the region is.
const elsewhereKey = "SCWBASTIDEELSEWHERE0"

// elsewhereOwner is whose its buckets are.
const elsewhereOwner = "eeeeeeee-0000-4000-8000-000000000001"

// serveElsewhere starts that store, where the seed has one.
func (r *Region) serveElsewhere(o Options, region *api.Region) error {
	if o.Elsewhere == nil {
		return nil
	}
	secret := uuid.NewString()
	store, err := s3.New(s3.Options{
		Dir: filepath.Join(o.Dir, "elsewhere"), Region: o.Elsewhere.Region, Clock: clock.New(o.Speed), Watch: objectCalls{region, "elsewhere"}, Log: o.Log, Host: r.host,
		Keys: func(access string) (s3.Key, bool) {
			return s3.Key{Secret: secret, Project: elsewhereOwner}, access == elsewhereKey
		},
	})
	if err != nil {
		return err
	}
	r.parts = append(r.parts, store)
	for _, name := range o.Elsewhere.Buckets {
		if err := store.Make(name, o.Elsewhere.Region, elsewhereOwner); err != nil {
			return err
		}
	}
	url, err := r.serveBeside(o, store)
	if err != nil {
		return err
	}
	r.Access.Elsewhere, r.Access.ElsewhereSecret = url, secret
	return nil
}
