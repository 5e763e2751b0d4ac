package session

import (
	"context"
	"slices"
	"strings"

	"bastide/internal/outcome"
)

// madeFrom is such as ", from disk.raw.zst"; empty where no proof says it.
func madeFrom(source string) string {
	if source == "" {
		return ""
	}
	return ", from " + source
}

// Replaced is what has to go before the file's image can be made anew: its file and
// every snapshot of it. It is refused while a volume, a node or an import uses one,
// or may: then the image is what nodes are made of, and they would not be alike.
func (s *Session) Replaced(ctx context.Context) (Unpinned, error) {
	if err := makesItself(s.Estate); err != nil {
		return Unpinned{}, err
	}
	i, err := s.Images(ctx, true)
	if err != nil {
		return Unpinned{}, err
	}
	return i.replaced(s.Estate.Name)
}

func (i *Images) replaced(name string) (out Unpinned, err error) {
	var users []string
	use := func(pins []string) {
		for _, p := range pins {
			if p != byFile && !slices.Contains(users, p) {
				users = append(users, p)
			}
		}
	}
	for _, s := range i.Snapshots {
		if i.wanted != "" && s.Step == i.wanted {
			use(s.Pins)
			out.Snapshots = append(out.Snapshots, s.Image)
		}
	}
	for _, o := range i.Objects {
		if i.wantedKey != "" && o.Key == i.wantedKey {
			use(o.Pins)
			out.Objects = append(out.Objects, o.StoredImage)
		}
	}
	if len(users) > 0 {
		return Unpinned{}, outcome.Refuse("the image of "+name+" is not made anew", "it is used by "+strings.Join(users, ", "),
			"wait for an import to end, see that nodes answer, or leave the image as it is; an image of another version or schematic is made beside it")
	}
	return out, nil
}

// CanReplace checks the source of a new image before the old one goes.
func (s *Session) CanReplace(ctx context.Context, from string, progress func(read, total int64)) error {
	if from == "" {
		return s.imageCanBeMade(ctx)
	}
	_, err := CheckImage(ctx, from, int64(s.Estate.SmallestRoot()), progress, s.config.Notice)
	return err
}

// ofFile says that an image was made from a file and not from an address.
func ofFile(source string) bool {
	return source != "" && !strings.HasPrefix(source, "http://") && !strings.HasPrefix(source, "https://")
}
