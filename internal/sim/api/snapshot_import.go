package api

import (
	"errors"
	"fmt"
	"time"

	"bastide/internal/sim/hardware"
)

// Object is a disk image in object storage as an import sees it at first.
type Object struct {
	SizeBytes int64 // of the snapshot that it becomes
	// Read reads the whole image; an error makes the import end in status error.
	// What it returns is the Talos on the disk, nil for any other disk. It is
	// called once.
	Read func() (*hardware.TalosImage, error)
}

// ObjectReader opens a disk image in object storage. An error makes the import
// end in status error, as a missing object and one that is no QCOW2 do.
type ObjectReader func(region, bucket, key string) (Object, error)

// importTakes is nearly the same for all sizes that were recorded.
const importTakes = 212 * time.Second

// importSnapshot answers at once; whether the object is a good QCOW2 disk shows
// in the status minutes later.
func importSnapshot(c *call) (any, error) {
	var in struct {
		Bucket  string     `json:"bucket"`
		Key     string     `json:"key"`
		Name    string     `json:"name"`
		Project string     `json:"project_id"`
		Tags    []string   `json:"tags"`
		Size    opt[int64] `json:"size"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Bucket == "" || in.Key == "" {
		return nil, invalid("bucket", "required", "bucket and key are required")
	}
	owner, err := c.owner(in.Project, "", projectForbidden("snapshot"))
	if err != nil {
		return nil, err
	}
	if in.Name == "" {
		in.Name = "snap-" + newID()[:8]
	}
	s := &blockSnapshot{record: newRecord(owner, in.Name, in.Tags), Zone: c.zone(), Size: 1 << 30, Status: "creating"}
	object, err := c.importedObject(in.Bucket, in.Key)
	s.Size = max(object.SizeBytes, in.Size.or(0))
	add(c.world, c.Snapshots, s)
	c.importEnds(s, object, err != nil)
	return c.viewSnapshot(s), nil
}

// importedObject finds what an import reads: what an export left, an object in
// the store, or without a store an empty disk.
func (c *call) importedObject(bucket, key string) (Object, error) {
	if e, ok := c.Exports[bucket+"/"+key]; ok {
		return Object{e.Size, func() (*hardware.TalosImage, error) { return e.Image, nil }}, nil
	}
	if k, err := c.credential(c.req.Header.Get("X-Auth-Token")); err != nil || !k.may(right{product: "object", action: "read", kind: "object"}) {
		return Object{}, errors.New("the key may not read objects")
	}
	if c.opts.Objects == nil {
		return Object{1 << 30, func() (*hardware.TalosImage, error) { return nil, nil }}, nil
	}
	return c.opts.Objects(regionOf(c.zone()), bucket, key)
}

// importEnds reads the object beside the calls that come in meanwhile, and says
// what became of it when the import's time is over.
func (w *world) importEnds(s *blockSnapshot, object Object, failed bool) {
	var image *hardware.TalosImage
	if object.Read != nil {
		w.region.effects.do(s.ID, func() {
			var err error
			if image, err = object.Read(); err != nil {
				failed = true
			}
		})
	}
	takes, ends := w.importTrouble(s.Name)
	w.after(takes, func(w *world) {
		s, ok := w.Snapshots.get(s.ID)
		if !ok || s.Status != "creating" {
			return
		}
		s.Status, s.Image = "available", image
		if failed || ends {
			s.Status, s.Image = "error", nil
		}
		s.touch()
	}, s.ID)
}

// Events of a fault script that happen to the import of a snapshot: its name
// stands where a machine's does. Each happens to the next import of that name.
const (
	// eventImportError lets a good image end in status error.
	eventImportError = "snapshot-import-error"
	// eventImportSlow lets it take longer by params.for, in the region's time.
	eventImportSlow = "snapshot-import-slow"
)

func isImportEvent(e hardware.NodeEvent) bool {
	return e.Event == eventImportError || e.Event == eventImportSlow
}

func checkImportEvent(e hardware.NodeEvent) error {
	if e.Event == eventImportSlow {
		if _, err := importDelay(e); err != nil {
			return err
		}
	}
	return nil
}

func importDelay(e hardware.NodeEvent) (time.Duration, error) {
	text, _ := e.Params["for"].(string)
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("params.for is %q, no duration such as 30m", text)
	}
	return d, nil
}

func (r *Region) troubleImport(e hardware.NodeEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.world.ImportTrouble[e.Node] = append(r.world.ImportTrouble[e.Node], e)
}

// importTrouble takes what is to happen to an import of that name: one event of
// each kind.
func (w *world) importTrouble(name string) (takes time.Duration, fails bool) {
	takes = importTakes
	var left []hardware.NodeEvent
	slowed := false
	for _, e := range w.ImportTrouble[name] {
		switch {
		case e.Event == eventImportError && !fails:
			fails = true
		case e.Event == eventImportSlow && !slowed:
			d, _ := importDelay(e) // checked when it was loaded
			takes, slowed = takes+d, true
		default:
			left = append(left, e)
		}
	}
	w.ImportTrouble[name] = left
	return takes, fails
}
