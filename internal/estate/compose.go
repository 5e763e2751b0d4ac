package estate

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Limits on the text. A real file stays under 10 KiB and eight levels; beyond
// these bounds it is a mistake or an attack, and reading on costs only time.
const (
	maxFileSize = 128 << 10 // bytes
	maxDepth    = 24        // lists and mappings inside one another
)

// secretText finds key material that must never stand in a file made to be
// committed: age identities and PEM private keys.
var secretText = regexp.MustCompile(`(?i)AGE-SECRET-KEY-|-----BEGIN [A-Z0-9 ]*PRIVATE KEY`)

// compose turns text into the one mapping of the one document that it may
// hold. It returns nil when something was refused.
func (s *source) compose(data []byte) *yaml.Node {
	if !s.acceptText(data) {
		return nil
	}
	loader, err := newLoader(data)
	if err != nil {
		s.refuse("", "cannot be read as YAML", err.Error(), "check the file")
		return nil
	}
	var doc yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF):
		s.refuse("", "is empty", "there is nothing to build from", "start from examples/private/estate.yaml")
		return nil
	case err != nil:
		s.refuseSyntax(data, err)
		return nil
	}
	var second yaml.Node
	switch err := loader.Load(&second); {
	case err == nil:
		s.refuseAt(mark{max(second.Line, 1), max(second.Column, 1)}, "", "a second document starts here",
			"one file is one estate", "move it to a file and directory of its own")
		return nil
	case !errors.Is(err, io.EOF):
		s.refuseSyntax(data, err)
		return nil
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		s.refuse("", "is not a mapping of keys to values", "an estate file starts with apiVersion and kind",
			"write apiVersion: "+APIVersion+" on the first line")
		return nil
	}
	s.at[""] = mark{doc.Content[0].Line, doc.Content[0].Column} // what is missing is missing here, below any comment
	if s.forbidSyntax(doc.Content[0], "", 0); len(s.problems) > 0 {
		return nil
	}
	return doc.Content[0]
}

// acceptText looks at the bytes before a parser does.
func (s *source) acceptText(data []byte) bool {
	switch {
	case len(data) > maxFileSize:
		s.refuse("", fmt.Sprintf("is larger than %d KiB", maxFileSize>>10),
			"an estate file is a few hundred lines", "keep other data in files of its own, named from this one")
	case !utf8.Valid(data):
		s.refuseAt(markOf(data, notUTF8(data)), "", "is not UTF-8 text", "other encodings are read differently by different tools", "save it as UTF-8")
	default:
		place := secretText.FindIndex(data)
		if place == nil {
			return true
		}
		s.refuseAt(markOf(data, place[0]), "", "a PRIVATE KEY stands here",
			"this file is made to be committed and shared, and whoever has read it now has the key",
			"take it out of the file and its history, throw that key away, and write only public keys")
	}
	return false
}

// notUTF8 is where the first byte stands that is no part of a character.
func notUTF8(data []byte) int {
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size < 2 {
			break
		}
		at += size
	}
	return at
}

// markOf is the place of an offset, by the line breaks of YAML.
func markOf(data []byte, at int) mark {
	before := lineBreaks.Replace(strings.TrimPrefix(string(data[:at]), "\ufeff"))
	return mark{strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1}
}

var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

func (s *source) refuseSyntax(data []byte, err error) {
	m, what := s.at[""], err.Error()
	if le := new(yaml.LoadError); errors.As(err, &le) {
		what = le.Message
		if le.Mark.Line > 0 {
			m = mark{le.Mark.Line, max(le.Mark.Column, 1)}
			if end := markOf(data, len(data)); m.line > end.line {
				m = end // the parser thinks of a line break after the last line
			}
		}
		if le.ContextMsg != "" {
			what += " " + le.ContextMsg
			if le.ContextMark.Line > 0 && le.ContextMark.Line != le.Mark.Line {
				what += fmt.Sprintf(" that starts on line %d", le.ContextMark.Line)
			}
		}
	}
	s.refuseAt(m, "", "is not valid YAML: "+what, "nothing after this place can be trusted",
		"look at indentation (spaces, never tabs), brackets and quotes here and on the line above")
}

// forbidSyntax refuses the parts of YAML that make one place of the text count
// in another (anchors, aliases, merge keys), those that name types (tags), and
// nesting that no estate needs. Without them every value has one place.
func (s *source) forbidSyntax(n *yaml.Node, path string, depth int) {
	here := mark{n.Line, n.Column}
	const hint = "write the value out where it is needed"
	switch {
	case depth > maxDepth:
		s.refuseAt(here, path, "is nested too deeply", fmt.Sprintf("no part of an estate is more than %d levels deep", maxDepth), "flatten it")
		return
	case n.Kind == yaml.AliasNode:
		s.refuseAt(here, path, "is an alias", "each value must stand where it is read, so that a diff of the file shows every change", hint)
		return
	case n.Anchor != "":
		s.refuseAt(here, path, "carries an anchor", "aliases are not read, so nothing could use it", "remove the &"+brief(n.Anchor))
	case n.Style&yaml.TaggedStyle != 0:
		s.refuseAt(here, path, "carries the type tag "+brief(n.Tag), "types are known from the key", "remove the tag")
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if key.ShortTag() == "!!merge" {
				s.refuseAt(mark{key.Line, key.Column}, keyed(path, "<<"), "is a merge key", "it would pull in values from elsewhere in the file", hint)
				continue
			}
			s.forbidSyntax(key, path, depth+1)
			s.forbidSyntax(value, keyed(path, key.Value), depth+1)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			s.forbidSyntax(item, indexed(path, i), depth+1)
		}
	}
}
