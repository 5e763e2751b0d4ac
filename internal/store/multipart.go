package store

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"bastide/internal/outcome"
	"bastide/internal/scaleway"

	"github.com/minio/minio-go/v7"
)

// rounds bounds how often something is begun or ended again whose answer was lost.
const rounds = 5

// resume finds the upload that an earlier run left, with its parts, or begins one.
func (s *Store) resume(ctx context.Context, key string) (id string, had map[int]minio.ObjectPart, err error) {
	what := fmt.Sprintf("the upload of %s to the bucket %s was not begun", key, s.Name)
	for range rounds {
		if id, had, err = s.left(ctx, key); err != nil {
			return "", nil, s.objects.CannotTell(what, err)
		}
		if id != "" {
			return id, had, nil
		}
		id, err = s.objects.Client.NewMultipartUpload(ctx, s.Name, key, minio.PutObjectOptions{ContentType: "application/x-qemu-disk", DisableContentSha256: true})
		if err == nil && id != "" {
			return id, nil, nil
		}
		// Unless it was refused there may be an upload whose id was lost, and a
		// listing shows it.
		if scaleway.ObjectRefused(err) || !pause(ctx, s.o.Settle) {
			break
		}
	}
	if err == nil {
		err = errors.New("the store names no upload")
	}
	return "", nil, s.objects.Failed(what, err)
}

// left is the newest upload of a key; "" where there is none. Others are thrown
// away, as each is billed until somebody does.
func (s *Store) left(ctx context.Context, key string) (id string, had map[int]minio.ObjectPart, err error) {
	all, err := s.uploadsOf(ctx, key)
	if err != nil {
		return "", nil, err
	}
	for _, u := range all {
		if id != "" {
			if err := s.objects.Client.AbortMultipartUpload(ctx, s.Name, key, u.UploadID); err != nil && !has(err, "NoSuchUpload") {
				return "", nil, err
			}
			continue
		}
		had, err = s.partsOf(ctx, key, u.UploadID)
		switch {
		case err == nil:
			id = u.UploadID
		case !has(err, "NoSuchUpload"):
			return "", nil, err
		}
	}
	return id, had, nil
}

// uploadsOf are the unfinished uploads of one key, newest first.
func (s *Store) uploadsOf(ctx context.Context, key string) ([]minio.ObjectMultipartInfo, error) {
	var out []minio.ObjectMultipartInfo
	keyMarker, idMarker := "", ""
	for {
		page, err := s.objects.Client.ListMultipartUploads(ctx, s.Name, key, keyMarker, idMarker, "", 1000)
		if err != nil {
			return nil, err
		}
		for _, u := range page.Uploads {
			if u.Key == key {
				out = append(out, u)
			}
		}
		if !page.IsTruncated || page.NextKeyMarker == keyMarker && page.NextUploadIDMarker == idMarker {
			break
		}
		keyMarker, idMarker = page.NextKeyMarker, page.NextUploadIDMarker
	}
	slices.SortStableFunc(out, func(a, b minio.ObjectMultipartInfo) int { return b.Initiated.Compare(a.Initiated) })
	return out, nil
}

func (s *Store) partsOf(ctx context.Context, key, id string) (map[int]minio.ObjectPart, error) {
	out := map[int]minio.ObjectPart{}
	for marker := 0; ; {
		page, err := s.objects.Client.ListObjectParts(ctx, s.Name, key, id, marker, 1000)
		if err != nil {
			return nil, err
		}
		for _, p := range page.ObjectParts {
			out[p.PartNumber] = p
		}
		if !page.IsTruncated || page.NextPartNumberMarker <= marker {
			return out, nil
		}
		marker = page.NextPartNumberMarker
	}
}

// etag is what the store calls a file that is put together from parts: the MD5 of
// the MD5s of the parts, and their number.
func (u *Upload) etag() string {
	h := md5.New() //nolint:gosec // the store's own form
	for n := range u.parts {
		sum := u.sums[n+1]
		h.Write(sum[:])
	}
	return fmt.Sprintf("%s-%d", hex.EncodeToString(h.Sum(nil)), u.parts)
}

// complete makes the parts the file. When the answer is lost, or the upload is
// gone because of an earlier attempt, the file itself says whether it worked.
func (u *Upload) complete(ctx context.Context) error {
	what := fmt.Sprintf("the parts of %s were not put together in the bucket %s", u.key, u.s.Name)
	parts := make([]minio.CompletePart, u.parts)
	for n := range parts {
		sum := u.sums[n+1]
		parts[n] = minio.CompletePart{PartNumber: n + 1, ETag: hex.EncodeToString(sum[:])}
	}
	var last error
	for range rounds {
		_, last = u.s.objects.Client.CompleteMultipartUpload(ctx, u.s.Name, u.key, u.id, parts, minio.PutObjectOptions{DisableContentSha256: true})
		if last == nil {
			return nil
		}
		if has(last, "InvalidPart", "InvalidPartOrder", "EntityTooSmall") {
			return outcome.Fail(what, "the store does not have them as they were sent: "+last.Error(), "run the command again: what is missing is sent again").Because(last)
		}
		found, _, err := u.s.image(ctx, u.key)
		if err != nil {
			return err
		}
		if found != nil {
			return nil
		}
		if scaleway.ObjectRefused(last) || !pause(ctx, u.s.o.Settle) {
			break
		}
	}
	return u.s.objects.Failed(what, last)
}

// tidy removes what a file took the place of, and uploads of it that showed late:
// they are billed and are nobody's. What does not go now is removed by the
// bucket's rules.
func (u *Upload) tidy(ctx context.Context) {
	left, err := u.s.uploadsOf(ctx, u.key)
	for _, other := range left {
		if gone := u.s.objects.Client.AbortMultipartUpload(ctx, u.s.Name, u.key, other.UploadID); gone != nil && !has(gone, "NoSuchUpload") {
			err = gone
		}
	}
	if err != nil {
		u.s.o.Notice(fmt.Sprintf("half uploads of %s were not removed from the bucket %s: %v", u.key, u.s.Name, err))
	}
	for _, key := range []string{u.key, proofOf(u.key)} {
		all, err := u.s.versions(ctx, key)
		if err == nil && len(all) > 1 {
			err = u.s.eraseAll(ctx, key, all[0].VersionID)
		}
		if err != nil {
			u.s.o.Notice(fmt.Sprintf("older versions of %s were not removed from the bucket %s: %v", key, u.s.Name, err))
		}
	}
}
