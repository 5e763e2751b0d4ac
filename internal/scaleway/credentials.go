package scaleway

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bastide/internal/outcome"

	"go.yaml.in/yaml/v4"
)

// profile is what one source of settings says. Empty means "does not say".
type profile struct {
	AccessKey string `yaml:"access_key"`
	SecretKey string `yaml:"secret_key"`
	APIURL    string `yaml:"api_url"`
	Insecure  bool   `yaml:"insecure"`
	Project   string `yaml:"default_project_id"`
	Region    string `yaml:"default_region"`
	Zone      string `yaml:"default_zone"`
	S3URL     string `yaml:"s3_endpoint"`
	PathStyle bool   `yaml:"s3_use_path_style"`

	keyFrom, urlFrom, s3From string // where the API key and the endpoints come from, for messages
}

// over lays a profile over another.
func (p profile) over(below profile) profile {
	pick := func(s *string, from string) {
		if *s == "" {
			*s = from
		}
	}
	if p.SecretKey == "" {
		p.keyFrom = below.keyFrom
	}
	if p.APIURL == "" {
		p.urlFrom = below.urlFrom
	}
	if p.S3URL == "" {
		p.s3From = below.s3From
	}
	pick(&p.AccessKey, below.AccessKey)
	pick(&p.SecretKey, below.SecretKey)
	pick(&p.APIURL, below.APIURL)
	pick(&p.Project, below.Project)
	pick(&p.Region, below.Region)
	pick(&p.Zone, below.Zone)
	pick(&p.S3URL, below.S3URL)
	p.PathStyle = p.PathStyle || below.PathStyle
	p.Insecure = p.Insecure || below.Insecure
	return p
}

// settings collects credentials and endpoint in the SDK's order: the scw
// configuration file, then the environment over it.
type settings struct {
	lookup   func(string) (string, bool)
	warnings []string
}

// variables are the environment's names for each setting; the first is current,
// the others are older ones that the SDK still reads.
var variables = []struct {
	names []string
	into  func(*profile) *string
}{
	{[]string{"SCW_ACCESS_KEY", "SCALEWAY_ACCESS_KEY"}, func(p *profile) *string { return &p.AccessKey }},
	{[]string{"SCW_SECRET_KEY", "SCW_TOKEN", "SCALEWAY_TOKEN"}, func(p *profile) *string { return &p.SecretKey }},
	{[]string{"SCW_API_URL"}, func(p *profile) *string { return &p.APIURL }},
	{[]string{"SCW_S3_ENDPOINT"}, func(p *profile) *string { return &p.S3URL }},
	{[]string{"SCW_DEFAULT_PROJECT_ID"}, func(p *profile) *string { return &p.Project }},
	{[]string{"SCW_DEFAULT_REGION", "SCW_REGION", "SCALEWAY_REGION"}, func(p *profile) *string { return &p.Region }},
	{[]string{"SCW_DEFAULT_ZONE"}, func(p *profile) *string { return &p.Zone }},
}

// HasCredentials says whether the settings hold an API key or a part of one.
func HasCredentials(lookup func(string) (string, bool)) (bool, error) {
	p, err := (&settings{lookup: lookup}).profile()
	return p.AccessKey != "" || p.SecretKey != "", err
}

func (s *settings) profile() (profile, error) {
	file, err := s.file()
	if err != nil {
		return profile{}, err
	}
	env, err := s.environment()
	return env.over(file), err
}

// get reads a variable. One that is set but empty, as build systems like to
// leave them, counts as unset; the SDK would take the empty text for the value.
func (s *settings) get(name string) string {
	v, set := s.lookup(name)
	if set && v == "" {
		s.warnings = append(s.warnings, fmt.Sprintf("%s is set but empty; it is taken as not set", name))
	}
	return v
}

func (s *settings) environment() (profile, error) {
	var p profile
	for _, v := range variables {
		for i, name := range v.names {
			value := s.get(name)
			if value == "" {
				continue
			}
			if i > 0 {
				s.warnings = append(s.warnings, fmt.Sprintf("%s is an old name; use %s", name, v.names[0]))
			}
			*v.into(&p) = value
			switch v.names[0] {
			case "SCW_SECRET_KEY":
				p.keyFrom = name
			case "SCW_API_URL":
				p.urlFrom = name
			case "SCW_S3_ENDPOINT":
				p.s3From = name
			}
			break
		}
	}
	for name, into := range map[string]*bool{"SCW_INSECURE": &p.Insecure, "SCW_S3_USE_PATH_STYLE": &p.PathStyle} {
		switch text := s.get(name); strings.ToLower(text) {
		case "", "0", "false", "f":
		case "1", "true", "t":
			*into = true
		default:
			return p, outcome.Refuse(name+" cannot be read", "it is neither true nor false", "set it to true or false, or unset it")
		}
	}
	return p, nil
}

// file reads the active profile of the scw configuration file. It does so
// itself because the SDK's reader prints on standard output when others may
// read the file; here that is a warning.
func (s *settings) file() (profile, error) {
	wanted := s.get("SCW_PROFILE")
	path, data, err := s.read()
	if err != nil || data == nil {
		if err == nil && wanted != "" {
			err = outcome.Refuse(fmt.Sprintf("the profile %s of SCW_PROFILE cannot be used", wanted),
				"there is no scw configuration file", "unset SCW_PROFILE or set SCW_CONFIG_PATH")
		}
		return profile{}, err
	}
	var config struct {
		Top    profile            `yaml:",inline"`
		Active string             `yaml:"active_profile"`
		Named  map[string]profile `yaml:"profiles"`
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		// The error's own text may quote the file, which holds the secret key.
		return profile{}, outcome.Refuse(fmt.Sprintf("the scw configuration file %s cannot be read", path),
			"it is not the YAML that it should be", "correct it, or set SCW_ACCESS_KEY and SCW_SECRET_KEY and move it away")
	}
	name := orText(wanted, config.Active)
	config.Top = config.Top.named("the default profile of " + path)
	if name == "" || name == "default" {
		return config.Top, nil
	}
	named, ok := config.Named[name]
	if !ok {
		return profile{}, outcome.Refuse(fmt.Sprintf("the profile %s cannot be used", name),
			fmt.Sprintf("%s has no such profile", path), "correct SCW_PROFILE or active_profile")
	}
	return named.named(fmt.Sprintf("the profile %s of %s", name, path)).over(config.Top), nil
}

// named notes where a profile's settings come from.
func (p profile) named(from string) profile {
	p.keyFrom, p.urlFrom, p.s3From = from, from, from
	return p
}

// read finds the configuration file; no file is no error unless one was named.
func (s *settings) read() (string, []byte, error) {
	named := s.get("SCW_CONFIG_PATH")
	for _, path := range s.paths(named) {
		info, err := os.Stat(path)
		if os.IsNotExist(err) {
			continue
		}
		var data []byte
		if err == nil {
			data, err = os.ReadFile(path)
		}
		if err != nil {
			return path, nil, outcome.Refuse("the scw configuration file cannot be read", err.Error(), "make it readable, or set SCW_CONFIG_PATH to another")
		}
		if len(data) > 0 && info.Mode().Perm()&fs.FileMode(0o077) != 0 {
			s.warnings = append(s.warnings, fmt.Sprintf("%s holds a secret key and others may read it; run chmod 0600 on it", path))
		}
		return path, data, nil
	}
	if named != "" {
		return named, nil, outcome.Refuse("the scw configuration file cannot be read", fmt.Sprintf("%s does not exist", named), "correct or unset SCW_CONFIG_PATH")
	}
	return "", nil, nil
}

func (s *settings) paths(named string) []string {
	if named != "" {
		return []string{named}
	}
	var dir string
	if xdg, _ := s.lookup("XDG_CONFIG_HOME"); xdg != "" {
		dir = xdg
	} else if home, _ := s.lookup("HOME"); home != "" {
		dir = filepath.Join(home, ".config")
	} else if home, _ := s.lookup("USERPROFILE"); home != "" {
		dir = filepath.Join(home, ".config")
	} else {
		return nil
	}
	return []string{filepath.Join(dir, "scw", "config.yaml"), filepath.Join(dir, "scw", "config.yml")}
}
