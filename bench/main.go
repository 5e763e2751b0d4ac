// Bench measures bastide against the simulated region, as ratios within one
// run: how plan compares with its slowest chain of calls at 5, 50 and 200
// nodes, how up compares with the longest chain of simulated delays, and what
// the binary weighs and takes to start. It prints one table and fails only when
// something cannot be measured: wall clocks are for people to judge.
//
//	make bench
//	make bench ARGS="-nodes 5 -up=false"
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// config is what a run of the benchmark is told.
type config struct {
	binary string // the program under test, as it is released
	env    string // the environment that is scaled
	dir    string // scratch folder
	nodes  []int
	runs   int
	up     bool
	raise  float64 // speed at which the estates for plan are raised and kept
	keep   bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := parse()
	if err == nil {
		err = run(ctx, c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse() (config, error) {
	var c config
	var nodes string
	flag.StringVar(&c.binary, "binary", "bin/bastide", "the program to measure")
	flag.StringVar(&c.env, "env", "examples/private", "the environment whose last pool is grown")
	flag.StringVar(&c.dir, "dir", filepath.Join(os.TempDir(), fmt.Sprintf("bastide-bench-%d", os.Getuid())), "scratch folder")
	flag.StringVar(&nodes, "nodes", "5,50,200", "sizes of estates to plan")
	flag.IntVar(&c.runs, "runs", 5, "how often each is measured; the median counts")
	flag.BoolVar(&c.up, "up", true, "measure up as well")
	flag.Float64Var(&c.raise, "raise", 2, "speed at which the estates for plan are raised and stand")
	flag.BoolVar(&c.keep, "keep", false, "leave the scratch folder")
	flag.Parse()
	for _, text := range strings.Split(nodes, ",") {
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 4 {
			return c, fmt.Errorf("-nodes %s: %q is no number of nodes from 4 up", nodes, text)
		}
		c.nodes = append(c.nodes, n)
	}
	binary, err := filepath.Abs(c.binary)
	if err != nil {
		return c, err
	}
	c.binary = binary
	_, err = os.Stat(binary)
	return c, err
}

func run(ctx context.Context, c config) error {
	if !c.keep {
		defer os.RemoveAll(c.dir)
	}
	b, err := measureBinary(ctx, c)
	if err != nil {
		return err
	}
	b.print(os.Stdout)
	var plans []planResult
	for _, n := range c.nodes {
		r, err := measurePlan(ctx, c, n)
		if err != nil {
			return fmt.Errorf("plan at %d nodes: %w", n, err)
		}
		plans = append(plans, r)
	}
	printPlans(os.Stdout, plans)
	if !c.up {
		return nil
	}
	u, err := measureUp(ctx, c)
	if err != nil {
		return fmt.Errorf("up: %w", err)
	}
	printUps(os.Stdout, u)
	return nil
}
