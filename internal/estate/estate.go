package estate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"go.yaml.in/yaml/v4"
)

// Load reads an estate from a directory that holds estate.yaml, or from that
// file itself, and checks the files that it names. Everything found wrong is
// returned at once, as Problems.
func Load(path string) (*Estate, error) {
	e, _, err := LoadFor(path, Everything)
	return e, err
}

// read finds the estate file of a path and reads it.
func read(path string) (file string, data []byte, err error) {
	if path == "" { // a variable that was not set
		return "", nil, Problems{{File: `""`, What: "no environment is named", Why: "an empty name is nobody's, and is not taken for the current directory",
			Hint: "name the directory that holds " + FileName}}
	}
	file = path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		file = filepath.Join(path, FileName)
	}
	if data, err = ReadFile(file, maxFileSize); err != nil {
		return "", nil, unreadable(file, err)
	}
	return file, data, nil
}

func unreadable(file string, err error) Problems {
	p := Problem{File: file, What: "cannot be read as an estate file", Why: withoutPath(err),
		Hint: "name the file, or the directory that holds " + FileName, cause: err}
	if errors.Is(err, fs.ErrNotExist) {
		p.What, p.Why = "there is no estate file here", "every command works on the one that it is given"
	}
	if errors.As(err, new(*TooLargeError)) {
		p.Line, p.Column = 1, 1
		p.What, p.Why, p.Hint = fmt.Sprintf("is larger than %d KiB", maxFileSize>>10), "an estate file is a few hundred lines", "keep other data in files of its own, named from this one"
	}
	return Problems{p}
}

// Parse reads an estate from text. It is pure: files that the estate names are
// not looked at. The name stands in the problems, which come all at once, as
// Problems.
func Parse(name string, data []byte) (*Estate, error) {
	e, s := parse(name, data)
	if err := s.problems.inFileOrder().orNil(); err != nil {
		return nil, err
	}
	return e, nil
}

// Validate checks an estate that has its defaults and did not come from text;
// its problems have paths but no lines.
func Validate(e *Estate) error {
	s := &source{at: map[string]mark{}, refused: map[string]bool{}}
	s.validate(e)
	return s.problems.orNil()
}

// parse runs the passes in turn. The estate is nil when the text is not of this
// version, for then nothing else that could be said about it would be true.
func parse(name string, data []byte) (*Estate, *source) {
	s := newSource(name)
	root := s.compose(data)
	if root == nil || !s.sniff(root) {
		return nil, s
	}
	e := &Estate{}
	s.decodeInto(root, reflect.ValueOf(e).Elem(), "")
	Default(e)
	s.validate(e)
	return e, s
}

// sniff looks at apiVersion and kind alone, before anything else is read in
// their light.
func (s *source) sniff(root *yaml.Node) bool {
	for _, want := range []struct{ key, value string }{{"apiVersion", APIVersion}, {"kind", Kind}} {
		found := false
		for i := 0; i+1 < len(root.Content); i += 2 {
			key, value := root.Content[i], root.Content[i+1]
			if key.Value != want.key || found {
				continue
			}
			found = true
			if value.Kind != yaml.ScalarNode || value.Value != want.value {
				s.refuseAt(mark{value.Line, value.Column}, want.key, "is "+describe(value),
					"this bastide reads only "+want.value, "write "+want.key+": "+want.value+", or use the bastide that this file was written for")
			}
		}
		if !found {
			s.refuseAt(mark{root.Line, root.Column}, want.key, "is missing",
				"without it the version of the file is unknown", "add "+want.key+": "+want.value+lookalike(root, want.key))
		}
	}
	return len(s.problems) == 0
}

// lookalike points at a key that was probably meant to be the wanted one.
func lookalike(root *yaml.Node, wanted string) string {
	for i := 0; i < len(root.Content); i += 2 {
		if key := root.Content[i]; nearest(key.Value, []string{wanted}) != "" {
			return fmt.Sprintf(" (line %d says %s)", key.Line, brief(key.Value))
		}
	}
	return ""
}

// ReadFile reads a regular file of at most limit bytes: a pipe or device named
// by mistake must not make a command hang, nor a huge file fill memory. A larger
// one is a TooLargeError.
func ReadFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("it is not a regular file")}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: &TooLargeError{limit}}
	}
	return data, err
}

// TooLargeError says that a file has more than Limit bytes.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string { return fmt.Sprintf("it is larger than %d KiB", e.Limit>>10) }
