package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"bastide/internal/outcome"
	"bastide/internal/session"
	"bastide/internal/vault"
)

// identity is what the secrets commands print.
type identity struct {
	Path        string `json:"path"`
	Fingerprint string `json:"fingerprint"`
}

func (a *app) secretsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secrets",
		Short: "The cluster's identity: the encrypted machine secrets bundle",
	}
	cmd.AddCommand(a.secretsNewCommand(), a.secretsImportCommand(), a.secretsFingerprintCommand(), a.secretsRestoreCommand())
	return cmd
}

func (a *app) secretsNewCommand() *cobra.Command {
	return env(&cobra.Command{
		Use:     "new ENV",
		Short:   "Make the identity of a new cluster; an existing one is never replaced",
		Example: "  bastide secrets new envs/staging",
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := a.open(args[0])
			if err != nil {
				return err
			}
			b, err := s.Vault().New(s.Estate.Talos.Version, time.Now())
			return a.sayIdentity(s, b, "made", err)
		},
	})
}

func (a *app) secretsImportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "import ENV FILE",
		Short: "Take over the identity of a cluster that exists, from `talosctl gen secrets`",
		Example: `  bastide secrets import envs/staging secrets.yaml
  pass show talos/staging | bastide secrets import envs/staging -`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := a.open(args[0])
			if err != nil {
				return err
			}
			from, name := io.Reader(a.In), "standard input"
			if args[1] != "-" {
				f, err := vault.OpenGiven(args[1])
				if err != nil {
					return outcome.Refuse(args[1]+" cannot be read", err.Error(), "name the file that talosctl gen secrets wrote")
				}
				defer func() { _ = f.Close() }()
				from, name = f, args[1]
			}
			b, err := s.Vault().Import(name, from, time.Now())
			return a.sayIdentity(s, b, "imported", err)
		},
	}
}

func (a *app) secretsFingerprintCommand() *cobra.Command {
	return env(&cobra.Command{
		Use:     "fingerprint ENV",
		Short:   "Print the fingerprint of the bundle; it holds no secret",
		Example: "  bastide secrets fingerprint envs/staging",
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := a.open(args[0])
			if err != nil {
				return err
			}
			b, err := s.Unlock()
			if err != nil {
				return err
			}
			a.ui.Result("identity", b.Fingerprint(), identity{s.Vault().Path, b.Fingerprint()})
			return nil
		},
	})
}

func (a *app) sayIdentity(s *session.Session, b *vault.Bundle, done string, err error) error {
	if err != nil {
		return err
	}
	path := s.Vault().Path
	a.ui.Result("identity", fmt.Sprintf("%s %s, fingerprint %s\nkeep a copy: without it the running nodes cannot be managed", done, path, b.Fingerprint()), identity{path, b.Fingerprint()})
	return nil
}
