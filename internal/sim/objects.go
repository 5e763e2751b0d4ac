package sim

import (
	"net"
	"net/http"
	"time"

	"bastide/internal/sim/api"
	"bastide/internal/sim/clock"
	"bastide/internal/sim/s3"
)

// serveObjects starts object storage on a port of its own.
func (r *Region) serveObjects(o Options, region *api.Region) error {
	keys := func(access string) (s3.Key, bool) {
		secret, project, known := o.Access.SecretKey, o.Access.Project, true
		if access != o.Access.AccessKey {
			secret, project, known = region.KeyMade(access)
		}
		return s3.Key{Secret: secret, Project: project, May: func(need s3.Right, in string) (bool, string) {
			return region.ObjectRight(secret, in, string(need.Thing), string(need.Action))
		}}, known
	}
	store, err := s3.New(s3.Options{
		Dir: o.Dir, Region: o.Access.Region, Clock: clock.New(o.Speed), Watch: objectCalls{region, "s3"}, Log: o.Log, Host: r.host,
		Keys: keys,
	})
	if err != nil {
		return err
	}
	r.store = store
	r.parts = append(r.parts, store)
	region.Mount(store)
	r.Access.S3, err = r.serveBeside(o, store)
	return err
}

// serveBeside serves a neighbour of the API on a port of its own, on the same
// host, and returns its address.
func (r *Region) serveBeside(o Options, handler http.Handler) (url string, err error) {
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return "", err
	}
	listener, err := listenLoopback(net.JoinHostPort(host, "0"))
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	r.parts = append(r.parts, server)
	go func() { _ = server.Serve(listener) }() // ends with Close
	return "http://" + listener.Addr().String(), nil
}

// objectCalls lets the region's fault script and request log see what clients
// do to object storage.
type objectCalls struct {
	*api.Region
	host string // as which its calls are noted
}

// Begin notes a call.
func (c objectCalls) Begin(req *http.Request, path, query string) func(s3.End) {
	end := c.Outside(c.host, path, query, req)
	return func(e s3.End) {
		effects := make([]api.Effect, len(e.Effects))
		for i, one := range e.Effects {
			effects[i] = api.Effect(one)
		}
		end(e.Status, effects, e.Fault, string(e.Killed), e.Ruled)
	}
}
