package api

import (
	"encoding/json"
	"net/netip"
	"time"

	"bastide/internal/sim/clock"
	"bastide/internal/sim/hardware"
)

// world is everything that exists in the region. It is only touched under the
// region's lock.
type world struct {
	region  *Region
	clock   clock.Clock
	opts    Options
	timers  map[*time.Timer]bool
	touched []Effect // what the call in hand has done so far
	State
}

// State is the part of the world that can be written down: it is copied for
// reads that a fault makes stale.
type State struct {
	Open bool // no project was named, so all exist

	Projects *table[*project]
	SSHKeys  *table[*sshKey]

	VPCs            *table[*vpc]
	PrivateNetworks *table[*privateNetwork]
	Routes          *table[*route]
	Connectors      *table[*connector]
	IngressRules    *table[*ingressRule]
	ACLs            map[string]aclList // by VPC id and address family

	IPs *table[*ipamIP]

	Gateways        *table[*gateway]
	GatewayNetworks *table[*gatewayNetwork]
	PATRules        *table[*patRule]
	GatewayIPs      *table[*gatewayIP]

	Volumes   *table[*blockVolume]
	Snapshots *table[*blockSnapshot]
	Exports   map[string]export // by bucket and key

	LBs         *table[*lb]
	LBIPs       *table[*lbIP]
	Attachments *table[*lbAttachment]
	Backends    *table[*backend]
	Frontends   *table[*frontend]
	LBACLs      *table[*lbACL]
	LBRoutes    *table[*lbRoute]
	Certs       *table[*certificate]

	Servers         *table[*server]
	NICs            *table[*nic]
	FlexibleIPs     *table[*flexibleIP]
	SecurityGroups  *table[*securityGroup]
	PlacementGroups *table[*placementGroup]
	LocalVolumes    *table[*localVolume]
	LocalSnapshots  *table[*localSnapshot]
	Images          *table[*image]

	Secrets *table[*secret]

	Namespaces     *table[*registryNamespace]
	RegistryImages *table[*registryImage]
	NamesTaken     map[string]bool // by other customers: region/name of a namespace

	Zones        *table[*dnsZone]
	DomainsKnown bool // the domains of the account were named, so there are no others

	APIKeys      *table[*apiKey]
	Applications *table[*application]
	Policies     *table[*policy]
	Revoked      map[string]bool // both halves of keys that were deleted
	Rights       Credential      // of keys that nobody limited

	RDBInstances  *table[*rdbInstance]
	RDBBackups    *table[*rdbBackup]
	RDBSnapshots  *table[*rdbSnapshot]
	RDBReplicas   *table[*rdbReplica]
	RDBLogs       *table[*rdbLog]
	RDBTrouble    map[string][]hardware.NodeEvent // what is to happen to databases, by name
	ImportTrouble map[string][]hardware.NodeEvent // the same to imports of snapshots

	ReverseAsked map[string]bool // names that were asked for as a reverse

	NextPublic  uint16 // last public IPv4 handed out, as an offset into 127.51.0.0/16
	NextPrefix  uint16
	NextMAC     uint32
	FreedPublic []netip.Addr
}

func newWorld(o Options) *world {
	w := &world{clock: o.Clock, opts: o, timers: map[*time.Timer]bool{}}
	w.State = State{
		Projects: newTable[*project]("project"), SSHKeys: newTable[*sshKey]("ssh_key"),
		VPCs: newTable[*vpc]("vpc"), PrivateNetworks: newTable[*privateNetwork]("private_network"),
		Routes: newTable[*route]("route"), Connectors: newTable[*connector]("vpc_connector"),
		IngressRules: newTable[*ingressRule]("ingress_rule"), ACLs: map[string]aclList{}, Exports: map[string]export{},
		ReverseAsked: map[string]bool{},
		IPs:          newTable[*ipamIP]("ipam_ip"),
		Gateways:     newTable[*gateway]("gateway"), GatewayNetworks: newTable[*gatewayNetwork]("gateway_network"),
		PATRules: newTable[*patRule]("pat_rule"), GatewayIPs: newTable[*gatewayIP]("gateway_ip"),
		Volumes: newTable[*blockVolume]("volume"), Snapshots: newTable[*blockSnapshot]("snapshot"),
		LBs: newTable[*lb]("lb"), LBIPs: newTable[*lbIP]("lb_ip"), Attachments: newTable[*lbAttachment]("lb_private_network"),
		Backends: newTable[*backend]("backend"), Frontends: newTable[*frontend]("frontend"), LBACLs: newTable[*lbACL]("acl"),
		LBRoutes: newTable[*lbRoute]("lb_route"), Certs: newTable[*certificate]("certificate"),
		Servers: newTable[*server]("server"), NICs: newTable[*nic]("private_nic"), FlexibleIPs: newTable[*flexibleIP]("ip"),
		SecurityGroups: newTable[*securityGroup]("security_group"), PlacementGroups: newTable[*placementGroup]("placement_group"),
		LocalVolumes: newTable[*localVolume]("local_volume"), LocalSnapshots: newTable[*localSnapshot]("local_snapshot"),
		Images:  newTable[*image]("image"),
		Secrets: newTable[*secret]("secret"), Namespaces: newTable[*registryNamespace]("registry_namespace"),
		RegistryImages: newTable[*registryImage]("registry_image"), NamesTaken: map[string]bool{}, Zones: newTable[*dnsZone]("dns_zone"),
		APIKeys: newTable[*apiKey]("api_key"), Applications: newTable[*application]("application"), Policies: newTable[*policy]("policy"),
		Revoked: map[string]bool{}, Rights: o.Rights,
		RDBInstances: newTable[*rdbInstance]("rdb_instance"), RDBBackups: newTable[*rdbBackup]("rdb_backup"),
		RDBSnapshots: newTable[*rdbSnapshot]("rdb_snapshot"), RDBReplicas: newTable[*rdbReplica]("rdb_read_replica"),
		RDBLogs: newTable[*rdbLog]("rdb_log"), RDBTrouble: map[string][]hardware.NodeEvent{}, ImportTrouble: map[string][]hardware.NodeEvent{},
	}
	w.NextPublic = uint16(o.PublicBlock) * 1024
	w.Open = len(o.Projects) == 0
	for _, id := range o.Projects {
		w.addProject(id, "default")
	}
	w.touched = nil
	return w
}

// Effect is one thing that a call did.
type Effect struct {
	Verb string `json:"verb"` // created, changed, deleted
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

func (w *world) effect(verb, kind, id string) {
	for _, e := range w.touched {
		if e.ID == id && (e.Verb == verb || e.Verb == "created" && verb == "changed") {
			return
		}
	}
	w.touched = append(w.touched, Effect{verb, kind, id})
}

func (w *world) stopTimers() {
	for t := range w.timers {
		t.Stop()
	}
}

// tearDown ends all hardware.
func (w *world) tearDown(e *effects) {
	for _, s := range w.Servers.all() {
		if s.State != stateStopped {
			e.powerOff(s.ID)
		}
		e.removeMachine(s.ID)
	}
	for _, v := range w.Volumes.all() {
		e.deleteVolume(v.ID)
	}
	for _, v := range w.LocalVolumes.all() {
		e.deleteVolume(v.ID)
	}
	for _, l := range w.LBs.all() {
		e.unbalance(l.ID)
	}
	for _, g := range w.Gateways.all() {
		e.closeGateway(g.ID)
	}
	for _, i := range w.RDBInstances.all() {
		e.dropDatabase(i.ID)
	}
}

// publicIPv4 hands out the next free loopback address that stands for a public
// one. Addresses are not used again before all others were, so that a client
// that still holds an old one notices.
func (w *world) publicIPv4() netip.Addr {
	if w.NextPublic < 65000 {
		w.NextPublic++
		if w.NextPublic&0xff == 0 || w.NextPublic&0xff == 0xff {
			return w.publicIPv4()
		}
		return netip.AddrFrom4([4]byte{127, 51, byte(w.NextPublic >> 8), byte(w.NextPublic)})
	}
	a := w.FreedPublic[0]
	w.FreedPublic = w.FreedPublic[1:]
	return a
}

func (w *world) freePublic(a netip.Addr) {
	if a.Is4() {
		w.FreedPublic = append(w.FreedPublic, a)
	}
}

// moment is the world as it was until a time.
type moment struct {
	until time.Time
	state []byte
}

// remember keeps a copy of the world before a change, if a fault needs it.
func (r *Region) remember() {
	stale := r.faults.Stale()
	if stale == 0 {
		r.past = nil
		return
	}
	t := time.Now()
	for len(r.past) > 0 && r.past[0].until.Before(t.Add(-stale-time.Second)) {
		r.past = r.past[1:]
	}
	if b, err := json.Marshal(r.world.State); err == nil {
		r.past = append(r.past, moment{t, b})
	}
}

// asOf is the world as it was at a time, for reading only.
func (r *Region) asOf(t time.Time) *world {
	for _, m := range r.past {
		if m.until.After(t) {
			old := newWorld(r.opts)
			old.region = r
			old.State = State{}
			if err := json.Unmarshal(m.state, &old.State); err == nil {
				return old
			}
		}
	}
	return r.world
}
