package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"

	"github.com/minio/minio-go/v7"
)

// Image is what is known of the file of an image in the bucket. It is kept beside
// the file, as an object of its own, and not as the file's metadata: that would
// have to be sent before the first byte, when nothing of it is known. It is
// written once all parts are there and before they become the file, so that there
// is no moment at which a whole file is not proven.
type Image struct {
	Key         string    `json:"key"`
	Talos       string    `json:"talos"`
	Schematic   string    `json:"schematic"`
	Digest      string    `json:"digest"`      // of the file's content: see image.Result
	Size        int64     `json:"size"`        // bytes
	ETag        string    `json:"etag"`        // of the file when it was put together from its parts
	VirtualSize int64     `json:"virtualSize"` // bytes of the disk inside
	Source      string    `json:"source"`      // where it was read from
	Made        time.Time `json:"made"`
	By          string    `json:"by"` // version of bastide
}

// proofOf is the key of what is known of a file.
func proofOf(key string) string { return key + ".json" }

// Image looks for the file of an image. One whose proof is missing, or which is
// not what its proof says, does not count: nothing is ever imported from it, and
// the next upload takes its place. unproven says why.
func (s *Store) Image(ctx context.Context, key string) (found *Image, unproven string, err error) {
	there, err := s.Exists(ctx)
	if err != nil || !there {
		return nil, "", err
	}
	return s.image(ctx, key)
}

func (s *Store) image(ctx context.Context, key string) (*Image, string, error) {
	what := fmt.Sprintf("whether the image %s is in the bucket %s could not be read", key, s.Name)
	o, err := s.get(ctx, proofOf(key))
	if has(err, "NoSuchKey", "NoSuchBucket") {
		return nil, "", nil
	}
	if errors.Is(err, errDamaged) { // it was read: that is not unknown, and the image is made anew
		return nil, proofOf(key) + " is no proof of it: it is not as it was written", nil
	}
	if err != nil {
		return nil, "", s.objects.CannotTell(what, err)
	}
	var i Image
	if err := json.Unmarshal(o.body, &i); err != nil || i.Key != key || i.Digest == "" {
		return nil, proofOf(key) + " is no proof of it", nil
	}
	file, err := s.objects.Client.StatObject(ctx, s.Name, key, minio.StatObjectOptions{})
	switch {
	case has(err, "NoSuchKey"):
		return nil, "", nil
	case err != nil:
		return nil, "", s.objects.CannotTell(what, err)
	case file.Size != i.Size || unquoted(file.ETag) != i.ETag:
		return nil, fmt.Sprintf("it has %d bytes and the ETag %s, and its proof says %d and %s", file.Size, unquoted(file.ETag), i.Size, i.ETag), nil
	}
	return &i, "", nil
}

// ImageSize is how many bytes the file of an image has, 0 where there is none. It
// is one call, and says nothing of the file's proof.
func (s *Store) ImageSize(ctx context.Context, key string) (int64, error) {
	file, err := s.objects.Client.StatObject(ctx, s.Name, key, minio.StatObjectOptions{})
	switch {
	case has(err, "NoSuchKey", "NoSuchBucket"):
		return 0, nil
	case err != nil:
		return 0, s.objects.CannotTell(fmt.Sprintf("how large the image %s in the bucket %s is could not be read", key, s.Name), err)
	}
	return file.Size, nil
}

// Images lists the files of images, those without a proof too, by key.
func (s *Store) Images(ctx context.Context) ([]StoredImage, error) {
	there, err := s.Exists(ctx)
	if err != nil || !there {
		return nil, err
	}
	var out []StoredImage
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for o := range s.objects.Client.Client.ListObjects(ctx, s.Name, minio.ListObjectsOptions{Prefix: blueprint.ImagePrefix, Recursive: true}) {
		if o.Err != nil {
			return nil, s.objects.CannotTell(fmt.Sprintf("the images in the bucket %s could not be listed", s.Name), o.Err)
		}
		if strings.HasSuffix(o.Key, ".json") {
			continue
		}
		i := StoredImage{Key: o.Key, Size: o.Size, Written: o.LastModified}
		if i.Image, i.Unproven, err = s.image(ctx, o.Key); err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b StoredImage) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// StoredImage is a file under images/.
type StoredImage struct {
	Key      string
	Size     int64
	Written  time.Time
	Image    *Image // nil where it is not proven
	Unproven string
}

// RemoveImage removes the file of an image with its proof and all older versions
// of both, the file first: a proof alone proves nothing. What is gone is fine.
func (s *Store) RemoveImage(ctx context.Context, key string) error {
	if !strings.HasPrefix(key, blueprint.ImagePrefix) {
		return outcome.Refuse(fmt.Sprintf("%s was not removed", key), "it is no image", "name an object under "+blueprint.ImagePrefix)
	}
	for _, k := range []string{key, proofOf(key)} {
		if err := s.eraseAll(ctx, k, ""); err != nil && !has(err, "NoSuchBucket") {
			return s.objects.Failed(fmt.Sprintf("%s in the bucket %s was not removed", k, s.Name), err)
		}
	}
	return nil
}

// eraseAll removes all versions of a key but one.
func (s *Store) eraseAll(ctx context.Context, key, but string) error {
	all, err := s.versions(ctx, key)
	if err != nil {
		return err
	}
	for _, v := range all {
		if v.VersionID == but && but != "" {
			continue
		}
		if err := s.erase(ctx, key, v.VersionID); err != nil && !has(err, "NoSuchKey", "NoSuchVersion") {
			return err
		}
	}
	return nil
}

// prove writes down what the file will be.
func (s *Store) proveImage(ctx context.Context, i Image) error {
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	_, err = s.put(ctx, proofOf(i.Key), append(bytes.TrimSpace(text), '\n'), "application/json")
	return err
}

func unquoted(etag string) string { return strings.Trim(etag, `"`) }
