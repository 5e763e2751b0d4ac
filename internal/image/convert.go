package image

import (
	"context"
	"errors"
	"io"
)

func convert(context.Context, io.Reader, Sink, Options) (*Result, error) {
	return nil, errors.New("image: not written yet")
}
