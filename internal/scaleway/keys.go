package scaleway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"

	iam "github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/api/vpcgw/v2"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

func (c *Cloud) listKeys(ctx context.Context) ([]*iam.SSHKey, error) {
	return list(ctx, c, "SSH keys of the project", func(v *iam.SSHKey) string { return v.ID }, func(ctx context.Context, n *int32, size *uint32) ([]*iam.SSHKey, uint64, error) {
		r, err := c.iam.ListSSHKeys(&iam.ListSSHKeysRequest{ProjectID: &c.project, Page: n, PageSize: size,
			OrderBy: iam.ListSSHKeysRequestOrderByCreatedAtAsc}, scw.WithContext(ctx))
		if err != nil {
			return nil, 0, err
		}
		return r.SSHKeys, uint64(r.TotalCount), nil
	})
}

// applyKey registers a public key with the project, unless it is there already
// under whatever name: then it is used and stays somebody else's. A key to
// Scaleway that may not touch SSH keys is no obstacle as long as a person has
// put them in place.
func (c *Cloud) applyKey(ctx context.Context, j job, want blueprint.SSHKey) (plan.Observed, error) {
	fresh := false
	k, err := ensure(ctx, c, forVisible,
		func(ctx context.Context) (*iam.SSHKey, bool, error) {
			keys, err := c.listKeys(ctx)
			if err != nil {
				return nil, false, err
			}
			for _, k := range keys {
				if sameKey(k.PublicKey, want.PublicKey) && (!k.Disabled || c.ownKey(k)) {
					return k, true, nil
				}
			}
			return nil, false, nil
		},
		func(ctx context.Context) (*iam.SSHKey, error) {
			fresh = true
			return c.iam.CreateSSHKey(&iam.CreateSSHKeyRequest{ProjectID: c.project, Name: j.step.Name, PublicKey: want.PublicKey}, scw.WithContext(ctx))
		})
	if forbidden(err) {
		return plan.Observed{}, outcome.Fail(fmt.Sprintf("the SSH key %s could not be registered", j.step.Name),
			"the API key has no permission for the project's SSH keys",
			fmt.Sprintf("add this key to the project by hand, then run the command again: %s", want.PublicKey)).Because(err)
	}
	if err != nil {
		return plan.Observed{}, err
	}
	if k.Disabled {
		if err := c.steady(ctx, forVisible, func(ctx context.Context) error {
			_, err := c.iam.UpdateSSHKey(&iam.UpdateSSHKeyRequest{SSHKeyID: k.ID, Disabled: scw.BoolPtr(false)}, scw.WithContext(ctx))
			return err
		}); err != nil {
			return plan.Observed{}, err
		}
	}
	if fresh || k.Disabled {
		if err := c.refreshBastions(ctx); err != nil {
			return plan.Observed{}, err
		}
	}
	return j.done(k.ID, "", present, want), nil
}

// refreshBastions makes live gateways read the project's keys again: they do so
// by themselves only when they are made.
func (c *Cloud) refreshBastions(ctx context.Context) error {
	all, err := c.listGateways(ctx, []string{blueprint.TagEstate + c.estate.Name})
	if err != nil {
		return err
	}
	for _, g := range all {
		if c.marked(g.Tags) {
			if err := c.RefreshKeys(ctx, string(g.Zone), g.ID); err != nil {
				return err
			}
			// It is busy for some seconds, and a run ends with all at rest.
			if _, err := c.gatewayRunning(ctx, g.Zone, g.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// RefreshKeys makes a gateway's bastion read the project's SSH keys again. It is
// worth trying when the bastion refuses a key that the project has.
func (c *Cloud) RefreshKeys(ctx context.Context, zone, gatewayID string) error {
	return c.onGateway(ctx, scw.Zone(zone), gatewayID, func(ctx context.Context) error {
		_, err := c.gateways.RefreshSSHKeys(&vpcgw.RefreshSSHKeysRequest{Zone: scw.Zone(zone), GatewayID: gatewayID}, scw.WithContext(ctx))
		return err
	})
}

// sameKey compares type and key; Scaleway strips the comment.
func sameKey(a, b string) bool { return bareKey(a) == bareKey(b) }

func bareKey(key string) string {
	f := strings.Fields(key)
	return strings.Join(f[:min(len(f), 2)], " ")
}

var keyNames = regexp.MustCompile(`^(.+)-bastide-([0-9a-f]{8})$`)

// ownKey says whether a key was registered by this estate. Keys carry no tags:
// the mark is a name that holds the estate's name and the key's own digest, so
// that neither a lookalike name nor another estate's key is taken for ours.
func (c *Cloud) ownKey(k *iam.SSHKey) bool {
	m := keyNames.FindStringSubmatch(k.Name)
	sum := sha256.Sum256([]byte(bareKey(k.PublicKey)))
	return m != nil && m[1] == c.estate.Name && m[2] == hex.EncodeToString(sum[:4])
}

func (r *reader) keys() {
	for _, k := range r.f.keys {
		if r.ownKey(k) {
			r.add(Item{Kind: blueprint.KindSSHKey, Step: string(blueprint.KindSSHKey) + "/" + k.Name, Name: k.Name, CloudID: k.ID, Settled: true,
				Created: moment(k.CreatedAt), Spec: blueprint.SSHKey{PublicKey: bareKey(k.PublicKey), Disabled: k.Disabled}})
		}
	}
}
