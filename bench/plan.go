package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

// added is what every call of an API takes longer than the simulated region
// itself needs for it.
const added = 100 * time.Millisecond

// planResult is how plan did on an estate of one size.
type planResult struct {
	nodes  int
	raised time.Duration
	rounds []planRound
}

// planRound is one way of adding delays: to Scaleway's API alone, or also to
// the API of the nodes.
type planRound struct {
	what  string
	calls int // of Scaleway's API
	rpcs  int // of the nodes' Talos API
	deep  int // links of the chain
	chain time.Duration
	wall  time.Duration
	cpu   time.Duration
	peak  int64
}

func (r planRound) ratio() float64 { return float64(r.wall) / float64(r.chain) }

// measurePlan raises an estate, plans it with slow APIs and ends its region.
// Nothing is torn down: the region goes as a whole.
func measurePlan(ctx context.Context, c config, nodes int) (planResult, error) {
	result := planResult{nodes: nodes}
	s, err := open(ctx, c, nodes, c.raise)
	if err != nil {
		return result, err
	}
	defer s.Close()
	fmt.Fprintf(os.Stderr, "bench: raising %d nodes\n", nodes)
	o, err := s.bastide(ctx, "up", s.Stage.Env, "--yes", "--timeout", "30m")
	if err != nil {
		return result, err
	}
	result.raised = o.wall()
	for _, way := range []struct {
		what string
		rpc  time.Duration
	}{{"Scaleway", 0}, {"Scaleway and Talos", added}} {
		if err := s.slow(ctx, c.raise, added, way.rpc); err != nil {
			return result, err
		}
		r, err := s.round(ctx, c)
		if err != nil {
			return result, err
		}
		r.what = way.what
		result.rounds = append(result.rounds, r)
	}
	return result, nil
}

// round plans several times and takes the run of median wall time.
func (s *scene) round(ctx context.Context, c config) (planRound, error) {
	var all []planRound
	var walls []time.Duration
	for range c.runs {
		r, err := s.once(ctx)
		if err != nil {
			return r, err
		}
		all, walls = append(all, r), append(walls, r.wall)
	}
	middle := median(walls)
	for _, r := range all {
		if r.wall == middle {
			return r, nil
		}
	}
	return all[0], nil
}

func (s *scene) once(ctx context.Context) (planRound, error) {
	if _, err := s.calls(ctx); err != nil { // those before
		return planRound{}, err
	}
	// Exit code 0 means that there is nothing to do: the estate is whole.
	o, err := s.bastide(ctx, "plan", s.Stage.Env, "--exit-code")
	if err != nil {
		return planRound{}, err
	}
	calls, err := s.calls(ctx)
	if err != nil {
		return planRound{}, err
	}
	r := planRound{wall: o.wall(), cpu: o.cpu, peak: o.peak}
	var spans []span
	for _, call := range calls {
		if call.rpc() {
			r.rpcs++
		} else {
			r.calls++
		}
		spans = append(spans, call.span())
	}
	links, took := chain(spans)
	r.deep, r.chain = len(links), took
	if os.Getenv("BENCH_CHAIN") != "" {
		for _, l := range links {
			fmt.Fprintf(os.Stderr, "  %8.1f ms  %6.1f ms  %s\n", ms(l.begin.Sub(o.begin)), ms(l.took()), l.what)
		}
		fmt.Fprintf(os.Stderr, "  ended %8.1f ms, cpu %s\n", ms(o.wall()), o.cpu)
	}
	return r, nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// openTofu is what OpenTofu with the official provider made of the same cloud
// resources with the same 100 ms, in an earlier measurement: it reads every
// resource by itself and no node.
var openTofu = map[int]struct {
	calls int
	wall  time.Duration
}{5: {130, 2900 * time.Millisecond}, 50: {760, 10400 * time.Millisecond}, 200: {2860, 36 * time.Second}}

func printPlans(w io.Writer, results []planResult) {
	if len(results) == 0 {
		return
	}
	fmt.Fprintf(w, "\nplan of a live estate, %s added to every call of\n", added)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "nodes\tAPIs\tcalls\tRPCs\tchain\tlinks\twall\twall/chain\tCPU\tpeak memory\tOpenTofu calls\tOpenTofu wall\tup took\t\n")
	for _, r := range results {
		tofu, known := openTofu[r.nodes]
		for _, p := range r.rounds {
			fmt.Fprintf(t, "%d\t%s\t%d\t%d\t%.2f s\t%d\t%.2f s\t%.2f\t%.2f s\t%d MB\t", r.nodes, p.what, p.calls, p.rpcs, p.chain.Seconds(), p.deep, p.wall.Seconds(), p.ratio(), p.cpu.Seconds(), p.peak>>20)
			if known {
				fmt.Fprintf(t, "%d\t%.1f s\t", tofu.calls, tofu.wall.Seconds())
			} else {
				fmt.Fprint(t, "–\t–\t")
			}
			fmt.Fprintf(t, "%.0f s\t\n", r.raised.Seconds())
		}
	}
	_ = t.Flush()
}
