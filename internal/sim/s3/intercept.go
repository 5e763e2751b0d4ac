package s3

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"bastide/internal/sim/fault"
)

// intercept acts out the faults that keep a call from the store.
func intercept(r *http.Request, f *fault.HTTP, path, id string) (a *reply, passed bool) {
	if f == nil {
		return nil, true
	}
	ctx := r.Context()
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return &reply{cut: true}, false
		}
	}
	switch {
	case f.Hang:
		// Only behind the body does the server notice that a client gave up.
		_, _ = io.Copy(io.Discard, r.Body)
		<-ctx.Done()
		return &reply{cut: true}, false
	case f.Cuts(r.ContentLength):
		_, _ = io.CopyN(io.Discard, r.Body, f.CutAfter)
		return &reply{cut: true}, false
	case f.Drop:
		return &reply{cut: true}, false
	case f.Status == 0:
		return nil, true
	}
	a = newReply(f.Status)
	switch b := f.Body.(type) {
	case nil:
		if code, ok := faultCodes[f.Status]; ok {
			a = refuse(f.Status, code, "%s", http.StatusText(f.Status)).reply(path, id)
		}
	case string:
		a.body = []byte(b)
	default:
		a.body, _ = json.Marshal(b)
		a.header.Set("Content-Type", "application/json")
	}
	for k, v := range f.Headers {
		a.header.Set(k, v)
	}
	return a, false
}

// faultCodes are the errors behind a status that a fault rule gives no body.
var faultCodes = map[int]string{
	http.StatusForbidden: "AccessDenied", http.StatusConflict: "OperationAborted", http.StatusPreconditionFailed: "PreconditionFailed",
	http.StatusTooManyRequests: "TooManyRequests", http.StatusInternalServerError: "InternalError", http.StatusServiceUnavailable: "SlowDown",
}
