package factory

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// schematic is a customisation as the Image Factory knows it. The order of the
// fields is that of the canonical form, of which the id is the SHA-256; it is
// that of the Factory's 1.5. Empty fields are left out of it.
type schematic struct {
	Owner         string        `yaml:"owner,omitempty"`
	Overlay       overlay       `yaml:"overlay,omitempty"`
	Customization customization `yaml:"customization"`
}

type overlay struct {
	Image   string         `yaml:"image"`
	Name    string         `yaml:"name"`
	Options map[string]any `yaml:"options,omitempty"`
}

type customization struct {
	MachineConfig string           `yaml:"embeddedMachineConfiguration,omitempty"`
	KernelArgs    []string         `yaml:"extraKernelArgs,omitempty"`
	Meta          []metaValue      `yaml:"meta,omitempty"`
	Extensions    systemExtensions `yaml:"systemExtensions,omitempty"`
	Bootloader    bootloader       `yaml:"bootloader,omitempty"`
	SecureBoot    secureBoot       `yaml:"secureboot,omitempty"`
	DiskImage     diskImage        `yaml:"diskImage,omitempty"`
}

type metaValue struct {
	Key   uint8  `yaml:"key"`
	Value string `yaml:"value"`
}

type systemExtensions struct {
	Official []string `yaml:"officialExtensions,omitempty"`
}

type secureBoot struct {
	EnrollKeys string `yaml:"enrollKeys,omitempty"`
	WellKnown  bool   `yaml:"includeWellKnownCertificates,omitempty"`
}

type diskImage struct {
	SectorSize uint `yaml:"sectorSize,omitempty"`
}

// bootloader is written in lower case; none is left out.
type bootloader string

// UnmarshalYAML takes the names in any case.
func (b *bootloader) UnmarshalYAML(n *yaml.Node) error {
	var s string
	if err := n.Decode(&s); err != nil {
		return err
	}
	switch s = strings.ToLower(s); s {
	case "none", "auto":
		s = ""
	case "dual-boot", "sd-boot", "grub":
	default:
		return fmt.Errorf("line %d: %q does not belong to DiskImageBootloader values", n.Line, s)
	}
	*b = bootloader(s)
	return nil
}

// parseSchematic reads what a client posts. JSON is YAML too; unknown keys are
// refused, and so is an owner, which only the enterprise edition has.
func parseSchematic(text []byte) (schematic, error) {
	var s schematic
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("EOF")
		}
		return s, err
	}
	if s.Owner != "" {
		return s, errors.New("owner is an enterprise feature")
	}
	if keys := []string{"", "off", "manual", "if-safe", "force"}; !slices.Contains(keys, s.Customization.SecureBoot.EnrollKeys) {
		return s, fmt.Errorf("%q does not belong to SDBootEnrollKeys values", s.Customization.SecureBoot.EnrollKeys)
	}
	return s, nil
}

// canonical is the form that the id is made of.
func (s schematic) canonical() ([]byte, error) { return yaml.Marshal(s) }

func (s schematic) id() (string, error) {
	text, err := s.canonical()
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// SchematicID is the id of a schematic with only extensions and arguments of the
// kernel, in the order that they are given in.
func SchematicID(extensions, kernelArgs []string) (string, error) {
	return schematic{Customization: customization{KernelArgs: kernelArgs, Extensions: systemExtensions{extensions}}}.id()
}
