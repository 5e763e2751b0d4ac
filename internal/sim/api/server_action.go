package api

import (
	"fmt"
	"net/http"
	"net/netip"
	"sort"
	"strings"
	"time"

	"bastide/internal/sim/hardware"
)

// How long actions take, as recorded.
const (
	actionNoticed   = 200 * time.Millisecond // a read right after an action may still show the old state
	nodeAllocates   = 2 * time.Second
	serverStarts    = 6 * time.Second
	serverStops     = 30 * time.Second
	serverHalts     = 45 * time.Second // stop in place
	serverReboots   = 40 * time.Second
	serverGoes      = 15 * time.Second // terminate
	rebootTurnsOver = 20 * time.Second
)

func listActions(c *call) (any, error) {
	s, err := c.server(c.path("id"))
	if err != nil {
		return nil, err
	}
	return doc{"actions": allowedActions(s)}, nil
}

func serverAction(c *call) (any, error) {
	s, err := c.server(c.path("id"))
	if err != nil {
		return nil, err
	}
	var in struct {
		Action string `json:"action"`
		Name   string `json:"name"` // of a backup
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	act, ok := map[string]func(*world, *server) error{"poweron": (*world).powerOn, "poweroff": (*world).powerOff,
		"reboot": (*world).reboot, "stop_in_place": (*world).stopInPlace, "terminate": (*world).terminate,
		"backup": (*world).anyState, "enable_routed_ip": (*world).anyState}[in.Action]
	if !ok {
		return nil, invalid("action", "constraint", "action "+in.Action+" does not exist")
	}
	if s.Protected && (in.Action == "poweroff" || in.Action == "terminate" || in.Action == "stop_in_place") {
		return nil, precondition("protected_resource", "cannot "+in.Action+" a protected server")
	}
	if err := act(c.world, s); err != nil {
		return nil, err
	}
	result := "/servers/" + s.ID
	if in.Action == "backup" {
		i, err := c.backup(s, in.Name)
		if err != nil {
			return nil, err
		}
		result = "/images/" + i.ID
	}
	change(c.world, c.Servers, s)
	return doc{"task": task("/servers/"+s.ID+"/action", result, s.Zone)}, nil
}

// from refuses an action that the state does not allow.
func (s *server) from(states ...string) error {
	for _, st := range states {
		if s.State == st {
			return nil
		}
	}
	if s.State == stateStarting || s.State == stateStopping {
		return transient("instance_server", s.ID, s.State)
	}
	return badRequest("server should be in state " + strings.Join(states, " or ") + ", not " + s.State)
}

// step is a stage of an action; it ends when another action came meanwhile.
func (s *server) step(at time.Duration, change func(*world, *server), keys ...string) stage {
	id, turn := s.ID, s.Turn
	return stage{at, func(w *world) bool {
		s, ok := w.Servers.get(id)
		if !ok || s.Turn != turn {
			return false
		}
		change(w, s)
		s.touch()
		return true
	}, keys}
}

func (s *server) becomes(state, detail string) {
	s.State, s.Detail = state, detail
}

func (w *world) powerOn(s *server) error {
	if err := s.from(stateStopped, stateInPlace); err != nil {
		return err
	}
	for _, sl := range s.Volumes {
		if v, ok := w.Volumes.get(sl.ID); ok && sl.Block && v.Status != "in_use" && v.Status != "updating" {
			return transient("volume", v.ID, v.Status)
		}
	}
	s.Turn++
	w.stages(
		s.step(actionNoticed, func(_ *world, s *server) { s.becomes(stateStarting, "allocating node") }),
		s.step(nodeAllocates, func(_ *world, s *server) { s.becomes(stateStarting, "provisioning node") }),
		s.step(serverStarts, func(w *world, s *server) {
			// "booting kernel" is all that is ever known of a guest that does not
			// report, and Talos does not.
			s.becomes(stateRunning, "booting kernel")
			w.dynamicIP(s)
			w.region.effects.powerOn(w.machine(s))
		}))
	return nil
}

func (w *world) powerOff(s *server) error {
	if err := s.from(stateRunning, stateInPlace); err != nil {
		return err
	}
	s.Turn++
	s.becomes(stateStopping, "stopping")
	w.region.effects.powerOff(s.ID)
	w.stages(s.step(serverStops, func(w *world, s *server) {
		s.becomes(stateStopped, "")
		w.dropDynamicIP(s)
	}, s.ID))
	return nil
}

func (w *world) stopInPlace(s *server) error {
	if err := s.from(stateRunning); err != nil {
		return err
	}
	s.Turn++
	s.becomes(stateStopping, "stopping")
	w.region.effects.powerOff(s.ID)
	w.stages(s.step(serverHalts, func(_ *world, s *server) { s.becomes(stateInPlace, "") }, s.ID))
	return nil
}

func (w *world) reboot(s *server) error {
	if err := s.from(stateRunning, stateInPlace); err != nil {
		return err
	}
	s.Turn++
	s.becomes(stateStopping, "rebooting")
	w.stages(
		s.step(rebootTurnsOver, func(w *world, s *server) {
			s.becomes(stateStarting, "starting")
			w.region.effects.reboot(w.machine(s))
		}),
		s.step(serverReboots, func(_ *world, s *server) { s.becomes(stateRunning, "booting kernel") }))
	return nil
}

func (w *world) terminate(s *server) error {
	if err := s.from(stateRunning, stateInPlace); err != nil {
		return err
	}
	s.Turn++
	s.becomes(stateStopping, "terminating")
	w.region.effects.powerOff(s.ID)
	w.stages(s.step(serverGoes, func(w *world, s *server) { w.removeServer(s, true) }, s.ID))
	return nil
}

// anyState is for actions that every state allows and that leave it alone:
// servers are routed from the start.
func (w *world) anyState(*server) error { return nil }

// machine is a server as its firmware sees it now.
func (w *world) machine(s *server) hardware.Machine {
	m := hardware.Machine{ServerID: s.ID, Name: s.Name, Hostname: s.Hostname, Zone: s.Zone, Project: s.Project, CommercialType: s.Type,
		UserData: map[string][]byte{}}
	if t, ok := findType(s.Type, s.Zone); ok {
		m.RAMBytes, m.CPUs = t.RAM, t.CPUs
	}
	for k, v := range s.UserData {
		m.UserData[k] = v
	}
	for _, ip := range w.FlexibleIPs.all() {
		if ip.Server == s.ID {
			m.PublicIPs = append(m.PublicIPs, ip.Address.Addr())
		}
	}
	if s.Dynamic.IsValid() {
		m.PublicIPs = append(m.PublicIPs, s.Dynamic)
	}
	for _, n := range w.nicsOf(s.ID) {
		m.NICs = append(m.NICs, hardware.NIC{ID: n.ID, MAC: n.MAC, NetworkID: n.PrivateNetwork,
			Address: w.address4(n.IPAM), Gateway: w.gatewayAddress(n.PrivateNetwork)})
	}
	for _, key := range s.slots() {
		m.Volumes = append(m.Volumes, w.disk(s.Volumes[key]))
	}
	return m
}

// gatewayAddress is the default route that DHCP hands out in a network.
func (w *world) gatewayAddress(pn string) (a netip.Addr) {
	if _, n := w.defaultGateway(pn); n != nil {
		a = w.address4([]string{n.IPAM}).Addr()
	}
	return a
}

// slots are the keys of a server's volumes in the order in which the firmware
// finds them: the first that is marked as boot volume, then the others by number.
func (s *server) slots() []string {
	keys := make([]string, 0, len(s.Volumes))
	for k := range s.Volumes {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool {
		a, b := s.Volumes[keys[i]].Boot, s.Volumes[keys[j]].Boot
		if a != b {
			return a
		}
		return fmt.Sprintf("%03s", keys[i]) < fmt.Sprintf("%03s", keys[j])
	})
	return keys
}

func (w *world) disk(s slot) hardware.Volume {
	if v, ok := w.Volumes.get(s.ID); ok {
		return hardware.Volume{ID: v.ID, SizeBytes: v.Size, Image: v.Image}
	}
	if v, ok := w.LocalVolumes.get(s.ID); ok {
		return hardware.Volume{ID: v.ID, SizeBytes: v.Size, Image: v.Image}
	}
	return hardware.Volume{ID: s.ID}
}

func (r *Region) userDataRoutes(base string) {
	r.route("GET "+base+"/servers/{id}/user_data", http.StatusOK, listUserData)
	r.route("GET "+base+"/servers/{id}/user_data/{key}", http.StatusOK, getUserData)
	r.route("PATCH "+base+"/servers/{id}/user_data/{key}", http.StatusNoContent, setUserData)
	r.route("DELETE "+base+"/servers/{id}/user_data/{key}", http.StatusNoContent, deleteUserData)
}

func listUserData(c *call) (any, error) {
	s, err := c.server(c.path("id"))
	if err != nil {
		return nil, err
	}
	keys := []string{}
	for k := range s.UserData {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return doc{"user_data": keys}, nil
}

// noUserData is 404 with an empty text body: no typed error.
func noUserData() error { return &refusal{http.StatusNotFound, raw{"text/plain", nil}} }

func getUserData(c *call) (any, error) {
	s, err := c.server(c.path("id"))
	if err != nil {
		return nil, err
	}
	v, ok := s.UserData[c.path("key")]
	if !ok {
		return nil, noUserData()
	}
	return raw{"text/plain", v}, nil
}

func setUserData(c *call) (any, error) {
	s, err := c.server(c.path("id"))
	if err != nil {
		return nil, err
	}
	if len(c.body) > 128<<10 {
		return nil, invalid("content", "constraint", "user data is limited to 128 KiB")
	}
	s.UserData[c.path("key")] = c.body
	change(c.world, c.Servers, s)
	return nil, nil
}

func deleteUserData(c *call) (any, error) {
	s, err := c.server(c.path("id"))
	if err != nil {
		return nil, err
	}
	if _, ok := s.UserData[c.path("key")]; !ok {
		return nil, noUserData()
	}
	delete(s.UserData, c.path("key"))
	change(c.world, c.Servers, s)
	return nil, nil
}
