package estate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// OwnTags begin with this: they are how bastide finds what it made.
const OwnTags = "bastide:"

// SecretsOfBastide is the folder of Secret Manager in which bastide keeps what
// it makes itself.
const SecretsOfBastide = "bastide"

var (
	edgeAddresses = []string{"none", "reserved"}
	// secretTypes are those of Secret Manager's API.
	secretTypes = []string{"opaque", "certificate", "key_value", "basic_credentials", "database_credentials", "ssh_key"}
	// registryName is a part of an address, rg.REGION.scw.cloud/NAME.
	registryName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{2,48}[a-z0-9]$`)
	secretPart   = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,255}$`)
)

func (s *source) validateServices(e *Estate) {
	s.oneOf("network.edgeAddress", e.Network.EdgeAddress, edgeAddresses, "the address is either booked beforehand or left to the cluster")
	s.validateBuckets(e.Services.Buckets, e.BucketName())
	if r := e.Services.Registry; r != nil {
		s.validateRegistry("services.registry", r)
	}
	s.validateSecrets("services.secrets", e.Services.Secrets)
	if e.DNS != nil {
		s.validateDNS(e)
	}
}

func (s *source) validateRegistry(path string, r *Registry) {
	if r.Name != "" && !registryName.MatchString(r.Name) {
		s.refuse(path+".name", fmt.Sprintf("%q cannot be a namespace's name", brief(r.Name)), "it becomes part of the images' names",
			"write 4 to 50 lower-case letters, digits and dashes, with a letter or digit at both ends")
	}
	if strings.Contains(r.Description, OwnTags) {
		s.refuse(path+".description", "holds "+OwnTags, "namespaces have no tags, so bastide's mark stands in the description", "leave that word out")
	}
}

func (s *source) validateSecrets(path string, secrets []SecretContainer) {
	first := map[string]int{}
	for i, c := range secrets {
		here := indexed(path, i)
		s.validateSecretName(here+".name", c.Name)
		if at, twice := first[c.Name]; twice && c.Name != "" {
			s.refuse(here+".name", fmt.Sprintf("%q is the name of %s too", brief(c.Name), indexed(path, at)), "a secret is found by its path and name", "choose another name")
		} else {
			first[c.Name] = i
		}
		s.oneOf(here+".type", c.Type, secretTypes, "Secret Manager has these types: "+strings.Join(secretTypes, ", "))
		s.validateTags(here+".tags", c.Tags)
	}
}

func (s *source) validateSecretName(path, name string) {
	if name == "" {
		return
	}
	parts := strings.Split(name, "/")
	for _, part := range parts {
		if !secretPart.MatchString(part) || part == "." || part == ".." {
			s.refuse(path, fmt.Sprintf("%q cannot be a secret's name", brief(name)), "folders and name are letters, digits, dots, dashes and underscores, with one slash between",
				"write such as app/session-key, without a slash at the beginning or end")
			return
		}
	}
	if len(parts) > 1 && strings.EqualFold(parts[0], SecretsOfBastide) {
		s.refuse(path, "lies in /"+parts[0], "bastide keeps there what it makes itself, such as passwords of the database", "choose another folder")
	}
}

// validateTags refuses tags that would pass for bastide's own.
func (s *source) validateTags(path string, tags []string) {
	s.noEmpty(path, tags, "a tag")
	s.noRepeat(path, tags)
	for i, t := range tags {
		if strings.HasPrefix(t, OwnTags) {
			s.refuse(indexed(path, i), fmt.Sprintf("%q begins with %s", brief(t), OwnTags), "that is how bastide finds what it made", "choose another tag")
		}
	}
}

// unknownWord refuses one element of a list that may hold only known words.
func (s *source) unknownWord(path string, values, known []string, why string) {
	for i, v := range values {
		if !slices.Contains(known, v) {
			s.refuse(indexed(path, i), fmt.Sprintf("%q is not known", brief(v)), why, "write "+oneOfText(known))
		}
	}
}
