package session

import (
	"context"

	"bastide/internal/blueprint"
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
		d.Kept = append(d.Kept, s.keptReplica())
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

// keptReplica is the replica as a teardown leaves it.
func (s *Session) keptReplica() scaleway.Kept {
	name := s.Estate.Store.Replica.Bucket + " at " + s.replicaAddress()
	return scaleway.Kept{Item: scaleway.Item{Kind: blueprint.KindStore, Name: name, CloudID: name}, Class: blueprint.DataStore,
		Why: "it is the replica, for copies of the secrets bundle; it was not looked at"}
}
