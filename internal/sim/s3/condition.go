package s3

import (
	"net/http"
	"strings"
	"time"
)

// sameTag compares an ETag with one of a header, with or without quotes.
func sameTag(given, etag string) bool {
	return strings.Trim(strings.TrimPrefix(strings.TrimSpace(given), "W/"), `"`) == etag
}

func anyTag(list, etag string) bool {
	for _, one := range strings.Split(list, ",") {
		if strings.TrimSpace(one) == "*" || sameTag(one, etag) {
			return true
		}
	}
	return false
}

// readCondition holds the conditions of a GET or HEAD against a version: 304,
// 412 or nothing. A match of tags outweighs dates, as in HTTP.
func readCondition(h http.Header, prefix string, v *version) (status int, condition string) {
	at := v.modified.Truncate(time.Second)
	date := func(name string) (time.Time, bool) {
		t, err := http.ParseTime(h.Get(prefix + name))
		return t, err == nil
	}
	if m := h.Get(prefix + "If-Match"); m != "" {
		if !anyTag(m, v.etag) {
			return http.StatusPreconditionFailed, "If-Match"
		}
	} else if t, ok := date("If-Unmodified-Since"); ok && at.After(t) {
		return http.StatusPreconditionFailed, "If-Unmodified-Since"
	}
	if m := h.Get(prefix + "If-None-Match"); m != "" {
		if anyTag(m, v.etag) {
			return http.StatusNotModified, "If-None-Match"
		}
	} else if t, ok := date("If-Modified-Since"); ok && !at.After(t) {
		return http.StatusNotModified, "If-Modified-Since"
	}
	return 0, ""
}

// writeCondition holds the conditions of a write against the key's current
// version: If-None-Match: * wants none, If-Match wants the one with that ETag.
// It runs under the same lock as the write.
func (c *call) writeCondition(b *bucket) error {
	match, none := c.req.Header.Get("If-Match"), c.req.Header.Get("If-None-Match")
	if (match == "" && none == "") || c.s.opts.Watch.Faults().Store().ConditionsIgnored {
		return nil
	}
	if none != "" && none != "*" {
		return notImplemented("If-None-Match with anything but *")
	}
	if match == "*" || strings.Contains(match, ",") || (match != "" && none != "") {
		return notImplemented("If-Match with anything but one ETag")
	}
	v := b.current(c.key)
	exists := v != nil && !v.marker
	if none != "" && exists {
		return preconditionFailed("If-None-Match")
	}
	if match == "" {
		return nil
	}
	if err := c.may(b, c.key, need{"s3:GetObject", aclRead, v}); err != nil {
		return err
	}
	if !exists {
		return noSuchKey(c.key)
	}
	if !sameTag(match, v.etag) {
		return preconditionFailed("If-Match")
	}
	return nil
}
