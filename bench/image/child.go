package main

import (
	"context"
	"fmt"

	"bastide/internal/estate"
	"bastide/internal/image"
	"bastide/internal/image/fetch"
	"bastide/internal/scaleway"
	"bastide/internal/store"
)

// child is what this program does in another role.
func child(ctx context.Context, role string, args []string) error {
	switch role {
	case "store":
		return serve(ctx, args[0])
	case "convert":
		return convert(ctx, args[0], nowhere{})
	case "upload":
		return upload(ctx, args[0], args[1])
	}
	return fmt.Errorf("no role %q", role)
}

func convert(ctx context.Context, file string, to image.Sink) error {
	src, err := image.Open(ctx, file, nil, fetch.Options{})
	if err != nil {
		return err
	}
	defer src.Close()
	_, err = image.Convert(ctx, src, to, image.Options{})
	return err
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Head([]byte) error           { return nil }

// upload converts a file into the store, as bastide image build does.
func upload(ctx context.Context, file, url string) error {
	env := map[string]string{"SCW_ACCESS_KEY": accessKey, "SCW_SECRET_KEY": secretKey, "SCW_S3_ENDPOINT": url, "SCW_S3_USE_PATH_STYLE": "true"}
	objects, _, err := scaleway.NewObjectStorage(scaleway.Options{
		Estate:    &estate.Estate{Name: "bench", Scaleway: estate.Scaleway{Project: project, Region: region, Zones: []string{region + "-1"}}},
		LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		Notice:    func(string) {},
	})
	if err != nil {
		return err
	}
	src, err := image.Open(ctx, file, nil, fetch.Options{})
	if err != nil {
		return err
	}
	defer src.Close()
	to := store.New(store.Options{Objects: objects, Bucket: bucket, Estate: "bench", Notice: func(string) {}})
	up, err := to.StartImage(ctx, "one-pass.qcow2", image.HeadSize)
	if err != nil {
		return err
	}
	result, err := image.Convert(ctx, src, up, image.Options{})
	if err != nil {
		return err
	}
	_, err = up.Finish(ctx, store.Image{Digest: result.Digest, VirtualSize: result.VirtualSize, Source: src.Name()})
	return err
}
