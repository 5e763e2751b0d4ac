package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"bastide/internal/outcome"
)

// strictHelp refuses to explain a command that does not exist, as running it is
// refused. The library's own prints the usage of everything and succeeds.
func strictHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, help := range root.Commands() {
		if help.Name() != "help" {
			continue
		}
		help.RunE = func(cmd *cobra.Command, args []string) error {
			topic, unknown, err := cmd.Root().Find(args)
			if err != nil || len(unknown) > 0 {
				return outcome.Refuse(fmt.Sprintf("unknown command %q for %q", unknown[0], topic.CommandPath()), "there is no help for it", "see "+topic.CommandPath()+" --help")
			}
			topic.InitDefaultHelpFlag()
			return topic.Help()
		}
	}
}

// asked is the form of output that a command line asks for, read past whatever
// is wrong in it, so that the refusal of it comes in that form.
func asked(args []string) string {
	form := "text"
	line := &cobra.Command{FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true}}
	line.SetOut(io.Discard)
	line.SetErr(io.Discard)
	line.Flags().StringVarP(&form, "output", "o", form, "")
	line.Flags().BoolP("help", "h", false, "")
	_ = line.ParseFlags(args) // what is wrong is being told already
	return form
}
