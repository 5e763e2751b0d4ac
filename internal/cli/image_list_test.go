package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"bastide/internal/session"
	"bastide/internal/store"
	"bastide/internal/talos"
	"bastide/internal/ui"
)

// A program reads one document, with sizes as numbers; people read three tables.
func TestTheListOfImagesIsOneDocument(t *testing.T) {
	i := &session.Images{Objects: []session.PinnedObject{{StoredImage: store.StoredImage{Key: "images/a.qcow2", Size: 34_300_001, Unproven: "it has no proof"}}},
		Nodes: []talos.Running{{Node: "staging-cp-1", Unread: "it does not answer"}}}
	var out bytes.Buffer
	(&app{ui: ui.New(ui.Options{Out: &out, Err: &out, JSON: true})}).showImages("staging", i)
	var document struct {
		Type  string
		Value ImageList
	}
	read := json.NewDecoder(&out)
	if err := read.Decode(&document); err != nil || read.More() || document.Type != "images" {
		t.Fatalf("%v, %+v", err, document)
	}
	v := document.Value
	if v.Estate != "staging" || v.Snapshots == nil || len(v.Objects) != 1 || v.Objects[0].Size != 34_300_001 || v.Objects[0].KeptBy == nil || v.Nodes[0].Unread == "" {
		t.Errorf("%+v", v)
	}
	out.Reset()
	(&app{ui: ui.New(ui.Options{Out: &out, Err: &out})}).showImages("staging", i)
	for _, part := range []string{"staging has no snapshot of its own", "34.3 MB", "it does not answer"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is not in %s", part, &out)
		}
	}
}
