package scaleway

import (
	"fmt"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
)

// Removal is one deletion.
type Removal struct {
	ID    string // unique among the removals
	Item  Item
	After []string // the removals that have to be finished first
	// Claim says that the thing is only given the estate's mark: its node is about
	// to go, and nothing else says whose it is.
	Claim bool
}

// afterKinds says what stands on what: a kind is removed after these. Names go
// before what they point at. What the cluster made goes after the nodes: a cloud
// controller that still runs makes a load balancer again that it misses.
var afterKinds = map[blueprint.Kind][]blueprint.Kind{
	blueprint.KindVolume:          {blueprint.KindServer},
	blueprint.KindSnapshot:        {blueprint.KindVolume},
	blueprint.KindPrivateNIC:      {blueprint.KindServer},
	blueprint.KindSecurityGroup:   {blueprint.KindServer},
	blueprint.KindPlacementGroup:  {blueprint.KindServer},
	blueprint.KindLoadBalancer:    {blueprint.KindDNSRecord},
	blueprint.KindClusterBalancer: {blueprint.KindServer, blueprint.KindDNSRecord},
	blueprint.KindClusterVolume:   {blueprint.KindServer},
	blueprint.KindClusterSnapshot: {blueprint.KindServer},
	blueprint.KindEdgeIP:          {blueprint.KindDNSRecord, blueprint.KindLoadBalancer, blueprint.KindClusterBalancer},
	blueprint.KindGateway:         {blueprint.KindGatewayNetwork},
	blueprint.KindGatewayIP:       {blueprint.KindGateway},
	blueprint.KindSSHKey:          {blueprint.KindGateway},
	blueprint.KindPostgresSecret:  {blueprint.KindPostgres},
	blueprint.KindAddress:         {blueprint.KindServer, blueprint.KindPrivateNIC, blueprint.KindLoadBalancer, blueprint.KindGatewayNetwork},
	blueprint.KindPrivateNetwork: {blueprint.KindAddress, blueprint.KindServer, blueprint.KindPrivateNIC, blueprint.KindLoadBalancer, blueprint.KindGatewayNetwork,
		blueprint.KindClusterBalancer, blueprint.KindPostgres},
	blueprint.KindVPC: {blueprint.KindPrivateNetwork},
}

// Teardown is how the whole estate is taken down.
type Teardown struct {
	Removals []Removal // in an order in which each comes after those that it waits for
	Kept     []Kept    // what stays, and why
}

// Teardown is how the whole estate is taken down: everything that carries its
// mark, whether or not the file still asks for it, each after what stands on
// it. What holds data is kept unless its class is named, and so is what it
// stands on. It is refused while something foreign is in the way, because that
// would be noticed only half way through.
func (c *Cloud) Teardown(inv *Inventory, named []blueprint.Data) (Teardown, error) {
	if len(inv.Foreign) > 0 {
		f := inv.Foreign[0]
		why := fmt.Sprintf("%s is in the way: %s", f.What, f.Why)
		if more := len(inv.Foreign) - 1; more > 0 {
			why += fmt.Sprintf(" (and %d more)", more)
		}
		return Teardown{}, outcome.Refuse(fmt.Sprintf("the estate %s cannot be taken down whole", c.estate.Name), why,
			"it does not carry the estate's mark, so remove or detach it yourself, then run the command again")
	}
	out := Teardown{Kept: keep(inv.Items, named)}
	stays := map[string]bool{}
	for _, k := range out.Kept {
		stays[removalID(k.Item)] = true
	}
	byKind := map[blueprint.Kind][]Removal{}
	var all []Removal
	var claims []string
	for _, it := range inv.Items {
		if it.unmarked {
			r := Removal{ID: "claim " + removalID(it), Item: it, Claim: true}
			all, claims = append(all, r), append(claims, r.ID)
		}
	}
	for i := len(inv.Items) - 1; i >= 0; i-- {
		it := inv.Items[i]
		if goesAlong(it) || stays[removalID(it)] {
			continue
		}
		r := Removal{ID: removalID(it), Item: it}
		byKind[it.Kind] = append(byKind[it.Kind], r)
		all = append(all, r)
	}
	for i := range all {
		if all[i].Claim {
			continue
		}
		if all[i].Item.Kind == blueprint.KindServer {
			all[i].After = append(all[i].After, claims...)
		}
		for _, k := range afterKinds[all[i].Item.Kind] {
			for _, first := range byKind[k] {
				if all[i].Item.Kind == blueprint.KindVolume && first.Item.CloudID != all[i].Item.on {
					continue // a volume waits for its own server only
				}
				all[i].After = append(all[i].After, first.ID)
			}
		}
	}
	out.Removals = inOrder(all)
	return out, c.allowed(out.Removals)
}

// allowed refuses a teardown that would be stopped half way by a protection that
// the provider keeps and somebody set on purpose.
func (c *Cloud) allowed(removals []Removal) error {
	for _, r := range removals {
		if how, ok := protected(r.Item); ok {
			class := r.Item.Kind.Data()
			return outcome.Refuse(fmt.Sprintf("the estate %s cannot be taken down with its data of the class %s", c.estate.Name, class), fmt.Sprintf("the secret %s is protected", r.Item.Name),
				fmt.Sprintf("take the protection away (%s, or scw secret secret unprotect %s region=%s), or leave %s out of --delete-data", how, r.Item.CloudID, c.region, class))
		}
	}
	return nil
}

// protected says that Scaleway refuses to delete a thing, and with what bastide
// takes that away: a secret with a password is never wanted protected.
func protected(it Item) (how string, is bool) {
	switch s := it.Spec.(type) {
	case blueprint.Secret:
		return "protected: false for it in the file and bastide up", s.Protected
	case blueprint.PostgresSecret:
		return "bastide up", s.Protected
	}
	return "", false
}

func removalID(it Item) string { return string(it.Kind) + "/" + it.CloudID }

// goesAlong says that a thing disappears with what it is part of.
func goesAlong(it Item) bool {
	switch it.Kind {
	case blueprint.KindPower, blueprint.KindLBAttachment, blueprint.KindLBBackend, blueprint.KindLBFrontend,
		blueprint.KindPostgresDatabase, blueprint.KindPostgresUser:
		return true
	case blueprint.KindPrivateNIC:
		return it.on != ""
	}
	return false
}

// inOrder sorts removals so that each comes after those that it waits for.
func inOrder(rs []Removal) []Removal {
	done := map[string]bool{}
	var out []Removal
	for len(out) < len(rs) {
		for _, r := range rs {
			ready := !done[r.ID]
			for _, id := range r.After {
				ready = ready && done[id]
			}
			if ready {
				done[r.ID] = true
				out = append(out, r)
			}
		}
	}
	return out
}
