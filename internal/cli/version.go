package cli

import (
	"fmt"
	"runtime"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/spf13/cobra"
)

// versions are what a bug report needs to know about a build.
type versions struct {
	Bastide    string `json:"bastide"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
	Kubernetes string `json:"kubernetesDefault"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this build",
		Example: "  bastide version --output json",
		RunE: func(*cobra.Command, []string) error {
			v := versions{Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, constants.DefaultKubernetesVersion}
			a.ui.Result("version", fmt.Sprintf("bastide %s (%s, %s)", v.Bastide, v.Go, v.Platform), v)
			return nil
		},
	}
}
