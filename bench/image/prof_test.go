package main

import (
	"context"
	"os"
	"testing"
)

func TestProfGen(t *testing.T) {
	for i, in := range inputs {
		d := []string{"/tmp/pipeline-x/a", "/tmp/pipeline-x/b"}[i]
		os.MkdirAll(d, 0o700)
		if _, err := os.Stat(d + "/disk.raw.zst"); err == nil {
			continue
		}
		if _, err := in.make(context.Background(), d); err != nil {
			t.Fatal(err)
		}
	}
}

func TestProfRun(t *testing.T) {
	for _, d := range []string{"a", "b"} {
		if err := convert(context.Background(), "/tmp/pipeline-x/"+d+"/disk.raw.zst", nowhere{}); err != nil {
			t.Fatal(err)
		}
	}
}
