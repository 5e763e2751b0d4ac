package scaleway

import (
	"fmt"
	"net/http"
	"net/url"
	"os"

	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/vault"

	"github.com/minio/minio-go/v7"
)

// What the environment says of the replica. The key is never Scaleway's: whoever
// gets hold of that one could delete both copies.
const (
	ReplicaAccessKeyVariable = "BASTIDE_REPLICA_ACCESS_KEY"
	ReplicaSecretKeyVariable = "BASTIDE_REPLICA_SECRET_KEY" //nolint:gosec // a variable's name
	// ReplicaEndpointVariable leads elsewhere than the file's endpoint, as
	// SCW_S3_ENDPOINT does for the estate's own store.
	ReplicaEndpointVariable = "BASTIDE_REPLICA_ENDPOINT"
)

const replicaOut = "the replica cannot be used"

// NewReplicaStorage is the store that store.replica of the file names. It makes no
// call. It refuses an address that is the estate's own store's, which only now is
// known for certain, because both can be led elsewhere by the environment.
func NewReplicaStorage(o Options) (*ObjectStorage, error) {
	s := &settings{lookup: o.LookupEnv}
	if s.lookup == nil {
		s.lookup = os.LookupEnv
	}
	p, err := s.profile()
	if err != nil {
		return nil, err
	}
	at, from, err := s.replicaEndpoint(o.Estate, p)
	if err != nil {
		return nil, err
	}
	key, secret, err := s.replicaKey(p)
	if err != nil {
		return nil, err
	}
	if o.Learnt != nil {
		o.Learnt(secret.Reveal())
	}
	objects, err := o.objectStorage(connection{
		endpoint: &url.URL{Scheme: at.Scheme, Host: at.Address()}, region: o.Estate.Store.Replica.Region, lookup: minio.BucketLookupAuto,
		accessKey: key, secretKey: secret, protocol: s3{at.Address(), "the replica's store " + at.Address()},
	})
	if err != nil {
		return nil, outcome.Refuse(replicaOut, err.Error(), "correct "+from)
	}
	objects.access = access{key: key, from: ReplicaAccessKeyVariable, endpoint: from}
	return objects, nil
}

// ReplicaAddress is where the replica is, for messages: its host, with a port
// where that is not the default.
func ReplicaAddress(e *estate.Estate, lookup func(string) (string, bool)) string {
	text := e.Store.Replica.Endpoint
	if led, _ := lookup(ReplicaEndpointVariable); led != "" {
		text = led
	}
	at, wrong, _ := estate.ParseReplica(text)
	if wrong != "" {
		return "an address that cannot be used"
	}
	return at.Address()
}

func (s *settings) replicaEndpoint(e *estate.Estate, p profile) (at estate.Endpoint, from string, err error) {
	text, from := e.Store.Replica.Endpoint, "store.replica.endpoint in the file"
	if led := s.get(ReplicaEndpointVariable); led != "" {
		text, from = led, ReplicaEndpointVariable
	}
	led := *e.Store.Replica
	led.Endpoint = text
	if what, why, hint := led.Shared(e.Scaleway.Region); what != "" {
		return at, from, outcome.Refuse(replicaOut, from+" "+what+"; "+why, hint)
	}
	at, _, _ = estate.ParseReplica(text) // which Shared has done
	// Settings of the estate's own store that cannot be read are refused when
	// that one is used.
	own, wrong, _ := estate.ParseEndpoint(p.objectAddress(e.Scaleway.Region))
	if wrong == "" && at.Meets(own) {
		return at, from, outcome.Refuse(replicaOut, fmt.Sprintf("%s is the estate's own store %s, which %s names; what takes that away takes the copy with it",
			at.URL(), own.URL(), orText(p.s3From, "Scaleway's region "+e.Scaleway.Region)), "point "+from+" to a store of another provider")
	}
	return at, from, nil
}

func (s *settings) replicaKey(p profile) (string, vault.Secret, error) {
	key, secret := s.get(ReplicaAccessKeyVariable), s.get(ReplicaSecretKeyVariable)
	switch {
	case key == "" || secret == "":
		return "", vault.Secret{}, outcome.Refuse(replicaOut, fmt.Sprintf("%s and %s are not both set", ReplicaAccessKeyVariable, ReplicaSecretKeyVariable),
			"set them to a key of the replica's provider that may list, read and write objects in that bucket")
	case key == p.AccessKey || secret == p.SecretKey:
		return "", vault.Secret{}, outcome.Refuse(replicaOut, "its key is the one of the estate's own store", "make one that reaches the replica alone; whoever gets hold of one must not reach both")
	}
	return key, vault.NewSecret(secret), nil
}

// refusedElsewhere is refused for a store that is not Scaleway's.
func (o *ObjectStorage) refusedElsewhere(r minio.ErrorResponse) (why, do string) {
	why = fmt.Sprintf("the replica's store answered %d %s: %s", r.StatusCode, r.Code, r.Message)
	switch {
	case r.Code == "AccessDenied":
		return fmt.Sprintf("%s, so %s may not do this", why, o.access), "give the key the rights to list, read and write objects in the bucket, and see that no policy shuts it out"
	case r.Code == "InvalidAccessKeyId" || r.Code == "SignatureDoesNotMatch":
		return why + ", so it does not accept " + o.access.String(), fmt.Sprintf("put a valid key into %s and %s", ReplicaAccessKeyVariable, ReplicaSecretKeyVariable)
	case r.Code == "AuthorizationHeaderMalformed" || r.Code == "PermanentRedirect":
		return why, "see whether store.replica.region is what the provider calls the store's region"
	case r.Code == "RequestTimeTooSkewed":
		return why, "set this machine's clock right; signatures are valid for 15 minutes"
	case r.StatusCode == http.StatusTooManyRequests || r.StatusCode >= 500:
		return why, again
	}
	return why, "see at the replica's provider what is the matter; then run the command again"
}
