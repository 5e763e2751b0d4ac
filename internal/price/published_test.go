package price

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
)

// publicEstate is the estate with public nodes as its author lists it: three
// control plane Instances, each with a reserved address and a volume made from a
// snapshot, and one worker of Elastic Metal. An environment file cannot say it.
func publicEstate(metal ...Ask) []Ask {
	count := func(name, what string, item Item, n int64) Ask {
		return Ask{name, Part{What: what, Item: item, Count: n}}
	}
	stored := func(name, what string, item Item, gb int64) Ask {
		return Ask{name, Part{What: what, Item: item, Bytes: gb * gigabyte}}
	}
	return append([]Ask{
		count("control plane", "3 PLAY2-NANO", "instance/PLAY2-NANO", 3),
		count("their addresses", "3 public IPv4 addresses", "ipv4", 3),
		stored("their volumes", "60 GB at 5000 IOPS", "block/5000", 60),
		stored("Talos snapshot", "20 GB", "snapshot", 20),
		stored("Talos image in the bucket", "1 GB", "object-storage", 1),
	}, metal...)
}

var (
	byTheHour  = Ask{"worker", Part{What: "EM-A116X-SSD by the hour", Item: "metal/EM-A116X-SSD", Count: 1}}
	byTheMonth = Ask{"worker", Part{What: "EM-A116X-SSD by the month", Item: "metal-monthly/EM-A116X-SSD", Count: 1}}
	setUp      = Ask{"worker, once", Part{What: "setting up EM-A116X-SSD", Item: "metal-setup/EM-A116X-SSD", Count: 1}}
)

func privateEstate(t *testing.T) Bill {
	t.Helper()
	e, err := estate.Load("testdata/private.yaml")
	if err != nil {
		t.Fatal(err)
	}
	g, err := blueprint.Build(e, nil, e.Admin.PublicKeys)
	if err != nil {
		t.Fatal(err)
	}
	return Make(g, nil, Table())
}

// What the authors of the two estates published comes out: 20.10 a month for a
// PLAY2-NANO, 27.99 for the metal, about 4 a day for the public estate, about
// 218 a month for the private one. docs/cost.md explains what is left.
func TestThePublishedEstates(t *testing.T) {
	nano := List("", []Ask{{"", Part{Item: "instance/PLAY2-NANO", Count: 1}}}, Table()).Want
	if got := nano.Month.Euros(2); got != "20.10" {
		t.Errorf("a PLAY2-NANO is %s a month", got)
	}
	monthly := List("", publicEstate(byTheMonth, setUp), Table())
	if metal := monthly.Lines[5]; metal.Want.Month.Euros(2) != "27.99" || monthly.Want.Once.Euros(2) != "27.99" {
		t.Errorf("the metal is %s a month and %s once", metal.Want.Month, monthly.Want.Once)
	}
	hourly := List("", publicEstate(byTheHour), Table())
	if day := hourly.Want.Day(); day < 39*Euro/10 || day > 45*Euro/10 {
		t.Errorf("the public estate is %s a day, about 4 was published", day.Euros(2))
	}
	private := privateEstate(t)
	if month := private.Want.Month; month < 216*Euro || month > 220*Euro {
		t.Errorf("the private estate is %s a month, about 218 was published", month.Euros(2))
	}
	for _, b := range []Bill{hourly, monthly} {
		if len(b.NotPriced()) > 0 {
			t.Errorf("not priced: %+v", b.NotPriced())
		}
	}
}

// The tables of docs/cost.md are these bills.
func TestTheDocumentedTablesAreTrue(t *testing.T) {
	data, err := os.ReadFile("../../docs/cost.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	want := func(cells ...string) {
		if row := "| " + strings.TrimSuffix(strings.Join(cells, " | "), " ") + " |\n"; !strings.Contains(doc, row) {
			t.Errorf("docs/cost.md lacks the row\n%s", row)
		}
	}
	hourly := List("", publicEstate(byTheHour), Table())
	for _, l := range hourly.Lines {
		want(l.Name, l.What, l.Want.Hour.Euros(5), l.Want.Day().Euros(2), l.Want.Month.Euros(2), l.Source)
	}
	want("**together**", "", hourly.Want.Hour.Euros(5), hourly.Want.Day().Euros(2), hourly.Want.Month.Euros(2), "")
	monthly := List("", publicEstate(byTheMonth, setUp), Table())
	want("**together, the metal by the month**", "and "+monthly.Want.Once.Euros(2)+" once", monthly.Want.Hour.Euros(5), monthly.Want.Day().Euros(2), monthly.Want.Month.Euros(2), "")
	metal := monthly.Lines[5]
	want(metal.Name, metal.What, metal.Want.Hour.Euros(5), metal.Want.Day().Euros(2), metal.Want.Month.Euros(2), metal.Source)

	private := privateEstate(t)
	type row struct {
		n      int
		cost   Cost
		source string
	}
	rows, order := map[string]*row{}, []string{}
	read := map[string]Cost{} // by the lines of what was read into the author's text
	for _, l := range private.Lines {
		if l.NotPriced != "" {
			want(string(l.Kind), l.What, "not priced", l.NotPriced)
			continue
		}
		key := fmt.Sprintf("%s | %s", l.Kind, l.What)
		if rows[key] == nil {
			rows[key] = &row{source: l.Source}
			order = append(order, key)
		}
		rows[key].n++
		rows[key].cost = rows[key].cost.plus(l.Want)
		read[reading(l)] = read[reading(l)].plus(l.Want)
	}
	for _, key := range order {
		want(key, fmt.Sprint(rows[key].n), rows[key].cost.Month.Euros(2), rows[key].source)
	}
	want("**together**", "", "", private.Want.Month.Euros(2), "")
	for name, cost := range read {
		if row := fmt.Sprintf("| %s | %s | ", name, cost.Month.Euros(2)); !strings.Contains(doc, row) {
			t.Errorf("docs/cost.md lacks a row that begins with\n%s", row)
		}
	}
}

// reading is the row of docs/cost.md that explains a line of the private estate.
func reading(l Line) string {
	switch l.Kind {
	case blueprint.KindGateway, blueprint.KindGatewayIP:
		return "gateway and its address"
	case blueprint.KindLoadBalancer:
		return "load balancer"
	case blueprint.KindEdgeIP:
		return "edge address"
	case blueprint.KindPostgres:
		return "PostgreSQL"
	case blueprint.KindPostgresSecret:
		return "password"
	}
	if strings.Contains(l.Name+l.Node, "-cp-") {
		return "control plane"
	}
	return "system nodes"
}
