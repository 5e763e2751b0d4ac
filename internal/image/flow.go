package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"bastide/internal/image/unpack"
)

// intake counts what is read, hashes it if that is asked for, and ends when ctx does.
type intake struct {
	ctx  context.Context
	r    io.Reader
	size int64
	hash hash.Hash // nil if it is not wanted
}

func newIntake(ctx context.Context, r io.Reader, hashed bool) *intake {
	in := &intake{ctx: ctx, r: r}
	if hashed {
		in.hash = sha256.New()
	}
	return in
}

func (in *intake) Read(p []byte) (int, error) {
	if err := in.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := in.r.Read(p)
	in.size += int64(n)
	if in.hash != nil {
		_, _ = in.hash.Write(p[:n])
	}
	return n, err
}

func (in *intake) digest() string {
	if in.hash == nil {
		return ""
	}
	return digest(in.hash)
}

func digest(h hash.Hash) string { return "sha256:" + hex.EncodeToString(h.Sum(nil)) }

// outlet gives the sink what is written, and hashes it at the same time.
type outlet struct {
	sink   Sink
	hash   hash.Hash
	hashes chan []byte
	hashed chan struct{}
}

func newOutlet(sink Sink) *outlet {
	o := &outlet{sink: sink, hash: sha256.New(), hashes: make(chan []byte), hashed: make(chan struct{})}
	go func() {
		for p := range o.hashes {
			_, _ = o.hash.Write(p)
			o.hashed <- struct{}{}
		}
	}()
	return o
}

func (o *outlet) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	o.hashes <- p
	n, err := o.sink.Write(p)
	<-o.hashed // p is the writer's again
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}

// finish gives the sink the head. The digest is that of the body and then the head.
func (o *outlet) finish(head []byte) (string, error) {
	_, _ = o.hash.Write(head)
	return digest(o.hash), o.sink.Head(head)
}

func (o *outlet) close() { close(o.hashes) }

// upTo reads n bytes, or all there are.
func upTo(r io.Reader, n int) ([]byte, error) {
	p := make([]byte, n)
	got, err := fill(r, p)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return p[:got], err
}

// What is read ahead: one block is filled while another is written, and one waits.
const (
	blockSize = 512 << 10
	blocks    = 3
)

// feed reads r to its end in blocks, ahead of take, which must not keep them and is
// given zeros that follow a block as a number, where r has them so. When it returns,
// r is not being read any more; after an error of take it therefore waits for the
// read that is under way.
func feed(r io.Reader, take func(p []byte, zeros int64) error) error {
	if b, ok := r.(unpack.Blocks); ok { // it reads ahead by itself
		return blockwise(b, take)
	}
	free, full := make(chan []byte, blocks), make(chan []byte, blocks)
	quit := make(chan struct{})
	for range blocks {
		free <- make([]byte, blockSize)
	}
	var broken error // to be read when full is closed
	go func() {
		defer close(full)
		for {
			var p []byte
			select {
			case p = <-free:
			case <-quit:
				return
			}
			n, err := fill(r, p)
			if n > 0 {
				full <- p[:n]
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					broken = err
				}
				return
			}
		}
	}()
	var err error
	for p := range full {
		if err != nil {
			continue
		}
		if err = take(p, 0); err != nil {
			close(quit)
			continue
		}
		free <- p[:blockSize]
	}
	if err != nil {
		return err
	}
	return broken
}

func blockwise(r unpack.Blocks, take func(p []byte, zeros int64) error) error {
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = take(b.Data, b.Zeros)
		r.Free(b)
		if err != nil {
			return err
		}
	}
}

// fill is io.ReadFull that leaves the source's errors as they are: an unexpected
// end that a source reports is not the end.
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = r.Read(p[n:])
		n += k
	}
	return n, err
}

// randomAccess is the source as something that can be read anywhere, nil if it cannot.
func randomAccess(src io.Reader) io.ReaderAt {
	if r, ok := src.(RandomAccess); ok {
		return r.At()
	}
	return nil
}

func lengthOf(src io.Reader) int64 {
	if r, ok := src.(interface{ Length() int64 }); ok {
		return r.Length()
	}
	return -1
}
