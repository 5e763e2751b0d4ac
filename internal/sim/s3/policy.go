package s3

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// policy is a bucket policy. Conditions are kept and not evaluated: a statement
// with one grants nothing and denies nothing.
type policy struct {
	document   map[string]any // as it is given back
	statements []statement
}

type statement struct {
	deny               bool
	everyone           bool
	projects           []string
	actions, resources []string
	conditional        bool
}

type verdict int

const (
	silent verdict = iota
	allowed
	denied
)

// judge says what a policy makes of a call; a deny wins over an allow.
func (p *policy) judge(who caller, action, bucket, key string) verdict {
	out := silent
	if p == nil {
		return out
	}
	resource := bucket
	if key != "" {
		resource += "/" + key
	}
	for _, s := range p.statements {
		if s.conditional || !(s.everyone || slices.Contains(s.projects, who.project)) {
			continue
		}
		if !matchesAny(s.actions, action, true) || !matchesAny(s.resources, resource, false) {
			continue
		}
		if s.deny {
			return denied
		}
		out = allowed
	}
	return out
}

func matchesAny(patterns []string, s string, fold bool) bool {
	for _, p := range patterns {
		expr := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(p))
		if fold {
			expr = "(?i)" + expr
		}
		if regexp.MustCompile("^(?s:" + expr + ")$").MatchString(s) {
			return true
		}
	}
	return false
}

func malformedPolicy(why string) *refusal { return badRequest("MalformedPolicy", "%s", why) }

// parsePolicy reads a policy for a bucket.
func parsePolicy(text []byte, bucket string) (*policy, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	p := &policy{}
	if err := d.Decode(&p.document); err != nil || d.More() || p.document == nil {
		return nil, malformedPolicy("Policies must be valid JSON and the first byte must be '{'")
	}
	for k := range p.document {
		if k != "Version" && k != "Id" && k != "Statement" {
			return nil, malformedPolicy("Unknown field " + k)
		}
	}
	if v := p.document["Version"]; v != "2012-10-17" && v != "2023-04-17" {
		return nil, malformedPolicy("The policy must contain a valid version string")
	}
	list, ok := p.document["Statement"].([]any)
	if one, single := p.document["Statement"].(map[string]any); single {
		list, ok = []any{one}, true
	}
	if !ok || len(list) == 0 {
		return nil, malformedPolicy("Missing required field Statement")
	}
	for _, item := range list {
		s, err := parseStatement(item, bucket)
		if err != nil {
			return nil, err
		}
		p.statements = append(p.statements, s)
	}
	return p, nil
}

func parseStatement(item any, bucket string) (statement, error) {
	m, ok := item.(map[string]any)
	if !ok {
		return statement{}, malformedPolicy("A statement must be an object")
	}
	var s statement
	for k := range m {
		if !slices.Contains([]string{"Sid", "Effect", "Principal", "Action", "Resource", "Condition"}, k) {
			return s, malformedPolicy("Unknown field " + k)
		}
	}
	switch m["Effect"] {
	case "Allow":
	case "Deny":
		s.deny = true
	default:
		return s, malformedPolicy("Effect must be Allow or Deny")
	}
	_, s.conditional = m["Condition"]
	s.everyone, s.projects, ok = principals(m["Principal"])
	if !ok {
		return s, malformedPolicy("Invalid principal in policy")
	}
	if s.actions, ok = words(m["Action"]); !ok {
		return s, malformedPolicy("Missing required field Action")
	}
	for _, a := range s.actions {
		if a != "*" && !strings.HasPrefix(strings.ToLower(a), "s3:") {
			return s, malformedPolicy("Policy has invalid action")
		}
	}
	// Given back as recorded: actions in order, a list of one as that one.
	slices.Sort(s.actions)
	m["Action"] = shown(s.actions)
	if s.resources, ok = words(m["Resource"]); !ok {
		return s, malformedPolicy("Missing required field Resource")
	}
	m["Resource"] = shown(slices.Clone(s.resources))
	for i, r := range s.resources {
		r = strings.TrimPrefix(r, "arn:aws:s3:::")
		if name, _, _ := strings.Cut(r, "/"); name != bucket {
			return s, malformedPolicy("Policy has invalid resource")
		}
		s.resources[i] = r
	}
	return s, nil
}

// principals are "*", {"SCW": "*"} or {"SCW": ["project_id:UUID", ...]}. Users and
// applications are accepted and match nobody: the store knows projects only.
func principals(v any) (everyone bool, projects []string, ok bool) {
	if v == "*" {
		return true, nil, true
	}
	m, isMap := v.(map[string]any)
	if !isMap || len(m) != 1 {
		return false, nil, false
	}
	list, ok := words(m["SCW"])
	for _, p := range list {
		kind, id, _ := strings.Cut(p, ":")
		switch {
		case p == "*":
			everyone = true
		case kind == "project_id":
			projects = append(projects, id)
		case kind != "user_id" && kind != "application_id":
			return false, nil, false
		}
	}
	return everyone, projects, ok
}

// words is a string or a list of strings, not empty.
func words(v any) ([]string, bool) {
	if s, ok := v.(string); ok {
		return []string{s}, true
	}
	list, ok := v.([]any)
	var out []string
	for _, item := range list {
		s, isText := item.(string)
		ok = ok && isText
		out = append(out, s)
	}
	return out, ok && len(out) > 0
}

// shown is a list of words as a policy is given back.
func shown(list []string) any {
	if len(list) == 1 {
		return list[0]
	}
	return list
}

func (c *call) putPolicy() (*reply, error) {
	b, err := c.bucket(need{action: "s3:PutBucketPolicy"})
	if err != nil {
		return nil, err
	}
	p, err := parsePolicy(c.config, b.name)
	if err != nil {
		return nil, err
	}
	b.policy = p
	c.did("changed", "bucket", b.name)
	return newReply(http.StatusOK), nil
}

func (c *call) getPolicy() (*reply, error) {
	b, err := c.bucket(need{action: "s3:GetBucketPolicy"})
	if err != nil {
		return nil, err
	}
	if b.policy == nil {
		return nil, notFound("NoSuchBucketPolicy", "The bucket policy does not exist").with("BucketName", b.name)
	}
	r := newReply(http.StatusOK)
	r.header.Set("Content-Type", "application/json")
	r.body, err = json.Marshal(b.policy.document)
	return r, err
}

func (c *call) deletePolicy() (*reply, error) {
	b, err := c.bucket(need{action: "s3:DeleteBucketPolicy"})
	if err != nil {
		return nil, err
	}
	b.policy = nil
	c.did("changed", "bucket", b.name)
	return newReply(http.StatusNoContent), nil
}
