package scaleway_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"bastide/internal/sim/api"
	"bastide/internal/sim/clock"

	"github.com/scaleway/scaleway-sdk-go/api/instance/v1"
)

// haunted is a region in which a server's interface outlives the server, keeps
// its address and its network, and cannot be deleted before it is detached.
type haunted struct {
	*api.Region
	mu                sync.Mutex
	nic, ip, net      string // IDs; empty until the interface haunts
	detached, refused int
}

func (h *haunted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	path := r.URL.Path
	switch {
	case h.nic == "":
		h.Region.ServeHTTP(w, r)
	case strings.HasSuffix(path, "/private-network-interfaces"):
		h.answer(w, 200, map[string]any{"total_count": 1, "private_network_interfaces": []map[string]any{
			{"id": h.nic, "private_network_id": h.net, "zone": zone, "tags": []string{"bastide:estate=staging", "bastide:step=private-nic/staging-system-1"}}}})
	case strings.HasSuffix(path, h.nic+"/detach-and-delete"):
		h.detached++
		h.nic = ""
		h.answer(w, 200, map[string]any{"id": "x"})
	case strings.HasSuffix(path, h.nic) && r.Method == http.MethodDelete, r.Method == http.MethodDelete && strings.HasSuffix(path, h.net), r.Method == http.MethodDelete && strings.HasSuffix(path, h.ip):
		h.refused++
		h.answer(w, 412, map[string]any{"type": "precondition_failed", "precondition": "resource_still_in_use", "help_message": "still attached"})
	case strings.HasPrefix(path, "/ipam/") && r.Method == http.MethodGet:
		h.possess(w, r)
	default:
		h.Region.ServeHTTP(w, r)
	}
}

// possess shows the address as held by the interface.
func (h *haunted) possess(w http.ResponseWriter, r *http.Request) {
	rec := httptest.NewRecorder()
	h.Region.ServeHTTP(rec, r)
	var body map[string]any
	_ = json.Unmarshal(rec.Body.Bytes(), &body)
	held := func(ip map[string]any) {
		if ip["id"] == h.ip {
			ip["resource"] = map[string]any{"type": "instance_private_nic", "id": h.nic, "name": "staging-system-1"}
		}
	}
	held(body)
	if ips, ok := body["ips"].([]any); ok {
		for _, ip := range ips {
			held(ip.(map[string]any))
		}
	}
	h.answer(w, rec.Code, body)
}

func (h *haunted) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// Field report 36: an interface whose server is gone and the address that it
// holds keep the network from being deleted. Both are the estate's by their
// marks, so both are found and removed, and then the network.
func TestFieldReport36LeftoversInTheNetwork(t *testing.T) {
	h := &haunted{Region: api.New(api.Options{Clock: clock.New(speed)})}
	e := privateEstate(1)
	w := newWorldIn(t, e, h.Region, speed)
	w = serve(t, e, h.Region, h, speed)
	w.mustUp()
	server, nic := w.find("server/staging-system-1"), w.find("private-nic/staging-system-1").CloudID
	stop(t, w.somebody(), server.CloudID)
	if err := instance.NewAPI(w.somebody()).DeleteServer(&instance.DeleteServerRequest{ServerID: server.CloudID}); err != nil {
		t.Fatal(err)
	}
	ip, network := w.find("address/staging-system-1").CloudID, w.find("private-network/staging").CloudID
	h.mu.Lock()
	h.nic, h.ip, h.net = nic, ip, network
	h.mu.Unlock()
	if err := w.destroy(t.Context(), w.cloud()); err != nil {
		t.Fatal(err)
	}
	if h.detached != 1 || h.refused != 1 {
		t.Errorf("the interface was detached %d times after %d refusals", h.detached, h.refused)
	}
	w.wantNothingLeft()
}
