package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"bastide/internal/image"
	"bastide/internal/image/fetch"
)

// child is what this program does in another role.
func child(ctx context.Context, role string, args []string) error {
	switch role {
	case "store":
		return serve(ctx, args[0])
	case "convert":
		return convert(ctx, args[0], nowhere{})
	case "upload":
		up, err := newUpload(ctx, args[1])
		if err != nil {
			return err
		}
		return convert(ctx, args[0], up)
	}
	return fmt.Errorf("no role %q", role)
}

func convert(ctx context.Context, file string, to image.Sink) error {
	src, err := image.Open(ctx, file, nil, fetch.Options{})
	if err != nil {
		return err
	}
	defer src.Close()
	_, err = image.Convert(ctx, src, to, image.Options{})
	return err
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Head([]byte) error           { return nil }

// upload is a multipart upload whose first part waits for the head.
type upload struct {
	ctx   context.Context
	core  *minio.Core
	id    string
	first []byte
	part  []byte
	parts []minio.CompletePart
	group *errgroup.Group
	free  chan []byte // buffers of parts that were sent
}

const (
	partSize = 8 << 20
	parallel = 3
	key      = "one-pass.qcow2"
)

func newUpload(ctx context.Context, url string) (*upload, error) {
	core, err := client(url)
	if err != nil {
		return nil, err
	}
	id, err := core.NewMultipartUpload(ctx, bucket, key, minio.PutObjectOptions{})
	if err != nil {
		return nil, err
	}
	u := &upload{ctx: ctx, core: core, id: id, part: make([]byte, image.HeadSize, partSize),
		parts: make([]minio.CompletePart, 0, 10_000), free: make(chan []byte, parallel+1)}
	u.group, u.ctx = errgroup.WithContext(ctx)
	u.group.SetLimit(parallel)
	return u, nil
}

func (u *upload) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		n := min(len(p), cap(u.part)-len(u.part))
		u.part = append(u.part, p[:n]...)
		p = p[n:]
		if len(u.part) == cap(u.part) {
			u.flush()
		}
	}
	return total, u.ctx.Err()
}

func (u *upload) flush() {
	part := u.part
	select {
	case u.part = <-u.free:
	default:
		u.part = make([]byte, 0, partSize)
	}
	u.parts = append(u.parts, minio.CompletePart{PartNumber: len(u.parts) + 1})
	if len(u.parts) == 1 {
		u.first = part
		return
	}
	u.send(len(u.parts), part)
}

func (u *upload) send(number int, part []byte) {
	slot := &u.parts[number-1]
	u.group.Go(func() error {
		sent, err := u.core.PutObjectPart(u.ctx, bucket, key, u.id, number, bytes.NewReader(part), int64(len(part)), minio.PutObjectPartOptions{})
		slot.ETag = sent.ETag
		if number != 1 {
			u.free <- part[:0]
		}
		return err
	})
}

func (u *upload) Head(head []byte) error {
	if len(u.part) > 0 {
		u.flush()
	}
	copy(u.first, head)
	u.send(1, u.first)
	if err := u.group.Wait(); err != nil {
		return err
	}
	_, err := u.core.CompleteMultipartUpload(context.WithoutCancel(u.ctx), bucket, key, u.id, u.parts, minio.PutObjectOptions{})
	return err
}

var _ io.Writer = (*upload)(nil)
