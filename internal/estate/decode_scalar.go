package estate

import (
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// scalars are the types with a written form of their own.
var scalars = map[reflect.Type]func(*source, *yaml.Node, reflect.Value, string){
	reflect.TypeFor[Size]():   (*source).decodeSize,
	reflect.TypeFor[Prefix](): (*source).decodePrefix,
}

func (s *source) refuseType(n *yaml.Node, path, wanted, hint string) {
	s.refuse(path, "is "+describe(n), "it has to be "+wanted, hint)
}

// describe names what was found, in words of the file rather than of YAML.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "the number " + brief(n.Value)
	case "!!bool":
		return "the truth value " + brief(n.Value)
	case "!!timestamp":
		return "the date " + brief(n.Value)
	case "!!null":
		return "empty"
	default:
		if oldTruth(n) {
			return "the bare word " + n.Value
		}
		return fmt.Sprintf("the text %q", brief(n.Value))
	}
}

func quoteHint(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		return "write one word"
	}
	return fmt.Sprintf("put it in quotes: %q", brief(n.Value))
}

// oldTruth tells the words that YAML 1.1 reads as true or false and this
// program as text. The writer may have meant either, and half of the tools that
// read such a file would say otherwise, so they are taken in quotes only.
func oldTruth(n *yaml.Node) bool {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	if n.Kind != yaml.ScalarNode || n.Style&quoted != 0 || len(n.Value) > len("off") {
		return false
	}
	switch w := n.Value; w {
	case strings.ToLower(w), strings.ToUpper(w), strings.ToUpper(w[:1]) + strings.ToLower(w[1:]):
		return slices.Contains([]string{"y", "n", "yes", "no", "on", "off"}, strings.ToLower(w))
	}
	return false
}

const whyOldTruth = "YAML 1.1 reads it as true or false, so tools disagree about what it is"

// brief bounds what a message repeats from the file.
func brief(text string) string {
	const most = 60
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,9})$`)

func (s *source) decodeInt(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" {
		s.refuseType(n, path, "a whole number", "write it in digits, without quotes or unit")
		return
	}
	if !decimal.MatchString(n.Value) {
		s.refuse(path, fmt.Sprintf("is written as %q", brief(n.Value)), "octal, hexadecimal and grouped digits are easily misread", "write it in plain decimal digits")
		return
	}
	i, _ := strconv.ParseInt(n.Value, 10, 64) // at most ten digits
	v.SetInt(i)
}

func (s *source) decodeBool(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode || n.Value != "true" && n.Value != "false" || n.ShortTag() != "!!bool" {
		s.refuseType(n, path, "a truth value", "write true or false, without quotes")
		return
	}
	v.SetBool(n.Value == "true")
}

func (s *source) decodeSize(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode {
		s.refuseType(n, path, "a size", "write a number and a unit, such as 20GB")
		return
	}
	size, err := ParseSize(n.Value)
	if err != nil {
		s.refuse(path, fmt.Sprintf("%q is not a size", brief(n.Value)), err.Error(), "write a whole number and a unit, such as 20GB or 2GiB")
		return
	}
	v.SetInt(int64(size))
}

func (s *source) decodePrefix(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		s.refuseType(n, path, "an address range", "write an address, a slash and a prefix length, such as 172.16.0.0/22")
		return
	}
	text := n.Value
	if text == "" {
		return // reported as empty where a value is needed
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		hint := "write an address, a slash and a prefix length, such as 172.16.0.0/22 or 198.51.100.7/32"
		if addr, err := netip.ParseAddr(text); err == nil && addr.Is4() {
			hint = fmt.Sprintf("for that one address write %s/32", addr)
		}
		s.refuse(path, fmt.Sprintf("%q is not an address range", brief(text)), "it has to be in CIDR notation", hint)
		return
	}
	if prefix.Masked() != prefix {
		hint := fmt.Sprintf("write %s/%d for the address", prefix.Addr(), prefix.Addr().BitLen())
		if prefix.Bits() >= 8 { // nobody means a wider one, and a hint must not open a door
			hint = fmt.Sprintf("write %s for the range, or %s/%d for the address", prefix.Masked(), prefix.Addr(), prefix.Addr().BitLen())
		}
		s.refuse(path, fmt.Sprintf("%s has bits set to the right of its prefix", prefix), "it is unclear whether the range or the address is meant", hint)
		return
	}
	v.Set(reflect.ValueOf(Prefix{prefix}))
}

// plainValue keeps a value of free form, such as a piece of kubelet
// configuration, as the Go values that JSON would give.
func (s *source) plainValue(n *yaml.Node, path string) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		s.entries(n, path, func(key string, at mark, value *yaml.Node) {
			s.at[keyed(path, key)] = at
			m[key] = s.plainValue(value, keyed(path, key))
		})
		return m
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			s.at[indexed(path, i)] = mark{item.Line, item.Column}
			list[i] = s.plainValue(item, indexed(path, i))
		}
		return list
	}
	if oldTruth(n) {
		s.refuse(path, "is "+describe(n), whyOldTruth, fmt.Sprintf("write true or false, or put it in quotes: %q", n.Value))
		return ""
	}
	var value any
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return n.Value
	case "!!int", "!!float", "!!bool":
		if err := n.Decode(&value); err == nil && isPlain(value) {
			return value
		}
	}
	s.refuse(path, "is "+describe(n), "it has to be text, a number, true or false", "write such a value, or remove the line")
	return ""
}

// isPlain keeps out what JSON cannot carry: infinities and "not a number".
func isPlain(value any) bool {
	f, ok := value.(float64)
	return !ok || !strings.ContainsAny(strconv.FormatFloat(f, 'g', -1, 64), "IN")
}
