package store

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"sync"

	"bastide/internal/outcome"
	"bastide/internal/scaleway"

	"github.com/minio/minio-go/v7"
)

// PartSize is the size of every part but the last, in bytes. It is part of the
// file's ETag, and a rerun recognises the parts of an earlier run only if they
// were cut at the same places.
const PartSize = 8 << 20

// sending is how many parts are under way at once; each is in memory.
const sending = 3

// Upload writes the file of an image whose beginning is known last. Parts go out
// as they fill; the first one waits for the head, so that nothing that was not
// checked to the end can become an object. A part that an earlier run sent, as
// its MD5 says, is not sent again.
type Upload struct {
	s        *Store
	ctx      context.Context
	key, id  string
	headSize int
	had      map[int]minio.ObjectPart // of an earlier run

	head, first, now []byte
	parts            int // parts that were begun, the first one included
	slots            chan []byte
	under            sync.WaitGroup

	mu     sync.Mutex
	failed error
	sums   map[int][md5.Size]byte
	size   int64
	sent   int
	reused int
}

// StartImage begins to write the file of an image, or goes on with what an
// earlier run left of it. The body's first byte is for the offset headSize.
func (s *Store) StartImage(ctx context.Context, key string, headSize int) (*Upload, error) {
	id, had, err := s.resume(ctx, key)
	if err != nil {
		return nil, err
	}
	u := &Upload{s: s, ctx: ctx, key: key, id: id, headSize: headSize, had: had, sums: map[int][md5.Size]byte{}, parts: 1,
		first: make([]byte, 0, PartSize-headSize), slots: make(chan []byte, sending+1)}
	for range sending + 1 {
		u.slots <- nil // made when it is first needed
	}
	return u, nil
}

// Write takes the next bytes of the body.
func (u *Upload) Write(p []byte) (int, error) {
	taken := 0
	for len(p) > 0 {
		if err := u.err(); err != nil {
			return taken, err
		}
		if u.now == nil && len(u.first) < cap(u.first) {
			n := min(len(p), cap(u.first)-len(u.first))
			u.first = append(u.first, p[:n]...)
			p, taken = p[n:], taken+n
			continue
		}
		if u.now == nil {
			if err := u.room(); err != nil {
				return taken, err
			}
		}
		n := min(len(p), PartSize-len(u.now))
		u.now = append(u.now, p[:n]...)
		p, taken = p[n:], taken+n
		if len(u.now) == PartSize {
			u.flush()
		}
	}
	return taken, nil
}

// room waits for a buffer.
func (u *Upload) room() error {
	select {
	case b := <-u.slots:
		if b == nil {
			b = make([]byte, 0, PartSize)
		}
		u.now = b[:0]
		return nil
	case <-u.ctx.Done():
		return u.ctx.Err()
	}
}

// flush sends the part that is being filled.
func (u *Upload) flush() {
	u.parts++
	n, data := u.parts, u.now
	u.now = nil
	u.under.Go(func() {
		if !u.send(n, data) {
			data = nil // it may still be read
		}
		u.slots <- data
	})
}

// Head takes the beginning of the file. Nothing is sent before Finish.
func (u *Upload) Head(head []byte) error {
	if len(head) > u.headSize || len(head) < u.headSize && len(u.first) > 0 {
		return fmt.Errorf("the head has %d bytes, not %d", len(head), u.headSize)
	}
	u.head = bytes.Clone(head)
	return u.err()
}

func (u *Upload) err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.failed == nil {
		return u.ctx.Err()
	}
	return u.failed
}

// send sends a part, unless the store has it already.
func (u *Upload) send(n int, data []byte) bool {
	sum := md5.Sum(data) //nolint:gosec // S3's own word for a part's content
	had, there := u.had[n]
	reuse := there && had.Size == int64(len(data)) && unquoted(had.ETag) == hex.EncodeToString(sum[:])
	var err error
	if !reuse && u.err() == nil {
		err = u.put(n, data, sum)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sums[n], u.size = sum, u.size+int64(len(data))
	if reuse {
		u.reused++
	} else {
		u.sent++
	}
	if err != nil && u.failed == nil {
		u.failed = u.s.objects.Failed(fmt.Sprintf("part %d of %s was not written to the bucket %s", n, u.key, u.s.Name), err)
	}
	return err == nil
}

// put sends a part. Its MD5 is signed and the store checks it, as bastide does with
// what the store says; a SHA-256 beside it would cost both sides as much again, and
// the whole file has one.
func (u *Upload) put(n int, data []byte, sum [md5.Size]byte) error {
	part, err := u.s.objects.Client.PutObjectPart(scaleway.Sending(u.ctx, data), u.s.Name, u.key, u.id, n, bytes.NewReader(data), int64(len(data)), minio.PutObjectPartOptions{
		Md5Base64: base64.StdEncoding.EncodeToString(sum[:]), DisableContentSha256: true})
	if err == nil && unquoted(part.ETag) != hex.EncodeToString(sum[:]) {
		err = outcome.Fail(fmt.Sprintf("part %d of %s did not arrive as it was sent", n, u.key), fmt.Sprintf("the store says that its MD5 is %s, it is %x", unquoted(part.ETag), sum),
			"run the command again; if it happens again, see what changes data between here and "+u.s.Name)
	}
	return err
}

// Finish sends what is left, writes down what the file is, and puts it together.
// What it returns was read back from the store.
func (u *Upload) Finish(ctx context.Context, i Image) (*Image, error) {
	if u.head == nil {
		return nil, u.end(fmt.Errorf("the head of %s is not known", u.key))
	}
	if len(u.now) > 0 {
		u.flush()
	}
	u.under.Wait()
	if err := u.err(); err != nil {
		return nil, err
	}
	u.send(1, append(u.head, u.first...))
	if err := u.err(); err != nil {
		return nil, err
	}
	i.Key, i.Size, i.ETag = u.key, u.size, u.etag()
	if err := u.s.proveImage(ctx, i); err != nil {
		return nil, u.s.objects.Failed(fmt.Sprintf("what %s is was not written to the bucket %s", u.key, u.s.Name), err)
	}
	if err := u.complete(ctx); err != nil {
		return nil, err
	}
	found, unproven, err := u.s.image(ctx, u.key)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, outcome.Fail(fmt.Sprintf("the image %s did not arrive as it was sent", u.key), orWord(unproven, "it is not there"), "run the command again: it is made anew")
	}
	u.tidy(ctx)
	return found, nil
}

// Sent says how many parts were sent, and how many an earlier run had sent.
func (u *Upload) Sent() (sent, reused int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.sent, u.reused
}

// Stop ends an upload that will not be finished. What was sent stays for the next
// run, unless the content turned out to be wrong; then it is thrown away.
func (u *Upload) Stop(ctx context.Context, keep bool) error {
	_ = u.end(context.Canceled)
	if keep {
		return nil
	}
	err := u.s.objects.Client.AbortMultipartUpload(ctx, u.s.Name, u.key, u.id)
	if err != nil && !has(err, "NoSuchUpload") {
		return u.s.objects.Failed(fmt.Sprintf("the half upload of %s was not removed", u.key), err)
	}
	return nil
}

// end lets no other part go out and waits for those under way.
func (u *Upload) end(why error) error {
	u.mu.Lock()
	if u.failed == nil {
		u.failed = why
	}
	u.mu.Unlock()
	u.under.Wait()
	return why
}

func orWord(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}
