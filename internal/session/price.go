package session

import (
	"context"
	"strings"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/price"
	"bastide/internal/scaleway"
	"bastide/internal/store"
)

// forCatalogue is how long the catalogue may take before the table has to do.
const forCatalogue = 10 * time.Second

// Quote is the catalogue being asked for prices while other work goes on. It is
// for one goroutine.
type Quote struct {
	answer chan answer
	file   chan int64  // bytes of the image's file, 0 where there is none; nil where nobody looks
	key    string      // of that file
	book   *price.Book // once there was an answer, or none for too long
}

type answer struct {
	prices map[price.Item]price.Price
	err    error
}

// Quote begins to ask the catalogue, and the bucket how large the image's file is:
// no survey of an estate that runs reads that. It ends with the context.
func (s *Session) Quote(ctx context.Context) (*Quote, error) {
	cloud, err := s.Cloud(ctx)
	if err != nil {
		return nil, err
	}
	q := &Quote{answer: make(chan answer, 1)}
	s.weigh(ctx, q)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, forCatalogue)
		defer cancel()
		prices, err := cloud.Prices(ctx)
		q.answer <- answer{prices, err}
	}()
	return q, nil
}

// weigh asks how large the image's file is. Without an answer its size is open, as it
// is while there is no file; nothing is told of that.
func (s *Session) weigh(ctx context.Context, q *Quote) {
	o := s.reach()
	o.Notice = nil
	objects, _, err := scaleway.NewObjectStorage(o)
	if err != nil || !s.Estate.Talos.MakesImage() {
		return
	}
	bucket := store.New(store.Options{Objects: objects, Bucket: s.Estate.BucketName(), Estate: s.Estate.Name, Seal: s.Vault().Seal})
	q.key = blueprint.ImageKey(blueprint.ImageName(s.Estate.Talos.Version, s.Estate.Talos.SchematicID()))
	q.file = make(chan int64, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, forCatalogue)
		defer cancel()
		size, err := bucket.ImageSize(ctx, q.key)
		if err != nil {
			size = 0
		}
		q.file <- size
	}()
}

// Book is the table with the catalogue's answer over it. It waits at most so
// long for the answer; without one it is the table alone, and says so.
func (q *Quote) Book(patience time.Duration) price.Book {
	if q.book == nil {
		book := q.wait(patience)
		q.book = &book
	}
	return *q.book
}

func (q *Quote) wait(patience time.Duration) price.Book {
	book := price.Table()
	over, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	select {
	case a := <-q.answer:
		if a.err == nil {
			book = book.Over(a.prices)
		} else {
			book.Note = alone + strings.ReplaceAll(strings.TrimSpace(a.err.Error()), "\n", "; ")
		}
	case <-over.Done():
		book.Note = alone + "it has not answered yet"
	}
	if q.file == nil {
		return book
	}
	select { // it had the same time
	case size := <-q.file:
		book.Files = map[string]int64{q.key: size}
	case <-over.Done():
	}
	return book
}

const alone = "prices are those of the table that came with this build, because the catalogue could not be read: "

// Offline says that there is no API key, so that only the file can be looked at.
func (s *Session) Offline() (bool, error) {
	has, err := scaleway.HasCredentials(s.config.LookupEnv)
	return !has, err
}

// Draft is the graph of the file alone, as if nothing of it existed.
func (s *Session) Draft() (*blueprint.Graph, error) {
	g, err := blueprint.Build(s.Estate, nil, s.Estate.Admin.PublicKeys)
	if err != nil {
		return nil, outcome.Refuse("the estate cannot be laid out", err.Error(), "change the file").Because(err)
	}
	return g, nil
}
