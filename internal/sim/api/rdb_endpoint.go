package api

import (
	"crypto/rand"
	"encoding/binary"
	"net/http"
	"net/netip"
	"slices"
)

// Kinds of endpoints, by the field that says which one it is.
const (
	rdbPublic  = "load_balancer"
	rdbPrivate = "private_network"
	rdbDirect  = "direct_access" // a replica's public one
)

// rdbEndpoint is an address and port under which an instance or a replica is
// reached. It cannot be changed, only deleted and made again.
type rdbEndpoint struct {
	ID      string
	Kind    string
	Address netip.Prefix // with the subnet's mask for a private one
	Port    int
	Network string // of a private one
	Static  bool   // the address was given, and IPAM knows nothing of it
	Zone    string
	IPAM    []string
}

type rdbEndpointSpec struct {
	Private *rdbPrivateSpec `json:"private_network"`
	Public  *struct{}       `json:"load_balancer"`
	Direct  *struct{}       `json:"direct_access"`
}

type rdbPrivateSpec struct {
	Network string    `json:"private_network_id"`
	Service string    `json:"service_ip"`
	IPAM    *struct{} `json:"ipam_config"`
}

func (r *Region) rdbEndpointRoutes(base, one string) {
	r.route("POST "+one+"/endpoints", http.StatusOK, createRDBEndpoint)
	r.route("GET "+base+"/endpoints/{id}", http.StatusOK, getRDBEndpoint)
	r.route("DELETE "+base+"/endpoints/{id}", http.StatusNoContent, deleteRDBEndpoint)
	r.route("POST "+base+"/endpoints/{id}/migrate", http.StatusOK, migrateRDBEndpoint)
}

func viewRDBEndpoint(e rdbEndpoint) doc {
	d := doc{"id": e.ID, "ip": e.Address.Addr().String(), "port": e.Port, "name": nil}
	if e.Kind != rdbPrivate {
		d[e.Kind] = doc{}
		return d
	}
	mode := "ipam"
	if e.Static {
		mode = "static"
	}
	d[rdbPrivate] = doc{"private_network_id": e.Network, "provisioning_mode": mode, "service_ip": e.Address.String(), "zone": e.Zone}
	return d
}

// checkRDBEndpoints refuses a set of endpoints that no instance can have: one
// private network and one public endpoint are the most.
func checkRDBEndpoints(specs []rdbEndpointSpec) error {
	var private, public int
	for _, s := range specs {
		switch {
		case s.Private != nil && s.Public == nil && s.Direct == nil:
			private++
		case s.Private == nil && (s.Public != nil || s.Direct != nil):
			public++
		default:
			return invalid("endpoint_spec", "required", "an endpoint is either in a private network or public")
		}
	}
	if private > 1 || public > 1 {
		return invalid("endpoint_spec", "constraint", "one private network and one public endpoint are the most")
	}
	return nil
}

// privateRDBEndpoint makes an endpoint in a private network. An address that is
// given is taken as it is: IPAM is neither asked nor told, and a booked address
// stays unattached.
func (c *call) privateRDBEndpoint(s *rdbPrivateSpec, r ipamResource) (rdbEndpoint, error) {
	e := rdbEndpoint{ID: newID(), Kind: rdbPrivate, Port: 5432, Network: s.Network, Zone: c.regionName() + "-1"}
	p, err := c.privateNetwork(s.Network, c.regionName())
	if err == nil {
		err = c.sees(p)
	}
	if err != nil {
		return e, err
	}
	switch {
	case s.Service != "" && s.IPAM != nil, s.Service == "" && s.IPAM == nil:
		return e, invalid("private_network", "constraint", "give either ipam_config or service_ip")
	case s.Service != "":
		e.Static = true
		if e.Address, err = netip.ParsePrefix(s.Service); err != nil {
			return e, invalid("service_ip", "format", s.Service+" is not an address in CIDR notation")
		}
		return e, nil
	}
	if e.IPAM, err = c.lend(p, nil, "4", r); err != nil {
		return e, err
	}
	e.Address = c.address4(e.IPAM)
	for _, id := range e.IPAM {
		if ip, ok := c.IPs.get(id); ok {
			ip.Tags = []string{"managed", "scwdbaas"}
		}
	}
	return e, nil
}

// publicRDBEndpoint makes an endpoint of a kind under a public address.
func (w *world) publicRDBEndpoint(kind string) rdbEndpoint {
	e := rdbEndpoint{ID: newID(), Kind: kind, Address: netip.PrefixFrom(w.publicIPv4(), 32), Port: 5432}
	if kind == rdbPublic { // instances share load balancers, so each has a port of its own
		var b [2]byte
		_, _ = rand.Read(b[:])
		e.Port = 1024 + int(binary.BigEndian.Uint16(b[:]))%30000
	}
	return e
}

// exposeRDB gives an instance a public endpoint, open to everybody as the real
// ones are.
func (w *world) exposeRDB(i *rdbInstance) {
	if slices.ContainsFunc(i.Endpoints, func(e rdbEndpoint) bool { return e.Kind == rdbPublic }) {
		return
	}
	i.Endpoints = append(i.Endpoints, w.publicRDBEndpoint(rdbPublic))
	if i.ACLs == nil {
		i.ACLs = []rdbRule{{IP: "0.0.0.0/0", Description: "Allow All"}}
	}
}

func (w *world) releaseRDBEndpoint(e rdbEndpoint) {
	w.giveBack(e.IPAM)
	if e.Kind != rdbPrivate {
		w.freePublic(e.Address.Addr())
	}
}

// createRDBEndpoint adds an endpoint. A private one is known at once; of a
// public one the answer says nothing yet.
func createRDBEndpoint(c *call) (any, error) {
	i, err := c.readyRDB(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Spec rdbEndpointSpec `json:"endpoint_spec"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := checkRDBEndpoints([]rdbEndpointSpec{in.Spec}); err != nil {
		return nil, err
	}
	kind := rdbPublic
	if in.Spec.Private != nil {
		kind = rdbPrivate
	}
	if slices.ContainsFunc(i.Endpoints, func(e rdbEndpoint) bool { return e.Kind == kind }) {
		return nil, invalid("endpoint_spec", "constraint", "the instance has an endpoint of this kind already")
	}
	change(c.world, c.RDBInstances, i)
	if kind == rdbPublic {
		c.rdbBusy(i, "initializing", rdbEndpointIn, (*world).exposeRDB)
		return doc{"id": "", "name": nil, "port": 0}, nil
	}
	e, err := c.privateRDBEndpoint(in.Spec.Private, ipamResource{"rdb_instance", i.ID, c.mac("02:00:00"), i.Name})
	if err != nil {
		return nil, err
	}
	i.Endpoints = append(i.Endpoints, e)
	c.rdbBusy(i, "initializing", rdbEndpointIn, nil)
	return viewRDBEndpoint(e), nil
}

// endpointRDB finds an endpoint with the instance or the replica that has it.
func (c *call) endpointRDB() (rdbEndpoint, *rdbInstance, *rdbReplica, error) {
	id := c.path("id")
	for _, i := range c.RDBInstances.all() {
		for _, e := range i.Endpoints {
			if e.ID == id && i.Region == c.regionName() {
				return e, i, nil, nil
			}
		}
	}
	for _, r := range c.RDBReplicas.all() {
		for _, e := range r.Endpoints {
			if e.ID == id && r.Region == c.regionName() {
				return e, nil, r, nil
			}
		}
	}
	return rdbEndpoint{}, nil, nil, notFound("endpoint", id)
}

func getRDBEndpoint(c *call) (any, error) {
	e, _, _, err := c.endpointRDB()
	if err != nil {
		return nil, err
	}
	return viewRDBEndpoint(e), nil
}

// anyIn says whether an endpoint is in a private network.
func anyIn(all []rdbEndpoint, network string) bool {
	return slices.ContainsFunc(all, func(e rdbEndpoint) bool { return e.Network == network })
}

func withoutEndpoint(all []rdbEndpoint, id string) []rdbEndpoint {
	return slices.DeleteFunc(slices.Clone(all), func(e rdbEndpoint) bool { return e.ID == id })
}

// deleteRDBEndpoint takes an endpoint away; it shows until that is done.
func deleteRDBEndpoint(c *call) (any, error) {
	e, i, r, err := c.endpointRDB()
	if err != nil {
		return nil, err
	}
	if r != nil {
		return nil, c.deleteReplicaEndpoint(r, e)
	}
	if i.Status != "ready" {
		return nil, transient("instance", i.ID, i.Status)
	}
	change(c.world, c.RDBInstances, i)
	c.rdbBusy(i, "configuring", rdbConfigures, func(w *world, i *rdbInstance) {
		i.Endpoints = withoutEndpoint(i.Endpoints, e.ID)
		w.releaseRDBEndpoint(e)
	})
	return nil, nil
}

// migrateRDBEndpoint moves an endpoint, address and all, to another instance.
func migrateRDBEndpoint(c *call) (any, error) {
	e, from, _, err := c.endpointRDB()
	if err != nil {
		return nil, err
	}
	var in struct {
		Instance string `json:"instance_id"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	to, err := c.readyRDB(in.Instance)
	if err != nil {
		return nil, err
	}
	if from == nil || from.Status != "ready" || from == to {
		return nil, invalid("endpoint_id", "constraint", "only an endpoint of another instance that is ready can be migrated")
	}
	if slices.ContainsFunc(to.Endpoints, func(x rdbEndpoint) bool { return x.Kind == e.Kind }) {
		return nil, invalid("instance_id", "constraint", "the instance has an endpoint of this kind already")
	}
	c.moveRDBEndpoint(from, to, e)
	return viewRDBEndpoint(e), nil
}

func (w *world) moveRDBEndpoint(from, to *rdbInstance, e rdbEndpoint) {
	from.Endpoints = withoutEndpoint(from.Endpoints, e.ID)
	to.Endpoints = append(to.Endpoints, e)
	if e.Kind == rdbPublic && to.ACLs == nil {
		to.ACLs = []rdbRule{{IP: "0.0.0.0/0", Description: "Allow All"}} // rules do not move along
	}
	for _, id := range e.IPAM {
		if ip, ok := w.IPs.get(id); ok && ip.Resource != nil {
			ip.Resource.ID, ip.Resource.Name = to.ID, to.Name
		}
	}
	change(w, w.RDBInstances, from)
	change(w, w.RDBInstances, to)
	w.applyRDB(from) // first, as the address can only be in one place
	w.applyRDB(to)
}
