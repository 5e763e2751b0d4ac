package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

// upSpeeds are the speeds at which up is measured. What real processes take,
// such as an etcd that admits a member only when all others have been healthy
// for five seconds, does not scale, so its share shows in the comparison.
var upSpeeds = []float64{20, 4, 1}

// delay is what the region's page of delays shows.
type delay struct {
	What       string
	Begin, End time.Time
	Real       bool
}

// upResult is how up did at one speed, from nothing to the last check.
type upResult struct {
	speed     float64
	wall      time.Duration
	simulated time.Duration // the longest chain of delays that the region made
	held      time.Duration // the longest chain that counts waiting for real etcd too
	servers   time.Duration // CPU time of the region and its etcd and kube-apiserver processes
	links     []span
}

func measureUp(ctx context.Context, c config) ([]upResult, error) {
	var all []upResult
	for _, speed := range upSpeeds {
		r, err := measureUpAt(ctx, c, speed)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func measureUpAt(ctx context.Context, c config, speed float64) (upResult, error) {
	r := upResult{speed: speed}
	s, err := open(ctx, c, 5, speed)
	if err != nil {
		return r, err
	}
	defer s.Close()
	fmt.Fprintf(os.Stderr, "bench: up at speed %g\n", speed)
	o, err := s.bastide(ctx, "up", s.Stage.Env, "--yes")
	if err != nil {
		return r, err
	}
	r.wall = o.wall()
	r.servers = session(s.Access.PID)
	var delays []delay
	if err := s.Page(ctx, "/sim/delays", &delays); err != nil {
		return r, err
	}
	var simulated, all []span
	for _, d := range delays {
		if d.Begin.Before(o.begin) || d.End.After(o.end) {
			continue
		}
		all = append(all, span{d.What, d.Begin, d.End})
		if !d.Real {
			simulated = append(simulated, span{d.What, d.Begin, d.End})
		}
	}
	_, r.simulated = chain(simulated)
	r.links, r.held = chain(all)
	if os.Getenv("BENCH_CHAIN") != "" {
		for _, l := range r.links {
			fmt.Fprintf(os.Stderr, "  %8.2f s  %6.2f s  %s\n", l.begin.Sub(o.begin).Seconds(), l.took().Seconds(), l.what)
		}
	}
	return r, nil
}

func printUps(w io.Writer, results []upResult) {
	fmt.Fprintln(w, "\nup of 5 nodes from nothing, against the longest chain of delays")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "speed\twall\tsimulated delays\twall/chain\twith real etcd's waits\twall/chain\tCPU of the region's processes\t\n")
	for _, r := range results {
		fmt.Fprintf(t, "%g\t%.1f s\t%.1f s\t%.2f\t%.1f s\t%.2f\t%.0f s\t\n", r.speed, r.wall.Seconds(), r.simulated.Seconds(), r.wall.Seconds()/r.simulated.Seconds(),
			r.held.Seconds(), r.wall.Seconds()/r.held.Seconds(), r.servers.Seconds())
	}
	_ = t.Flush()
}
