package store

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"bastide/internal/outcome"
	"bastide/internal/scaleway"

	"github.com/minio/minio-go/v7"
)

// Bucket is one bucket of object storage, whoever's it is.
type Bucket struct {
	Name    string
	objects *scaleway.ObjectStorage
}

// NewBucket makes no call.
func NewBucket(objects *scaleway.ObjectStorage, name string) *Bucket { return &Bucket{name, objects} }

// object is one version of an object as it was read or written.
type object struct {
	etag, version string
	body          []byte
	age           time.Duration // by the store's own clock; 0 when it told no time
}

// digestKey is the metadata that holds the SHA-256 of an object's content. Stores
// that know no checksums keep it like any other metadata.
const digestKey = "Bastide-Sha256"

// maxObject bounds what is read into memory, in bytes.
const maxObject = 8 << 20

// condition is what a write depends on.
type condition func(*minio.PutObjectOptions)

// fresh wants that nothing is there yet.
func fresh(o *minio.PutObjectOptions) { o.SetMatchETagExcept("*") }

// unchanged wants that what is there is still what was read.
func unchanged(etag string) condition {
	return func(o *minio.PutObjectOptions) { o.SetMatchETag(etag) }
}

// put writes an object with one signed PUT and no checksum header that a store
// could reject (field report 59).
func (b *Bucket) put(ctx context.Context, key string, body []byte, contentType string, when ...condition) (object, error) {
	sum := sha256.Sum256(body)
	weak := md5.Sum(body) //nolint:gosec // S3's own transport check; the other one is the strong one
	o := minio.PutObjectOptions{ContentType: contentType, DisableContentSha256: true, UserMetadata: map[string]string{digestKey: hex.EncodeToString(sum[:])}}
	for _, c := range when {
		c(&o)
	}
	info, err := b.objects.Client.PutObject(ctx, b.Name, key, bytes.NewReader(body), int64(len(body)),
		base64.StdEncoding.EncodeToString(weak[:]), hex.EncodeToString(sum[:]), o)
	return object{etag: info.ETag, version: info.VersionID, body: body}, err
}

// get reads an object and checks that it is what was written. There is none where
// the error's code is NoSuchKey.
func (b *Bucket) get(ctx context.Context, key string) (object, error) {
	o, header, err := b.read(ctx, key)
	if err != nil {
		return o, err
	}
	body := o.body
	sum := sha256.Sum256(body)
	switch have := header.Get("X-Amz-Meta-" + digestKey); {
	case len(body) > maxObject:
		return o, damaged(b.Name, key, fmt.Sprintf("it has more than %d MiB", maxObject>>20))
	case have == "":
		return o, damaged(b.Name, key, "it does not carry the digest that bastide writes")
	case have != hex.EncodeToString(sum[:]):
		return o, damaged(b.Name, key, "its content does not have the digest that was written with it")
	}
	return o, nil
}

// read reads an object whole, whatever it is.
func (b *Bucket) read(ctx context.Context, key string) (object, http.Header, error) {
	content, info, header, err := b.objects.Client.GetObject(ctx, b.Name, key, minio.GetObjectOptions{})
	if err != nil {
		return object{}, nil, err
	}
	defer func() { _ = content.Close() }()
	body, err := io.ReadAll(io.LimitReader(content, maxObject+1))
	if err != nil {
		return object{}, nil, err
	}
	return object{etag: info.ETag, version: info.VersionID, body: body, age: ageOf(header)}, header, nil
}

// errDamaged is an object that was read and is not as bastide wrote it.
var errDamaged = errors.New("it is not as it was written")

func damaged(bucket, key, why string) error {
	return outcome.CannotTell(fmt.Sprintf("%s in the bucket %s cannot be used", key, bucket), why, "look at it with an S3 client, and remove it if it is nothing that you need").Because(errDamaged)
}

// ageOf is how old an object is when it is read, by the store's clock alone, so
// that no difference between two machines' clocks counts.
func ageOf(h http.Header) time.Duration {
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	written, err := http.ParseTime(h.Get("Last-Modified"))
	if err != nil {
		return 0
	}
	return max(0, now.Sub(written))
}

// erase removes one version and no other, so that nothing that somebody else
// wrote in the meantime can go with it.
func (b *Bucket) erase(ctx context.Context, key, version string) error {
	return b.objects.Client.RemoveObject(ctx, b.Name, key, minio.RemoveObjectOptions{VersionID: version})
}

// versions lists all versions of one key, newest first.
func (b *Bucket) versions(ctx context.Context, key string) ([]minio.ObjectInfo, error) {
	var out []minio.ObjectInfo
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for v := range b.objects.Client.Client.ListObjects(ctx, b.Name, minio.ListObjectsOptions{WithVersions: true, Prefix: key}) {
		if v.Err != nil {
			return nil, v.Err
		}
		if v.Key == key {
			out = append(out, v)
		}
	}
	return out, nil
}

// has says whether an error of object storage has one of the codes.
func has(err error, codes ...string) bool {
	have := scaleway.ObjectCode(err)
	for _, c := range codes {
		if have == c {
			return true
		}
	}
	return false
}
