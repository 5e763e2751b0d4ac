package node

import (
	"sort"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Service states, as Talos names them.
const (
	stateWaiting   = "Waiting"
	statePreparing = "Preparing"
	stateRunning   = "Running"
	stateStopping  = "Stopping"
	stateFinished  = "Finished"
	stateFailed    = "Failed"
)

// serviceTable is the list that `talosctl service` prints.
type serviceTable struct {
	node *node
	mu   sync.Mutex
	byID map[string]*service
}

type service struct {
	id      string
	state   string
	events  []*machine.ServiceEvent
	known   bool // a health check has reported
	healthy bool
	message string
	changed time.Time
}

const serviceEventsKept = 16

// set moves a service to a state, which makes its health unknown unless it runs on.
func (t *serviceTable) set(id, state, message string) {
	t.mu.Lock()
	s := t.byID[id]
	if s == nil {
		s = &service{id: id}
		t.byID[id] = s
	}
	if state != s.state {
		s.known, s.healthy, s.changed = false, false, time.Now()
	}
	s.state = state
	s.events = append(s.events, &machine.ServiceEvent{Msg: message, State: state, Ts: timestamppb.Now()})
	if len(s.events) > serviceEventsKept {
		s.events = s.events[len(s.events)-serviceEventsKept:]
	}
	t.mu.Unlock()
	t.node.console.printf("service[%s](%s): %s", id, state, message)
	t.announce(id, message)
}

// health records what a health check found; repeated results are not events.
func (t *serviceTable) health(id string, healthy bool, message string) {
	t.mu.Lock()
	s := t.byID[id]
	if s == nil || s.state != stateRunning || (s.known && s.healthy == healthy && s.message == message) {
		t.mu.Unlock()
		return
	}
	s.known, s.healthy, s.message, s.changed = true, healthy, message, time.Now()
	t.mu.Unlock()
	t.announce(id, message)
}

func (t *serviceTable) announce(id, message string) {
	t.mu.Lock()
	s := t.byID[id]
	info := s.info()
	t.mu.Unlock()
	t.node.events.publish(&machine.ServiceStateEvent{
		Service: id, Message: message, Health: info.Health,
		Action: machine.ServiceStateEvent_Action(machine.ServiceStateEvent_Action_value[upper(info.State)]),
	}, "")
	r := v1alpha1.NewService(id)
	r.TypedSpec().Running = info.State == stateRunning
	r.TypedSpec().Healthy = info.Health.Healthy
	r.TypedSpec().Unknown = info.Health.Unknown
	t.node.put(r)
	t.node.refreshStatus()
}

// up tells whether a service runs and its last health check passed.
func (t *serviceTable) up(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	return s != nil && s.state == stateRunning && s.known && s.healthy
}

func (t *serviceTable) state(id string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byID[id]; s != nil {
		return s.state
	}
	return ""
}

func (t *serviceTable) list() []*machine.ServiceInfo {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*machine.ServiceInfo
	for _, s := range t.byID {
		all = append(all, s.info())
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Id < all[j].Id })
	return all
}

func (s *service) info() *machine.ServiceInfo {
	return &machine.ServiceInfo{
		Id: s.id, State: s.state,
		Events: &machine.ServiceEvents{Events: append([]*machine.ServiceEvent(nil), s.events...)},
		Health: &machine.ServiceHealth{
			Unknown: !s.known, Healthy: s.healthy, LastMessage: s.message, LastChange: timestamppb.New(s.changed),
		},
	}
}

func (t *serviceTable) response() *machine.ServiceListResponse {
	return &machine.ServiceListResponse{Messages: []*machine.ServiceList{{Services: t.list()}}}
}

func upper(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}
