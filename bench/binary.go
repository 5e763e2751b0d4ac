package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// binaryResult is what the program weighs and takes to start.
type binaryResult struct {
	size       int64
	wall, cpu  time.Duration
	fastest    time.Duration
	comparison time.Duration // what starting /bin/true takes on this machine now
}

// starts is how often a start is measured.
const starts = 21

func measureBinary(ctx context.Context, c config) (binaryResult, error) {
	var r binaryResult
	info, err := os.Stat(c.binary)
	if err != nil {
		return r, err
	}
	r.size = info.Size()
	var walls, cpus, nothing []time.Duration
	for range starts {
		o, err := timed(exec.CommandContext(ctx, c.binary, "version"))
		if err != nil {
			return r, err
		}
		walls, cpus = append(walls, o.wall()), append(cpus, o.cpu)
		if o, err = timed(exec.CommandContext(ctx, "true")); err != nil {
			return r, err
		}
		nothing = append(nothing, o.wall())
	}
	r.wall, r.cpu, r.comparison = median(walls), median(cpus), median(nothing)
	r.fastest = walls[0]
	for _, w := range walls {
		r.fastest = min(r.fastest, w)
	}
	return r, nil
}

func (r binaryResult) print(w io.Writer) {
	fmt.Fprintf(w, "binary %.1f MB; version in %.0f ms (median of %d; fastest %.0f ms, CPU %.0f ms; true takes %.0f ms)\n",
		float64(r.size)/1e6, ms(r.wall), starts, ms(r.fastest), ms(r.cpu), ms(r.comparison))
}
