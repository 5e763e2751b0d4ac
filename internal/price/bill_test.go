package price

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/plan"
)

// full is the graph of a file that uses every key there is.
func full(t *testing.T) *blueprint.Graph {
	t.Helper()
	e, err := estate.Load("../estate/testdata/valid/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	g, err := blueprint.Build(e, nil, e.Admin.PublicKeys)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// there is a graph as it is when all of it exists.
func there(g *blueprint.Graph) plan.Live {
	live := plan.Live{Steps: map[string]plan.Observed{}}
	for _, s := range g.Steps {
		live.Steps[s.ID] = plan.Observed{Step: s.ID, Spec: s.Spec, Settled: true}
	}
	return live
}

// free are the kinds that Scaleway asks nothing for, or that are of the cluster.
var free = map[blueprint.Kind]bool{
	blueprint.KindVPC: true, blueprint.KindPrivateNetwork: true, blueprint.KindSSHKey: true, blueprint.KindAddress: true,
	blueprint.KindGatewayNetwork: true, blueprint.KindSecurityGroup: true, blueprint.KindPlacementGroup: true, blueprint.KindPrivateNIC: true,
	blueprint.KindPower: true, blueprint.KindLBAttachment: true, blueprint.KindLBBackend: true, blueprint.KindLBFrontend: true,
	blueprint.KindPostgresDatabase: true, blueprint.KindPostgresUser: true, blueprint.KindDNSRecord: true,
}

func TestEveryStepIsPricedFreeOrNamed(t *testing.T) {
	g := full(t)
	b := Make(g, nil, Table())
	lines := map[string]int{}
	for _, l := range b.Lines {
		lines[l.Step]++
		if (l.NotPriced == "") != (l.Want.Month > 0) {
			t.Errorf("%s %s costs %s and is not priced because %q", l.Step, l.What, l.Want.Month, l.NotPriced)
		}
		if l.NotPriced == "" && l.Source == "" {
			t.Errorf("nobody says where the price of %s is from", l.Step)
		}
	}
	for _, s := range g.Steps {
		if billed := lines[s.ID] > 0; billed == (free[s.Kind] || s.Kind.Cluster()) {
			t.Errorf("%s has %d lines", s.ID, lines[s.ID])
		}
	}
	if b.Have != nil || b.Delta != nil {
		t.Error("the file alone says what runs")
	}
}

func TestTheTotalIsTheSumOfTheLines(t *testing.T) {
	g := full(t)
	live := there(g)
	live.Strays = []plan.Stray{{Kind: blueprint.KindServer, Name: "old", Spec: blueprint.Server{Type: "PLAY2-MICRO"}}}
	b := Make(g, &live, Table())
	var want, have Cost
	for _, l := range b.Lines {
		want = want.plus(l.Want)
		if l.Have != nil {
			have = have.plus(*l.Have)
		}
	}
	if want != b.Want || have != *b.Have {
		t.Errorf("lines sum up to %v and %v, totals are %v and %v", want, have, b.Want, *b.Have)
	}
	if b.Left.Month.Euros(2) != "40.21" {
		t.Errorf("what is left alone costs %s", b.Left.Month)
	}
	if *b.Delta != (Cost{}) || !strings.Contains(b.Sentence(), "as what runs now") {
		t.Errorf("an estate as its file says changes by %v: %s", *b.Delta, b.Sentence())
	}
}

// The difference against what runs is exactly what is missing of it.
func TestTheDeltaIsWhatIsMissing(t *testing.T) {
	g := full(t)
	rapid.Check(t, func(t *rapid.T) {
		live := there(g)
		for _, s := range g.Steps {
			if rapid.Bool().Draw(t, s.ID) {
				delete(live.Steps, s.ID)
			}
		}
		b := Make(g, &live, Table())
		var missing Cost
		for _, l := range b.Lines {
			if _, ok := live.Steps[l.Step]; !ok {
				missing = missing.plus(l.Want)
			}
		}
		if !strings.HasPrefix(b.Lines[0].Step, "gateway-ip/") || *b.Delta != missing {
			t.Fatalf("delta %v, missing %v", *b.Delta, missing)
		}
	})
}

func TestWhatIsUnknownIsNotNothing(t *testing.T) {
	g := full(t)
	live := there(g)
	delete(live.Steps, "postgres/staging-postgres")
	live.Unreachable = map[string]string{"postgres/staging-postgres": "the key may not read databases", "machine/staging-cp-1": "it does not answer"}
	b := Make(g, &live, Table())
	if b.Have != nil || b.Delta != nil || len(b.Notes) != 1 || !strings.Contains(b.Notes[0], "postgres/staging-postgres could not be read") {
		t.Errorf("have %v, delta %v, notes %q", b.Have, b.Delta, b.Notes)
	}
}

func TestAMachineThatIsOffCostsItsVolumesOnly(t *testing.T) {
	g := full(t)
	for state, want := range map[string]string{"stopped": "20.10", "stopped in place": "0.00", "running": "0.00"} {
		live := there(g)
		power := live.Steps["power/staging-cp-1"]
		power.Spec = blueprint.Power{Server: "server/staging-cp-1", State: state}
		live.Steps["power/staging-cp-1"] = power
		if got := Make(g, &live, Table()).Delta.Month.Euros(2); got != want {
			t.Errorf("starting a machine that is %s adds %s, want %s", state, got, want)
		}
	}
}

func TestHighAvailabilityDoublesTheNodeAlone(t *testing.T) {
	one := blueprint.Postgres{Type: "DB-PRO2-XXS", Size: 10 * estate.GB, IOPS: 5000, Backup: blueprint.BackupSchedule{Disabled: true}}
	two := one
	two.HighAvailability = true
	cost := func(s blueprint.Postgres) Cost {
		g := &blueprint.Graph{Steps: []blueprint.Step{{ID: "postgres/x", Kind: blueprint.KindPostgres, Spec: s}}}
		return Make(g, nil, Table()).Want
	}
	// 0.0583 for the node, 0.0517 for its management, 10 GB at 0.000136.
	if got := cost(one).Hour; got != 111_360_000 {
		t.Errorf("a single node costs %s an hour", got)
	}
	if got := cost(two).minus(cost(one)).Hour; got != 58_300_000 {
		t.Errorf("the second node adds %s an hour", got)
	}
}

func TestAChangeShowsBothSides(t *testing.T) {
	g := full(t)
	live := there(g)
	o := live.Steps["volume/staging-cp-1"]
	o.Spec = blueprint.Volume{Size: 10 * estate.GB, IOPS: 5000}
	live.Steps["volume/staging-cp-1"] = o
	db := live.Steps["postgres/staging-postgres"]
	spec := db.Spec.(blueprint.Postgres)
	spec.Type = "DB-PLAY2-PICO" // its management has a price of its own
	db.Spec = spec
	live.Steps["postgres/staging-postgres"] = db
	seen := map[string]bool{}
	for _, l := range Make(g, &live, Table()).Lines {
		seen[l.What+" was "+l.Was] = true
	}
	for _, want := range []string{"20 GB at 15000 IOPS was 10 GB at 5000 IOPS", "DB-DEV-S was DB-PLAY2-PICO", "none was management of DB-PLAY2-PICO"} {
		if !seen[want] {
			t.Errorf("no line says %q", want)
		}
	}
}

func TestWhatNobodyHasAPriceForIsSaid(t *testing.T) {
	g := &blueprint.Graph{Steps: []blueprint.Step{{ID: "server/x", Kind: blueprint.KindServer, Name: "x", Spec: blueprint.Server{Type: "NEW1-S"}}}}
	b := Make(g, nil, Table())
	if open := b.NotPriced(); len(open) != 1 || !strings.Contains(open[0].NotPriced, "instance/NEW1-S") {
		t.Errorf("lines %+v", b.Lines)
	}
	if !strings.Contains(b.Sentence(), "1 not priced") {
		t.Errorf("the sentence hides it: %s", b.Sentence())
	}
}

// novelty is a kind that nobody told this room about.
type novelty struct{}

func (novelty) Kind() blueprint.Kind              { return "novelty" }
func (novelty) Attributes() []blueprint.Attribute { return nil }

func TestAKindThatIsNewIsNotFree(t *testing.T) {
	g := &blueprint.Graph{Steps: []blueprint.Step{{ID: "novelty/x", Kind: "novelty", Name: "x", Spec: novelty{}}}}
	if open := Make(g, nil, Table()).NotPriced(); len(open) != 1 || open[0].NotPriced != "how it is billed is not known to this build" {
		t.Errorf("lines %+v", open)
	}
}

// The size of an image's file is priced where it was seen, in what runs as well.
func TestAFileWhoseSizeWasSeenHasAPrice(t *testing.T) {
	step := blueprint.Step{ID: "image-object/x", Kind: blueprint.KindImageObject, Name: "x", Spec: blueprint.ImageObject{Key: "images/x.qcow2"}}
	g := &blueprint.Graph{Steps: []blueprint.Step{step}}
	live := there(g)
	book := Table()
	if b := Make(g, &live, book); len(b.NotPriced()) != 1 {
		t.Errorf("a size that nobody saw: %+v", b.Lines)
	}
	book.Files = map[string]int64{"images/x.qcow2": 250_000_000_000}
	b := Make(g, &live, book)
	if len(b.NotPriced()) != 0 || b.Want.Month == 0 || b.Have == nil || b.Have.Month != b.Want.Month || b.Lines[0].What != "image file of 250000 MB" {
		t.Errorf("lines %+v, %+v", b.Lines, b.Have)
	}
}
