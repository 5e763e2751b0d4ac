package estate

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of volumes: Scaleway's (whole GB from 1 GB to 10 TB, two speeds), and
// those of Talos, whose image is a little over 4 GB and whose health check
// wants 6 GiB of system disk, or about 4 GiB of a separate EPHEMERAL volume.
const (
	smallestRoot      = 7 * GB // holds everything
	smallestBareRoot  = 5 * GB // EPHEMERAL is on a volume of its own
	smallestEphemeral = 5 * GB
	largestVolume     = 10 * TB
)

var volumeIOPS = []int{5000, 15000}

// Memory below which Talos' own health check fails a node. It allows for what
// a machine of the nominal size does not show.
const (
	controlPlaneMemory = 1848 * MiB
	workerMemory       = 1024 * MiB
)

// maxNodes is far above what a Private Network holds; it only keeps sums sane.
const maxNodes = 500

// reservedPools are taken: control plane nodes are called NAME-cp-1, and the
// others are the words for groups of nodes in talos.patches and in the plan.
var reservedPools = []string{"cp", ControlPlanePool, "controlplane", "workers", "all"}

func (s *source) validateControlPlane(e *Estate) {
	cp := &e.ControlPlane
	switch {
	case cp.Count < 1 || cp.Count > 7:
		s.refuse("controlPlane.count", fmt.Sprintf("is %d", cp.Count), "a cluster has 1, 3, 5 or 7 control plane nodes; more only slow etcd down", "write 3")
	case cp.Count%2 == 0:
		s.refuse("controlPlane.count", fmt.Sprintf("is %d, an even number", cp.Count),
			fmt.Sprintf("etcd needs %d of %d members, so it survives the loss of %d, no more than with %d", cp.Count/2+1, cp.Count, (cp.Count-1)/2, cp.Count-1),
			fmt.Sprintf("write %d or %d", cp.Count-1, cp.Count+1))
	}
	s.validateType("controlPlane.type", cp.Type, controlPlaneMemory, "a control plane node")
	s.validateDisks("controlPlane", cp.Disk, cp.Ephemeral)
	s.validateLabels("controlPlane.labels", cp.Labels, false)
	s.validateQuotaFits(e)
}

func (s *source) validatePools(e *Estate) {
	first := map[string]int{}
	for i := range e.Pools {
		p, path := &e.Pools[i], indexed("pools", i)
		if at, twice := first[p.Name]; twice && p.Name != "" {
			s.refuse(path+".name", fmt.Sprintf("%q is the name of %s too", brief(p.Name), indexed("pools", at)), "nodes are named after their pool", "choose another name")
		} else {
			first[p.Name] = i
		}
		s.validatePoolName(path+".name", e.Name, p)
		if p.Count < 0 || p.Count > maxNodes {
			s.refuse(path+".count", fmt.Sprintf("is %d", p.Count), fmt.Sprintf("a pool has 0 to %d nodes", maxNodes), "write a number of that range")
		}
		s.validateType(path+".type", p.Type, workerMemory, "a worker")
		s.validateDisks(path, p.Disk, p.Ephemeral)
		s.validateLabels(path+".labels", p.Labels, true)
		s.validateTaints(path+".taints", p.Taints)
	}
}

func (s *source) validatePoolName(path, estate string, p *Pool) {
	longest := fmt.Sprintf("%s-%s-%d", estate, p.Name, max(p.Count, 1))
	switch {
	case p.Name == "":
	case !dnsLabel.MatchString(p.Name):
		s.refuse(path, fmt.Sprintf("%q cannot be a pool's name", brief(p.Name)), "it becomes part of its nodes' host names", labelHint)
	case slices.Contains(reservedPools, p.Name):
		s.refuse(path, fmt.Sprintf("%q is reserved", p.Name), "it names a group of nodes that always exists", "choose another name, such as system")
	case len(longest) > 63 && !s.silenced("name"):
		s.refuse(path, fmt.Sprintf("makes node names of %d characters", len(longest)), "a host name has at most 63: "+longest, "shorten the pool's or the estate's name")
	}
}

// validateType checks an Instance type against the dated table, for machines
// that boot from block storage.
func (s *source) validateType(path, name string, memory Size, role string) {
	if name == "" {
		return
	}
	t, ok := LookupInstanceType(name)
	switch {
	case !ok:
		hint := "see: scw instance server-type list"
		if near := nearest(name, instanceTypeNames()); near != "" {
			hint = "did you mean " + near + "?"
		}
		s.refuse(path, fmt.Sprintf("%q is not an Instance type that bastide knows", brief(name)), "its memory, processor and disks decide whether a node can run on it", hint)
	case t.EndOfService:
		s.refuse(path, name+" has reached its end of service", "Scaleway makes no new ones", "choose a current type, such as PLAY2-NANO")
	case t.Arch != "x86_64":
		s.refuse(path, name+" is an "+t.Arch+" machine", "one snapshot is the disk of all nodes, and this version of bastide works with x86_64 images", "choose an x86_64 type, such as PLAY2-NANO")
	case strings.HasSuffix(name, "-WIN"):
		s.refuse(path, name+" is sold with a Windows licence", "Talos has no use for it", "choose "+strings.TrimSuffix(name, "-WIN"))
	case t.Memory < memory:
		s.refuse(path, fmt.Sprintf("%s has %s of memory", name, t.Memory), fmt.Sprintf("Talos needs at least %s for %s", memory, role), "choose a larger type, such as PLAY2-NANO")
	}
}

func (s *source) validateDisks(path string, root Disk, ephemeral *Disk) {
	smallest, why := smallestRoot, "the system disk of a Talos node is at least 6 GiB in all"
	if ephemeral != nil {
		smallest, why = smallestBareRoot, "the Talos image alone is more than 4 GB"
		s.validateDisk(path+".ephemeral", *ephemeral, smallestEphemeral, "Talos' health check wants about 4 GiB there for images, logs and, on control planes, etcd")
	}
	s.validateDisk(path+".disk", root, smallest, why)
}

func (s *source) validateDisk(path string, d Disk, smallest Size, why string) {
	switch {
	case d.Size%GB != 0:
		s.refuse(path+".size", d.Size.String()+" is not a whole number of GB", "Scaleway sells volumes by the decimal gigabyte",
			fmt.Sprintf("write %dGB or %dGB", d.Size/GB, d.Size/GB+1))
	case d.Size < smallest:
		s.refuse(path+".size", fmt.Sprintf("%s is too small", d.Size), why, fmt.Sprintf("write %s or more", smallest))
	case d.Size > largestVolume:
		s.refuse(path+".size", fmt.Sprintf("%s is too large", d.Size), "a volume at Scaleway has at most 10 TB", "write 10TB or less")
	}
	if !slices.Contains(volumeIOPS, d.IOPS) {
		s.refuse(path+".iops", fmt.Sprintf("is %d", d.IOPS), "Scaleway sells volumes of 5000 and of 15000 operations a second", "write 5000 or 15000")
	}
}
