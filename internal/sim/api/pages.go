package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"sort"
	"strings"

	"bastide/internal/sim/fault"
	"bastide/internal/sim/hardware"
)

// The simulator's own pages, under /sim/: what was called, what exists, and
// what is to go wrong. They need no key and are not in the request log.

func (r *Region) pageRoutes() {
	r.mux.HandleFunc("GET /sim/{$}", r.indexPage)
	r.mux.HandleFunc("GET /sim/requests", func(w http.ResponseWriter, req *http.Request) { writeJSON(w, r.Requests(sinceOf(req))) })
	r.mux.HandleFunc("GET /sim/delays", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, r.opts.Clock.Delays()) })
	r.mux.HandleFunc("GET /sim/state", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, r.State()) })
	r.mux.HandleFunc("GET /sim/host", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, doc{"trouble": r.opts.Host.Trouble()})
	})
	r.mux.HandleFunc("POST /sim/reset", func(w http.ResponseWriter, _ *http.Request) {
		r.Reset()
		w.WriteHeader(http.StatusNoContent)
	})
	r.mux.HandleFunc("POST /sim/seed", r.seedPage)
	r.mux.HandleFunc("GET /sim/faults", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, r.faults.Counts()) })
	r.mux.HandleFunc("POST /sim/faults", r.faultsPage)
	r.mux.HandleFunc("DELETE /sim/faults", func(w http.ResponseWriter, _ *http.Request) {
		r.faults.Clear()
		w.WriteHeader(http.StatusNoContent)
	})
	// Whatever no product serves is logged too, and missed without a type.
	r.mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		r.serve(w, req, http.StatusNotFound, func(*call) (any, error) { return doc{"message": "404 page not found"}, nil })
	})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v)
}

func refuse(w http.ResponseWriter, err error) { http.Error(w, err.Error(), http.StatusBadRequest) }

func (r *Region) seedPage(w http.ResponseWriter, req *http.Request) {
	var s Seed
	d := json.NewDecoder(req.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		refuse(w, fmt.Errorf("seed: %w", err))
		return
	}
	if err := r.seedOnce(s); err != nil {
		refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (r *Region) faultsPage(w http.ResponseWriter, req *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, req.Body, largestBody))
	if err != nil {
		refuse(w, err)
		return
	}
	s, err := fault.Parse(text)
	if err == nil {
		err = r.LoadFaults(s)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	writeJSON(w, r.faults.Counts())
}

var errNoNodes = errors.New("this region has no nodes that could act it out")

// LoadFaults replaces the fault script and acts out its node events, except
// those that wait for a call.
func (r *Region) LoadFaults(s fault.Script) error {
	for _, e := range s.Events {
		if err := r.checkTrouble(e.NodeEvent); err != nil {
			return fmt.Errorf("fault script: event %s for node %s: %w", e.Event, e.Node, err)
		}
	}
	for i, p := range s.Permissions {
		if err := checkDenied(p.Deny); err != nil {
			return fmt.Errorf("fault script: permission rule %d: %w", i+1, err)
		}
	}
	if err := r.faults.Load(s); err != nil {
		return err
	}
	for _, e := range s.Events {
		if e.On != nil {
			continue
		}
		if err := r.trouble(e.NodeEvent); err != nil {
			return fmt.Errorf("fault script: event %s for node %s: %w", e.Event, e.Node, err)
		}
	}
	return nil
}

// State is everything that exists, by product and kind, and by tag.
func (r *Region) State() map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &call{world: r.world}
	products, owned := map[string]map[string][]doc{}, map[string][]Owned{}
	for _, o := range append(c.inventory(), r.bucketInventory()...) {
		if products[o.Product] == nil {
			products[o.Product] = map[string][]doc{}
		}
		products[o.Product][o.Kind] = append(products[o.Product][o.Kind], o.view)
		for _, t := range o.Tags {
			owned[t] = append(owned[t], o)
		}
	}
	return map[string]any{"products": products, "owned": owned}
}

func (r *Region) indexPage(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	items := append((&call{world: r.world}).inventory(), r.bucketInventory()...)
	r.mu.Unlock()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	var b strings.Builder
	b.WriteString("<!doctype html><title>Simulated region</title><style>body{font:15px sans-serif;margin:2em;max-width:70em}" +
		"td,th{padding:.2em .8em .2em 0;text-align:left}code{background:#eee}</style><h1>Simulated region</h1><p>")
	for _, l := range []string{"requests", "state", "faults", "host"} {
		fmt.Fprintf(&b, `<a href="/sim/%s">%s</a> `, l, l)
	}
	fmt.Fprintf(&b, "· %d calls · speed %g</p><table><tr><th>kind<th>name<th>status<th>id<th>tags</tr>", len(r.Requests(0)), r.opts.Clock.Speed())
	for _, o := range items {
		fmt.Fprintf(&b, "<tr><td>%s<td>%s<td>%s<td><code>%s</code><td>%s</tr>", o.Kind, html.EscapeString(o.Name),
			html.EscapeString(o.Status), o.ID, html.EscapeString(strings.Join(o.Tags, ", ")))
	}
	fmt.Fprintf(&b, "</table><details><summary>%d operations served</summary><pre>%s</pre></details>", len(r.operations),
		html.EscapeString(strings.Join(r.operations, "\n")))
	_, _ = io.WriteString(w, b.String())
}

// Owned is a resource as the state page lists it under a tag.
type Owned struct {
	Product string   `json:"product"`
	Kind    string   `json:"kind"`
	ID      string   `json:"id"`
	Name    string   `json:"name,omitempty"`
	Project string   `json:"project,omitempty"`
	Status  string   `json:"status,omitempty"`
	Tags    []string `json:"-"`
	// Implicit resources exist by themselves: default VPCs and groups.
	Implicit bool `json:"implicit,omitempty"`
	view     doc
}

// collect adds a table's resources to an inventory.
func collect[T resource](out *[]Owned, product string, t *table[T], view func(T) doc, implicit func(T) bool) {
	for _, v := range t.all() {
		m, d := v.meta(), view(v)
		o := Owned{Product: product, Kind: t.Kind, ID: m.ID, Name: m.Name, Project: m.Project, Tags: m.Tags, view: d}
		for _, k := range []string{"status", "state"} {
			if s, ok := d[k].(string); ok {
				o.Status = s
			}
		}
		o.Implicit = implicit != nil && implicit(v)
		*out = append(*out, o)
	}
}

// inventory is everything in the region but projects.
func (c *call) inventory() []Owned {
	var out []Owned
	collect(&out, "iam", c.SSHKeys, c.viewSSHKey, nil)
	collect(&out, "iam", c.APIKeys, viewAPIKey, nil)
	collect(&out, "iam", c.Applications, c.viewApplication, nil)
	collect(&out, "iam", c.Policies, c.viewPolicy, nil)
	collect(&out, "secret-manager", c.Secrets, stateOfSecret, nil)
	collect(&out, "registry", c.Namespaces, c.viewNamespace, nil)
	collect(&out, "registry", c.RegistryImages, viewRegistryImage, nil)
	collect(&out, "domain", c.Zones, viewDNSZone, func(z *dnsZone) bool { return z.Subdomain == "" })
	collect(&out, "vpc", c.VPCs, c.viewVPC, func(v *vpc) bool { return v.Default })
	collect(&out, "vpc", c.PrivateNetworks, c.viewPrivateNetwork, nil)
	collect(&out, "vpc", c.Routes, c.viewRoute, nil)
	collect(&out, "vpc", c.Connectors, c.viewConnector, nil)
	collect(&out, "vpc", c.IngressRules, c.viewIngressRule, nil)
	collect(&out, "ipam", c.IPs, c.viewIP, nil)
	collect(&out, "vpc-gw", c.Gateways, c.viewGateway, nil)
	collect(&out, "vpc-gw", c.GatewayNetworks, c.viewGatewayNetwork, nil)
	collect(&out, "vpc-gw", c.PATRules, c.viewPATRule, nil)
	collect(&out, "vpc-gw", c.GatewayIPs, c.viewGatewayIP, nil)
	collect(&out, "block", c.Volumes, c.viewVolume, nil)
	collect(&out, "block", c.Snapshots, c.viewSnapshot, nil)
	collect(&out, "lb", c.LBs, c.viewLB, nil)
	collect(&out, "lb", c.LBIPs, c.viewLBIP, nil)
	collect(&out, "lb", c.Attachments, c.viewAttachment, nil)
	collect(&out, "lb", c.Backends, c.viewBackend, nil)
	collect(&out, "lb", c.Frontends, func(f *frontend) doc { return c.viewFrontend(f, shown{}) }, nil)
	collect(&out, "lb", c.LBACLs, c.viewLBACL, nil)
	collect(&out, "lb", c.LBRoutes, viewLBRoute, nil)
	collect(&out, "lb", c.Certs, c.viewCertificate, nil)
	collect(&out, "instance", c.Servers, c.viewServer, nil)
	collect(&out, "instance", c.NICs, c.viewNIC, nil)
	collect(&out, "instance", c.FlexibleIPs, c.viewFlexibleIP, nil)
	collect(&out, "instance", c.SecurityGroups, c.viewSecurityGroup, func(g *securityGroup) bool { return g.Default })
	collect(&out, "instance", c.PlacementGroups, c.viewPlacementGroup, nil)
	collect(&out, "instance", c.LocalVolumes, c.viewLocalVolume, nil)
	collect(&out, "instance", c.LocalSnapshots, c.viewLocalSnapshot, nil)
	collect(&out, "instance", c.Images, c.viewImage, nil)
	collect(&out, "rdb", c.RDBInstances, c.viewRDB, nil)
	collect(&out, "rdb", c.RDBBackups, viewRDBBackup, nil)
	collect(&out, "rdb", c.RDBSnapshots, viewRDBSnapshot, nil)
	collect(&out, "rdb", c.RDBReplicas, viewRDBReplica, nil)
	sort.SliceStable(out, func(i, j int) bool { return out[i].Product < out[j].Product })
	return out
}

// bucketInventory is what object storage holds.
func (r *Region) bucketInventory() []Owned {
	var out []Owned
	if r.store == nil {
		return out
	}
	for _, b := range r.store.Buckets() {
		out = append(out, Owned{Product: "object", Kind: "bucket", ID: b.Name, Name: b.Name, Project: b.Project, Tags: b.Tags, view: doc{
			"name": b.Name, "region": b.Region, "project_id": b.Project, "versioning": b.Versioning, "object_lock": b.ObjectLock,
			"tags": b.Tags, "objects": b.Objects, "versions": b.Versions, "uploads": b.Uploads, "bytes": b.Bytes}})
	}
	return out
}

func (r *Region) trouble(e hardware.NodeEvent) error {
	if isRDBEvent(e) {
		r.troubleDatabase(e)
		return nil
	}
	if isImportEvent(e) {
		r.troubleImport(e)
		return nil
	}
	return r.opts.Trouble.Event(r.background, e)
}

// happen acts out the events that were bound to a call.
func (r *Region) happen(events []hardware.NodeEvent) {
	for _, e := range events {
		if err := r.trouble(e); err != nil {
			r.opts.Log.Error("simulated region: an event bound to a call did not happen", "node", e.Node, "event", e.Event, "error", err)
		}
	}
}
