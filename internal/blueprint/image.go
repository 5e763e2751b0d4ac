package blueprint

import "bastide/internal/estate"

// ImageObject is the disk that root volumes are made of, as one qcow2 file in the
// estate's bucket: what Scaleway imports.
type ImageObject struct {
	Bucket    string
	Key       string
	Talos     string // its version
	Schematic string // id of what was baked into it
	Source    string // the form in which it is fetched; of one that exists it is not asked
}

// Snapshot is the block snapshot that root volumes are made from.
type Snapshot struct {
	Name      string
	Zone      string
	Object    string // step
	Talos     string
	Schematic string
	Size      estate.Size // of the disk; 0 where it is not known yet, and not compared
}

// Tags of a snapshot that bastide made, beside those of every resource. The
// snapshot's name is a label for people; these say what is in it.
const (
	TagTalos     = "bastide:talos="
	TagSchematic = "bastide:schematic="
	TagDigest    = "bastide:digest=" // of the object's content, see image.Result
)

// ImagePrefix is where images are in the estate's bucket.
const ImagePrefix = "images/"

// shortID is how much of a schematic's id stands in names: enough for people to
// tell them apart. What counts are the tags, which have all of it.
const shortID = 12

// ImageName is what an image of a version and schematic is called.
func ImageName(talos, schematic string) string {
	return "talos-" + talos + "-" + schematic[:min(shortID, len(schematic))]
}

// ImageKey is the key of its object.
func ImageKey(name string) string { return ImagePrefix + name + ".qcow2" }

// image makes the nodes' image where the file names none: a new one beside the
// old when version, extensions or kernel arguments change. What runs keeps its
// volumes; bringing a node to another image is an upgrade, and no step of this.
func (b *builder) image() {
	t := b.e.Talos
	if !t.MakesImage() {
		return
	}
	id := t.SchematicID()
	name := ImageName(t.Version, id)
	object := b.g.add(Step{Kind: KindImageObject, Name: name, Spec: ImageObject{
		Bucket: b.e.BucketName(), Key: ImageKey(name), Talos: t.Version, Schematic: id, Source: t.Image.Source,
	}})
	b.snapshot = b.g.add(Step{Kind: KindSnapshot, Name: name + "-" + b.e.Name, Needs: []string{object}, Spec: Snapshot{
		Name: name + "-" + b.e.Name, Zone: b.zone, Object: object, Talos: t.Version, Schematic: id,
	}})
}

// rootVolume is the volume that a node boots from.
func (b *builder) rootVolume(n estate.Node) Step {
	s := Step{Kind: KindVolume, Name: n.Name, Node: n.Name,
		Spec: Volume{Name: n.Name, Zone: n.Zone, Size: n.Disk.Size, IOPS: n.Disk.IOPS, Snapshot: b.e.Talos.Snapshot, Image: b.snapshot}}
	if b.snapshot != "" {
		s.Needs = []string{b.snapshot}
	}
	return s
}

func (ImageObject) Kind() Kind { return KindImageObject }
func (Snapshot) Kind() Kind    { return KindSnapshot }

func (s ImageObject) Attributes() []Attribute {
	return []Attribute{
		fixed("talos", s.Talos), fixed("schematic", s.Schematic), inPlace("source", s.Source), inPlace("bucket", s.Bucket), inPlace("key", s.Key),
	}
}

func (s Snapshot) Attributes() []Attribute {
	return []Attribute{routine("name", s.Name), fixed("zone", s.Zone), fixed("object", s.Object), fixed("talos", s.Talos), fixed("schematic", s.Schematic)}
}
