package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bastide/internal/session"
	"bastide/internal/ui"
)

func (a *app) imageListCommand() *cobra.Command {
	return env(&cobra.Command{
		Use:   "list ENV",
		Short: "Which image there is, what keeps it, and which node runs which",
		Long: `Which images of the estate there are, as snapshots and as files in its bucket, what
keeps each, and what each node says that it runs. Nothing is changed. Nodes are
asked where there is a secrets bundle and a way to them.`,
		Example: "  bastide image list envs/staging",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSession(cmd.Context(), args[0], func(ctx context.Context, s *session.Session) error {
				i, err := s.Images(ctx, true)
				if err != nil {
					return err
				}
				a.showImages(s.Estate.Name, i)
				return nil
			})
		},
	})
}

func (a *app) showImages(name string, i *session.Images) {
	snapshots := ui.Table{Kind: "snapshots", Title: "snapshots of " + name, Columns: []string{"name", "id", "status", "talos", "schematic", "kept by"}, Empty: name + " has no snapshot of its own"}
	for _, s := range i.Snapshots {
		snapshots.Rows = append(snapshots.Rows, []string{s.Name, s.CloudID, s.Status, s.Talos, s.Schematic, kept(s.Pins)})
	}
	objects := ui.Table{Kind: "objects", Title: "files in the bucket of " + name, Columns: []string{"key", "size", "written", "content", "from", "kept by"}, Empty: "no file of an image is in the bucket of " + name}
	for _, o := range i.Objects {
		content, from := "not proven, and not used", "-"
		if o.Image != nil {
			content, from = o.Image.Digest, orDash(o.Image.Source)
		}
		objects.Rows = append(objects.Rows, []string{o.Key, fmt.Sprintf("%.1f MB", float64(o.Size)/1e6), o.Written.UTC().Format(time.RFC3339), content, from, kept(o.Pins)})
	}
	nodes := ui.Table{Kind: "nodes", Title: "what runs in " + name, Columns: []string{"node", "talos", "schematic"}, Empty: name + " has no node"}
	for _, n := range i.Nodes {
		if n.Unread != "" {
			nodes.Rows = append(nodes.Rows, []string{n.Node, "not read", n.Unread})
			continue
		}
		nodes.Rows = append(nodes.Rows, []string{n.Node, n.Talos, orDash(n.Schematic)})
	}
	if i.NotAsked != "" {
		nodes.Empty = "the nodes were not asked: " + i.NotAsked
	}
	a.ui.Tables("images", listed(name, i), snapshots, objects, nodes)
}

// ImageList is what image list knows, for programs.
type ImageList struct {
	Estate    string           `json:"estate"`
	Snapshots []ListedSnapshot `json:"snapshots"`
	Objects   []ListedObject   `json:"objects"`
	Nodes     []ListedNode     `json:"nodes"`
	NotAsked  string           `json:"notAsked,omitempty"` // why nodes were not asked
}

// ListedSnapshot is a snapshot of the estate.
type ListedSnapshot struct {
	Name      string   `json:"name"`
	ID        string   `json:"id"`
	Status    string   `json:"status"`
	Talos     string   `json:"talos"`
	Schematic string   `json:"schematic"`
	KeptBy    []string `json:"keptBy"`
}

// ListedObject is a file of an image in the estate's bucket.
type ListedObject struct {
	Key         string   `json:"key"`
	Size        int64    `json:"size"`                  // bytes
	VirtualSize int64    `json:"virtualSize,omitempty"` // bytes of the disk inside, where the file is proven
	Written     string   `json:"written"`               // RFC 3339
	Digest      string   `json:"digest,omitempty"`
	Source      string   `json:"source,omitempty"`   // what it was made from
	Unproven    string   `json:"unproven,omitempty"` // why it is not used
	KeptBy      []string `json:"keptBy"`
}

// ListedNode is what a node says that it runs.
type ListedNode struct {
	Node      string `json:"node"`
	Talos     string `json:"talos,omitempty"`
	Schematic string `json:"schematic,omitempty"`
	Unread    string `json:"unread,omitempty"` // why it could not be asked
}

// listed has no list that is null, so that a script may iterate without asking.
func listed(name string, i *session.Images) ImageList {
	l := ImageList{Estate: name, Snapshots: []ListedSnapshot{}, Objects: []ListedObject{}, Nodes: []ListedNode{}, NotAsked: i.NotAsked}
	for _, s := range i.Snapshots {
		l.Snapshots = append(l.Snapshots, ListedSnapshot{s.Name, s.CloudID, s.Status, s.Talos, s.Schematic, append([]string{}, s.Pins...)})
	}
	for _, o := range i.Objects {
		entry := ListedObject{Key: o.Key, Size: o.Size, Written: o.Written.UTC().Format(time.RFC3339), Unproven: o.Unproven, KeptBy: append([]string{}, o.Pins...)}
		if o.Image != nil {
			entry.Digest, entry.VirtualSize, entry.Source = o.Image.Digest, o.Image.VirtualSize, o.Image.Source
		}
		l.Objects = append(l.Objects, entry)
	}
	for _, n := range i.Nodes {
		l.Nodes = append(l.Nodes, ListedNode{n.Node, n.Talos, n.Schematic, n.Unread})
	}
	return l
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func kept(pins []string) string {
	if len(pins) == 0 {
		return "nothing"
	}
	return strings.Join(pins, ", ")
}
