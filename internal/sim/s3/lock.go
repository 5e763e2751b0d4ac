package s3

import (
	"encoding/xml"
	"net/http"
	"time"
)

// Object lock: versions that may not go away until a date, or until a hold is
// lifted. Dates are those of the calendar, whatever the region's speed.

type lockConfig struct {
	XMLName           xml.Name
	ObjectLockEnabled string    `xml:",omitempty"`
	Rule              *lockRule `xml:",omitempty"`
}

type lockRule struct{ DefaultRetention defaultRetention }

type defaultRetention struct {
	Days  int `xml:",omitempty"`
	Mode  string
	Years int `xml:",omitempty"`
}

// retention is what a new version gets by default.
func (l *lockConfig) retention(at time.Time) retention {
	if l == nil || l.Rule == nil {
		return retention{}
	}
	d := l.Rule.DefaultRetention
	return retention{d.Mode, at.AddDate(d.Years, 0, d.Days)}
}

func validMode(mode string) bool { return mode == modeGoverned || mode == modeComplied }

func missingLock() *refusal { return invalidRequest("Bucket is missing Object Lock Configuration") }

func protected() *refusal {
	return accessDenied("Access Denied because object protected by object lock.")
}

// bypass says whether a caller lifts governance. The header is refused where it
// could have no meaning, as the real store does.
func (c *call) bypass(b *bucket) (bool, error) {
	h := c.req.Header.Get("X-Amz-Bypass-Governance-Retention")
	if h != "" && b.lock == nil {
		return false, invalidArgument("x-amz-bypass-governance-retention is only applicable to Object Lock enabled buckets.")
	}
	return h == "true", nil
}

func (c *call) putLock() (*reply, error) {
	b, err := c.bucket(need{action: "s3:PutBucketObjectLockConfiguration"})
	if err != nil {
		return nil, err
	}
	var in lockConfig
	if err := decodeXML(c.config, "ObjectLockConfiguration", &in); err != nil {
		return nil, err
	}
	if in.ObjectLockEnabled != stateOn {
		return nil, malformedXML()
	}
	if r := in.Rule; r != nil {
		d := r.DefaultRetention
		if !validMode(d.Mode) || (d.Days == 0) == (d.Years == 0) {
			return nil, malformedXML()
		}
		if d.Days < 0 || d.Years < 0 {
			return nil, invalidArgument("Default retention period must be a positive integer value.")
		}
	}
	if b.lock == nil {
		return nil, refuse(http.StatusConflict, "InvalidBucketState", "Object Lock configuration cannot be enabled on existing buckets")
	}
	b.lock = &in
	c.did("changed", "bucket", b.name)
	return newReply(http.StatusOK), nil
}

func (c *call) getLock() (*reply, error) {
	return getSetting(c, "s3:GetBucketObjectLockConfiguration", func(b *bucket) *lockConfig { return b.lock },
		func(v *lockConfig) any { w := *v; w.XMLName = root("ObjectLockConfiguration"); return w },
		notFound("ObjectLockConfigurationNotFoundError", "Object Lock configuration does not exist for this bucket"))
}

// headerLock is the retention and hold that a new object asks for.
func (c *call) headerLock(b *bucket, at time.Time) (retention, bool, error) {
	h := c.req.Header
	mode, until, hold := h.Get("X-Amz-Object-Lock-Mode"), h.Get("X-Amz-Object-Lock-Retain-Until-Date"), h.Get("X-Amz-Object-Lock-Legal-Hold")
	none := retention{}
	switch {
	case mode+until+hold == "":
		return b.lock.retention(at), false, nil
	case b.lock == nil:
		return none, false, invalidRequest("Bucket is missing ObjectLockConfiguration")
	case (mode == "") != (until == ""):
		return none, false, invalidArgument("x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied")
	case hold != "" && hold != "ON" && hold != "OFF":
		return none, false, invalidArgument("Legal Hold must be either of 'ON' or 'OFF'")
	case mode == "":
		return b.lock.retention(at), hold == "ON", nil
	case !validMode(mode):
		return none, false, invalidArgument("Unknown wormMode directive.")
	}
	t, err := futureDate(until, at)
	return retention{mode, t}, hold == "ON", err
}

func futureDate(text string, at time.Time) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, invalidArgument("The retain until date must be provided in ISO 8601 format")
	}
	if !t.After(at) {
		return t, invalidArgument("The retain until date must be in the future!")
	}
	return t, nil
}

type retentionBody struct {
	XMLName         xml.Name
	Mode            string `xml:",omitempty"`
	RetainUntilDate string `xml:",omitempty"`
}

func (c *call) getRetention() (*reply, error) {
	b, v, err := c.content("s3:GetObjectRetention", "")
	if err != nil {
		return nil, err
	}
	if b.lock == nil {
		return nil, missingLock()
	}
	if v.retain.mode == "" {
		return nil, notFound("NoSuchObjectLockConfiguration", "The specified object does not have a ObjectLock configuration")
	}
	return xmlReply(retentionBody{root("Retention"), v.retain.mode, stamp(v.retain.until)})
}

func (c *call) putRetention() (*reply, error) {
	b, v, err := c.content("s3:PutObjectRetention", "")
	if err != nil {
		return nil, err
	}
	bypass, err := c.bypass(b)
	if err != nil {
		return nil, err
	}
	if b.lock == nil {
		return nil, missingLock()
	}
	var in retentionBody
	if err := decodeXML(c.config, "Retention", &in); err != nil {
		return nil, err
	}
	var next retention
	if in.Mode != "" || in.RetainUntilDate != "" {
		if !validMode(in.Mode) {
			return nil, malformedXML()
		}
		t, err := futureDate(in.RetainUntilDate, now())
		if err != nil {
			return nil, err
		}
		next = retention{in.Mode, t}
	}
	if !v.retain.mayBecome(next, now(), bypass) {
		return nil, protected()
	}
	v.retain = next
	c.did("changed", "object", b.name+"/"+v.key)
	return newReply(http.StatusOK), nil
}

// mayBecome says whether a retention may be replaced. While it lasts it may be
// made longer or stricter by anyone, and weaker only if it is of governance and
// the caller bypasses that.
func (r retention) mayBecome(next retention, at time.Time, bypass bool) bool {
	if r.mode == "" || !r.until.After(at) {
		return true
	}
	stronger := (next.mode == r.mode || next.mode == modeComplied) && !next.until.Before(r.until)
	return stronger || (r.mode == modeGoverned && bypass)
}

type holdBody struct {
	XMLName xml.Name
	Status  string
}

func (c *call) getLegalHold() (*reply, error) {
	b, v, err := c.content("s3:GetObjectLegalHold", "")
	if err != nil {
		return nil, err
	}
	if b.lock == nil {
		return nil, missingLock()
	}
	status := "OFF"
	if v.hold {
		status = "ON"
	}
	return xmlReply(holdBody{root("LegalHold"), status})
}

func (c *call) putLegalHold() (*reply, error) {
	b, v, err := c.content("s3:PutObjectLegalHold", "")
	if err != nil {
		return nil, err
	}
	if b.lock == nil {
		return nil, missingLock()
	}
	var in holdBody
	if err := decodeXML(c.config, "LegalHold", &in); err != nil {
		return nil, err
	}
	if in.Status != "ON" && in.Status != "OFF" {
		return nil, malformedXML()
	}
	v.hold = in.Status == "ON"
	c.did("changed", "object", b.name+"/"+v.key)
	return newReply(http.StatusOK), nil
}
