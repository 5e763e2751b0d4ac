package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/session"
)

func (a *app) doorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "door ENV -- COMMAND [ARGS...]",
		Short: "Run a command with a way into the private network",
		Long: `Run a command with a way into the private network: an SSH connection through the
gateway's bastion, a local proxy that only this command can use, and KUBECONFIG,
TALOSCONFIG and HTTPS_PROXY in its environment, so that kubectl and talosctl work
unchanged on private addresses. The door shuts when the command ends, however it
ends; what a killed run left behind is cleared up by the next one.

The exit code is the command's own.`,
		Example: `  bastide door envs/staging -- kubectl get nodes -o wide
  bastide door envs/staging -- talosctl dashboard
  bastide door envs/staging -- bash`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 {
				return outcome.Refuse("the command to run was not found", "everything after -- is the command, and ENV comes before it",
					"write bastide door ENV -- COMMAND")
			}
			a.need = estate.Layout
			return a.withSession(cmd.Context(), args[0], func(ctx context.Context, s *session.Session) error {
				code, err := s.Enter(ctx, args[1:], a.In, a.Out, a.Err)
				if err != nil {
					return err
				}
				if code != 0 {
					return exit(code)
				}
				return nil
			})
		},
	}
}

func (a *app) kubeconfigCommand() *cobra.Command {
	return a.credentialCommand("kubeconfig", "kubectl", (*session.Session).Kubeconfig)
}

func (a *app) talosconfigCommand() *cobra.Command {
	return a.credentialCommand("talosconfig", "talosctl", (*session.Session).Talosconfig)
}

func (a *app) credentialCommand(name, program string, get func(*session.Session, context.Context, time.Duration) ([]byte, error)) *cobra.Command {
	var life time.Duration
	cmd := env(&cobra.Command{
		Use:   name + " ENV",
		Short: "Print an admin's " + name + ", which is secret",
		Long: `Print an admin's ` + name + `, which is secret. It is made from the secrets bundle; no
node is asked. The addresses in it are private: ` + program + ` reaches them from inside
the network, or with bastide door.`,
		Example: "  bastide " + name + " envs/staging > " + name,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.need = estate.Layout
			return a.withSession(cmd.Context(), args[0], func(ctx context.Context, s *session.Session) error {
				text, err := get(s, ctx, life)
				if err != nil {
					return err
				}
				return a.ui.Reveal(name, s.Estate.Name, string(text))
			})
		},
	})
	cmd.Flags().DurationVar(&life, "valid", session.CredentialLife, "how long the credential is valid")
	return cmd
}
