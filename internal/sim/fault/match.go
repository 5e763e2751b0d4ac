package fault

import (
	"crypto/sha256"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"google.golang.org/grpc/codes"
)

// servedBy matches the name of the node that serves a call; an empty pattern is
// any.
func servedBy(pattern, node string) bool { return pattern == "" || glob(pattern, node) }

// called matches a method with or without its service.
func called(pattern, method string) bool {
	return glob(pattern, method) || glob(pattern, method[strings.LastIndexByte(method, '/')+1:])
}

// Mutates says whether a method changes things.
func Mutates(method string) bool { return method != http.MethodGet && method != http.MethodHead }

func (r HTTPRule) method(m string) bool {
	switch r.Method {
	case "", "*":
		return true
	case "mutating":
		return Mutates(m)
	}
	for _, want := range strings.Split(r.Method, "|") {
		if strings.EqualFold(strings.TrimSpace(want), m) {
			return true
		}
	}
	return false
}

func (r HTTPRule) query(q url.Values) bool {
	for k, want := range r.Query {
		found := false
		for _, v := range q[k] {
			found = found || glob(want, v)
		}
		if !found {
			return false
		}
	}
	return true
}

func (r HTTPRule) key(method, path string, body []byte) string {
	switch r.Per {
	case "path":
		return method + " " + path
	case "request":
		sum := sha256.Sum256(body)
		return method + " " + path + " " + string(sum[:])
	}
	return ""
}

// compile turns a rule's path into an expression.
func compile(path string) (*regexp.Regexp, error) {
	if expr, ok := strings.CutPrefix(path, "~"); ok {
		return regexp.Compile(expr)
	}
	quoted := regexp.QuoteMeta(path)
	quoted = strings.ReplaceAll(quoted, `\*\*`, `.*`)
	return regexp.Compile("^" + strings.ReplaceAll(quoted, `\*`, `[^/]*`) + "$")
}

// glob matches a whole string; * stands for anything.
func glob(pattern, s string) bool {
	rx := regexp.MustCompile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + "$")
	return rx.MatchString(s)
}

func code(name string) codes.Code {
	for c := codes.OK; c <= codes.Unauthenticated; c++ {
		if strings.EqualFold(c.String(), name) {
			return c
		}
	}
	return codes.OK
}

func knownCode(name string) bool { return code(name) != codes.OK }
