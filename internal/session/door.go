package session

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"bastide/internal/blueprint"
	"bastide/internal/door"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/talos"
)

// dialer is the way to the nodes. The door is opened by the first connection,
// because an up from nothing makes the gateway on its way.
// Opening it takes as long as the command may, life, and not as a request: the
// others wait for it as well, and it stays open after life has ended.
func (s *Session) dialer(life context.Context, v *Survey) talos.Dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		opening := life
		if life.Err() != nil { // its survey is over, the command is not
			opening = ctx
		}
		d, err := s.door(opening, v)
		if err != nil {
			return nil, err
		}
		return d.DialContext(ctx, network, address)
	}
}

// door opens the way into the private network, once.
func (s *Session) door(ctx context.Context, v *Survey) (*door.Door, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.way != nil {
		return s.way, nil
	}
	if v.shut != nil && v.known == nil {
		return nil, v.shut
	}
	if err := s.barred(v); err != nil {
		return nil, err
	}
	id, address, port := s.bastion(v)
	if s.sshKeys == nil {
		keys, err := door.FindKeys(door.KeySource{Getenv: s.getenv, Home: s.home(), Dir: s.Estate.Dir, Allowed: s.Estate.Admin.SSHKeys, Passphrase: s.passphrase})
		if err != nil {
			return nil, err
		}
		s.sshKeys = keys
	}
	config := door.Config{
		Gateway: netip.AddrPortFrom(address, port), GatewayID: id, Network: s.Estate.Network.CIDR.Prefix,
		KnownHosts: filepath.Join(s.Estate.Dir, ".bastide", "known_hosts"), Signers: s.sshKeys.Signers, Notice: s.config.Notice,
		Fresh: v.made,
	}
	way, err := openDoor(ctx, config)
	switch {
	case !errors.Is(err, door.ErrNotAccepted):
	case v.known == nil && v.registersKey():
		// What is shut now is opened by the plan: the nodes are not known yet.
		err = outcome.CannotTell("the nodes cannot be reached yet", "the bastion accepts none of the SSH keys that were offered, and one of admin.sshKeys is not registered",
			"run bastide up "+s.config.Path+", which registers it first").Because(err)
	case s.held.Load() == nil:
		// A run that was killed after it registered a key may have left the
		// gateway without it. Having it look again is a change.
		v.stale = true
		why, do := "the bastion accepts none of the SSH keys that were offered", "run bastide up "+s.config.Path+", which has the bastion read the project's SSH keys again; if it accepts none then, "+ownKey
		if s.config.ReadOnly {
			err = outcome.Refuse("the nodes cannot be reached", why, do).Because(err)
		} else {
			err = outcome.CannotTell("the nodes cannot be reached yet", why, do).Because(err)
		}
	default:
		if err := s.cloud.RefreshKeys(ctx, s.Estate.Scaleway.Zones[0], id); err != nil {
			return nil, err
		}
		config.Fresh = true
		way, err = openDoor(ctx, config)
	}
	if err != nil {
		v.shut = err
		return nil, err
	}
	s.way = way
	return way, nil
}

// openDoor opens a door that stays open when ctx ends, and is given up when ctx
// ends before it is open.
func openDoor(ctx context.Context, config door.Config) (*door.Door, error) {
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	way, err := door.Open(life, config)
	if stop() || err != nil {
		return way, err
	}
	return nil, errors.Join(context.Cause(ctx), way.Close())
}

// ownKey is what a person does whose keys a bastion does not accept.
const ownKey = "set " + door.IdentityVariable + " to the private half of a key in admin.sshKeys, or add it to the SSH agent"

// registersKey says whether an SSH key of the file is still to be registered.
func (s *Survey) registersKey() bool {
	return slices.ContainsFunc(s.Graph.Steps, func(step blueprint.Step) bool {
		_, there := s.Live.Steps[step.ID]
		return step.Kind == blueprint.KindSSHKey && !there
	})
}

// bastion finds the gateway: what this run made, or what the survey saw.
func (s *Session) bastion(v *Survey) (id string, address netip.Addr, port uint16) {
	var known plan.Known = observed(v.Live.Steps)
	if v.known != nil {
		known = v.known
	}
	gateway, ok := known.Get(string(blueprint.KindGateway) + "/" + blueprint.GatewayName(s.Estate.Name))
	if !ok {
		return "", netip.Addr{}, 0
	}
	spec := gateway.Spec.(blueprint.Gateway)
	if ip, ok := known.Get(spec.IP); ok {
		address = ip.Spec.(blueprint.GatewayIP).Address
	}
	return gateway.CloudID, address, uint16(spec.BastionPort)
}

type observed map[string]plan.Observed

func (o observed) Get(id string) (plan.Observed, bool) { v, ok := o[id]; return v, ok }

func (s *Session) home() string {
	if home := s.getenv("HOME"); home != "" {
		return home
	}
	home, _ := os.UserHomeDir()
	return home
}

func (s *Session) passphrase(file string) ([]byte, error) {
	if s.config.Ask == nil {
		return nil, outcome.Refuse("the SSH key "+file+" is locked", "there is no terminal to ask for its passphrase", "use an SSH agent, or run on a terminal")
	}
	secret, err := s.config.Ask("passphrase of " + file)
	if err != nil {
		return nil, err
	}
	return []byte(secret.Reveal()), nil
}
