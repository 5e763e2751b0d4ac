package session

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"
	"bastide/internal/scaleway"
	"bastide/internal/talos"
)

// aFactory knows v1.13.5 and gvisor, unless it is out of order; it keeps what it is asked.
type aFactory struct {
	mu    sync.Mutex
	asked []string
}

func (f *aFactory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked = append(f.asked, r.Method+" "+r.URL.Path)
	f.mu.Unlock()
	answers := map[string]string{
		"/version/v1.13.5/extensions/official": `[{"name":"siderolabs/gvisor"}]`,
		"/versions":                            `["v1.13.4","v1.13.5"]`,
		"/schematics":                          `{"id":"` + estate.Talos{Extensions: []string{"siderolabs/gvisor"}}.SchematicID() + `"}`,
	}
	if answers[r.URL.Path] == "" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = w.Write([]byte(answers[r.URL.Path]))
}

func planOf(op plan.Op, kinds ...blueprint.Kind) plan.Plan {
	var p plan.Plan
	for _, k := range kinds {
		p.Actions = append(p.Actions, plan.Action{Step: blueprint.Step{Kind: k}, Op: op})
	}
	return p
}

// proven is a survey whose image is in the bucket.
func proven(have talos.Installers) *Survey {
	const id = "image-object/x"
	return &Survey{Inventory: &scaleway.Inventory{}, installers: have, Graph: &blueprint.Graph{Steps: []blueprint.Step{{ID: id, Kind: blueprint.KindImageObject}}},
		Live: plan.Live{Steps: map[string]plan.Observed{id: {Digest: "sha256:1"}}}}
}

// No installer is written into a node of which nobody asked the Factory, and an
// estate whose nodes all have it asks nobody.
func TestWhatIsAskedOfTheFactory(t *testing.T) {
	makes, names := estate.Talos{Version: "v1.13.5"}, estate.Talos{Version: "v1.13.5", Snapshot: "talos"}
	all, other, some := talos.Installers{AsWanted: 2}, talos.Installers{Others: []string{"a"}}, talos.Installers{AsWanted: 1, Others: []string{"a"}}
	m := blueprint.KindMachine
	for name, c := range map[string]struct {
		talos estate.Talos
		v     *Survey
		p     plan.Plan
		want  question
	}{
		"an image is made":                   {makes, &Survey{}, planOf(plan.Create, blueprint.KindImageObject), mustAnswer},
		"nothing is written":                 {makes, &Survey{installers: other}, planOf(plan.Keep, m), noQuestion},
		"another change of a live estate":    {makes, &Survey{installers: all}, planOf(plan.Update, m), noQuestion},
		"a node more, of an image":           {makes, &Survey{installers: all}, planOf(plan.Create, m), noQuestion},
		"another schematic":                  {makes, &Survey{installers: other}, planOf(plan.Update, m), mustAnswer},
		"half of the nodes have it":          {makes, &Survey{installers: some}, planOf(plan.Update, m), mustAnswer},
		"a change that waits":                {makes, &Survey{installers: other}, planOf(plan.Wait, m), mustAnswer},
		"another schematic, whose image is":  {makes, proven(other), planOf(plan.Update, m), whetherRefused},
		"first nodes of a proven image":      {makes, proven(talos.Installers{}), planOf(plan.Create, m), noQuestion},
		"first nodes of nothing":             {makes, &Survey{}, planOf(plan.Create, m), mustAnswer},
		"first nodes of a named snapshot":    {names, &Survey{}, planOf(plan.Create, m), whetherRefused},
		"another schematic, snapshot named":  {names, &Survey{installers: other}, planOf(plan.Update, m), mustAnswer},
		"another change, snapshot named":     {names, &Survey{installers: all}, planOf(plan.Update, m), noQuestion},
		"another node's, and all else stays": {names, &Survey{installers: some}, planOf(plan.Keep, m), noQuestion},
	} {
		s := &Session{Estate: &estate.Estate{Talos: c.talos}}
		if have := s.questionOf(c.v, c.p); have != c.want {
			t.Errorf("%s: %q, want %q", name, have, c.want)
		}
	}
}

// The live estate of which an extension is misspelt, or whose version does not
// exist: plan and up refuse by name, and up cannot go on while nobody answers.
func TestALiveEstateAsksTheFactory(t *testing.T) {
	f := &aFactory{}
	server := httptest.NewServer(f)
	defer server.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	live, update := &Survey{installers: talos.Installers{Others: []string{"a"}}}, planOf(plan.Update, blueprint.KindMachine)
	first := planOf(plan.Create, blueprint.KindMachine)
	for name, c := range map[string]struct {
		talos    estate.Talos
		v        *Survey
		p        plan.Plan
		url      string
		plan, up outcome.Code
		says     string
	}{
		"right":                         {estate.Talos{Version: "v1.13.5", Extensions: []string{"siderolabs/gvisor"}}, live, update, server.URL, outcome.Done, outcome.Done, ""},
		"misspelt":                      {estate.Talos{Version: "v1.13.5", Extensions: []string{"siderolabs/gvizor"}}, live, update, server.URL, outcome.Refused, outcome.Refused, "did you mean siderolabs/gvisor"},
		"no version":                    {estate.Talos{Version: "v1.13.99"}, live, update, server.URL, outcome.Refused, outcome.Refused, "choose one of v1.13.4, v1.13.5"},
		"nobody":                        {estate.Talos{Version: "v1.13.5"}, live, update, gone.URL, outcome.Done, outcome.Unknown, "could not be asked"},
		"misspelt, a snapshot":          {estate.Talos{Version: "v1.13.5", Extensions: []string{"siderolabs/gvizor"}, Snapshot: "x"}, &Survey{}, first, server.URL, outcome.Refused, outcome.Refused, "did you mean"},
		"nobody, a snapshot":            {estate.Talos{Version: "v1.13.5", Snapshot: "x"}, &Survey{}, first, gone.URL, outcome.Done, outcome.Done, ""},
		"another id, a snapshot":        {estate.Talos{Version: "v1.13.5", Snapshot: "x"}, &Survey{}, first, server.URL, outcome.Done, outcome.Done, ""},
		"another id":                    {estate.Talos{Version: "v1.13.5"}, live, update, server.URL, outcome.Done, outcome.Refused, "calls it"},
		"nobody, but its image is made": {estate.Talos{Version: "v1.13.5"}, proven(talos.Installers{Others: []string{"a"}}), update, gone.URL, outcome.Done, outcome.Done, ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			var told []string
			s := &Session{Estate: &estate.Estate{Talos: c.talos}, config: Config{LookupEnv: func(string) (string, bool) { return c.url, true }, Notice: func(text string) { told = append(told, text) }}}
			if err := s.Foresee(t.Context(), c.v, c.p); outcome.CodeOf(err) != c.plan {
				t.Errorf("plan: %v", err)
			}
			err := s.factoryHas(t.Context(), c.v, c.p)
			if outcome.CodeOf(err) != c.up || c.says != "" && !strings.Contains(err.Error(), c.says) {
				t.Errorf("up: %v", err)
			}
			if err == nil && s.questionOf(c.v, c.p) == whetherRefused {
				s.introduce(t.Context())
			}
			if err == nil && (c.url == gone.URL || name == "another id, a snapshot") && len(told) == 0 {
				t.Error("nothing is told of it")
			}
		})
	}
	if f.asked == nil {
		t.Error("nobody was asked")
	}
}
