package estate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"filippo.io/age"
)

// MaxNameLength bounds the estate's name, so that every name made from it (of
// nodes, load balancer, network) stays within the 63 characters of a DNS label.
const MaxNameLength = 32

var (
	dnsLabel      = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)
	canonicalUUID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
)

// zonesOf is the regions and zones that Scaleway's SDK 1.39 names.
var zonesOf = map[string][]string{
	"fr-par": {"fr-par-1", "fr-par-2", "fr-par-3"},
	"nl-ams": {"nl-ams-1", "nl-ams-2", "nl-ams-3"},
	"pl-waw": {"pl-waw-1", "pl-waw-2", "pl-waw-3"},
	"it-mil": {"it-mil-1", "it-mil-2", "it-mil-3"},
}

// lacking is what the same SDK does not offer in a zone and every private estate
// needs. A file that asks for it would fail half way.
var lacking = map[string]string{
	"fr-par-3": "public gateways or load balancers",
	"it-mil-1": "load balancers or block storage",
	"it-mil-2": "Instances, public gateways, load balancers or block storage",
	"it-mil-3": "Instances, public gateways, load balancers or block storage",
}

var regions = []string{"fr-par", "nl-ams", "pl-waw", "it-mil"}

const labelHint = "write lower-case letters, digits and dashes, beginning with a letter and ending with a letter or digit"

func (s *source) validateName(e *Estate) {
	switch name := e.Name; {
	case name == "":
	case !dnsLabel.MatchString(name):
		s.refuse("name", fmt.Sprintf("%q cannot be a name", brief(name)), "it becomes part of host names and of names at Scaleway", labelHint)
	case len(name) > MaxNameLength:
		s.refuse("name", fmt.Sprintf("has %d characters", len(name)),
			"names of nodes and of the load balancer are made from it and must stay within 63",
			fmt.Sprintf("shorten it to %d", MaxNameLength))
	}
}

func (s *source) validateScaleway(sc *Scaleway) {
	if sc.Project != "" && !canonicalUUID.MatchString(sc.Project) {
		s.refuse("scaleway.project", fmt.Sprintf("%q is not a project id", brief(sc.Project)), "projects are named by UUID, in lower case",
			"copy the id from the project's settings page, or from: scw account project list")
	} else if strings.Trim(sc.Project, "0-") == "" && sc.Project != "" {
		s.refuse("scaleway.project", "is all zeros", "no project has that id", "copy the id from the project's settings page, or from: scw account project list")
	}
	s.oneOf("scaleway.region", sc.Region, regions, "bastide knows these regions of Scaleway: "+strings.Join(regions, ", "))
	if len(sc.Zones) > 1 {
		s.refuse("scaleway.zones", fmt.Sprintf("lists %d zones", len(sc.Zones)),
			"this version of bastide builds an estate in exactly one zone, because volumes, snapshots and gateways cannot leave theirs", "keep one")
	}
	for i, zone := range sc.Zones {
		s.validateZone(indexed("scaleway.zones", i), zone, sc.Region)
	}
}

func (s *source) validateZone(path, zone, region string) {
	known, ok := zonesOf[region]
	if !ok {
		return // an unknown region has been refused already
	}
	if what := lacking[zone]; what != "" && slices.Contains(known, zone) {
		s.refuse(path, zone+" does not have "+what, "a private estate needs them in the zone of its nodes", "choose another zone")
		return
	}
	if slices.Contains(known, zone) {
		return
	}
	hint := "write one of " + strings.Join(known, ", ")
	if slices.Contains(regions, zone) {
		hint = fmt.Sprintf("that is a region; write a zone in it, such as %s-1", zone)
	}
	s.refuse(path, fmt.Sprintf("%q is not a zone of %s", brief(zone), region), "everything of an estate is in one region", hint)
}

// validateRecipients checks that each recipient is one to which age encrypts.
// age refuses to encrypt one file to post-quantum and classic keys together,
// because the weaker key would decide.
func (s *source) validateRecipients(recipients []string) {
	s.noEmpty("secrets.recipients", recipients, "an age public key")
	hybrid := make([]bool, len(recipients))
	for i, text := range recipients {
		path := indexed("secrets.recipients", i)
		parsed, err := age.ParseRecipients(strings.NewReader(text))
		if text != "" && (err != nil || len(parsed) != 1) {
			hint := "write the age1... line that age-keygen printed as the public key"
			if strings.HasPrefix(text, "ssh-") {
				hint = "an SSH key cannot be used here; make a key with age-keygen and write its age1... line"
			}
			s.refuse(path, fmt.Sprintf("%q is not an age public key", brief(text)), "the secrets bundle could not be encrypted to it", hint)
			continue
		}
		if len(parsed) == 1 {
			_, hybrid[i] = parsed[0].(*age.HybridRecipient)
			if i > 0 && hybrid[i] != hybrid[0] {
				s.refuse(path, "mixes post-quantum and classic keys", "age refuses to encrypt one file to both, as the weaker would decide",
					"use keys of one kind for all recipients")
			}
		}
	}
	s.noRepeat("secrets.recipients", recipients)
}
