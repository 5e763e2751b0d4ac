// Image measures the way from a compressed disk to a qcow2 file in an object
// store, side by side in one run: bastide's one pass against `zstd -dc` to nothing,
// which is the least that any way takes, and against the three steps that people
// take by hand, `zstd -d`, `qemu-img convert` and `aws s3 cp`, to the same store on
// this machine. It prints one table and fails only when something cannot be measured.
//
//	make bench-image
//	go run ./bench/image -runs 1
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if role := os.Getenv("BENCH_IMAGE_ROLE"); role != "" {
		err = child(ctx, role, os.Args[1:])
	} else {
		err = bench(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/image:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context) error {
	dir := flag.String("dir", filepath.Join(os.TempDir(), fmt.Sprintf("bastide-bench-image-%d", os.Getuid())), "scratch folder; it needs 12 GB")
	runs := flag.Int("runs", 3, "how often each is measured; the median counts")
	flag.Parse()
	for _, program := range []string{"zstd", "qemu-img", "aws"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w: this run compares with it", err)
		}
	}
	if err := os.MkdirAll(*dir, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(*dir)
	store, err := startStore(ctx, *dir)
	if err != nil {
		return err
	}
	defer store.stop()
	fmt.Printf("medians of %d; processor time in parentheses\n", *runs)
	for _, in := range inputs {
		file, err := in.make(ctx, *dir)
		if err != nil {
			return err
		}
		r, err := measure(ctx, *dir, file, store, *runs)
		if err != nil {
			return err
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		fmt.Printf("\n%s: %d MB raw, %d MB as zst, %d processors\n", in.name, in.disk.Size/1e6, info.Size()/1e6, runtime.NumCPU())
		for _, w := range []struct {
			what string
			of   way
		}{{"zstd -dc to nothing", r.floor}, {"one pass to nothing", r.convert}, {"one pass, uploaded", r.upload},
			{"zstd -d", r.steps[0]}, {"qemu-img convert", r.steps[1]}, {"aws s3 cp", r.steps[2]}} {
			fmt.Printf("  %-22s %6.2f s (%5.2f s)  %4d MB\n", w.what, w.of.wall().Seconds(), w.of.cpu().Seconds(), w.of.peak/1e6)
		}
		steps := r.steps[0].wall() + r.steps[1].wall() + r.steps[2].wall()
		fmt.Printf("  rate against the floor %.2f; three steps take %.2f s, %.1f times as long as one pass; without the uploads %.1f times\n",
			r.floor.wall().Seconds()/r.convert.wall().Seconds(), steps.Seconds(), steps.Seconds()/r.upload.wall().Seconds(),
			(r.steps[0].wall()+r.steps[1].wall()).Seconds()/r.convert.wall().Seconds())
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return nil
}

// way is what one way took, run by run.
type way struct {
	walls, cpus []time.Duration
	peak        int64 // bytes, the most of all runs
}

func (w *way) wall() time.Duration { return median(w.walls) }
func (w *way) cpu() time.Duration  { return median(w.cpus) }

func median(d []time.Duration) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)/2]
}

// result is what one input was measured with.
type result struct {
	floor, convert, upload way
	steps                  [3]way // by hand
}

func measure(ctx context.Context, dir, file string, s *place, runs int) (r result, err error) {
	raw, qcow := filepath.Join(dir, "steps.raw"), filepath.Join(dir, "steps.qcow2")
	defer os.Remove(raw)
	defer os.Remove(qcow)
	for range runs {
		for _, step := range []struct {
			into *way
			env  []string
			args []string
		}{
			{&r.floor, nil, []string{"zstd", "-dcq", file}},
			{&r.convert, role("convert"), []string{os.Args[0], file}},
			{&r.steps[0], nil, []string{"zstd", "-dqf", file, "-o", raw}},
			{&r.steps[1], nil, []string{"qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, qcow}},
			{&r.steps[2], s.env(), []string{"aws", "s3", "cp", "--only-show-errors", "--endpoint-url", s.url, qcow, "s3://" + bucket + "/steps.qcow2"}},
			{&r.upload, role("upload"), []string{os.Args[0], file, s.url}},
		} {
			if err := step.into.run(ctx, step.env, step.args...); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// role runs this program as something else, in a process of its own, so that its
// memory can be told apart.
func role(name string) []string { return []string{"BENCH_IMAGE_ROLE=" + name} }

// run runs a program and notes how long it took and how much memory it had at most.
func (w *way) run(ctx context.Context, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr // standard output is /dev/null
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	w.walls = append(w.walls, time.Since(begin))
	w.cpus = append(w.cpus, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	w.peak = max(w.peak, peak(cmd.ProcessState))
	return nil
}
