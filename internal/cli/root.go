// Package cli is the command line: one small file per command. Commands parse
// flags, open a session and print; what they do is in the other rooms.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/session"
	"bastide/internal/ui"
)

// Version is set at build time.
var Version = "unknown"

// Streams are a command's standard streams.
type Streams struct{ In, Out, Err *os.File }

// app is what every command has: its streams, its environment and its printer.
// The printer is chosen once, from the flags.
type app struct {
	Streams
	out     *sink // standard output, for everything but the children of door
	getenv  func(string) string
	ui      ui.Printer
	command string // such as "bastide up", for others to read
	output  string
	noColor bool
	timeout time.Duration
	cancel  context.CancelFunc
	// progress is the account that notes about nodes go to, while there is one.
	progress    atomic.Pointer[ui.Progress]
	waiting     sync.Map       // nodes of which it was said that they are waited for
	writes      bool           // only up, destroy and unlock may change something at Scaleway
	need        estate.Need    // how much of the environment's file the command stands on
	environment bool           // an environment was opened: the command is about what lives
	patience    time.Duration  // how long nodes that do not answer are looked for
	quote       *session.Quote // prices, once they were asked for
	resume      string         // the command that goes on after a failure, once something was begun
}

// Main runs one command line and returns the process's exit code.
func Main(ctx context.Context, s Streams, args []string) outcome.Code {
	if code, ours := child(ctx, s, args); ours {
		return code
	}
	a := &app{Streams: s, out: &sink{to: s.Out}, getenv: os.Getenv, cancel: func() {}}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(s.Err)
	root.SetIn(s.In)
	err := a.written(stopped(a.inTime(root.ExecuteContext(ctx))))
	a.cancel()
	if err == nil {
		return outcome.Done
	}
	if a.ui == nil { // the command line itself was wrong
		a.output = asked(args)
		a.choosePrinter(false)
	}
	var quiet exit
	if errors.As(err, &quiet) {
		return outcome.Code(quiet)
	}
	a.ui.Error(err, a.resume)
	return outcome.CodeOf(err)
}

// choosePrinter fixes how the command speaks. stream is for commands that run:
// in JSON their progress is their result.
func (a *app) choosePrinter(stream bool) {
	o := ui.Detect(a.Out, a.Err, a.getenv, a.noColor)
	o.Out = a.out
	o.JSON, o.Stream = a.output == "json", stream
	a.ui = ui.New(o)
}

// streams marks the commands whose progress is their result.
const streams = "streams"

// exit ends a command with a code and without a message; what there was to say
// has been printed.
type exit outcome.Code

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "bastide",
		Short: "Kubernetes estates on Talos Linux at Scaleway, from one file per environment",
		Long: `bastide raises, runs and takes down self-hosted Kubernetes estates on Talos Linux
at Scaleway, from one file per environment, and lets you rehearse all of it
offline on a simulated region.

Exit codes: 0 done, or nothing to do; 1 failed: something was tried and did not
work; 2 plan --exit-code found changes; 3 refused: input or precondition,
nothing touched; 4 unknown: could not be checked, nothing touched; 130
interrupted.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if a.output != "text" && a.output != "json" {
				return outcome.Refuse(fmt.Sprintf("--output %s is not known", a.output), "there are two forms of output", "use text or json")
			}
			a.choosePrinter(cmd.Annotations[streams] != "")
			a.command = cmd.CommandPath()
			return a.limit(cmd)
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	flags := root.PersistentFlags()
	flags.StringVarP(&a.output, "output", "o", "text", "form of the output: text or json (JSON on stdout, progress on stderr)")
	flags.BoolVar(&a.noColor, "no-color", false, "no colour, also with NO_COLOR set or without a terminal")
	flags.DurationVar(&a.timeout, "timeout", 0, "give up after this long, such as 30m; 0 leaves it to each step's own deadline")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return outcome.Refuse(err.Error(), "the command line could not be read", "see "+cmd.CommandPath()+" --help")
	})
	root.AddCommand(
		a.validateCommand(), a.schemaCommand(), a.planCommand(), a.upCommand(), a.statusCommand(), a.doctorCommand(), a.destroyCommand(), a.unlockCommand(),
		a.costCommand(), a.graphCommand(), a.iamCommand(),
		a.imageCommand(), a.renderCommand(), a.secretsCommand(), a.doorCommand(), a.kubeconfigCommand(), a.talosconfigCommand(),
		a.simCommand(), a.rehearseCommand(), a.versionCommand(),
	)
	strict(root)
	strictHelp(root)
	return root
}

// strict gives every command the same refusal for wrong arguments.
func strict(c *cobra.Command) {
	for _, sub := range c.Commands() {
		strict(sub)
	}
	if c.Args == nil {
		c.Args = cobra.NoArgs
	}
	check := c.Args
	c.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return outcome.Refuse(err.Error(), "the command line is "+cmd.UseLine(), "see "+cmd.CommandPath()+" --help")
		}
		return nil
	}
	if c.HasSubCommands() && c.RunE == nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			return outcome.Refuse(cmd.CommandPath()+" is not a command by itself", "it needs one of: "+subcommands(cmd), "see "+cmd.CommandPath()+" --help")
		}
	}
}

func subcommands(cmd *cobra.Command) string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return strings.Join(names, ", ")
}
