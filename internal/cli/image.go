package cli

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bastide/internal/estate"
	"bastide/internal/image"
	"bastide/internal/plan"
	"bastide/internal/run"
	"bastide/internal/session"
	"bastide/internal/ui"
)

func (a *app) imageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "The image of the nodes' disks: make, check, list and prune",
		Long: `The image of the nodes' disks: one for each version of Talos and each schematic.
up makes it by itself when a node is to be made and no image is there.`,
	}
	cmd.AddCommand(a.imageBuildCommand(), a.imageCheckCommand(), a.imageListCommand(), a.imagePruneCommand())
	return cmd
}

func (a *app) imageBuildCommand() *cobra.Command {
	var yes, replace bool
	var from string
	cmd := env(&cobra.Command{
		Use:   "build ENV",
		Short: "Make the image that the file asks for",
		Long: `Make the image that the file asks for, if it is not there: read it from the Image
Factory or from a file, check it, write it to the estate's bucket as qcow2, and
import it as a snapshot. One that is there is used. It can be stopped and killed
at any moment; running it again uploads what is missing.

With --from it needs no Image Factory: a qcow2 file or a raw disk, compressed with
zstd or xz or not at all. That the file has the version and schematic that the
environment's file says is then your word; up and status compare it with what the
nodes say. Another file in place of the image that is there needs --replace, which
is refused while a volume, a node or an import uses that image.`,
		Annotations: map[string]string{streams: "yes"},
		Example: "  bastide image build envs/staging\n" +
			"  bastide image build envs/staging --from scaleway-amd64.raw.zst",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.writes, a.need = true, estate.Layout
			return a.withSession(cmd.Context(), args[0], func(ctx context.Context, s *session.Session) error {
				agreed := yes
				if replace {
					var err error
					if agreed, err = a.replaceImage(ctx, s, args[0], from, yes); err != nil {
						return err
					}
				}
				return a.buildImage(ctx, s, args[0], from, agreed)
			})
		},
	})
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&replace, "replace", false, "make it anew, if no volume, node or import uses the one that is there")
	cmd.Flags().StringVar(&from, "from", "", "file to make it of, instead of asking the Image Factory")
	return cmd
}

func (a *app) buildImage(ctx context.Context, s *session.Session, path, from string, yes bool) error {
	b, err := s.ImagePlan(ctx)
	if err != nil {
		return err
	}
	if err := s.CanBuild(ctx, b, from, nil); err != nil {
		return err
	}
	a.ui.Plan(b.Plan, nil)
	if b.Plan.Empty() {
		a.ui.Verdict(ui.Verdict{Passed: true, Sentence: b.Made()})
		return nil
	}
	if err := a.confirm(ctx, yes, "make it?"); err != nil {
		return err
	}
	return a.holding(ctx, s, func(ctx context.Context, h *session.Hold) error {
		a.resume = buildCommand(path, from)
		agreed := b.Plan
		if b, err = s.ImagePlan(ctx); err != nil {
			return err
		}
		if b.Plan.Empty() { // another run has just made it
			a.ui.Verdict(ui.Verdict{Passed: true, Sentence: b.Made()})
			return nil
		}
		if !reflect.DeepEqual(agreed.Actions, b.Plan.Actions) { // another run has just ended
			a.ui.Plan(b.Plan, nil)
			if err := a.confirm(ctx, yes, "make it?"); err != nil {
				return err
			}
		}
		if err := run.Blocked(b.Plan); err != nil {
			return err
		}
		progress, end := a.begin("image of "+s.Estate.Name, len(b.Plan.Actions)-len(b.Plan.Having(plan.Keep)))
		err = s.Build(ctx, b, from, a.tells(progress, h))
		end()
		if err == nil {
			a.ui.Verdict(ui.Verdict{Passed: true, Sentence: b.Made()})
		}
		return err
	})
}

func (a *app) imageCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Say whether a file can be made the image",
		Long: `Say whether a file can be made the image: what it is, whether it is whole, and
whether a Talos disk is in it. It reads the file to its end and writes nothing.
FILE may be an address with http or https. Exit code 3 says that it cannot be used.`,
		Example: "  bastide image check scaleway-amd64.raw.zst",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.checkImage(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			a.ui.Result("image", checkedText(c), struct {
				File string `json:"file"`
				*image.Result
			}{c.Name, c.Result})
			return nil
		},
	}
}

func (a *app) checkImage(ctx context.Context, file string) (*session.Checked, error) {
	progress, end := a.begin("", 1)
	defer end()
	begun := time.Now()
	progress.Start("check")
	c, err := session.CheckImage(ctx, file, 0, session.Pace(func(text string, r session.Reading) { progress.Reading("check", text, ui.Reading(r)) }), a.ui.Notice)
	if err != nil {
		progress.Failed("check", time.Since(begun), nil)
		return nil, err
	}
	progress.Done("check", time.Since(begun))
	return c, nil
}

func checkedText(c *session.Checked) string {
	r := c.Result
	how := "it is uploaded as it is"
	switch {
	case r.Content != r.Format && !r.Converted:
		how = fmt.Sprintf("the %s file inside, %.1f MB, is uploaded as it is", r.Content, float64(r.FileSize)/1e6)
	case r.Converted:
		how = fmt.Sprintf("it becomes a qcow2 file of %.1f MB", float64(r.FileSize)/1e6)
	}
	var parts []string
	if r.Disk != nil {
		for _, p := range r.Disk.Partitions {
			parts = append(parts, p.Label)
		}
	}
	return fmt.Sprintf("%s is a Talos disk\n  form        %s, %.1f MB; %s\n  disk        %.1f GB\n  partitions  %s\n  content     %s\n  file        %s",
		c.Name, r.Format, float64(r.SourceSize)/1e6, how, float64(r.VirtualSize)/1e9, strings.Join(parts, ", "), r.Digest, r.SourceDigest)
}

func (a *app) imagePruneCommand() *cobra.Command {
	var yes bool
	cmd := env(&cobra.Command{
		Use:   "prune ENV",
		Short: "Remove images that nothing keeps",
		Long: `Remove the estate's images that nothing keeps: not the file, nor a volume, nor an
import that runs, nor a node that runs that version and schematic. They are
snapshots, and files in its bucket. The nodes are asked; while one does not answer
every image that it may run is kept. Images of other estates are not looked at.`,
		Annotations: map[string]string{streams: "yes"},
		Example:     "  bastide image prune envs/staging",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.writes, a.need = true, estate.Layout
			return a.withSession(cmd.Context(), args[0], func(ctx context.Context, s *session.Session) error { return a.pruneImages(ctx, s, args[0], yes) })
		},
	})
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) pruneImages(ctx context.Context, s *session.Session, path string, yes bool) error {
	i, err := s.Images(ctx, true)
	if err != nil {
		return err
	}
	a.ui.Table(unpinnedTable(s.Estate.Name, i.Unpinned()))
	if len(i.Unpinned().Steps()) == 0 {
		return nil
	}
	if err := a.confirm(ctx, yes, "remove them?"); err != nil {
		return err
	}
	return a.holding(ctx, s, func(ctx context.Context, h *session.Hold) error {
		a.resume = "bastide image prune " + path
		agreed := i.Unpinned()
		if i, err = s.Images(ctx, true); err != nil {
			return err
		}
		now := i.Unpinned()
		if !reflect.DeepEqual(agreed.Steps(), now.Steps()) {
			a.ui.Table(unpinnedTable(s.Estate.Name, now))
			if err := a.confirm(ctx, yes, "remove them?"); err != nil {
				return err
			}
		}
		progress, end := a.begin("prune images of "+s.Estate.Name, len(now.Steps()))
		defer end()
		return s.Prune(ctx, now, a.tells(progress, h))
	})
}

func unpinnedTable(name string, u session.Unpinned) ui.Table {
	t := ui.Table{Kind: "unpinned", Title: "images of " + name + " that nothing keeps", Columns: []string{"kind", "name", "id"}, Empty: "every image of " + name + " is kept by something"}
	for _, s := range u.Snapshots {
		t.Rows = append(t.Rows, []string{"snapshot", s.Name, s.CloudID})
	}
	for _, o := range u.Objects {
		t.Rows = append(t.Rows, []string{"image-object", o.Key, ""})
	}
	return t
}
