package scaleway

import (
	"context"
	"fmt"
	"slices"
	"time"

	"bastide/internal/estate"
	"bastide/internal/outcome"

	"github.com/minio/minio-go/v7"
)

// findBuckets reads the buckets that can be of the estate: those that the key's
// project has in the region, and by name the file's, which another customer may
// have, and those that were the estate's when they were read before. The
// estate's own bucket is no step and is left out.
//
// A listing does not say how long it is, so it is checked against the readings
// by name: what only one of them knows is looked for again while a reading may
// lag, and then nothing is known.
func (c *Cloud) findBuckets(ctx context.Context) ([]*bucket, error) {
	if c.objects == nil {
		return nil, errNoObjects
	}
	begun := time.Now()
	for {
		found, odd, err := c.lookForBuckets(ctx)
		if err != nil {
			return nil, err
		}
		if odd == "" {
			for _, b := range found {
				if b.ours(c.estate.Name) {
					c.metBuckets.Store(b.name, true)
				}
			}
			return found, nil
		}
		if time.Since(begun) > c.pace.Settle {
			return nil, outcome.CannotTell("the buckets could not be listed", odd+", so the listing may lack others too", readAgain)
		}
		if err := sleep(ctx, max(c.pace.First, c.pace.Settle/5)); err != nil {
			return nil, err
		}
	}
}

// lookForBuckets lists the buckets and reads each once. Where the listing and a
// reading contradict each other, odd says how.
func (c *Cloud) lookForBuckets(ctx context.Context) (out []*bucket, odd string, err error) {
	all, err := c.objects.Client.ListBuckets(ctx)
	if err != nil {
		return nil, "", c.objects.CannotTell("the buckets could not be listed", err)
	}
	var found []*bucket
	known := map[string]bool{c.estate.BucketName(): true}
	add := func(b *bucket) {
		if !known[b.name] {
			known[b.name] = true
			found = append(found, b)
		}
	}
	for _, b := range all {
		add(&bucket{name: b.Name, created: b.CreationDate, listed: true})
	}
	for _, b := range c.estate.Services.Buckets {
		add(&bucket{name: b.Name})
	}
	c.metBuckets.Range(func(name, _ any) bool { add(&bucket{name: name.(string)}); return true })
	there := make([]bool, len(found))
	if err := together(ctx, len(found), func(ctx context.Context, i int) (err error) {
		there[i], err = c.readBucket(ctx, found[i])
		return err
	}); err != nil {
		return nil, "", err
	}
	for i, b := range found {
		switch {
		case there[i] && !b.listed && b.taken == "":
			odd = fmt.Sprintf("the listing lacks the bucket %s, which answers to its name", b.name)
		case !there[i] && b.listed:
			odd = fmt.Sprintf("the listing has the bucket %s, which does not answer to its name", b.name)
		}
		if there[i] {
			out = append(out, b)
		}
	}
	return out, odd, nil
}

// refusedTags is a bucket whose tags may not be read. The key's project has it
// if it was listed, and it was the estate's if it was met before: then whose it
// is is unknown. Another's has the name otherwise.
func (c *Cloud) refusedTags(b *bucket, err error) error {
	_, met := c.metBuckets.Load(b.name)
	wanted := slices.ContainsFunc(c.estate.Services.Buckets, func(f estate.Bucket) bool { return f.Name == b.name })
	switch {
	case met, b.listed && wanted:
		return c.objects.CannotTell(fmt.Sprintf("whose the bucket %s is could not be read", b.name), err)
	case b.listed:
		b.unread = true
	}
	b.taken = "it is in another account, whose owner is unknown, or this API key lacks the right to read it"
	return nil
}

// readBucket tells whose a bucket is, and how it is set where it is the estate's.
func (c *Cloud) readBucket(ctx context.Context, b *bucket) (exists bool, err error) {
	have, err := c.objects.Client.GetBucketTagging(ctx, b.name)
	switch {
	case objectCode(err, "NoSuchBucket"):
		return false, nil
	case objectCode(err, "AccessDenied"):
		return true, c.refusedTags(b, err)
	case objectCode(err, "NoSuchTagSet"):
		have = nil
	case err != nil:
		return false, c.objects.CannotTell(fmt.Sprintf("the bucket %s could not be read", b.name), err)
	}
	if have != nil {
		b.marks = have.ToMap()
	}
	switch {
	case len(b.marks) == 0:
		b.empty, err = c.emptyBucket(ctx, b.name)
	case b.marks[bucketEstate] == c.estate.Name:
		b.spec, err = c.bucketSettings(ctx, b.name)
		b.spec.Tags = usersOf(b.marks)
	}
	if objectCode(err, "NoSuchBucket") {
		return false, nil // it was being deleted and is gone now
	}
	if err != nil {
		err = c.objects.CannotTell(fmt.Sprintf("the bucket %s could not be read", b.name), err)
	}
	return true, err
}

func (c *Cloud) emptyBucket(ctx context.Context, name string) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for v := range c.objects.Client.Client.ListObjects(ctx, name, minio.ListObjectsOptions{WithVersions: true, Recursive: true, MaxKeys: 1}) {
		return false, v.Err
	}
	return true, nil
}
