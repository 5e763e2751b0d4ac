package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"bastide/internal/iam"
)

// rights is what iam prints in JSON.
type rights struct {
	Estate       string        `json:"estate"`
	Project      string        `json:"project"`
	Applications []application `json:"applications"`
}

type application struct {
	iam.Application
	Commands []string `json:"commands"`
}

func (a *app) iamCommand() *cobra.Command {
	return env(&cobra.Command{
		Use:   "iam ENV",
		Short: "Print the least rights that the estate needs, as commands for a person to run",
		Long: `Print the IAM applications, policies and API keys that the estate needs, each
with no more rights than its work takes: for bastide itself, for plans in CI, the
cloud controller, the storage driver, backups, and pulling images. Only what the
file uses is in it. The text is a shell script of scw commands to read and paste.

bastide makes none of it and needs no right to. The command reads the file alone:
no credential, no network.`,
		Example: `  bastide iam envs/staging
  bastide iam envs/staging --output json`,
		RunE: func(_ *cobra.Command, args []string) error {
			e, err := loadEstate(args[0])
			if err != nil {
				return err
			}
			if a.output != "json" {
				_, err := io.WriteString(a.out, iam.Script(e))
				return err
			}
			out := rights{Estate: e.Name, Project: e.Scaleway.Project}
			for _, v := range iam.Needed(e) {
				commands := v.Commands()
				for i := range commands {
					commands[i] = strings.ReplaceAll(commands[i], " \\\n ", "")
				}
				out.Applications = append(out.Applications, application{v, commands})
			}
			a.ui.Result("iam", "", out)
			return nil
		},
	})
}
