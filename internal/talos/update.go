package talos

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"google.golang.org/grpc/codes"

	"bastide/internal/estate"
	"bastide/internal/outcome"
)

// Mode says how a change reaches a running node. Staging and trying are never
// used: both leave a node whose running configuration is not the stored one.
type Mode string

// The modes.
const (
	WithoutReboot Mode = "without reboot"
	WithReboot    Mode = "with reboot"
)

// modeFor is the mode that a change needs. Settings of etcd are taken at once
// but used only when etcd starts again, which on Talos takes a reboot.
func modeFor(have, want []byte) (Mode, error) {
	old, err := configloader.NewFromBytes(have)
	if err != nil {
		return "", fmt.Errorf("read the node's configuration: %w", err)
	}
	next, err := configloader.NewFromBytes(want)
	if err != nil {
		return "", fmt.Errorf("read the wanted configuration: %w", err)
	}
	if reboots(old, next) {
		return WithReboot, nil
	}
	return WithoutReboot, nil
}

// update changes a running node. One control plane node at a time, one worker
// at a time where it reboots, each only when the one before is back.
func (c *Cluster) update(ctx context.Context, m *machineStep) error {
	turn := &c.workers
	if m.node.Role == estate.RoleControlPlane {
		turn = &c.controlPlane
	}
	if err := lock(ctx, turn); err != nil {
		return err
	}
	defer turn.Unlock()
	s, err := c.open(m.node)
	if err != nil {
		return err
	}
	defer s.close()
	mode, boot, err := c.weigh(ctx, s, m)
	if err != nil {
		return err
	}
	before, err := c.pass(ctx, m.node, mode)
	if err != nil {
		return err
	}
	if err := c.change(ctx, s, m, mode); err != nil {
		return err
	}
	if err := c.back(ctx, m, mode, boot, before); err != nil {
		return err
	}
	m.status = "configured, " + string(mode)
	return nil
}

// weigh finds out what a change of a node takes, and which boot it runs. A node
// that gives no clear answer is restarting, as after a run that was killed in
// the middle of changing it: it is asked again while patience lasts.
func (c *Cluster) weigh(ctx context.Context, s *session, m *machineStep) (mode Mode, boot string, err error) {
	var last error
	again := func(err error) error {
		if ctx.Err() != nil {
			return nil // cut short: it says nothing of the node
		}
		if last = err; ambiguous(err) {
			c.note(m.node.Name, "not readable: "+err.Error())
			return nil
		}
		return m.unreadable(err)
	}
	err = c.until(ctx, c.limits.Patience, func(ctx context.Context) error {
		have, err := s.configuration(ctx) // its turn may have come late
		if err != nil {
			return again(err)
		}
		if mode, err = modeFor(have.active, m.config.bytes); err != nil {
			return c.clean(err)
		}
		if boot, err = s.bootID(ctx); err != nil {
			return again(err)
		}
		if mode, err = c.confirm(ctx, s, m, mode); err != nil {
			return again(err)
		}
		return errStop
	}, func(time.Duration) error { return m.unreadable(last) })
	return mode, boot, err
}

func (m *machineStep) unreadable(err error) error {
	return outcome.CannotTell("the configuration of "+m.node.Name+" was not changed", "", "bring the node back, then run `bastide up` again").Because(err)
}

// pass asks etcd whether a control plane node may be changed now. What does
// not add up is looked at again for a while before it is refused.
func (c *Cluster) pass(ctx context.Context, n estate.Node, mode Mode) (EtcdHealth, error) {
	if n.Role != estate.RoleControlPlane {
		return EtcdHealth{}, nil
	}
	var health EtcdHealth
	unknown := func(why string) error {
		return outcome.CannotTell("the configuration of "+n.Name+" is not changed", "etcd's state is not known: "+why, "bring the control plane nodes back first; nothing was changed")
	}
	var refusal error
	err := c.until(ctx, c.limits.Patience, func(ctx context.Context) error {
		h := c.EtcdHealth(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if health, refusal = h, nil; !h.Bootstrapped() {
			if h.untouched() {
				return errStop // there is no etcd yet that could suffer
			}
			refusal = unknown(strings.ReplaceAll(h.Describe(), "\n", "; "))
			return nil
		}
		if refusal = c.gate(n.Name, h, mode); refusal == nil {
			return errStop
		}
		return nil
	}, func(time.Duration) error { return refusal })
	return health, err
}

// confirm asks the node itself, by a dry run, whether it can do without a
// reboot. It may insist on one; it never talks us out of one.
func (c *Cluster) confirm(ctx context.Context, s *session, m *machineStep, mode Mode) (Mode, error) {
	if mode == WithReboot {
		return mode, nil
	}
	answer, err := read(ctx, s, func(ctx context.Context) (*machine.ApplyConfigurationResponse, error) {
		return s.machine.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{Data: m.config.bytes, Mode: machine.ApplyConfigurationRequest_AUTO, DryRun: true})
	})
	if err != nil {
		return "", err
	}
	for _, message := range answer.GetMessages() {
		if message.GetMode() == machine.ApplyConfigurationRequest_REBOOT {
			return WithReboot, nil
		}
	}
	return mode, nil
}

// change sends the configuration to a running node.
func (c *Cluster) change(ctx context.Context, s *session, m *machineStep, mode Mode) error {
	c.note(m.node.Name, "changing its configuration "+string(mode))
	call, cancel := context.WithTimeout(ctx, c.limits.Send)
	defer cancel()
	request := machine.ApplyConfigurationRequest_NO_REBOOT
	if mode == WithReboot {
		request = machine.ApplyConfigurationRequest_REBOOT
	}
	_, err := s.machine.ApplyConfiguration(call, &machine.ApplyConfigurationRequest{Data: m.config.bytes, Mode: request})
	switch err = c.clean(err); {
	case err == nil, ambiguous(err):
		return nil // reading back tells whether it arrived
	case code(err) == codes.FailedPrecondition:
		return nil // another change is under way; reading back tells which won
	}
	return outcome.Fail(m.node.Name+" refuses the change of its configuration", "", "correct the fields or patches that the message names").Because(err)
}

// back waits until a changed node is as good as it was: its configuration
// read back, rebooted where it had to be, its etcd a healthy voter again.
func (c *Cluster) back(ctx context.Context, m *machineStep, mode Mode, boot string, before EtcdHealth) error {
	last := "no answer yet"
	err := c.until(ctx, c.limits.Reboot, func(ctx context.Context) error {
		s, err := c.open(m.node)
		if err != nil {
			return err
		}
		defer s.close()
		lacks := c.settled(ctx, s, m, mode, boot, before.Bootstrapped())
		if ctx.Err() != nil {
			return nil
		}
		if last = lacks; last != "" {
			c.note(m.node.Name, last)
			return nil
		}
		if !before.Bootstrapped() || m.node.Role != estate.RoleControlPlane {
			return errStop
		}
		lacks = lesser(before, c.EtcdHealth(ctx), m.node.Name)
		if ctx.Err() != nil {
			return nil
		}
		if last = lacks; last != "" {
			c.note(m.node.Name, last)
			return nil
		}
		return errStop
	}, func(after time.Duration) error {
		return outcome.Fail(fmt.Sprintf("%s is not back within %s after its configuration was changed %s", m.node.Name, after, mode), last,
			"no other node was touched; look at this one with `talosctl dmesg`, then run `bastide up` again")
	})
	return err
}

// settled says what a changed node still lacks. A control plane node does not
// get beyond booting before there is an etcd to join.
func (c *Cluster) settled(ctx context.Context, s *session, m *machineStep, mode Mode, boot string, bootstrapped bool) string {
	have, err := s.configuration(ctx)
	switch {
	case err != nil:
		return "not readable: " + err.Error()
	case have.digest != m.config.Digest || have.staged:
		return "still has its former configuration"
	}
	if mode == WithReboot {
		now, err := s.bootID(ctx)
		if err != nil || now == boot {
			return "has not rebooted yet"
		}
	}
	if m.node.Role == estate.RoleControlPlane && !bootstrapped {
		return ""
	}
	g, err := s.stage(ctx)
	switch {
	case err != nil:
		return "not readable: " + err.Error()
	case g.name != "running":
		return g.String()
	}
	return ""
}

// lock takes a mutex unless the context ends first.
func lock(ctx context.Context, m *sync.Mutex) error {
	got := make(chan struct{})
	go func() {
		m.Lock()
		close(got)
	}()
	select {
	case <-got:
		return nil
	case <-ctx.Done():
		go func() { <-got; m.Unlock() }()
		return ctx.Err()
	}
}
