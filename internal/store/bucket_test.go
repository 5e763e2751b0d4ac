package store

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/tags"

	"bastide/internal/outcome"
)

const otherProject = "22222222-2222-4222-8222-222222222222"

// made makes a bucket as somebody else would: with what is given of a tag set and
// an object.
func (p *place) made(project string, mark map[string]string, key string) {
	p.Helper()
	c := p.objects(project).Client
	if err := c.MakeBucket(p.Context(), "bastide-staging", minio.MakeBucketOptions{Region: "fr-par"}); err != nil {
		p.Fatal(err)
	}
	if mark != nil {
		set, err := tags.NewTags(mark, false)
		if err != nil {
			p.Fatal(err)
		}
		if err := c.SetBucketTagging(p.Context(), "bastide-staging", set); err != nil {
			p.Fatal(err)
		}
	}
	if key != "" {
		if _, err := c.Client.PutObject(p.Context(), "bastide-staging", key, strings.NewReader("x"), 1, minio.PutObjectOptions{}); err != nil {
			p.Fatal(err)
		}
	}
}

// A bucket of the estate's name that is not the estate's is refused with what is
// known of its owner, and nothing is written into it. One that a killed run left
// half made is finished.
func TestWhoseTheBucketIs(t *testing.T) {
	for name, c := range map[string]struct {
		project string
		mark    map[string]string
		key     string
		says    []string // nil: it is taken for the estate's
	}{
		"another account's":                {otherProject, nil, "", []string{"in another account", "cannot be known", "store.bucket"}},
		"without a mark":                   {project, nil, "photo.jpg", []string{"does not carry the mark", "whose it is is not known"}},
		"with other tags":                  {project, map[string]string{"team": "web"}, "", []string{"does not carry the mark"}},
		"another estate's":                 {project, map[string]string{markKey: "production"}, "", []string{"marked as the estate production's"}},
		"half made":                        {project, nil, "", nil},
		"whole":                            {project, map[string]string{markKey: "staging"}, "backup", nil},
		"whole, with somebody's tags too":  {project, map[string]string{markKey: "staging", "team": "web"}, "", nil},
		"of the same name in capital mark": {project, map[string]string{markKey: "Staging"}, "", []string{"the estate Staging's"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.made(c.project, c.mark, c.key)
			before := len(p.writes())
			s := p.store(Terms{})
			_, looked := s.Current(t.Context())
			h, err := s.Acquire(t.Context(), request)
			if c.says != nil {
				wantError(t, looked, outcome.Refused, c.says...)
				wantError(t, err, outcome.Refused, append(c.says, "bastide-staging")...)
				if after := p.writes(); len(after) != before {
					t.Errorf("it was written to: %v", after[before:])
				}
				return
			}
			if err != nil || looked != nil {
				t.Fatal(err, looked)
			}
			h.Release(t.Context())
		})
	}
}

// The bucket is made private, versioned, marked and tidy, by one run of several
// that begin at once, in whatever order; and a name that is taken in another
// region is refused.
func TestTheBucketIsMade(t *testing.T) {
	p := newPlace(t)
	s := p.store(Terms{})
	if there, err := s.Exists(t.Context()); there || err != nil || len(p.writes()) != 0 {
		t.Fatalf("%v, %v, %v", there, err, p.writes())
	}
	errs := make(chan error, 5)
	for range cap(errs) {
		go func() { errs <- p.store(Terms{}).Ensure(t.Context()) }()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	c := s.objects.Client
	v, err := c.GetBucketVersioning(t.Context(), s.Name)
	if err != nil || !v.Enabled() {
		t.Errorf("versions: %v, %v", v, err)
	}
	set, err := c.GetBucketTagging(t.Context(), s.Name)
	if err != nil || set.ToMap()["bastide:estate"] != "staging" {
		t.Errorf("mark: %v, %v", set, err)
	}
	rules, err := c.GetBucketLifecycle(t.Context(), s.Name)
	if err != nil || len(rules.Rules) != 4 || rules.Rules[0].AbortIncompleteMultipartUpload.DaysAfterInitiation != 1 {
		t.Errorf("rules: %+v, %v", rules, err)
	}
	// What was made by hand since is made right again.
	if err := c.SuspendVersioning(t.Context(), s.Name); err != nil {
		t.Fatal(err)
	}
	if err := s.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v, err := c.GetBucketVersioning(t.Context(), s.Name); err != nil || !v.Enabled() || !strings.Contains(p.heard(), "did not keep versions") {
		t.Errorf("versions: %v, %v, %s", v, err, p.heard())
	}
}

// A store that ignores conditions gives the lock to everybody. It is refused, and
// what was written to find out is taken back.
func TestAStoreThatIgnoresConditionsIsRefused(t *testing.T) {
	p := newPlace(t)
	p.faults(`{store: {conditionsIgnored: true}}`)
	s := p.store(Terms{})
	_, err := s.Acquire(t.Context(), request)
	wantError(t, err, outcome.Refused, "does not enforce conditional writes", "bastide-staging", "SCW_S3_ENDPOINT")
	if there, err := s.Exists(t.Context()); there || err != nil {
		t.Errorf("the bucket that was made to find out is left: %v, %v", there, err)
	}
	// It is found out each time: a store that was good may be another one now.
	p.faults(`{}`)
	p.acquire(s).Release(t.Context())
	p.faults(`{store: {conditionsIgnored: true}}`)
	_, err = s.Acquire(t.Context(), request)
	wantError(t, err, outcome.Refused, "does not enforce conditional writes")
	if got := p.keys(s.Bucket); slices.Contains(got, lockKey) {
		t.Errorf("the bucket holds %v", got)
	}
}

// Field report 59: stores that do not know x-amz-checksum-* and trailing
// checksums answer 400. Nothing that bastide does sends them; content is checked
// by a digest of its own.
func TestFieldReport59StoresWithoutChecksums(t *testing.T) {
	p := newPlace(t)
	p.faults(`{store: {rejectChecksumHeaders: true}}`)
	s := p.store(Terms{})
	h := p.acquire(s)
	h.renew(t.Context())
	if err := h.Err(); err != nil || h.lock.Renewed != 1 {
		t.Errorf("renewed %d times: %v", h.lock.Renewed, err)
	}
	j := s.Journal(t.Context(), h, "bastide up envs/staging")
	j.Close(t.Context(), nil)
	if p.heard() != "" {
		t.Errorf("told: %s", p.heard())
	}
	if _, err := s.get(t.Context(), j.key); err != nil {
		t.Error(err)
	}
	if kept, err := s.Retire(t.Context(), h, false); kept || err != nil {
		t.Errorf("%v, %v", kept, err)
	}

	// What was changed on its way is not taken for what was written.
	p.faults(`{}`)
	if err := s.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := s.objects.Client.Client
	if _, err := c.PutObject(t.Context(), s.Name, lockKey, bytes.NewReader([]byte(`{"id":"x"}`)), 10, minio.PutObjectOptions{UserMetadata: map[string]string{digestKey: strings.Repeat("0", 64)}}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Current(t.Context())
	wantError(t, err, outcome.Unknown, "lock.json", "digest")
}

// A key that may not use object storage is told which right it lacks.
func TestAKeyWithoutTheRight(t *testing.T) {
	p := newPlace(t)
	p.faults(`{http: [{method: PUT, path: "/bastide-staging", status: 403}]}`)
	_, err := p.store(Terms{}).Acquire(t.Context(), request)
	wantError(t, err, outcome.Failed, "was not made", "ObjectStorageFullAccess", "SCW_SECRET_KEY")
}

// Whatever happens to a call, the lock is held by one and nothing is left of it;
// only what lasts beyond all patience is an error, and no error is a lie about
// what exists.
func TestTroubleInObjectStorage(t *testing.T) {
	html := `status: 400, body: "BadRequest <html><body>try later</body></html>", headers: {Content-Type: text/html}`
	for name, trouble := range map[string]string{
		"503": "status: 503", "429": "status: 429", "409": "status: 409", "500 without XML": `status: 500, body: ""`, "HTML 400": html,
		"HTML 200":       `status: 200, body: "<html><body>log in</body></html>", headers: {Content-Type: text/html}`,
		"HTML 404":       `status: 404, body: "<html>no such page</html>", headers: {Content-Type: text/html}`,
		"404 of nobody":  `status: 404, body: ""`,
		"cut before":     "drop: true",
		"lost answer":    "applyThenDrop: true",
		"half an answer": "truncate: 20",
		"a hang":         "hang: true",
		"a late answer":  "delay: 120s",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			for more := true; more; calls++ {
				nth := calls + 1
				t.Run(strconv.Itoa(nth), func(t *testing.T) {
					more = false
					p := newPlace(t) // a call that is late must not come to the next one's region
					s := p.store(Terms{})
					p.faults(`{http: [{path: "~^/bastide-staging", nth: ` + strconv.Itoa(nth) + `, ` + trouble + `}]}`)
					h := p.acquire(s)
					h.renew(t.Context())
					if err := h.Err(); err != nil {
						t.Errorf("call %d: %v", nth, err)
					}
					if _, err := p.store(Terms{}).Acquire(t.Context(), request); err == nil {
						t.Errorf("call %d: two hold the lock", nth)
					}
					h.Release(t.Context())
					if kept, err := s.Retire(t.Context(), p.acquire(s), false); kept || err != nil {
						t.Errorf("call %d: %v, %v", nth, kept, err)
					}
					if there, err := s.Exists(t.Context()); there || err != nil {
						t.Errorf("call %d: the bucket is left: %v", nth, err)
					}
					more = p.struck()
				})
			}
			t.Logf("%d calls", calls-1)
		})
	}
}

func TestExistsDoesNotGuess(t *testing.T) {
	t.Parallel() // it waits for patience to end
	p := newPlace(t)
	o := p.objects(project)
	s := New(Options{Objects: o, Bucket: "bastide-staging", Estate: "staging", Notice: p.notice})
	p.faults(`{http: [{path: "~^/bastide-staging", status: 404, body: "<html></html>", headers: {Content-Type: text/html}}]}`)
	_, err := s.Exists(t.Context())
	wantError(t, err, outcome.Unknown, "bastide-staging", "none of object storage's")
}

// The estate's bucket is private again with the next run that writes.
func TestOpenedBucketIsClosed(t *testing.T) {
	const open = `{"Version":"2023-04-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"bastide-staging/*"}]}`
	p := newPlace(t)
	s := p.store(Terms{})
	if err := s.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := p.objects(project).Client
	if err := c.PutBucketPolicy(t.Context(), s.Name, open); err != nil {
		t.Fatal(err)
	}
	if err := s.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if policy, err := c.Client.GetBucketPolicy(t.Context(), s.Name); err != nil || policy != "" {
		t.Errorf("the policy is %q, %v", policy, err)
	}
	if !strings.Contains(p.heard(), "public: a policy lets everybody in; it is private again") {
		t.Errorf("heard %q", p.heard())
	}
	before := len(p.writes())
	if err := s.Ensure(t.Context()); err != nil || len(p.writes()) != before {
		t.Errorf("a private bucket: %v, wrote %v", err, p.writes()[before:])
	}
}
