package scaleway

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"time"
)

// attempts bounds how often a creation whose answer was lost is sent again.
const attempts = 5

// ensure finds a thing or makes it, so that it exists once however often this
// runs. No API of Scaleway takes an idempotency key: after a lost answer the
// thing is looked for until any lag is over, and only then asked for again.
func ensure[T any](ctx context.Context, c *Cloud, limit time.Duration, find func(context.Context) (T, bool, error), post func(context.Context) (T, error)) (T, error) {
	v, _, err := ensureNew(ctx, c, limit, find, post)
	return v, err
}

// ensureNew also says whether the thing was made just now, so that a reading may
// not show it yet.
func ensureNew[T any](ctx context.Context, c *Cloud, limit time.Duration, find func(context.Context) (T, bool, error), post func(context.Context) (T, error)) (v T, fresh bool, err error) {
	v, found, err := find(ctx)
	if err != nil || found {
		return v, false, err
	}
	begun := time.Now()
	for n := 1; ; n++ {
		err := c.steady(ctx, limit, func(ctx context.Context) (err error) {
			if v, err = post(ctx); err == nil {
				err = told(v)
			}
			return err
		})
		if err == nil || !uncertain(err) && n == 1 || ctx.Err() != nil {
			return v, true, err
		}
		// Another attempt may be refused because the one before it was carried out
		// after all, and has the name.
		found, lookErr := false, error(nil)
		if v, found, lookErr = lookAgain(ctx, c, c.lag(err), find); lookErr != nil || found {
			return v, true, lookErr
		}
		if !uncertain(err) || n == attempts || time.Since(begun) > limit {
			return v, true, err
		}
	}
}

// lag is how long something may stay unseen after its creation failed with an
// error. A call that was given up, by us or by a gateway in between, may still
// be carried out; it is then given the time of another attempt.
func (c *Cloud) lag(err error) time.Duration {
	var lost *lostError
	if errors.As(err, &lost) && lost.late || statusOf(err) == http.StatusGatewayTimeout {
		return c.pace.Settle + c.retry.Attempt
	}
	return c.pace.Settle
}

// lookAgain looks for something that may have just been made, for as long as a
// reading may lag.
func lookAgain[T any](ctx context.Context, c *Cloud, lag time.Duration, find func(context.Context) (T, bool, error)) (T, bool, error) {
	begun := time.Now()
	for {
		v, found, err := find(ctx)
		if err != nil || found || time.Since(begun) > lag {
			return v, found, err
		}
		if err := sleep(ctx, max(c.pace.First, c.pace.Settle/5)); err != nil {
			return v, false, err
		}
	}
}

// told turns an answer to a creation that names no thing into a lost one: there
// may be a thing, and what it is has to be found out. The SDK's types have no
// method for the ID that nearly all of them have.
func told(v any) error {
	thing := reflect.Indirect(reflect.ValueOf(v))
	if !thing.IsValid() {
		return &lostError{method: "the", path: "creation", err: errors.New("the answer is empty")}
	}
	if thing.Kind() != reflect.Struct {
		return nil
	}
	if id := thing.FieldByName("ID"); id.IsValid() && id.Kind() == reflect.String && id.String() == "" {
		return &lostError{method: "the", path: "creation", err: errors.New("the answer names no ID")}
	}
	return nil
}
