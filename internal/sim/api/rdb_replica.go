package api

import (
	"net/http"
	"slices"
	"time"
)

// rdbReplica is a read replica of an instance. It has endpoints of its own;
// nothing listens on them here.
type rdbReplica struct {
	record
	Region    string
	Status    string // provisioning, initializing, configuring, ready, deleting
	Instance  string
	SameZone  bool
	Endpoints []rdbEndpoint
}

const (
	rdbReplicaReady      = 150 * time.Second
	rdbReplicaConfigures = 20 * time.Second
	rdbReplicaGoes       = 20 * time.Second
	rdbMostReplicas      = 3
)

func (r *Region) rdbReplicaRoutes(base string) {
	r.route("POST "+base+"/read-replicas", http.StatusOK, createRDBReplica)
	r.route("GET "+base+"/read-replicas/{id}", http.StatusOK, getRDBReplica)
	r.route("DELETE "+base+"/read-replicas/{id}", http.StatusOK, deleteRDBReplica)
	r.route("POST "+base+"/read-replicas/{id}/reset", http.StatusOK, resetRDBReplica)
	r.route("POST "+base+"/read-replicas/{id}/promote", http.StatusOK, promoteRDBReplica)
	r.route("POST "+base+"/read-replicas/{id}/endpoints", http.StatusOK, addReplicaEndpoints)
}

func viewRDBReplica(r *rdbReplica) doc {
	return doc{"id": r.ID, "instance_id": r.Instance, "status": r.Status, "region": r.Region, "same_zone": r.SameZone,
		"endpoints": views(r.Endpoints, viewRDBEndpoint)}
}

func createRDBReplica(c *call) (any, error) {
	var in struct {
		Instance string            `json:"instance_id"`
		Specs    []rdbEndpointSpec `json:"endpoint_spec"`
		SameZone opt[bool]         `json:"same_zone"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	i, err := c.readyRDB(in.Instance)
	if err != nil {
		return nil, err
	}
	if n := len(c.RDBReplicas.where(func(r *rdbReplica) bool { return r.Instance == i.ID })); n >= rdbMostReplicas {
		return nil, quotaExceeded("read_replicas", rdbMostReplicas)
	}
	r := &rdbReplica{record: newRecord(i.Project, "", nil), Region: i.Region, Status: "provisioning", Instance: i.ID, SameZone: in.SameZone.or(true)}
	direct, err := c.replicaEndpoints(r, in.Specs)
	if err != nil {
		return nil, err
	}
	add(c.world, c.RDBReplicas, r)
	c.replicaBusy(r, "provisioning", rdbReplicaReady, direct)
	return viewRDBReplica(r), nil
}

// replicaEndpoints adds private endpoints at once and says whether a direct one
// is to follow.
func (c *call) replicaEndpoints(r *rdbReplica, specs []rdbEndpointSpec) (direct bool, err error) {
	if err := checkRDBEndpoints(specs); err != nil {
		return false, err
	}
	for _, s := range specs {
		kind := rdbDirect
		if s.Private != nil {
			kind = rdbPrivate
		}
		if slices.ContainsFunc(r.Endpoints, func(e rdbEndpoint) bool { return e.Kind == kind }) {
			return false, invalid("endpoint_spec", "constraint", "the replica has an endpoint of this kind already")
		}
		if s.Private == nil {
			direct = true
			continue
		}
		e, err := c.privateRDBEndpoint(s.Private, ipamResource{"rdb_instance", r.ID, c.mac("02:00:00"), ""})
		if err != nil {
			return false, err
		}
		r.Endpoints = append(r.Endpoints, e)
	}
	return direct, nil
}

// replicaBusy makes a replica ready again after a time, then with a direct
// endpoint if it is to get one.
func (w *world) replicaBusy(r *rdbReplica, status string, d time.Duration, direct bool) {
	r.Status = status
	id := r.ID
	w.after(d, func(w *world) {
		if r, ok := w.RDBReplicas.get(id); ok && r.Status == status {
			r.Status = "ready"
			if direct {
				r.Endpoints = append(r.Endpoints, w.publicRDBEndpoint(rdbDirect))
			}
			r.touch()
		}
	})
}

func (c *call) rdbReplica() (*rdbReplica, error) {
	if r, ok := c.RDBReplicas.get(c.path("id")); ok && r.Region == c.regionName() {
		return r, nil
	}
	return nil, notFound("read_replica", c.path("id"))
}

func (c *call) readyRDBReplica() (*rdbReplica, error) {
	r, err := c.rdbReplica()
	if err == nil && r.Status != "ready" {
		return nil, transient("read_replica", r.ID, r.Status)
	}
	return r, err
}

func getRDBReplica(c *call) (any, error) {
	r, err := c.rdbReplica()
	if err != nil {
		return nil, err
	}
	return viewRDBReplica(r), nil
}

func deleteRDBReplica(c *call) (any, error) {
	r, err := c.rdbReplica()
	if err != nil {
		return nil, err
	}
	r.Status = "deleting"
	change(c.world, c.RDBReplicas, r)
	id := r.ID
	c.after(rdbReplicaGoes, func(w *world) {
		if r, ok := w.RDBReplicas.get(id); ok {
			w.removeRDBReplica(r)
		}
	})
	return viewRDBReplica(r), nil
}

func (w *world) removeRDBReplica(r *rdbReplica) {
	for _, e := range r.Endpoints {
		w.releaseRDBEndpoint(e)
	}
	remove(w, w.RDBReplicas, r.ID)
}

func (c *call) deleteReplicaEndpoint(r *rdbReplica, e rdbEndpoint) error {
	if r.Status != "ready" {
		return transient("read_replica", r.ID, r.Status)
	}
	r.Status = "configuring"
	change(c.world, c.RDBReplicas, r)
	id := r.ID
	c.after(rdbReplicaConfigures, func(w *world) {
		if r, ok := w.RDBReplicas.get(id); ok && r.Status == "configuring" {
			r.Status, r.Endpoints = "ready", withoutEndpoint(r.Endpoints, e.ID)
			w.releaseRDBEndpoint(e)
		}
	})
	return nil
}

func addReplicaEndpoints(c *call) (any, error) {
	r, err := c.readyRDBReplica()
	if err != nil {
		return nil, err
	}
	var in struct {
		Specs []rdbEndpointSpec `json:"endpoint_spec"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	direct, err := c.replicaEndpoints(r, in.Specs)
	if err != nil {
		return nil, err
	}
	c.replicaBusy(r, "initializing", rdbReplicaConfigures, direct)
	change(c.world, c.RDBReplicas, r)
	return viewRDBReplica(r), nil
}

func resetRDBReplica(c *call) (any, error) {
	r, err := c.readyRDBReplica()
	if err != nil {
		return nil, err
	}
	c.replicaBusy(r, "provisioning", rdbReplicaReady, false)
	change(c.world, c.RDBReplicas, r)
	return viewRDBReplica(r), nil
}

// promoteRDBReplica makes an instance of a replica, which ceases to be one. Its
// endpoints go; the new instance gets a public one.
func promoteRDBReplica(c *call) (any, error) {
	r, err := c.readyRDBReplica()
	if err != nil {
		return nil, err
	}
	from, err := c.rdb(r.Instance)
	if err != nil {
		return nil, err
	}
	i := c.copyRDB(from, "promoted - "+from.Name)
	i.Status = "initializing"
	c.removeRDBReplica(r)
	c.raiseRDB(i, (*world).exposeRDB)
	return c.viewRDB(i), nil
}
