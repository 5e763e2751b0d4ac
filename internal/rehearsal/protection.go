package rehearsal

import (
	"context"
	"fmt"

	"github.com/scaleway/scaleway-sdk-go/api/secret/v1beta1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// Unprotect takes the protection off the secrets of the region and says how many
// had any. destroy refuses protected ones, as Scaleway does, and a region that is
// thrown away has nothing to protect; a person would do the same with scw.
func (p *Play) Unprotect(ctx context.Context) (int, error) {
	client, err := scw.NewClient(scw.WithAPIURL(p.Access.URL), scw.WithAuth(p.Access.AccessKey, p.Access.SecretKey),
		scw.WithDefaultProjectID(p.Access.Project), scw.WithDefaultRegion(scw.Region(p.Access.Region)))
	if err != nil {
		return 0, err
	}
	secrets := secret.NewAPI(client)
	all, err := secrets.ListSecrets(&secret.ListSecretsRequest{}, scw.WithContext(ctx), scw.WithAllPages())
	if err != nil {
		return 0, fmt.Errorf("listing the secrets of the simulated region: %w", err)
	}
	n := 0
	for _, s := range all.Secrets {
		if !s.Protected {
			continue
		}
		if _, err := secrets.UnprotectSecret(&secret.UnprotectSecretRequest{SecretID: s.ID}, scw.WithContext(ctx)); err != nil {
			return n, fmt.Errorf("unprotecting the secret %s in the simulated region: %w", s.Name, err)
		}
		n++
	}
	return n, nil
}
