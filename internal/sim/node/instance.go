package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"bastide/internal/sim/hardware"
)

// Why a boot ended. The last two are hard: nothing is stopped cleanly.
var (
	errRebooting  = errors.New("the node reboots")
	errHalting    = errors.New("the node shuts down")
	errPoweredOff = errors.New("the machine is switched off")
	errResetByAPI = errors.New("the machine is reset")
)

// instance is one server across its power cycles.
type instance struct {
	farm *Farm

	mu     sync.Mutex
	hw     hardware.Machine
	cancel context.CancelCauseFunc // ends the power cycle; nil when off
	done   chan struct{}           // closed when the power cycle has ended
	node   *node                   // the operating system that runs now, if any
	quirks quirks
	gone   bool // its server was deleted: it never runs again
}

func (m *instance) powerOn(hw hardware.Machine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone {
		return
	}
	if m.cancel != nil {
		m.hw = hw // what is plugged in while running is seen at the next boot
		return
	}
	m.hw = hw
	ctx, cancel := context.WithCancelCause(m.farm.ctx)
	m.cancel, m.done = cancel, make(chan struct{})
	go m.cycle(ctx, m.done)
}

func (m *instance) powerOff(why error) {
	m.mu.Lock()
	cancel, done := m.cancel, m.done
	m.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel(why)
	<-done
}

func (m *instance) reset(hw hardware.Machine) {
	m.mu.Lock()
	n := m.node
	m.hw = hw
	on := m.cancel != nil
	m.mu.Unlock()
	switch {
	case !on:
		m.powerOn(hw)
	case n != nil:
		n.end(errResetByAPI)
	}
}

// cycle boots the machine until it is switched off or switches itself off.
func (m *instance) cycle(ctx context.Context, done chan struct{}) {
	defer close(done)
	defer func() {
		m.mu.Lock()
		m.cancel = nil
		m.mu.Unlock()
	}()
	for {
		why := m.bootOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(why, errHalting):
			if m.farm.opt.Halted != nil {
				go m.farm.opt.Halted(m.hw.ServerID)
			}
			return
		}
		// A machine that fails to boot at all tries again after its watchdog.
		if !errors.Is(why, errRebooting) && !errors.Is(why, errResetByAPI) {
			m.farm.opt.Log.Warn("boot ended", "node", m.hw.Name, "why", why)
			m.farm.opt.Host.Failed("the boot of "+m.hw.Name, why)
			if m.farm.opt.Clock.Wait(ctx, 30*time.Second) != nil {
				return
			}
		}
	}
}

// bootOnce runs one boot to its end and returns why it ended.
func (m *instance) bootOnce(ctx context.Context) error {
	m.mu.Lock()
	hw := m.hw
	m.mu.Unlock()
	m.farm.armPending(m)
	m.mu.Lock()
	q := m.quirks.takeForBoot()
	m.mu.Unlock()

	disks, err := openDisks(m.farm, hw, q)
	if err != nil { // nothing bootable: the firmware waits for ever
		m.farm.opt.Log.Warn("machine does not boot", "node", hw.Name, "err", err)
		m.farm.opt.Host.Failed("the boot of "+hw.Name, err)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	n, err := newNode(ctx, m, hw, disks, q)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.node = n
	m.mu.Unlock()
	why := n.run()
	m.mu.Lock()
	m.node = nil
	m.mu.Unlock()
	return why
}
