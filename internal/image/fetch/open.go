package fetch

import (
	"context"
	"errors"
	"net/http"
)

func open(context.Context, string, *http.Client, Options) (*Source, error) {
	return nil, errors.New("fetch: not written yet")
}
