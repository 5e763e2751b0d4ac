package cli

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"bastide/internal/outcome"
	"bastide/internal/session"
	"bastide/internal/talos"
)

func (a *app) renderCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "render", Short: "Write what bastide would send, for a person to read"}
	cmd.AddCommand(a.renderMachinesCommand())
	return cmd
}

func (a *app) renderMachinesCommand() *cobra.Command {
	var dir, gateway string
	var secret bool
	cmd := env(&cobra.Command{
		Use:   "machines ENV",
		Short: "Render every node's machine configuration",
		Long: `Render every node's machine configuration. Secrets are masked unless
--show-secrets is given; without a secrets bundle a throwaway one stands in, so
that it works on a checkout with no secret in it. The same input gives the same
bytes. Nothing is asked of Scaleway: the gateway's public address, which
Scaleway assigns, is 192.0.2.1 unless --gateway-address says otherwise.`,
		Example: `  bastide render machines envs/staging
  bastide render machines envs/staging --out rendered/`,
		RunE: func(cmd *cobra.Command, args []string) error {
			address, err := netip.ParseAddr(gateway)
			if err != nil {
				return outcome.Refuse("--gateway-address "+gateway+" is not an address", err.Error(), "give an IPv4 address")
			}
			return a.withSession(cmd.Context(), args[0], func(_ context.Context, s *session.Session) error {
				rendered, err := s.RenderMachines(address, secret)
				if err != nil {
					return err
				}
				return a.writeMachines(rendered, dir)
			})
		},
	})
	flags := cmd.Flags()
	flags.StringVar(&dir, "out", "", "folder to write one file per node to; it must not hold other files of those names")
	flags.StringVar(&gateway, "gateway-address", talos.StandIn.String(), "the gateway's public address")
	flags.BoolVar(&secret, "show-secrets", false, "leave secrets readable; needs the real bundle")
	return cmd
}

func (a *app) writeMachines(machines []session.RenderedMachine, dir string) error {
	for i, m := range machines {
		if dir == "" {
			text := "# " + m.Node + "\n" + string(m.Text)
			if i > 0 && a.output != "json" { // in JSON each is a document of its own
				text = "---\n" + text
			}
			if err := a.ui.Reveal("machine", m.Node, text); err != nil {
				return err
			}
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return outcome.Fail("the configuration of "+m.Node+" was not written", err.Error(), "name another folder with --out")
		}
		if err := os.WriteFile(filepath.Join(dir, m.Node+".yaml"), m.Text, 0o600); err != nil {
			return outcome.Fail("the configuration of "+m.Node+" was not written", err.Error(), "name another folder with --out")
		}
	}
	if dir != "" {
		files := make([]string, len(machines))
		for i, m := range machines {
			files[i] = filepath.Join(dir, m.Node+".yaml")
		}
		a.ui.Result("machines", fmt.Sprintf("%d machine configurations written to %s", len(machines), dir), files)
	}
	return nil
}
