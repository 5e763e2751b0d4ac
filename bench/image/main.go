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
	fmt.Printf("medians of %d\n\n%-28s %9s %9s %8s %8s %9s | %9s %9s %8s %9s %9s\n", *runs, "disk, as raw.zst", "raw", "zst",
		"zstd -dc", "one pass", "rate", "3 steps", "uploaded", "faster", "3 steps", "one pass")
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
		fmt.Printf("%-28s %6d MB %6d MB %7.2fs %7.2fs %9.2f | %8.2fs %8.2fs %7.1fx %6d MB %6d MB\n", in.name, in.disk.Size/1e6, info.Size()/1e6,
			r.floor.Seconds(), r.convert.Seconds(), r.floor.Seconds()/r.convert.Seconds(),
			r.steps.Seconds(), r.upload.Seconds(), r.steps.Seconds()/r.upload.Seconds(), r.stepsPeak/1e6, r.peak/1e6)
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	fmt.Println("\nrate: zstd -dc to nothing / one pass to nothing; faster: three steps / one pass, both with the upload; the last two are peak memory")
	return nil
}

// result is what one input was measured with; times are medians.
type result struct {
	floor, convert, steps, upload time.Duration
	stepsPeak, peak               int64 // bytes
}

func measure(ctx context.Context, dir, file string, s *store, runs int) (result, error) {
	var r result
	var floor, convert, steps, upload []time.Duration
	for range runs {
		for _, step := range []struct {
			into *[]time.Duration
			peak *int64
			run  func() (time.Duration, int64, error)
		}{
			{&floor, new(int64), func() (time.Duration, int64, error) { return timed(ctx, nil, "zstd", "-dcq", file) }},
			{&convert, &r.peak, func() (time.Duration, int64, error) { return self(ctx, "convert", file) }},
			{&steps, &r.stepsPeak, func() (time.Duration, int64, error) { return threeSteps(ctx, dir, file, s) }},
			{&upload, &r.peak, func() (time.Duration, int64, error) { return self(ctx, "upload", file, s.url) }},
		} {
			wall, peak, err := step.run()
			if err != nil {
				return r, err
			}
			*step.into = append(*step.into, wall)
			*step.peak = max(*step.peak, peak)
		}
	}
	r.floor, r.convert, r.steps, r.upload = median(floor), median(convert), median(steps), median(upload)
	return r, nil
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// threeSteps is the way by hand.
func threeSteps(ctx context.Context, dir, file string, s *store) (wall time.Duration, peak int64, err error) {
	raw, qcow := filepath.Join(dir, "steps.raw"), filepath.Join(dir, "steps.qcow2")
	defer os.Remove(raw)
	defer os.Remove(qcow)
	for _, args := range [][]string{
		{"zstd", "-dqf", file, "-o", raw},
		{"qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, qcow},
		{"aws", "s3", "cp", "--only-show-errors", "--endpoint-url", s.url, qcow, "s3://" + bucket + "/steps.qcow2"},
	} {
		w, p, err := timed(ctx, s.env(), args...)
		if err != nil {
			return 0, 0, err
		}
		wall, peak = wall+w, max(peak, p)
	}
	return wall, peak, nil
}

// self runs this program in another role, in a process of its own, so that its
// memory can be told apart.
func self(ctx context.Context, role string, args ...string) (time.Duration, int64, error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	return timed(ctx, []string{"BENCH_IMAGE_ROLE=" + role}, append([]string{exe}, args...)...)
}

// timed runs a program and says how long it took and how much memory it had at most.
func timed(ctx context.Context, env []string, args ...string) (time.Duration, int64, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr // standard output is /dev/null
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", args[0], err)
	}
	return time.Since(begin), peak(cmd.ProcessState), nil
}
