package session

import (
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"
)

// barred says what keeps the way to the nodes shut by Scaleway's own word, so that
// nobody knocks at a door that cannot open. It is nil when nothing is known to.
func (s *Session) barred(v *Survey) error {
	var known plan.Known = observed(v.Live.Steps)
	if v.known != nil {
		known = v.known
	}
	why, person := s.bar(known, v.known == nil)
	if why == "" {
		return nil
	}
	if !v.Inventory.HasServers() {
		return outcome.Refuse("there is no way to the nodes", why, "make it with bastide up "+s.config.Path)
	}
	do := "run bastide up " + s.config.Path + ", which puts that right first"
	if person {
		var act string
		if why, act, _ = strings.Cut(why, "; "); act == "" {
			act = "put that right"
		}
		do = act + "; then run the command again"
	}
	return outcome.CannotTell("the nodes cannot be reached", why, do)
}

// bar is why the door is shut, and whether a person has to put that right. A run
// that is under way reaches nodes only after it attached the gateway.
func (s *Session) bar(known plan.Known, attached bool) (why string, person bool) {
	name := blueprint.GatewayName(s.Estate.Name)
	gateway, there := known.Get(string(blueprint.KindGateway) + "/" + name)
	switch {
	case !there:
		return "the estate has no gateway", false
	case gateway.Broken != "":
		return gateway.Broken, true
	}
	address, there := known.Get(string(blueprint.KindGatewayIP) + "/" + name)
	spec, _ := gateway.Spec.(blueprint.Gateway)
	switch {
	case !there:
		return "the gateway " + name + " has no public address of the estate", false
	case address.Broken != "":
		return address.Broken, true
	case spec.BastionPort == 0:
		return "the bastion of the gateway " + name + " is off", false
	}
	link, there := known.Get(string(blueprint.KindGatewayNetwork) + "/" + name)
	switch {
	case !attached:
	case !there:
		return "the gateway " + name + " is not attached to the private network", false
	case link.Broken != "":
		return link.Broken, true
	}
	return "", false
}
