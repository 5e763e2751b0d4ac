package scaleway

import (
	"context"
	"fmt"
	"maps"
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

// lookForBuckets lists the buckets and reads each once, those with a known name
// while the listing is under way. Where the listing and a reading contradict each
// other, odd says how.
func (c *Cloud) lookForBuckets(ctx context.Context) (out []*bucket, odd string, err error) {
	found := c.namedBuckets()
	known := map[string]*bucket{c.estate.BucketName(): nil}
	for _, b := range found {
		known[b.name] = b
	}
	var all []minio.BucketInfo
	named := len(found)
	if err := together(ctx, 1+named, func(ctx context.Context, i int) (err error) {
		if i < named {
			return c.lookAtBucket(ctx, found[i])
		}
		if all, err = c.objects.Client.ListBuckets(ctx); err != nil {
			return c.objects.CannotTell("the buckets could not be listed", err)
		}
		return nil
	}); err != nil {
		return nil, "", err
	}
	for _, listed := range all {
		b, seen := known[listed.Name]
		if !seen {
			b = &bucket{name: listed.Name}
			found = append(found, b)
		}
		if b != nil {
			b.listed, b.created = true, listed.CreationDate
		}
	}
	rest := found[named:]
	if err := together(ctx, len(rest), func(ctx context.Context, i int) error { return c.lookAtBucket(ctx, rest[i]) }); err != nil {
		return nil, "", err
	}
	for _, b := range found {
		if err := c.refusedTags(b); err != nil {
			return nil, "", err
		}
		switch {
		case b.there && !b.listed && b.taken == "":
			odd = fmt.Sprintf("the listing lacks the bucket %s, which answers to its name", b.name)
		case !b.there && b.listed:
			odd = fmt.Sprintf("the listing has the bucket %s, which does not answer to its name", b.name)
		}
		if b.there {
			out = append(out, b)
		}
	}
	return out, odd, nil
}

// namedBuckets are the file's and those that were met, each once.
func (c *Cloud) namedBuckets() (out []*bucket) {
	names := map[string]bool{}
	for _, b := range c.estate.Services.Buckets {
		names[b.Name] = true
	}
	c.metBuckets.Range(func(name, _ any) bool { names[name.(string)] = true; return true })
	delete(names, c.estate.BucketName())
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, &bucket{name: name})
	}
	return out
}

// refusedTags is a bucket whose tags may not be read. The key's project has it
// if it was listed, and it was the estate's if it was met before: then whose it
// is is unknown. Another's has the name otherwise.
func (c *Cloud) refusedTags(b *bucket) error {
	if b.refused == nil {
		return nil
	}
	_, met := c.metBuckets.Load(b.name)
	wanted := slices.ContainsFunc(c.estate.Services.Buckets, func(f estate.Bucket) bool { return f.Name == b.name })
	switch {
	case met, b.listed && wanted:
		return c.objects.CannotTell(fmt.Sprintf("whose the bucket %s is could not be read", b.name), b.refused)
	case b.listed:
		b.unread = true
	}
	b.taken = "it is in another account, whose owner is unknown, or this API key lacks the right to read it"
	return nil
}

// readBucket tells whose a bucket is, and how it is set where it is the estate's.
func (c *Cloud) readBucket(ctx context.Context, b *bucket) (exists bool, err error) {
	if err := c.lookAtBucket(ctx, b); err != nil {
		return b.there, err
	}
	return b.there, c.refusedTags(b)
}

// lookAtBucket is readBucket without a judgement of a bucket whose tags may not be
// read, for which it matters whether it is listed.
func (c *Cloud) lookAtBucket(ctx context.Context, b *bucket) error {
	have, err := c.objects.Client.GetBucketTagging(ctx, b.name)
	b.there = true
	switch {
	case objectCode(err, "NoSuchBucket"):
		b.there = false
		return nil
	case objectCode(err, "AccessDenied"):
		b.refused = err
		return nil
	case objectCode(err, "NoSuchTagSet"):
		have = nil
	case err != nil:
		return c.objects.CannotTell(fmt.Sprintf("the bucket %s could not be read", b.name), err)
	}
	if have != nil {
		b.marks = have.ToMap()
	}
	switch err = nil; {
	case len(b.marks) == 0:
		b.empty, err = c.emptyBucket(ctx, b.name)
	case b.ours(c.estate.Name):
		b.spec, b.hidden, err = c.bucketSettings(ctx, b.name)
		b.spec.Tags = usersOf(b.marks)
	}
	if objectCode(err, "NoSuchBucket") {
		b.there = false // it was being deleted and is gone now
		return nil
	}
	if err != nil {
		return c.objects.CannotTell(fmt.Sprintf("the bucket %s could not be read", b.name), err)
	}
	return nil
}

func (c *Cloud) emptyBucket(ctx context.Context, name string) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for v := range c.objects.Client.Client.ListObjects(ctx, name, minio.ListObjectsOptions{WithVersions: true, Recursive: true, MaxKeys: 1}) {
		return false, v.Err
	}
	return true, nil
}
