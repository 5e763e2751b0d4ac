package scaleway

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/tags"
)

// The marks of a bucket are tags with a key and a value.
var (
	bucketEstate = strings.TrimSuffix(blueprint.TagEstate, "=")
	bucketStep   = strings.TrimSuffix(blueprint.TagStep, "=")
)

// bucket is a bucket of the application's kind: with its tags, and, where it is
// the estate's, with the settings that bastide makes.
type bucket struct {
	name    string
	created time.Time
	listed  bool   // the project's listing of buckets has it
	there   bool   // it answers to its name
	refused error  // why its tags may not be read
	taken   string // why it cannot be read: it is somebody else's
	unread  bool   // the project has it, and whose it is may not be read
	hidden  bool   // it is the estate's, and its policy may not be read
	marks   map[string]string
	empty   bool // nothing is in it; asked only of one without tags
	spec    blueprint.Bucket
}

// usersOf leaves out bastide's own tags.
func usersOf(marks map[string]string) map[string]string {
	out := maps.Clone(marks)
	delete(out, bucketEstate)
	delete(out, bucketStep)
	return out
}

func (b *bucket) ours(name string) bool { return b.marks[bucketEstate] == name }

// unfinished says that a bucket can be one that a run made and was killed before
// it could mark it.
func (b *bucket) unfinished() bool { return b.taken == "" && len(b.marks) == 0 && b.empty }

// strange says why a bucket is not the estate's.
func (c *Cloud) bucketStrange(b *bucket) string {
	switch {
	case b.taken != "":
		return fmt.Sprintf("the name %s is taken: %s; names of buckets are unique among all customers, so choose another in services.buckets", b.name, b.taken)
	case b.marks[bucketEstate] != "":
		return fmt.Sprintf("the bucket %s is marked as the estate %s's; choose another name in services.buckets", b.name, b.marks[bucketEstate])
	}
	return fmt.Sprintf("the bucket %s exists in this account without the estate's mark; to hand it over, give it the tags %s=%s and %s=%s/%s", b.name,
		bucketEstate, c.estate.Name, bucketStep, blueprint.KindBucket, b.name)
}

func (r *reader) buckets() {
	for _, b := range r.f.buckets {
		step := string(blueprint.KindBucket) + "/" + b.name
		switch {
		case b.unread:
			what := "the tags of the bucket " + b.name
			r.inv.Unread = append(r.inv.Unread, what)
			r.inv.Warnings = append(r.inv.Warnings, fmt.Sprintf("the API key may not read %s, so whether it is the estate's is not known", what))
		case b.ours(r.estate.Name):
			if b.hidden {
				r.inv.Warnings = append(r.inv.Warnings, PolicyUnread(b.name))
			}
			r.add(Item{Kind: blueprint.KindBucket, Step: step, Name: b.name, CloudID: b.name, Settled: true, Created: b.created, Spec: b.spec})
		case b.unfinished():
			r.inv.Warnings = append(r.inv.Warnings, fmt.Sprintf("the bucket %s is there, empty and without any tag, as a run leaves it that was killed: `up` makes it the estate's", b.name))
		default:
			r.inTheWay(step, r.bucketStrange(b))
		}
	}
}

// applyBucket makes a bucket, marks it, and sets what differs. The mark comes
// first, so that a bucket with content is never without it.
func (c *Cloud) applyBucket(ctx context.Context, j job, want blueprint.Bucket) (plan.Observed, error) {
	if c.objects == nil {
		return plan.Observed{}, errNoObjects
	}
	b := &bucket{name: j.step.Name}
	exists, err := c.readBucket(ctx, b)
	if err == nil && !exists {
		err = c.makeBucket(ctx, b)
	}
	if err != nil {
		return plan.Observed{}, err
	}
	if !b.ours(c.estate.Name) && !b.unfinished() {
		return plan.Observed{}, outcome.Fail(fmt.Sprintf("the bucket %s could not be made", b.name), c.bucketStrange(b), "then run the command again")
	}
	if !maps.Equal(usersOf(b.marks), orEmpty(want.Tags)) || !b.ours(c.estate.Name) || b.marks[bucketStep] != j.step.ID {
		marks := maps.Clone(orEmpty(want.Tags))
		marks[bucketEstate], marks[bucketStep] = c.estate.Name, j.step.ID
		set, err := tags.NewTags(marks, false)
		if err != nil {
			return plan.Observed{}, outcome.Fail(fmt.Sprintf("the tags of the bucket %s cannot be set", b.name), err.Error(), "correct services.buckets[].tags")
		}
		if err := c.onBucket(ctx, b.name, "marked", func() error { return c.objects.Client.SetBucketTagging(ctx, b.name, set) }); err != nil {
			return plan.Observed{}, err
		}
	}
	if err := c.correctBucket(ctx, b.name, b.spec, want); err != nil {
		return plan.Observed{}, err
	}
	return j.done(b.name, "", present, want), nil
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// makeBucket makes a bucket. That the name is taken may be found out only now,
// where the bucket is in another region.
func (c *Cloud) makeBucket(ctx context.Context, b *bucket) error {
	err := c.objects.Client.MakeBucket(ctx, b.name, minio.MakeBucketOptions{Region: c.objects.Region})
	switch {
	case err == nil:
		b.empty, b.spec.Versioning, b.spec.Access = true, versioningOff, blueprint.AccessPrivate
		return nil
	case !objectCode(err, "BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
		return c.objects.Failed(fmt.Sprintf("the bucket %s was not made", b.name), err)
	}
	// Made by a call whose answer was lost, perhaps.
	exists, looked := c.readBucket(ctx, b)
	if looked == nil && !exists {
		b.taken = "it is not in " + c.objects.Region + ", and its owner is unknown"
		return nil
	}
	return looked
}

// onBucket makes a change in a bucket, which right after its creation may not be
// known everywhere.
func (c *Cloud) onBucket(ctx context.Context, name, what string, change func() error) error {
	begun := time.Now()
	for {
		err := change()
		waited := time.Since(begun)
		if err == nil {
			return nil
		}
		if !objectCode(err, "NoSuchBucket") || waited > forVisible || sleep(ctx, c.pace.next(waited)) != nil {
			return c.objects.Failed(fmt.Sprintf("the bucket %s could not be %s", name, what), err)
		}
	}
}

// removeBucket removes a bucket that was emptied before.
func (c *Cloud) removeBucket(ctx context.Context, it Item) error {
	err := c.objects.Client.RemoveBucket(ctx, it.Name)
	switch {
	case err == nil, objectCode(err, "NoSuchBucket"):
		return nil
	case objectCode(err, "BucketNotEmpty"):
		return outcome.Fail(fmt.Sprintf("the bucket %s was not removed", it.Name), "it holds objects, old versions of some, or uploads that were not ended", "run the command again").Because(err)
	}
	return c.objects.Failed(fmt.Sprintf("the bucket %s was not removed", it.Name), err)
}

// objectCode says whether an error of object storage has one of the codes.
func objectCode(err error, codes ...string) bool {
	have := ObjectCode(err)
	for _, c := range codes {
		if err != nil && have == c {
			return true
		}
	}
	return false
}

// errNoObjects is what there is to say when nothing says where object storage is.
var errNoObjects = outcome.CannotTell("object storage cannot be reached", "the Scaleway API is pointed elsewhere, and nothing says where object storage is then", "set SCW_S3_ENDPOINT as well")
