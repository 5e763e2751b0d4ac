package node

import (
	"context"
	"fmt"
	"net/netip"
	"sort"
	"strings"
	"time"

	"bastide/internal/sim/hardware"
)

// troubles are the node events that a fault script may ask for. A duration is a
// text such as 90s, in simulated time. Events that concern a boot take effect
// at the next one.
func troubles() map[string]trouble {
	return map[string]trouble{
		// The machine loses power at once; with `for` it comes back after that long.
		"power-loss": func(f *Farm, m *instance, e hardware.NodeEvent) error {
			back, err := duration(e, "for")
			if err != nil {
				return err
			}
			m.powerOff(errPoweredOff)
			if back > 0 {
				f.opt.Clock.After(back, func() { f.switchOn(m) })
			}
			return nil
		},
		"power-on": func(f *Farm, m *instance, _ hardware.NodeEvent) error { f.switchOn(m); return nil },
		// The machine is reset as by its button.
		"reboot": func(_ *Farm, m *instance, _ hardware.NodeEvent) error { m.reset(m.hardware()); return nil },
		// No packet passes between the machine and any other; with `from`, a list of
		// machine names, only between it and those.
		"partition": func(f *Farm, m *instance, e hardware.NodeEvent) error { return f.cut(m, e) },
		"heal":      func(f *Farm, m *instance, _ hardware.NodeEvent) error { f.healAll(m); return nil },
		// At the next boot the disks have other device names.
		"disk-order": quirk(func(q *quirks, _ hardware.NodeEvent) error { q.DiskOrder = true; return nil }),
		// The next boot ends in an older version: that of the other boot entry, as
		// after an upgrade that failed to boot, or the one that `version` names.
		"boot-old-version": quirk(func(q *quirks, e hardware.NodeEvent) error {
			q.OldVersion, _ = e.Params["version"].(string)
			q.FallBack = q.OldVersion == ""
			return nil
		}),
		// The member that joins next stays a learner `for` so long.
		"etcd-stuck-learner": quirk(func(q *quirks, e hardware.NodeEvent) (err error) {
			q.LearnerFor, err = duration(e, "for")
			return err
		}),
		// Power fails when the cluster has added the node's member, before it starts.
		"etcd-join-power-loss": quirk(func(q *quirks, _ hardware.NodeEvent) error { q.LostAtJoin = true; return nil }),
		// etcd does not leave Preparing until the event comes again with `off: true`.
		"etcd-stuck-preparing": quirk(func(q *quirks, e hardware.NodeEvent) error { q.StuckPreparing = !off(e); return nil }),
		// A new EPHEMERAL volume gets no more than `bytes`.
		"small-ephemeral": quirk(func(q *quirks, e hardware.NodeEvent) error {
			n, ok := number(e.Params["bytes"])
			if !ok {
				return fmt.Errorf("small-ephemeral needs bytes")
			}
			q.SmallEphemeral = n
			return nil
		}),
		// The Talos API answers with a certificate of another authority.
		"foreign-certificate": quirk(func(q *quirks, e hardware.NodeEvent) error { q.ForeignCert = !off(e); return nil }),
		// In maintenance every connection sees another certificate.
		"maintenance-cert-change": quirk(func(q *quirks, e hardware.NodeEvent) error { q.CertChanges = !off(e); return nil }),
		// The next boot finds something gone: `what` is etcd (the default, etcd's
		// data), ephemeral or state.
		"forget-after-reboot": quirk(func(q *quirks, e hardware.NodeEvent) error {
			q.Forget = "etcd"
			if what, ok := e.Params["what"].(string); ok {
				q.Forget = what
			}
			if q.Forget != "etcd" && q.Forget != "ephemeral" && q.Forget != "state" {
				return fmt.Errorf("what is etcd, ephemeral or state, not %s", q.Forget)
			}
			return nil
		}),
		// ApplyConfiguration takes `for` so long.
		"slow-apply": quirk(func(q *quirks, e hardware.NodeEvent) (err error) {
			q.SlowApply, err = duration(e, "for")
			return err
		}),
	}
}

// trouble makes an event happen to a machine.
type trouble func(*Farm, *instance, hardware.NodeEvent) error

// immediateTroubles lists the events that are meaningless for a machine that never ran.
var immediateTroubles = map[string]bool{"power-loss": true, "power-on": true, "reboot": true, "partition": true, "heal": true}

// Events lists the names of the node events.
func Events() []string {
	var all []string
	for name := range troubles() {
		all = append(all, name)
	}
	sort.Strings(all)
	return all
}

// Check implements hardware.Trouble. What only sets a quirk is tried on a machine
// that does not exist.
func (f *Farm) Check(e hardware.NodeEvent) error {
	act, ok := troubles()[e.Event]
	if !ok {
		return fmt.Errorf("no node event %q: there are %s", e.Event, strings.Join(Events(), ", "))
	}
	if immediateTroubles[e.Event] {
		_, err := duration(e, "for")
		return err
	}
	return act(f, &instance{}, e)
}

// Event implements hardware.Trouble. An event for a name without a machine waits
// for one, and happens when that machine first boots.
func (f *Farm) Event(ctx context.Context, e hardware.NodeEvent) error {
	act, ok := troubles()[e.Event]
	if !ok {
		return fmt.Errorf("no node event %q: there are %s", e.Event, strings.Join(Events(), ", "))
	}
	found := f.named(e.Node)
	if len(found) == 0 {
		f.mu.Lock()
		f.pending[e.Node] = append(f.pending[e.Node], e)
		f.mu.Unlock()
		return nil
	}
	for _, m := range found {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := act(f, m, e); err != nil {
			return fmt.Errorf("event %s of node %s: %w", e.Event, e.Node, err)
		}
	}
	return nil
}

// armPending applies the events that waited for a machine of this name. Those
// that act on a running machine happen a moment after it has begun to boot.
func (f *Farm) armPending(m *instance) {
	hw := m.hardware()
	f.mu.Lock()
	var events []hardware.NodeEvent
	for _, name := range []string{hw.Name, hw.Hostname} {
		events = append(events, f.pending[name]...)
		delete(f.pending, name)
	}
	f.mu.Unlock()
	for _, e := range events {
		act := func() {
			if err := troubles()[e.Event](f, m, e); err != nil {
				f.opt.Log.Error("node event", "node", e.Node, "event", e.Event, "err", err)
			}
		}
		if immediateTroubles[e.Event] {
			f.opt.Clock.After(firmwareTime, act)
		} else {
			act()
		}
	}
}

// switchOn gives a machine power again, unless it is no more.
func (f *Farm) switchOn(m *instance) {
	f.mu.Lock()
	closed := f.closed
	f.mu.Unlock()
	if !closed {
		m.powerOn(m.hardware())
	}
}

func (m *instance) hardware() hardware.Machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hw
}

func quirk(set func(*quirks, hardware.NodeEvent) error) trouble {
	return func(_ *Farm, m *instance, e hardware.NodeEvent) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		return set(&m.quirks, e)
	}
}

func off(e hardware.NodeEvent) bool { v, _ := e.Params["off"].(bool); return v }

func duration(e hardware.NodeEvent, key string) (time.Duration, error) {
	switch v := e.Params[key].(type) {
	case nil:
		return 0, nil
	case string:
		return time.ParseDuration(v)
	}
	return 0, fmt.Errorf("%s is not a duration such as 90s", key)
}

func number(v any) (int64, bool) {
	switch x := v.(type) {
	case int:
		return int64(x), true
	case int64:
		return x, true
	case uint64:
		return int64(x), true
	case float64:
		return int64(x), true
	}
	return 0, false
}

// cut separates a machine from others.
func (f *Farm) cut(m *instance, e hardware.NodeEvent) error {
	only := map[string]bool{}
	if list, ok := e.Params["from"].([]any); ok {
		for _, v := range list {
			name, ok := v.(string)
			if !ok {
				return fmt.Errorf("from is not a list of machine names")
			}
			only[name] = true
		}
	}
	hw := m.hardware()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, other := range f.machines {
		o := other.hardware()
		if other == m || (len(only) > 0 && !only[o.Name]) {
			continue
		}
		for _, a := range hw.NICs {
			for _, b := range o.NICs {
				if a.NetworkID == b.NetworkID && a.Address.IsValid() && b.Address.IsValid() {
					f.cutPair(hw.Name, a.NetworkID, a.Address.Addr(), b.Address.Addr())
				}
			}
		}
	}
	return nil
}

// cutPair remembers how to undo itself; the caller holds mu.
func (f *Farm) cutPair(name, network string, a, b netip.Addr) {
	f.opt.Fabric.Cut(network, a, b)
	f.opt.Fabric.Cut(network, b, a)
	f.partition[name] = append(f.partition[name], func() {
		f.opt.Fabric.Heal(network, a, b)
		f.opt.Fabric.Heal(network, b, a)
	})
}

func (f *Farm) healAll(m *instance) {
	name := m.hardware().Name
	f.mu.Lock()
	undo := f.partition[name]
	delete(f.partition, name)
	f.mu.Unlock()
	for _, u := range undo {
		u()
	}
}
