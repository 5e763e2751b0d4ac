package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/scaleway"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/lifecycle"
	"github.com/minio/minio-go/v7/pkg/tags"
)

// Exists says whether the estate's bucket is there. A bucket of that name that
// is not the estate's is refused. It writes nothing.
func (s *Store) Exists(ctx context.Context) (bool, error) {
	state, err := s.look(ctx)
	return state == whole, err
}

// state is what there is under the bucket's name.
type state int

const (
	absent state = iota
	begun        // made, and the making not ended: no tag, nothing in it
	whole        // the estate's
)

// look reads whose a bucket is by its tags: one call that tells a bucket that
// does not exist from one that may not be read, each in object storage's words.
func (s *Store) look(ctx context.Context) (state, error) {
	what := fmt.Sprintf("the estate's bucket %s could not be looked at", s.Name)
	have, err := s.objects.Client.GetBucketTagging(ctx, s.Name)
	switch {
	case has(err, "NoSuchBucket"):
		return absent, nil
	case has(err, "AccessDenied"):
		return absent, s.unreadable(ctx, what, err)
	case has(err, "NoSuchTagSet"):
		return s.unmarked(ctx, what)
	case err != nil:
		return absent, s.objects.CannotTell(what, err)
	}
	switch owner, marked := have.ToMap()[markKey]; {
	case !marked && len(have.ToMap()) == 0:
		return s.unmarked(ctx, what)
	case !marked:
		return absent, s.foreign("it exists in this account and does not carry the mark "+markKey+"; whose it is is not known", s.otherName())
	case owner != s.o.Estate:
		return absent, s.foreign("it is marked as the estate "+owner+"'s", s.otherName())
	}
	return whole, nil
}

// unreadable says why a bucket's tags are refused: it is another account's, or the
// key lacks the right. The project's listing tells the one from the other, if the
// key may read that; else nothing is known.
func (s *Store) unreadable(ctx context.Context, what string, refused error) error {
	all, err := s.objects.Client.ListBuckets(ctx)
	if err != nil {
		return s.objects.CannotTell(what, err)
	}
	if slices.ContainsFunc(all, func(b minio.BucketInfo) bool { return b.Name == s.Name }) {
		return s.objects.CannotTell(what, refused)
	}
	return s.foreign("it may not be read and is not among the project's buckets: it is in another account or project, whose owner cannot be known",
		"choose another name with store.bucket in the file; if it is in this project, give the key's application the permission set ObjectStorageFullAccess").Because(refused)
}

// unmarked is a bucket without tags: one that a run made and was killed before it
// was done, if nothing is in it; somebody's, if there is. The tags are read once
// more, as another run may be just making it.
func (s *Store) unmarked(ctx context.Context, what string) (state, error) {
	empty, err := s.empty(ctx)
	if err != nil {
		return absent, s.objects.CannotTell(what, err)
	}
	if empty {
		return begun, nil
	}
	have, err := s.objects.Client.GetBucketTagging(ctx, s.Name)
	if err == nil && have.ToMap()[markKey] == s.o.Estate {
		return whole, nil
	}
	if err != nil && !has(err, "NoSuchTagSet") {
		return absent, s.objects.CannotTell(what, err)
	}
	return absent, s.foreign("it exists in this account, holds objects and does not carry the mark "+markKey+"="+s.o.Estate+"; whose it is is not known", s.otherName())
}

func (s *Store) otherName() string {
	return "choose another name with store.bucket in the file, or mark it yourself if it is the estate's for certain"
}

func (s *Store) foreign(why, do string) *outcome.Error {
	return outcome.Refuse(fmt.Sprintf("the bucket %s is not %s's", s.Name, s.o.Estate), why, do)
}

func (b *Bucket) empty(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for v := range b.objects.Client.Client.ListObjects(ctx, b.Name, minio.ListObjectsOptions{WithVersions: true, Recursive: true, MaxKeys: 1}) {
		return false, v.Err
	}
	return true, nil
}

// Ensure makes the bucket what it has to be: private, versioned, marked, and rid
// of uploads that were never ended. The mark comes last, so that a bucket that
// carries it is whole; a run that is killed before is continued by the next.
func (s *Store) Ensure(ctx context.Context) error {
	have, err := s.look(ctx)
	if err == nil && have == absent {
		have, err = s.create(ctx)
	}
	if err != nil {
		return err
	}
	if err := s.shut(ctx); err != nil {
		return err
	}
	if have == begun {
		return s.complete(ctx)
	}
	v, err := s.objects.Client.GetBucketVersioning(ctx, s.Name)
	if err != nil {
		return s.objects.CannotTell(fmt.Sprintf("whether the estate's bucket %s keeps versions could not be read", s.Name), err)
	}
	if v.Enabled() {
		return nil
	}
	s.o.Notice(fmt.Sprintf("the estate's bucket %s did not keep versions; it does again", s.Name))
	return s.complete(ctx)
}

// shut makes the bucket private again where it was opened to everybody. One that
// was just made may not be known everywhere yet; it is private.
func (s *Store) shut(ctx context.Context) error {
	access, err := s.objects.AccessTo(ctx, s.Name)
	switch {
	case has(err, "NoSuchBucket"):
		return nil
	case err != nil:
		return s.objects.CannotTell(fmt.Sprintf("whether the estate's bucket %s is private could not be read", s.Name), err)
	case access.Unread:
		s.o.Notice(scaleway.PolicyUnread(s.Name))
	}
	if access.Private() {
		return nil
	}
	if err := s.objects.Close(ctx, s.Name); err != nil {
		return s.objects.Failed(fmt.Sprintf("the estate's bucket %s is %s and was not closed", s.Name, access), err)
	}
	s.o.Notice(fmt.Sprintf("the estate's bucket %s was %s; it is private again", s.Name, access))
	return nil
}

// create makes the bucket. That it is taken is found out only now where it is in
// another region, and where somebody was faster it may be this estate's.
func (s *Store) create(ctx context.Context) (state, error) {
	err := s.objects.Client.MakeBucket(ctx, s.Name, minio.MakeBucketOptions{Region: s.objects.Region})
	switch {
	case err == nil:
		return begun, nil
	case !has(err, "BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
		return absent, s.objects.Failed(fmt.Sprintf("the estate's bucket %s was not made", s.Name), err)
	}
	have, looked := s.look(ctx)
	if looked == nil && have == absent {
		return absent, s.foreign("the name is taken and the bucket is not in "+s.objects.Region+"; whose it is is not known", s.otherName()).Because(err)
	}
	return have, looked
}

// forVisible is how long a bucket that was just made may not be known everywhere.
const forVisible = 20 * time.Second

func (s *Store) complete(ctx context.Context) error {
	mark, err := tags.NewTags(map[string]string{markKey: s.o.Estate}, false)
	if err != nil {
		return err
	}
	begun := time.Now()
	for _, set := range []func() error{
		func() error { return s.objects.Client.EnableVersioning(ctx, s.Name) },
		func() error { return s.objects.Client.SetBucketLifecycle(ctx, s.Name, tidy()) },
		func() error { return s.objects.Client.SetBucketTagging(ctx, s.Name, mark) },
	} {
		err := set()
		for has(err, "NoSuchBucket") && time.Since(begun) < forVisible && pause(ctx, 500*time.Millisecond) {
			err = set()
		}
		if err != nil {
			return s.objects.Failed(fmt.Sprintf("the estate's bucket %s was not made ready", s.Name), err)
		}
	}
	return nil
}

// tidy removes what a killed run leaves behind: half uploads, which are billed,
// and old versions of what is written over and over.
func tidy() *lifecycle.Configuration {
	rule := func(id, prefix string) lifecycle.Rule {
		return lifecycle.Rule{ID: id, Status: "Enabled", RuleFilter: lifecycle.Filter{Prefix: prefix}}
	}
	uploads := rule("abort half uploads", "")
	uploads.AbortIncompleteMultipartUpload.DaysAfterInitiation = 1
	rules := []lifecycle.Rule{uploads, rule("old locks", lockKey), rule("old states of journals", journalPrefix), rule("old images", blueprint.ImagePrefix)}
	for i := range rules[1:] {
		rules[1+i].NoncurrentVersionExpiration.NoncurrentDays = 1
	}
	return &lifecycle.Configuration{Rules: rules}
}

// pause waits, and says whether there is still reason to go on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
