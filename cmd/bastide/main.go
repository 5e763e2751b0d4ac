// Command bastide raises, runs and takes down self-hosted Kubernetes estates on
// Talos Linux at Scaleway, and rehearses all of it offline.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"bastide/internal/cli"
)

func main() {
	// The first signal asks for a clean stop; the second one is the system's
	// own, for when the clean stop takes too long.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	code := cli.Main(ctx, cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.Args[1:])
	os.Exit(int(code))
}
