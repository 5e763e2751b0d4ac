package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"bastide/internal/sim/clock"
	"bastide/internal/sim/s3"
)

// The store's only bucket and key; it lives as long as one run.
const (
	bucket    = "images"
	region    = "fr-par"
	accessKey = "SCWBENCH000000000000"
	secretKey = "6a1b1b7e-0000-4000-8000-000000000009"
	project   = "11111111-1111-4111-8111-111111111111"
)

// place is the simulated region's object storage, in a process of its own.
type place struct {
	url string
	cmd *exec.Cmd
}

func startStore(ctx context.Context, dir string) (*place, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, exe, filepath.Join(dir, "store"))
	cmd.Env = append(os.Environ(), "BENCH_IMAGE_ROLE=store")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &place{cmd: cmd}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("the store did not start: %w", err)
	}
	s.url = strings.TrimSpace(line)
	core, err := client(s.url)
	if err == nil {
		err = core.MakeBucket(ctx, bucket, minio.MakeBucketOptions{Region: region})
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *place) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

// env lets aws find the store, and nothing of the user's.
func (s *place) env() []string {
	return []string{
		"AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=" + secretKey, "AWS_DEFAULT_REGION=" + region,
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	}
}

func client(url string) (*minio.Core, error) {
	return minio.NewCore(strings.TrimPrefix(url, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(accessKey, secretKey, ""), Region: region, BucketLookup: minio.BucketLookupPath,
	})
}

// serve is the store's process. It says its address on standard output.
func serve(ctx context.Context, dir string) error {
	server, err := s3.New(s3.Options{Dir: dir, Region: region, Clock: clock.New(1), Keys: func(id string) (s3.Key, bool) {
		return s3.Key{Secret: secretKey, Project: project}, id == accessKey
	}})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	web := &http.Server{Handler: server}
	go func() {
		<-ctx.Done()
		_ = web.Close()
	}()
	_ = web.Serve(listener)
	return server.Close()
}
