package estate

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/limit"
)

// Limits on any YAML that is read. The library takes time that grows with the
// square of depth and of the keys of one mapping, so that a file of less than a
// megabyte could keep it busy for an hour.
const (
	mostDepth = 100  // lists and mappings inside one another
	mostKeys  = 4096 // of one mapping
)

// TextError is what is wrong with a YAML text, and where.
type TextError struct {
	Line, Column int // 1-based; 0 when the library named no place
	What         string
}

func (e *TextError) Error() string {
	if e.Line == 0 {
		return e.What
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.What)
}

// newLoader reads YAML with bounded depth.
func newLoader(text []byte) (*yaml.Loader, error) {
	return yaml.NewLoader(bytes.NewReader(text), yaml.WithPlugin(limit.New(limit.DepthValue(mostDepth))))
}

// Documents reads the trees of a YAML text and makes sure that decoding them
// takes no more time than reading did. Its errors are *TextError and repeat
// nothing of the text's values.
func Documents(text []byte) ([]*yaml.Node, error) {
	loader, err := newLoader(text)
	if err != nil {
		return nil, &TextError{What: err.Error()}
	}
	var docs []*yaml.Node
	for {
		var doc yaml.Node
		err := loader.Load(&doc)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, textError(err)
		}
		if err := bounded(&doc); err != nil {
			return nil, err
		}
		docs = append(docs, &doc)
	}
}

func textError(err error) *TextError {
	var at *yaml.LoadError
	if !errors.As(err, &at) {
		return &TextError{What: "it is not valid YAML"}
	}
	return &TextError{Line: at.Mark.Line, Column: max(at.Mark.Column, 1), What: "it is not valid YAML: " + at.Message}
}

func bounded(n *yaml.Node) error {
	if n.Kind == yaml.MappingNode {
		if len(n.Content) > 2*mostKeys {
			return &TextError{n.Line, n.Column, fmt.Sprintf("a mapping has more than %d keys", mostKeys)}
		}
		first := map[string]int{}
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			if line, twice := first[key.Value]; twice && key.Kind == yaml.ScalarNode {
				return &TextError{key.Line, key.Column, fmt.Sprintf("a key is written twice, the first time on line %d", line)}
			}
			if key.Kind == yaml.ScalarNode {
				first[key.Value] = key.Line
			}
		}
	}
	for _, c := range n.Content {
		if err := bounded(c); err != nil {
			return err
		}
	}
	return nil
}
