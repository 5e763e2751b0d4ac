package api

import (
	"strconv"
	"time"
)

// ephemeralPolicy says when the versions of a secret expire.
type ephemeralPolicy struct {
	TTL    time.Duration // 0 means never
	Once   bool          // after one look
	Action string        // delete or disable
}

// ephemeralProperties are what a policy makes of one version.
type ephemeralProperties struct {
	Expires *time.Time
	Once    bool
	Action  string
}

type policyInput struct {
	TTL    *string `json:"time_to_live"`
	Once   bool    `json:"expires_once_accessed"`
	Action string  `json:"action"`
}

const longestTTL = 365 * 24 * time.Hour

func (in *policyInput) read() (*ephemeralPolicy, error) {
	if in == nil {
		return nil, nil
	}
	p := &ephemeralPolicy{Once: in.Once, Action: in.Action}
	if in.TTL != nil {
		d, err := time.ParseDuration(*in.TTL)
		if err != nil {
			return nil, invalid("ephemeral_policy.time_to_live", "format", "time_to_live must be a number of seconds")
		}
		if d < time.Second || d > longestTTL {
			return nil, invalid("ephemeral_policy.time_to_live", "constraint", "time_to_live must be between one second and one year")
		}
		p.TTL = d
	}
	if p.TTL == 0 && !p.Once {
		return nil, invalid("ephemeral_policy", "constraint", "time_to_live or expires_once_accessed is required")
	}
	return p, checkAction("ephemeral_policy.action", in.Action)
}

func checkAction(argument, action string) error {
	if action != "delete" && action != "disable" {
		return invalid(argument, "constraint", "action must be delete or disable")
	}
	return nil
}

func viewPolicy(p *ephemeralPolicy) any {
	if p == nil {
		return nil
	}
	return doc{"time_to_live": viewDuration(p.TTL), "expires_once_accessed": p.Once, "action": p.Action}
}

// viewDuration is seconds as the API writes them: 1800s, 0.500s.
func viewDuration(d time.Duration) any {
	if d == 0 {
		return nil
	}
	s := strconv.FormatInt(int64(d/time.Second), 10)
	if rest := d % time.Second; rest > 0 {
		s = strconv.FormatFloat(d.Seconds(), 'f', 3, 64)
	}
	return s + "s"
}

// properties are a new version's.
func (p *ephemeralPolicy) properties(made time.Time) *ephemeralProperties {
	if p == nil {
		return nil
	}
	out := &ephemeralProperties{Once: p.Once, Action: p.Action}
	if p.TTL > 0 {
		t := made.Add(p.TTL)
		out.Expires = &t
	}
	return out
}

func viewProperties(p *ephemeralProperties) any {
	if p == nil {
		return nil
	}
	return doc{"expires_at": stampOrNull(p.Expires), "expires_once_accessed": p.Once, "action": p.Action}
}

type propertiesInput struct {
	Expires opt[time.Time] `json:"expires_at"`
	Once    opt[bool]      `json:"expires_once_accessed"`
	Action  opt[string]    `json:"action"`
}

func (in *propertiesInput) into(p *ephemeralProperties) error {
	if action := in.Action.or(p.Action); action != "unknown_action" {
		if err := checkAction("ephemeral_properties.action", action); err != nil {
			return err
		}
		p.Action = action
	}
	if in.Expires.given && !in.Expires.null {
		p.Expires = &in.Expires.value
	}
	p.Once = in.Once.or(p.Once)
	return nil
}

// expireSecretVersion lets a version expire after its time.
func (w *world) expireSecretVersion(id string, revision int, after time.Duration) {
	w.after(after, func(w *world) {
		s, ok := w.Secrets.get(id)
		if !ok || revision > len(s.Versions) {
			return
		}
		if v := s.Versions[revision-1]; v.Ephemeral != nil && (v.Status == versionEnabled || v.Status == versionDisabled) {
			v.expire()
		}
	})
}

// expire does to a version what its policy says.
func (v *secretVersion) expire() {
	if v.Ephemeral.Action == "delete" {
		v.wipe()
		return
	}
	v.Status, v.Updated = versionDisabled, now()
}
