package store

import (
	"context"
	"fmt"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"

	"github.com/minio/minio-go/v7"
)

// EmptyOptions says how far an emptying may go.
type EmptyOptions struct {
	// Bypass removes what a retention in GOVERNANCE mode keeps. The header for it
	// is sent only to buckets that have object lock, as others refuse it.
	Bypass bool
	// Keep says what stays; nil keeps nothing.
	Keep func(key string) bool
}

// Empty removes every version, every delete marker and every upload that was not
// ended. What object lock keeps stays, and the error says how much and until
// when; the rest is gone then.
func (b *Bucket) Empty(ctx context.Context, o EmptyOptions) error {
	what := fmt.Sprintf("the bucket %s was not emptied", b.Name)
	locked, err := b.lockable(ctx)
	if has(err, "NoSuchBucket") {
		return nil
	}
	if err != nil {
		return b.objects.CannotTell(what, err)
	}
	things, err := b.everything(ctx, o.Keep)
	if err != nil {
		return b.objects.CannotTell(what, err)
	}
	if err := b.removeAll(ctx, things, o.Bypass && locked); err != nil {
		return err
	}
	uploads, err := b.uploads(ctx, o.Keep)
	if err != nil {
		return b.objects.CannotTell(what, err)
	}
	for _, u := range uploads {
		if err := b.objects.Client.AbortMultipartUpload(ctx, b.Name, u.Key, u.UploadID); err != nil && !has(err, "NoSuchUpload") {
			return b.objects.Failed(what, err)
		}
	}
	return nil
}

// lockable says whether a bucket has object lock.
func (b *Bucket) lockable(ctx context.Context) (bool, error) {
	state, _, _, _, err := b.objects.Client.GetObjectLockConfig(ctx, b.Name)
	if has(err, "ObjectLockConfigurationNotFoundError") {
		return false, nil
	}
	return state == "Enabled", err
}

func (b *Bucket) everything(ctx context.Context, keep func(string) bool) ([]minio.ObjectInfo, error) {
	var out []minio.ObjectInfo
	for v := range b.objects.Client.Client.ListObjects(ctx, b.Name, minio.ListObjectsOptions{WithVersions: true, Recursive: true}) {
		if v.Err != nil {
			return nil, v.Err
		}
		if keep == nil || !keep(v.Key) {
			out = append(out, v)
		}
	}
	return out, nil
}

func (b *Bucket) uploads(ctx context.Context, keep func(string) bool) ([]minio.ObjectMultipartInfo, error) {
	var out []minio.ObjectMultipartInfo
	for u := range b.objects.Client.ListIncompleteUploads(ctx, b.Name, "", true) {
		if u.Err != nil {
			return nil, u.Err
		}
		if keep == nil || !keep(u.Key) {
			out = append(out, u)
		}
	}
	return out, nil
}

func (b *Bucket) removeAll(ctx context.Context, things []minio.ObjectInfo, bypass bool) error {
	queue := make(chan minio.ObjectInfo)
	go func() {
		defer close(queue)
		for _, v := range things {
			select {
			case queue <- v:
			case <-ctx.Done():
				return
			}
		}
	}()
	var kept []minio.RemoveObjectError
	var other error
	for failed := range b.objects.Client.RemoveObjects(ctx, b.Name, queue, minio.RemoveObjectsOptions{GovernanceBypass: bypass}) {
		if has(failed.Err, "AccessDenied", "ObjectLocked", "InvalidRequest") {
			kept = append(kept, failed)
		} else if !has(failed.Err, "NoSuchVersion", "NoSuchKey") && other == nil {
			other = failed.Err
		}
	}
	what := fmt.Sprintf("the bucket %s was not emptied", b.Name)
	switch {
	case ctx.Err() != nil:
		return b.objects.Failed(what, ctx.Err())
	case other != nil:
		return b.objects.Failed(what, other)
	case len(kept) > 0:
		return b.keptByLock(ctx, what, kept)
	}
	return nil
}

// keptByLock explains which versions stay, and until when.
func (b *Bucket) keptByLock(ctx context.Context, what string, kept []minio.RemoveObjectError) error {
	first := kept[0]
	why := fmt.Sprintf("%d versions may not be removed, the first is of %s", len(kept), first.ObjectName)
	do := "see in the Scaleway console what keeps them"
	mode, until, err := b.objects.Client.GetObjectRetention(ctx, b.Name, first.ObjectName, first.VersionID)
	hold, held := b.objects.Client.GetObjectLegalHold(ctx, b.Name, first.ObjectName, minio.GetObjectLegalHoldOptions{VersionID: first.VersionID})
	switch {
	case held == nil && hold != nil && *hold == minio.LegalHoldEnabled:
		why += ", which a legal hold keeps"
		do = "lift the legal holds if they are not needed, then run the command again"
	case err == nil && mode != nil && until != nil:
		why += fmt.Sprintf(", which object lock keeps in %s mode until %s", *mode, until.Format("2006-01-02 15:04:05 MST"))
		do = "wait until then, then run the command again; in COMPLIANCE mode nobody can remove them earlier"
	default:
		why += ": " + first.Err.Error()
	}
	return outcome.Fail(what, why, do).Because(first.Err)
}

// Remove empties a bucket and removes it. One that is gone already is fine.
func (b *Bucket) Remove(ctx context.Context) error {
	if err := b.Empty(ctx, EmptyOptions{}); err != nil {
		return err
	}
	return b.drop(ctx)
}

func (b *Bucket) drop(ctx context.Context) error {
	err := b.objects.Client.RemoveBucket(ctx, b.Name)
	if err == nil || has(err, "NoSuchBucket") {
		return nil
	}
	what := fmt.Sprintf("the bucket %s was not removed", b.Name)
	if has(err, "BucketNotEmpty") {
		return outcome.Fail(what, "somebody put something into it at the same time", "see who works with it, then run the command again").Because(err)
	}
	return b.objects.Failed(what, err)
}

// Retire removes the estate's bucket at the end of its life, if it holds nothing
// but what goes with the estate: lock, proof, journals and images, which can be
// made again. The lock goes last, so that no other run begins before. Anything
// else (backups) is kept, with
// the bucket, and kept is true. With all nothing is kept but what object lock keeps.
func (s *Store) Retire(ctx context.Context, h *Held, all bool) (kept bool, err error) {
	things, err := s.everything(ctx, nil)
	if has(err, "NoSuchBucket") {
		h.end()
		return false, nil
	}
	if err != nil {
		return false, s.objects.CannotTell(fmt.Sprintf("what the estate's bucket %s holds could not be read", s.Name), err)
	}
	for _, v := range things {
		if !all && !disposable(v.Key) {
			return true, nil
		}
	}
	if err := s.Empty(ctx, EmptyOptions{Keep: func(key string) bool { return key == lockKey }}); err != nil {
		return false, err
	}
	h.Release(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forRelease) // the lock's own has ended with it
	defer cancel()
	err = s.objects.Client.RemoveBucket(ctx, s.Name)
	if has(err, "BucketNotEmpty") { // another run took the lock just now
		return true, nil
	}
	if err != nil && !has(err, "NoSuchBucket") {
		return false, s.objects.Failed(fmt.Sprintf("the estate's bucket %s was not removed", s.Name), err)
	}
	return false, nil
}

func disposable(key string) bool {
	return key == lockKey || key == proofKey || strings.HasPrefix(key, journalPrefix) || strings.HasPrefix(key, blueprint.ImagePrefix)
}
