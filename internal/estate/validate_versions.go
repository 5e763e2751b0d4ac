package estate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
)

// The Talos minors that this build drives. The newest is that of the machinery
// library it is made with: it cannot know what a later one takes or refuses.
// The oldest is the first that has the configuration documents bastide writes.
const (
	oldestTalosMinor = 12
	newestTalosMinor = 13
)

var (
	talosVersion      = regexp.MustCompile(`^v1\.([0-9]{1,3})\.[0-9]{1,3}(-(alpha|beta|rc)\.[0-9]{1,3})?$`)
	kubernetesVersion = regexp.MustCompile(`^1\.[0-9]{1,3}\.[0-9]{1,3}(-(alpha|beta|rc)\.[0-9]{1,3})?$`)
	extensionName     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?/[a-z0-9]([a-z0-9._-]*[a-z0-9])?$`)
)

func (s *source) validateTalos(t *Talos) {
	if m := talosVersion.FindStringSubmatch(t.Version); m != nil {
		if minor, _ := strconv.Atoi(m[1]); minor < oldestTalosMinor || minor > newestTalosMinor {
			s.refuse("talos.version", t.Version+" is not a version that this bastide drives",
				fmt.Sprintf("it knows what Talos 1.%d to 1.%d take and refuse", oldestTalosMinor, newestTalosMinor),
				fmt.Sprintf("choose a patch of v1.%d, or another bastide", newestTalosMinor))
		}
	} else if t.Version != "" {
		s.refuse("talos.version", fmt.Sprintf("%q is not a Talos version", brief(t.Version)), "images are found by the full version",
			fmt.Sprintf("write all three numbers after a v, such as v1.%d.5", newestTalosMinor))
	}
	s.validateExtensions(t.Extensions)
	s.validateKernelArgs(t.KernelArgs)
	s.oneOf("talos.image.source", t.Image.Source, imageSources, "the Image Factory has the disk in other forms too, and no command here reads them")
}

// imageSources are the forms in which the Image Factory has the disk, the one
// that it names first for the platform first. It publishes no checksums; a zstd
// frame carries one of its content.
var imageSources = []string{"raw.zst", "raw.xz", "qcow2"}

// kernelArgument is one word: printable ASCII without spaces.
var kernelArgument = regexp.MustCompile(`^[!-~]{1,256}$`)

// ownedArguments decide what the node is and where its configuration comes from.
var ownedArguments = []string{"talos.platform", "talos.config"}

func (s *source) validateKernelArgs(args []string) {
	for i, arg := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		switch {
		case !kernelArgument.MatchString(arg):
			s.refuse(indexed("talos.kernelArgs", i), fmt.Sprintf("%q is not one kernel argument", brief(arg)), "each is one word without spaces", "write a list item for each argument, such as net.ifnames=0")
		case slices.Contains(ownedArguments, name):
			s.refuse(indexed("talos.kernelArgs", i), name+" is not the file's to set", "it decides what the node is and where its configuration comes from", "remove it")
		}
	}
	s.noRepeat("talos.kernelArgs", args)
}

func (s *source) validateExtensions(names []string) {
	for i, name := range names {
		if extensionName.MatchString(name) {
			continue
		}
		hint := "write it as the image factory lists it, such as siderolabs/gvisor"
		if !strings.Contains(name, "/") && dnsLabel.MatchString(name) {
			hint = "did you mean siderolabs/" + name + "?"
		}
		if strings.ContainsAny(name, ":@") {
			hint = "leave out tag and digest: the extension's version follows from that of Talos"
		}
		s.refuse(indexed("talos.extensions", i), fmt.Sprintf("%q is not the name of a system extension", brief(name)),
			"the schematic names extensions as vendor/name", hint)
	}
	s.noRepeat("talos.extensions", names)
}

// validateVersions asks the compatibility tables of the machinery library
// whether this Talos runs this Kubernetes.
func (s *source) validateVersions(e *Estate) {
	if v := e.Kubernetes.Version; !kubernetesVersion.MatchString(v) {
		hint := "write all three numbers, such as 1.36.3"
		if kubernetesVersion.MatchString(strings.TrimPrefix(v, "v")) {
			hint = "leave out the v: " + strings.TrimPrefix(v, "v")
		}
		if v != "" {
			s.refuse("kubernetes.version", fmt.Sprintf("%q is not a Kubernetes version", brief(v)), "images are found by the full version", hint)
		}
		return
	}
	if !talosVersion.MatchString(e.Talos.Version) || s.silenced("talos.version") {
		return // nothing to compare with
	}
	talos, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: e.Talos.Version})
	if err != nil {
		s.refuse("talos.version", "cannot be read", err.Error(), "write all three numbers after a v")
		return
	}
	kubernetes, err := compatibility.ParseKubernetesVersion(e.Kubernetes.Version)
	if err != nil {
		s.refuse("kubernetes.version", "cannot be read", err.Error(), "write all three numbers")
		return
	}
	if err := kubernetes.SupportedWith(talos); err != nil {
		s.refuse("kubernetes.version", fmt.Sprintf("%s does not run on Talos %s", e.Kubernetes.Version, e.Talos.Version), err.Error(),
			"change one of the two versions so that they match")
	}
}
