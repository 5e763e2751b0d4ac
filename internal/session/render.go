package session

import (
	"net/netip"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/talos"
	"bastide/internal/vault"
)

// RenderedMachine is one node's machine configuration.
type RenderedMachine struct {
	Node string
	Text []byte
}

// RenderMachines renders every node's configuration offline. Without secrets
// they are masked, and where there is no bundle a throwaway one stands in.
func (s *Session) RenderMachines(gateway netip.Addr, secrets bool) ([]RenderedMachine, error) {
	bundle, err := s.renderBundle(secrets)
	if err != nil {
		return nil, err
	}
	g, err := blueprint.Build(s.Estate, nil, s.Estate.Admin.PublicKeys)
	if err != nil {
		return nil, outcome.Refuse("the estate cannot be laid out", err.Error(), "change the file").Because(err)
	}
	r, err := talos.NewRenderer(s.Estate, bundle)
	if err != nil {
		return nil, err
	}
	configs, err := r.All(talos.AddressesOf(g, s.Estate, gateway))
	if err != nil {
		return nil, err
	}
	var out []RenderedMachine
	for _, c := range configs {
		text := c.Bytes()
		if !secrets {
			if text, err = talos.Masked(text); err != nil {
				return nil, err
			}
		}
		out = append(out, RenderedMachine{c.Node, text})
	}
	return out, nil
}

// CheckMachines renders every node's configuration with throwaway secrets and a
// stand-in for the address that Scaleway assigns, so that a patch that does not
// fit is found before anything is made.
func CheckMachines(e *estate.Estate) error {
	_, err := (&Session{Estate: e}).RenderMachines(talos.StandIn, false)
	return err
}

func (s *Session) renderBundle(secrets bool) (*vault.Bundle, error) {
	if secrets {
		return s.Unlock()
	}
	return vault.Generate(s.Estate.Talos.Version, time.Now())
}
