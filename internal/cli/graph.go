package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/picture"
	"bastide/internal/session"
)

func (a *app) graphCommand() *cobra.Command {
	var format, of string
	var offline bool
	cmd := env(&cobra.Command{
		Use:   "graph ENV",
		Short: "Draw the estate: what the file asks for, what up would do, or what there is",
		Long: `Draw the estate: what up would do (--of plan), what there is (--of live), or what
the file asks for (--of file). Every step and every need is in the picture, with
what is done about it. The format is svg, mermaid, dot or json.

Without an API key, or with --offline, it is the file that is drawn.`,
		Example: `  bastide graph examples/private --offline > private.svg
  bastide graph envs/staging --of live --format mermaid`,
		RunE: func(cmd *cobra.Command, args []string) error {
			draw, known := formats[format]
			if !known {
				return outcome.Refuse(fmt.Sprintf("--format %s is not known", format), "an estate is drawn in one of four forms", "use svg, mermaid, dot or json")
			}
			if of != "file" && of != "plan" && of != "live" {
				return outcome.Refuse(fmt.Sprintf("--of %s is not known", of), "there are three things to draw", "use file, plan or live")
			}
			if offline && of != "file" && cmd.Flags().Changed("of") {
				return outcome.Refuse(fmt.Sprintf("--of %s cannot be drawn with --offline", of), "only the file can be drawn without asking anybody", "leave out one of the two")
			}
			a.patience = 5 * time.Second
			if of == "file" || offline {
				a.need = estate.Layout
			}
			if of == "live" {
				a.patience = time.Nanosecond // what there is now
			}
			return a.withSession(cmd.Context(), args[0], func(ctx context.Context, s *session.Session) error {
				p, err := a.picture(ctx, s, of, offline)
				if err != nil {
					return err
				}
				text, err := draw(p)
				if err == nil {
					a.ui.Result("graph", text, p)
				}
				return err
			})
		},
	})
	cmd.Flags().StringVar(&format, "format", "svg", "svg, mermaid, dot or json")
	cmd.Flags().StringVar(&of, "of", "plan", "what to draw: file, plan or live")
	cmd.Flags().BoolVar(&offline, "offline", false, "draw the file alone; ask nobody")
	return cmd
}

var formats = map[string]func(*picture.Picture) (string, error){
	"svg":     func(p *picture.Picture) (string, error) { return p.SVG(), nil },
	"mermaid": func(p *picture.Picture) (string, error) { return p.Mermaid(), nil },
	"dot":     func(p *picture.Picture) (string, error) { return p.DOT(), nil },
	"json":    (*picture.Picture).JSON,
}

func (a *app) picture(ctx context.Context, s *session.Session, of string, offline bool) (*picture.Picture, error) {
	alone, err := of == "file", error(nil)
	if !alone {
		alone, err = a.alone(s, offline, "the file alone is drawn")
	}
	if err != nil {
		return nil, err
	}
	if alone {
		g, err := s.Draft()
		if err != nil {
			return nil, err
		}
		return picture.File(g), nil
	}
	v, err := s.Survey(ctx)
	if err != nil {
		return nil, err
	}
	if of == "live" {
		return picture.Reality(v.Graph, v.Live), nil
	}
	return picture.Plan(v.Plan()), nil
}
