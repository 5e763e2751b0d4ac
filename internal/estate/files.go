package estate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const maxNamedFile = 1 << 20 // bytes; a patch or policy is a few KiB

// Path is where a file named in the estate is: relative paths start at the
// directory of the estate file, ~ is the user's home directory.
func (e *Estate) Path(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(e.Dir, name)
}

// Beside lists the files that the estate names by relative paths, as written.
func (e *Estate) Beside() []string {
	var out []string
	for _, f := range slices.Concat(e.patchFiles(), e.otherFiles()) {
		out = append(out, f.file)
	}
	for _, entry := range e.Admin.SSHKeys {
		if !isInlineSSHKey(entry) && !filepath.IsAbs(entry) && !strings.HasPrefix(entry, "~/") {
			out = append(out, entry)
		}
	}
	return out
}

// checkFiles looks at each file that the estate names, and gathers the SSH keys.
func (s *source) checkFiles(e *Estate) {
	for _, f := range e.patchFiles() {
		s.readNamed(e, f)
	}
	for _, f := range e.otherFiles() {
		if data, ok := s.readNamed(e, f); ok && f.path == "kubernetes.apiServer.auditPolicy" {
			s.checkAuditPolicy(f, data)
		}
	}
	e.Admin.PublicKeys = nil
	for i, entry := range e.Admin.SSHKeys {
		if line, ok := s.sshKeyLine(e, namedFile{indexed("admin.sshKeys", i), entry}); ok && !slices.Contains(e.Admin.PublicKeys, line) {
			e.Admin.PublicKeys = append(e.Admin.PublicKeys, line)
		}
	}
}

// readNamed reads a named file; what is wrong with it is recorded.
func (s *source) readNamed(e *Estate, f namedFile) ([]byte, bool) {
	if s.silenced(f.path) {
		return nil, false
	}
	data, err := ReadFile(e.Path(f.file), maxNamedFile)
	what, why, hint := "", "", "check the path; it starts at the directory of this file"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		what, why = fmt.Sprintf("there is no file %s", brief(f.file)), "it is named here and would be left out silently"
	case errors.As(err, new(*TooLargeError)):
		what, why = fmt.Sprintf("%s is larger than 1 MiB", brief(f.file)), "machine configuration has to stay small"
	case err != nil:
		what, why = fmt.Sprintf("cannot read %s", brief(f.file)), withoutPath(err)
	case strings.TrimSpace(string(data)) == "":
		what, why, hint = brief(f.file)+" is empty", "it would change nothing", "fill the file, or remove it from here"
	default:
		return data, true
	}
	s.refuse(f.path, what, why, hint)
	return nil, false
}

// withoutPath keeps the reason of a file error; its path is in the message already.
func withoutPath(err error) string {
	if pe := new(fs.PathError); errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// checkAuditPolicy looks at version and kind only; the API server reads the rest.
func (s *source) checkAuditPolicy(f namedFile, data []byte) {
	var head struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
	}
	docs, err := Documents(data)
	if err == nil && len(docs) == 1 {
		err = docs[0].Decode(&head)
	}
	if err != nil {
		s.refuse(f.path, brief(f.file)+" is not valid YAML", "the API server would not start", "correct the file: "+strings.ReplaceAll(err.Error(), "\n", " "))
	} else if head.APIVersion != "audit.k8s.io/v1" || head.Kind != "Policy" {
		s.refuse(f.path, brief(f.file)+" is not an audit policy", "the API server reads a Policy of audit.k8s.io/v1 and would not start", "start the file with apiVersion: audit.k8s.io/v1 and kind: Policy")
	}
}

// sshKeyLine gives the public key that an element of admin.sshKeys is or names.
func (s *source) sshKeyLine(e *Estate, f namedFile) (string, bool) {
	if s.silenced(f.path) {
		return "", false
	}
	if isInlineSSHKey(f.file) {
		line, what, _ := publicKey([]byte(f.file))
		return line, what == ""
	}
	data, ok := s.readNamed(e, f)
	if !ok {
		return "", false
	}
	if secretText.Match(data) {
		s.refuse(f.path, brief(f.file)+" holds a PRIVATE KEY", "only the public half is wanted here, and bastide does not touch the other", "name the file that ends in .pub")
		return "", false
	}
	line, what, why := publicKey(data)
	if what != "" {
		s.refuse(f.path, brief(f.file)+" "+what, why, "name the .pub file of one key")
		return "", false
	}
	return line, true
}
