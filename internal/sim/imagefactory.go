package sim

import (
	"net/http"

	"bastide/internal/sim/api"
	"bastide/internal/sim/factory"
)

// serveFactory starts the Image Factory on a port of its own.
func (r *Region) serveFactory(o Options, region *api.Region) error {
	made, err := factory.New(factory.Options{Dir: o.Dir, Clock: r.clock, Watch: factoryCalls{region}, Log: o.Log, Host: r.host})
	if err != nil {
		return err
	}
	r.parts = append(r.parts, made)
	r.Access.Factory, err = r.serveBeside(o, made)
	return err
}

// factoryCalls lets the region's fault script and request log see what clients
// ask of the Image Factory.
type factoryCalls struct{ *api.Region }

// Begin notes a call as one of the host factory.
func (c factoryCalls) Begin(req *http.Request, query string) func(factory.End) {
	end := c.Outside("factory", req.URL.Path, query, req)
	return func(e factory.End) {
		var effects []api.Effect
		if e.Made != "" {
			effects = append(effects, api.Effect{Verb: "created", Kind: "schematic", ID: e.Made})
		}
		end(e.Status, effects, e.Fault, e.Killed, "")
	}
}
