package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/session"
)

// validated is what validate prints in JSON.
type validated struct {
	Estate   string          `json:"estate"`
	Nodes    int             `json:"nodes"`
	Warnings estate.Problems `json:"warnings"`
}

func (a *app) validateCommand() *cobra.Command {
	return env(&cobra.Command{
		Use:   "validate ENV",
		Short: "Check an environment file, offline and without any secret",
		Example: `  bastide validate examples/private
  bastide validate envs/staging --output json`,
		RunE: func(_ *cobra.Command, args []string) error {
			e, err := loadEstate(args[0])
			if err != nil {
				return err
			}
			for _, w := range e.Warnings() {
				a.ui.Warn(w.Error())
			}
			if err := session.CheckMachines(e); err != nil {
				return err
			}
			a.ui.Result("validated", fmt.Sprintf("%s is valid: %d nodes", e.Name, len(e.Nodes())), validated{e.Name, len(e.Nodes()), append(estate.Problems{}, e.Warnings()...)})
			return nil
		},
	})
}

// loadEstate reads a file; its problems are a refusal.
func loadEstate(path string) (*estate.Estate, error) {
	e, err := estate.Load(path)
	if err != nil {
		return nil, outcome.Refuse(path+" was not accepted", "", "").Because(err)
	}
	return e, nil
}

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of the environment file, for editors",
		Example: "  bastide schema > estate.schema.json",
		RunE: func(*cobra.Command, []string) error {
			schema, err := estate.Schema()
			if err != nil {
				return err
			}
			return a.writeSchema(schema)
		},
	}
}

// writeSchema writes the schema as it is in both forms of output: it is JSON, and
// editors know no envelope.
func (a *app) writeSchema(schema []byte) error {
	_, err := a.out.Write(append(schema, '\n'))
	return err
}
