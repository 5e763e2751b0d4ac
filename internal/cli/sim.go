package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"bastide/internal/outcome"
	"bastide/internal/sim"
	"bastide/internal/sim/fault"
	"bastide/internal/sim/node"
	"bastide/internal/sim/program"
)

// child is this program as an etcd member of a simulated node.
func child(_ context.Context, s Streams, args []string) (outcome.Code, bool) {
	if len(args) == 0 || args[0] != node.EtcdCommand {
		return 0, false
	}
	if err := node.RunEtcd(args[1:]); err != nil {
		fmt.Fprintln(s.Err, err)
		return outcome.Failed, true
	}
	return outcome.Done, true
}

func (a *app) simCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "The simulated region: Scaleway's API, Talos nodes, etcd and the Kubernetes API on this machine",
	}
	cmd.AddCommand(a.simServeCommand(), a.simEnvCommand(), a.simStopCommand())
	return cmd
}

// simFlags are what sim serve is told.
type simFlags struct {
	listen, dir, faults, seed, project, region, zone, log string
	speed                                                 float64
}

func (a *app) simServeCommand() *cobra.Command {
	var f simFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a simulated region in the foreground",
		Long: `Run a simulated region in the foreground. It answers on one loopback port and
keeps its disks in a folder; "bastide sim env" prints what points clients at it,
and its pages under /sim/ show every call and the whole state.`,
		Example: `  bastide sim serve --speed 20 &
  eval "$(bastide sim env)"
  scw instance server list`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.simServe(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8700", "loopback address and port; port 0 takes a free one")
	flags.StringVar(&f.dir, "dir", sim.DefaultDir(), "folder for disks, process files and region.json")
	flags.Float64Var(&f.speed, "speed", 1, "how much faster than the real region")
	flags.StringVar(&f.faults, "faults", "", "file with a fault script (see docs/simulator.md)")
	flags.StringVar(&f.seed, "seed", "", "file with what exists from the start: project, snapshots, SSH key, domains, permissions")
	flags.StringVar(&f.project, "project", "11111111-1111-4111-8111-111111111111", "default project of sim env")
	flags.StringVar(&f.region, "region", "fr-par", "default region of sim env")
	flags.StringVar(&f.zone, "zone", "fr-par-1", "default zone of sim env")
	flags.StringVar(&f.log, "log", "", "file for the simulator's own log; empty keeps none")
	return cmd
}

func (a *app) simServe(ctx context.Context, f simFlags) error {
	o, err := f.options(a.getenv)
	if err != nil {
		return err
	}
	r, err := sim.Start(o)
	if err != nil {
		return outcome.Fail("the simulated region did not start", err.Error(), "free the port or the folder, or name others with --listen and --dir")
	}
	a.ui.Result("region", fmt.Sprintf("simulated region at %s, %g times real speed\nclients: eval \"$(bastide sim env --dir %s)\"", r.Access.URL, o.Speed, f.dir), r.Access.Public())
	return errors.Join(r.Wait(ctx), r.Close())
}

func (f simFlags) options(getenv func(string) string) (sim.Options, error) {
	if err := checkSpeed(f.speed); err != nil {
		return sim.Options{}, err
	}
	host, _, err := net.SplitHostPort(f.listen)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return sim.Options{}, outcome.Refuse("--listen "+f.listen+" is not possible", "the simulated region hands out credentials and runs what it is told, so it is for this machine only",
			"give a loopback address and a port, such as 127.0.0.1:8700")
	}
	o := sim.Options{Listen: f.listen, Dir: f.dir, Speed: f.speed, Log: slog.New(slog.DiscardHandler)}
	o.Access = sim.Access{AccessKey: sim.AccessKey, SecretKey: uuid.NewString(), Project: f.project, Region: f.region, Zone: f.zone}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return o, outcome.Refuse("the simulator's folder cannot be made", err.Error(), "name another with --dir")
	}
	if old, err := sim.ReadAccess(f.dir); err == nil && old.Alive() {
		return o, outcome.Refuse("a simulated region already runs in "+f.dir, fmt.Sprintf("process %d answers at %s", old.PID, old.URL),
			"stop it with bastide sim stop, or name another folder with --dir")
	}
	self, err := os.Executable()
	if err != nil {
		return o, err
	}
	o.EtcdProgram = []string{self, node.EtcdCommand}
	if o.APIServer, err = program.Find(getenv, "kube-apiserver"); err != nil {
		return o, outcome.Refuse("kube-apiserver was not found", err.Error()+", and the simulated control plane nodes run a real one",
			"build it with make tools, or name its folder in BASTIDE_TOOLS")
	}
	if f.faults != "" {
		text, err := os.ReadFile(f.faults)
		if err != nil {
			return o, outcome.Refuse("the fault script cannot be read", err.Error(), "name a readable file")
		}
		if o.Faults, err = fault.Parse(text); err != nil {
			return o, outcome.Refuse("the fault script "+f.faults+" is not understood", err.Error(), "see docs/simulator.md for its form")
		}
	}
	if f.seed != "" {
		text, err := os.ReadFile(f.seed)
		if err != nil {
			return o, outcome.Refuse("the seed cannot be read", err.Error(), "name a readable file")
		}
		if o.Seed, o.Elsewhere, err = sim.ParseSeed(text); err != nil {
			return o, outcome.Refuse("the seed "+f.seed+" is not understood", err.Error(), "see docs/simulator.md for its form")
		}
	}
	if f.log != "" {
		var w io.Writer
		if w, err = os.OpenFile(f.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return o, outcome.Refuse("the log cannot be written", err.Error(), "name a writable file")
		}
		o.Log = slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return o, nil
}

// checkSpeed refuses speeds at which nothing would ever happen.
func checkSpeed(speed float64) error {
	if speed > 0 && !math.IsInf(speed, 1) {
		return nil
	}
	return outcome.Refuse(fmt.Sprintf("--speed %g is not possible", speed), "it says how many times faster than the real region", "give a number above 0, such as 20")
}

func (a *app) simEnvCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:     "env",
		Short:   "Print the exports that point any Scaleway client at the running region",
		Example: `  eval "$(bastide sim env)"`,
		RunE: func(*cobra.Command, []string) error {
			access, err := sim.ReadAccess(dir)
			if err != nil {
				return outcome.Refuse("no simulated region was found in "+dir, err.Error(), "start one with bastide sim serve, or name its folder with --dir")
			}
			if !access.Alive() {
				return outcome.Refuse("no simulated region runs in "+dir, fmt.Sprintf("its process %d has ended", access.PID), "start one with bastide sim serve, or name the folder of another with --dir")
			}
			return a.ui.Reveal("exports", access.URL, sim.Exports(access.Environ()))
		},
	}
	cmd.Flags().StringVar(&dir, "dir", sim.DefaultDir(), "folder of the running region")
	return cmd
}

func (a *app) simStopCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:     "stop",
		Short:   "Stop the region that runs in a folder",
		Example: "  bastide sim stop --dir .rehearsal/region",
		RunE: func(cmd *cobra.Command, _ []string) error {
			access, err := sim.ReadAccess(dir)
			if err != nil || !access.Alive() {
				a.ui.Notice("no region runs in " + dir)
				return nil
			}
			if err := stopRegion(cmd.Context(), access); err != nil {
				return err
			}
			a.ui.Notice("stopped the region in " + dir)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", sim.DefaultDir(), "folder of the running region")
	return cmd
}

// stopRegion asks a region to end and waits until it has.
func stopRegion(ctx context.Context, access sim.Access) error {
	if err := syscall.Kill(access.PID, syscall.SIGTERM); err != nil {
		return outcome.Fail(fmt.Sprintf("the region's process %d could not be stopped", access.PID), err.Error(), "stop it by hand")
	}
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for access.Alive() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return outcome.Fail(fmt.Sprintf("the region's process %d did not end", access.PID), "it was asked 30 seconds ago", "stop it by hand")
		case <-tick.C:
		}
	}
	return nil
}
