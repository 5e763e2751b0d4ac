package fault_test

import (
	"net/url"
	"strings"
	"testing"

	"bastide/internal/sim/clock"
	"bastide/internal/sim/fault"
)

// FuzzScript: a script is loaded or refused with a reason that names the part,
// and a loaded one can be asked about any call.
func FuzzScript(f *testing.F) {
	for _, seed := range []string{"", "~", "[]", "http: ~", "http: [~]", "rpc: [{}]", "http:\n  - {method: POST, path: /vpc/v2/regions/*/vpcs, nth: 1, status: 503, body: {message: internal error}}\n",
		"http:\n  - {path: '~(', drop: true}\n", "http:\n  - {path: '**/**/**/**', drop: true, per: request}\n", "rpc:\n  - {node: '[', rpc: ApplyConfiguration, dropReply: true}\n",
		"events:\n  - {node: a, event: power-loss}\n", "kill:\n  - {nth: 7, pid: 4242, when: after}\n", "http: [{path: /a, delay: 99999999999999h}]", "http: [{path: /a, body: &a [*a], status: 500}]",
		"permissions: [{deny: [iam], count: 2}]", "http: [{path: /a, query: {'[': '['}, status: 500, headers: {'a b': 'c\\nd'}}]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := fault.Parse(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "fault script: ") {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		e := fault.NewEngine(clock.New(10))
		if len(s.Events) > 0 || len(s.Kill) > 0 {
			return // both act on the world
		}
		if err := e.Load(s); err != nil {
			return
		}
		for range 2 {
			e.HTTP("POST", "/vpc/v2/regions/fr-par/vpcs", url.Values{"a": {"b"}}, []byte("{}"))
			e.RPC("staging-cp-1", "/machine.MachineService/ApplyConfiguration")
			e.Permission(func(deny []string) bool { return len(deny) > 0 })
		}
		_, _ = e.Stale(), e.Counts()
	})
}
