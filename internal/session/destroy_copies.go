package session

import (
	"context"
	"fmt"

	"bastide/internal/scaleway"
)

// layOutReplica adds to a teardown what becomes of the copies outside of the
// estate's region. They are kept and named, and then the replica is not asked for
// anything; with the class of the estate's own bucket named they go as well, and
// then it has to answer before anything is touched.
func (s *Session) layOutReplica(ctx context.Context, d *Demolition) error {
	if s.Estate.Store.Replica == nil {
		return nil
	}
	if !d.Takes(DataStore) {
		d.Replica = fmt.Sprintf("%s at %s", s.Estate.Store.Replica.Bucket, s.replicaAddress())
		return nil
	}
	replica, err := s.replica()
	if err != nil {
		return err
	}
	copies, err := replica.List(ctx)
	if err != nil && scaleway.ObjectCode(err) != "NoSuchBucket" {
		return err
	}
	d.replica, d.Copies = replica, len(copies)
	return nil
}

// ClearReplica removes the copies in the replica, under the estate's lock.
func (s *Session) ClearReplica(ctx context.Context, d Demolition) error {
	if d.Copies == 0 {
		return nil
	}
	return d.replica.Clear(ctx)
}
