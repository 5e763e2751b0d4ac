package talos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"bastide/internal/outcome"
)

// dataEntry is a file or folder in etcd's data directory.
type dataEntry struct {
	name     string
	folder   bool
	modified time.Time // by the node's clock
}

// etcdData lists etcd's data directory, with all that is in its folders if deep.
func (s *session) etcdData(ctx context.Context, deep bool) ([]dataEntry, error) {
	return read(ctx, s, func(ctx context.Context) ([]dataEntry, error) {
		stream, err := s.machine.List(ctx, &machine.ListRequest{Root: constants.EtcdDataPath, Recurse: deep})
		if err != nil {
			return nil, err
		}
		var entries []dataEntry
		for {
			info, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return entries, nil
			}
			if err != nil {
				return nil, err
			}
			if info.GetError() != "" {
				return nil, errors.New(info.GetError())
			}
			if name := info.GetRelativeName(); name != "." && name != "" {
				entries = append(entries, dataEntry{name, info.GetIsDir(), time.Unix(info.GetModified(), 0)})
			}
		}
	})
}

// neverRan looks into etcd's data directory, which is what Talos itself looks
// at before it bootstraps. Only a clear answer counts; a Talos that cannot
// list is taken at the word of its service.
func (s *session) neverRan(ctx context.Context) bool {
	entries, err := s.etcdData(ctx, false)
	switch {
	case err == nil:
		return len(entries) == 0
	case code(err) == codes.Unimplemented || code(err) == codes.NotFound:
		return true
	}
	return strings.Contains(err.Error(), "no such file")
}

// restartedSinceJoining tells whether a node's member is older than its boot.
// Talos asks for a learner's promotion only in the start of etcd that added it:
// a learner whose node restarts before that stays one. Most of etcd's files are
// written all the time; the snapshot with which it was let in is not. Only a
// clear answer counts: without an older file nothing is concluded.
func (s *session) restartedSinceJoining(ctx context.Context) bool {
	entries, err := s.etcdData(ctx, true)
	if err != nil {
		return false
	}
	booted, err := s.bootTime(ctx)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if !e.folder && e.modified.Before(booted) {
			return true
		}
	}
	return false
}

// bootTime is when the node booted, by its own clock, to the second.
func (s *session) bootTime(ctx context.Context) (time.Time, error) {
	stat, err := read(ctx, s, func(ctx context.Context) (*machine.SystemStatResponse, error) {
		return s.machine.SystemStat(ctx, &emptypb.Empty{})
	})
	if err != nil {
		return time.Time{}, err
	}
	for _, m := range stat.GetMessages() {
		if m.GetBootTime() > 0 {
			return time.Unix(int64(m.GetBootTime()), 0), nil
		}
	}
	return time.Time{}, errors.New("the node did not say when it booted")
}

// strandedLearner stops the waiting for a learner that nobody promotes: etcd has
// room for one learner, so no other node can join meanwhile either. A learner
// has no vote; wiping it costs neither data nor quorum, and it joins anew.
func (c *Cluster) strandedLearner(h EtcdHealth) error {
	for _, n := range h.Nodes {
		if !n.Stranded {
			continue
		}
		return outcome.Fail(fmt.Sprintf("%s stays a learner of etcd", n.Node),
			"it restarted before it was promoted, and Talos promotes a member only in the start that added it; no other node can join meanwhile\n"+h.Members.Picture(),
			c.joinAnew(n.Node))
	}
	return nil
}

func (c *Cluster) joinAnew(node string) string {
	return fmt.Sprintf("let it join anew, which costs no vote and no data: `talosctl -n %s reset --graceful=false --reboot --system-labels-to-wipe=EPHEMERAL`, then run `bastide up` again", c.addresses.Nodes[node])
}
