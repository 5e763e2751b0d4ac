package ui

import (
	"fmt"
	"strings"

	"bastide/internal/blueprint"
	"bastide/internal/plan"
	"bastide/internal/price"
)

// The groups of a plan, in the order in which they are shown. Nodes come
// between the load balancer and the cluster, each as a group of its own.
const (
	groupNetwork  = "network"
	groupGateway  = "gateway"
	groupShared   = "security and placement"
	groupBalancer = "load balancer"
	groupImage    = "image"
	groupCluster  = "cluster"
	groupServices = "services"
)

var groupOf = map[blueprint.Kind]string{
	blueprint.KindVPC: groupNetwork, blueprint.KindPrivateNetwork: groupNetwork, blueprint.KindAddress: groupNetwork,
	blueprint.KindSSHKey: groupGateway, blueprint.KindGatewayIP: groupGateway, blueprint.KindGateway: groupGateway,
	blueprint.KindGatewayNetwork: groupGateway,
	blueprint.KindSecurityGroup:  groupShared, blueprint.KindPlacementGroup: groupShared,
	blueprint.KindLoadBalancer: groupBalancer, blueprint.KindLBAttachment: groupBalancer, blueprint.KindLBBackend: groupBalancer,
	blueprint.KindLBFrontend:  groupBalancer,
	blueprint.KindImageObject: groupImage, blueprint.KindSnapshot: groupImage,
	blueprint.KindEtcdBootstrap: groupCluster, blueprint.KindEtcdMembers: groupCluster, blueprint.KindKubernetesNodes: groupCluster,
	blueprint.KindPostgres: groupServices, blueprint.KindPostgresDatabase: groupServices, blueprint.KindPostgresSecret: groupServices,
	blueprint.KindPostgresUser: groupServices, blueprint.KindBucket: groupServices, blueprint.KindRegistry: groupServices,
	blueprint.KindSecret: groupServices, blueprint.KindEdgeIP: groupServices, blueprint.KindDNSRecord: groupServices,
}

func groupName(s blueprint.Step) string {
	if s.Node != "" {
		return "node " + s.Node
	}
	if g := groupOf[s.Kind]; g != "" {
		return g
	}
	return "other"
}

// rank orders the groups: what is shared first, then nodes, the cluster and the
// services beside it.
func rank(group string) int {
	for i, g := range []string{groupNetwork, groupGateway, groupShared, groupBalancer, groupImage} {
		if g == group {
			return i
		}
	}
	switch {
	case strings.HasPrefix(group, "node "):
		return 10
	case group == groupCluster:
		return 20
	case group == groupServices:
		return 25
	}
	return 30
}

// grouped sorts actions into groups, keeping the plan's order within each.
func grouped(actions []plan.Action) (names []string, groups map[string][]plan.Action) {
	groups = map[string][]plan.Action{}
	for _, a := range actions {
		if a.Op == plan.Keep {
			continue
		}
		g := groupName(a.Step)
		if _, ok := groups[g]; !ok {
			at := len(names)
			for at > 0 && rank(names[at-1]) > rank(g) {
				at--
			}
			names = append(names[:at], append([]string{g}, names[at:]...)...)
		}
		groups[g] = append(groups[g], a)
	}
	return names, groups
}

func (t *text) Plan(p plan.Plan, bill *price.Bill) {
	var b strings.Builder
	names, groups := grouped(p.Actions)
	for _, g := range names {
		b.WriteString(t.paint.bold(g) + "\n")
		b.WriteString(t.actions(groups[g]))
		b.WriteString("\n")
	}
	if len(p.Strays) > 0 {
		b.WriteString(t.paint.bold("not in the file, left alone") + "\n")
		var rows [][]string
		for _, s := range p.Strays {
			rows = append(rows, []string{string(s.Kind), s.Name, s.CloudID, s.Why})
		}
		b.WriteString(columns(rows, "  ") + "\n")
	}
	n := count(p)
	if p.Empty() {
		fmt.Fprintf(&b, "%s is as the file says (%d as wanted), nothing to do\n", p.Estate, n.Keep)
	} else {
		for _, note := range p.Notes {
			b.WriteString("note: " + note + "\n")
		}
		b.WriteString(t.paint.bold(n.String()) + "\n")
	}
	if bill != nil {
		b.WriteString(foot(*bill))
	}
	t.result(b.String())
}

// actions prints one group: a line for each action and the details under it.
func (t *text) actions(actions []plan.Action) string {
	var rows [][]string
	for _, a := range actions {
		rows = append(rows, []string{t.mark(a.Op) + " " + string(a.Step.Kind), a.Step.Name, cost(a), reason(a)})
	}
	var b strings.Builder
	for i, line := range strings.SplitAfter(columns(rows, "  "), "\n") {
		if i == len(actions) {
			break
		}
		b.WriteString(t.shade(actions[i].Op, strings.TrimSuffix(line, "\n")) + "\n")
		for _, d := range details(actions[i]) {
			b.WriteString(t.paint.faint("    "+d) + "\n")
		}
	}
	return b.String()
}

// cost is the disruption class; what costs nothing is said as well, so that
// its absence is never taken for it.
func cost(a plan.Action) string {
	switch {
	case a.Op == plan.Refuse, a.Op == plan.Unknown:
		return "not done"
	case a.Disruption == plan.None:
		return "no disruption"
	}
	return string(a.Disruption)
}

// reason is why, and for something new what it will be: its values, without
// those that repeat its name and without references, which the graph shows.
func reason(a plan.Action) string {
	if a.Op != plan.Create {
		return a.Reason
	}
	var values []string
	for _, c := range a.Changes {
		if c.Unknown == "" && c.Want != "" && c.Want != a.Step.Name && !reference(c.Want) {
			values = append(values, c.Attribute+" "+cut(c.Want, 60))
		}
	}
	if len(values) == 0 {
		return a.Reason
	}
	return a.Reason + "; " + strings.Join(values, ", ")
}

// details says what a line cannot hold: what is not known yet and why, and of
// something changed what it was and will be.
func details(a plan.Action) []string {
	var lines []string
	for _, c := range a.Changes {
		switch {
		case c.Unknown != "":
			lines = append(lines, fmt.Sprintf("%s (known after %s: %s)", c.Attribute, knownAfter(a.Step), c.Unknown))
		case a.Op != plan.Create:
			lines = append(lines, fmt.Sprintf("%s: %s -> %s", c.Attribute, orNone(c.Have), orNone(c.Want)))
		}
	}
	return append(lines, a.Detail...)
}

// knownAfter names the moment at which an unknown value becomes known.
func knownAfter(s blueprint.Step) string {
	if s.Kind == blueprint.KindMachine {
		return "the cloud resources are made"
	}
	return "it is made"
}

// reference says whether a value is step IDs, which are of no use to a reader.
func reference(v string) bool {
	for _, word := range strings.Fields(v) {
		kind, _, ok := strings.Cut(word, "/")
		if !ok || !stepKinds[blueprint.Kind(kind)] {
			return false
		}
	}
	return true
}

var stepKinds = func() map[blueprint.Kind]bool {
	kinds := map[blueprint.Kind]bool{
		blueprint.KindVolume: true, blueprint.KindServer: true, blueprint.KindPrivateNIC: true, blueprint.KindPower: true, blueprint.KindMachine: true,
	}
	for k := range groupOf {
		kinds[k] = true
	}
	return kinds
}()

func (t *text) mark(op plan.Op) string {
	switch op {
	case plan.Create:
		return "+"
	case plan.Update:
		return "~"
	case plan.Refuse:
		return "!"
	case plan.Unknown:
		return "?"
	case plan.Wait:
		if t.o.ASCII {
			return "."
		}
		return "…"
	}
	return "="
}

func (t *text) shade(op plan.Op, s string) string {
	switch op {
	case plan.Create:
		return t.paint.green(s)
	case plan.Update, plan.Wait:
		return t.paint.yellow(s)
	case plan.Refuse, plan.Unknown:
		return t.paint.red(s)
	}
	return s
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// PlanSummary counts the actions of a plan.
type PlanSummary struct {
	Create  int `json:"create"`
	Update  int `json:"update"`
	Wait    int `json:"wait"`
	Refuse  int `json:"refuse"`
	Unknown int `json:"unknown"`
	Keep    int `json:"keep"`
	Strays  int `json:"strays"`
}

func count(p plan.Plan) PlanSummary {
	n := PlanSummary{Strays: len(p.Strays)}
	for _, a := range p.Actions {
		switch a.Op {
		case plan.Create:
			n.Create++
		case plan.Update:
			n.Update++
		case plan.Wait:
			n.Wait++
		case plan.Refuse:
			n.Refuse++
		case plan.Unknown:
			n.Unknown++
		case plan.Keep:
			n.Keep++
		}
	}
	return n
}

// String is the last line of a plan.
func (n PlanSummary) String() string {
	wait, unknown, strays := "", "", ""
	if n.Unknown > 0 {
		unknown = fmt.Sprintf("%d could not be read", n.Unknown)
	}
	if n.Wait > 0 {
		wait = fmt.Sprintf("%d to wait for", n.Wait)
	}
	if n.Strays > 0 {
		strays = fmt.Sprintf("%d not in the file", n.Strays)
	}
	return join(fmt.Sprintf("%d to create", n.Create), fmt.Sprintf("%d to update", n.Update), wait,
		fmt.Sprintf("%d to refuse", n.Refuse), unknown, fmt.Sprintf("%d as wanted", n.Keep), strays)
}
