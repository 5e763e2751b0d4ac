package scaleway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// stopped in place keeps its hardware reserved; for us it is as good as stopped.
const (
	running = instance.ServerStateRunning
	stopped = instance.ServerStateStopped
)

// applyPower starts or stops a server.
func (c *Cloud) applyPower(ctx context.Context, j job, want blueprint.Power) (plan.Observed, error) {
	server, err := j.id(want.Server)
	if err != nil {
		return plan.Observed{}, err
	}
	goal := running
	if want.State != string(running) {
		goal = stopped
	}
	s, err := c.power(ctx, j.step.Name, server, goal)
	if err != nil {
		return plan.Observed{}, err
	}
	return j.done(s.ID, string(c.zone), string(s.State), want), nil
}

// power brings a server to a state. The action is sent when the server rests in
// another state, and sent again if it still does after any lag is over: an
// action whose answer was lost may or may not have been taken.
func (c *Cloud) power(ctx context.Context, name, id string, goal instance.ServerState) (*instance.Server, error) {
	action, verb := instance.ServerActionPoweron, "start"
	if goal == stopped {
		action, verb = instance.ServerActionPoweroff, "stop"
	}
	var resend pacing
	return until(ctx, c, waiting{what: "the server " + name, to: verb, limit: forServer},
		func(ctx context.Context) (*instance.Server, error) {
			s, err := c.readServer(id)(ctx)
			if err != nil || s.State == goal || !atRest(s) || !resend.due(c.pace.Settle) {
				return s, err
			}
			if goal == running {
				if err := c.checkUserData(ctx, name, id); err != nil {
					return s, err
				}
			}
			_, err = c.instances.ServerAction(&instance.ServerActionRequest{Zone: c.zone, ServerID: id, Action: action}, scw.WithContext(ctx))
			if err != nil && !passing(err) {
				return s, c.scarce(name, verb, s, c.raced(ctx, id, goal, err))
			}
			return s, nil
		},
		func(s *instance.Server) verdict {
			v := verdict{done: s.State == goal, status: string(s.State)}
			if s.StateDetail != "" {
				v.status += " (" + s.StateDetail + ")"
			}
			if s.State == instance.ServerStateLocked {
				v.failed = "Scaleway has locked it"
			}
			return v
		})
}

// raced forgives a refused action when the server has meanwhile left its state:
// the reading that led to the action was late.
func (c *Cloud) raced(ctx context.Context, id string, goal instance.ServerState, refusal error) error {
	s, err := c.readServer(id)(ctx)
	if err == nil && (s.State == goal || !atRest(s)) {
		return nil
	}
	return refusal
}

// scarce names type and zone where what is refused is a machine to run on: with
// them a person can choose another.
func (c *Cloud) scarce(name, verb string, s *instance.Server, refusal error) error {
	var stock *scw.OutOfStockError
	var quota *scw.QuotasExceededError
	if !errors.As(refusal, &stock) && !errors.As(refusal, &quota) {
		return refusal
	}
	return c.failed(fmt.Sprintf("the server %s (%s in %s) did not %s", name, s.CommercialType, s.Zone, verb), refusal)
}

func atRest(s *instance.Server) bool {
	return s.State == running || s.State == stopped || s.State == instance.ServerStateStoppedInPlace
}

// checkUserData refuses to boot a server with somebody's user data: Talos takes
// any content for its machine configuration and would parse a leftover script
// for ever instead of waiting for ours.
func (c *Cloud) checkUserData(ctx context.Context, name, id string) error {
	r, err := c.instances.GetServerUserData(&instance.GetServerUserDataRequest{Zone: c.zone, ServerID: id, Key: "cloud-init"}, scw.WithContext(ctx))
	// A key that is not set is answered with a bare 404; the server itself was
	// read just now.
	if statusOf(err) == http.StatusNotFound || notFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	content, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if len(strings.TrimSpace(string(content))) == 0 {
		return nil
	}
	return outcome.Fail(fmt.Sprintf("the server %s was not started", name),
		fmt.Sprintf("it carries %d bytes of cloud-init user data that bastide did not write, and Talos would take them for its configuration", len(content)),
		fmt.Sprintf("remove them: scw instance user-data delete server-id=%s key=cloud-init zone=%s", id, c.zone))
}

// powerSpec is a server's power in the blueprint's terms: what it is, or is on
// its way to be.
func (r refs) powerSpec(s *instance.Server) (spec blueprint.Power, settled bool, broken string) {
	spec = blueprint.Power{Server: r.step(s.ID), State: string(s.State)}
	switch s.State {
	case instance.ServerStateStarting:
		spec.State = string(running)
		return spec, false, ""
	case instance.ServerStateStopping:
		// A reboot passes through here as well; where it ends is seen by waiting.
		spec.State = string(stopped)
		return spec, false, ""
	case instance.ServerStateLocked:
		return spec, true, "Scaleway has locked it"
	}
	return spec, true, ""
}

// pacing spaces out something that is sent again while it shows no effect.
type pacing struct{ last time.Time }

func (p *pacing) due(after time.Duration) bool {
	if !p.last.IsZero() && time.Since(p.last) < after {
		return false
	}
	p.last = time.Now()
	return true
}
