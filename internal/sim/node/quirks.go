package node

import "time"

// quirks are the ways in which a fault script makes a machine misbehave. Those
// of a boot are taken when it starts; standing ones stay.
type quirks struct {
	DiskOrder      bool          // the devices come up in reverse order, once
	OldVersion     string        // the boot is of this version, once
	FallBack       bool          // the boot ends in the other boot entry, which stays the one, once
	LearnerFor     time.Duration // the etcd member stays a learner this long (simulated), once
	LostAtJoin     bool          // power fails between the member's addition and its start, once
	StuckPreparing bool          // etcd never leaves Preparing, until healed
	SmallEphemeral int64         // EPHEMERAL is made this small, in bytes
	ForeignCert    bool          // the API answers with a certificate of another cluster, until healed
	CertChanges    bool          // the maintenance certificate is new at each contact, until healed
	Forget         string        // what the next boot finds gone: etcd, ephemeral or state
	SlowApply      time.Duration // an ApplyConfiguration takes this long (simulated)
}

// takeForBoot returns the quirks of the boot that begins and forgets those that
// happen once.
func (q *quirks) takeForBoot() quirks {
	now := *q
	q.DiskOrder, q.FallBack, q.OldVersion, q.LearnerFor, q.LostAtJoin, q.Forget = false, false, "", 0, false, ""
	return now
}
