package factory

import (
	"strings"
	"testing"
)

// The ids are published ones: the Factory's own tests and pages have them, all
// but the last, which follows from the rule.
func TestIDsAreThePublishedOnes(t *testing.T) {
	for _, c := range []struct{ text, id string }{
		{"{}", "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"},
		{"customization: {}", "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"},
		{"customization: {bootloader: NONE, extraKernelArgs: []}", "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"},
		{`{"customization": {"extraKernelArgs": ["noapic", "nolapic"], "systemExtensions": {}}}`, "9cba8e32753f91a16c1837ab8abf356af021706ef284aef07380780177d9a06c"},
		{"customization: {meta: [{key: 0xa, value: foo}]}", "d308a2a5ee2277bed5fbaa104fcbc8d59122abfa737df987a95b4ca763459a7f"},
		{"overlay: {name: rpi_generic, image: siderolabs/sbc-raspberrypi}", "ee21ef4a5ef808a9b7484cc0dda0f25075021691c8c09a276591eedb638ea1f9"},
		{"customization: {secureboot: {includeWellKnownCertificates: true}}", "fa8e05f142a851d3ee568eb0a8e5841eaf6b0ebc8df9a63df16ac5ed2c04f3e6"},
		{"customization: {systemExtensions: {officialExtensions: [siderolabs/gvisor, siderolabs/kata-containers]}}", "bc9d9abefb95508722f49374f968a9d82cc186057a71ea9345d168a7672a5a9a"},
	} {
		s, err := parseSchematic([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if id, err := s.id(); err != nil || (c.id != "" && id != c.id) {
			t.Errorf("%s: %s, %v; want %s", c.text, id, err, c.id)
		}
	}
}

func TestOrderOfExtensionsMatters(t *testing.T) {
	one, err1 := parseSchematic([]byte("customization: {systemExtensions: {officialExtensions: [a, b]}}"))
	two, err2 := parseSchematic([]byte("customization: {systemExtensions: {officialExtensions: [b, a]}}"))
	a, _ := one.id()
	b, _ := two.id()
	if err1 != nil || err2 != nil || a == b {
		t.Errorf("%s, %s: %v, %v", a, b, err1, err2)
	}
}

func TestWrongSchematicsAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		"customisation: {}":                                "customisation",
		"customization: {extensions: []}":                  "extensions",
		"customization: {bootloader: lilo}":                "lilo",
		"customization: {meta: [{key: 300, value: x}]}":    "300",
		"customization: {secureboot: {enrollKeys: maybe}}": "maybe",
		"owner: me": "owner",
		"":          "EOF",
		"[":         "",
	} {
		if _, err := parseSchematic([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want something about %q", text, err, says)
		}
	}
}
