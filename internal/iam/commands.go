package iam

import (
	"fmt"
	"strings"

	"bastide/internal/estate"
)

// Commands are the calls of scw that make an application with its policy and
// its key, for a POSIX shell. The key is printed by the last one, and nowhere
// else again.
func (a Application) Commands() []string {
	create := fmt.Sprintf("APP=$(scw iam application create name=%s description=%s tags.0=bastide -o template='{{ .ID }}')", a.Name, quoted(a.For))
	policy := []string{"scw iam policy create name=" + a.Name, `application-id="$APP"`, "description=" + quoted("rights of "+a.Name), "tags.0=bastide", "rules.0.project-ids.0=" + a.Project}
	for i, set := range a.Sets() {
		policy = append(policy, fmt.Sprintf("rules.0.permission-set-names.%d=%s", i, set))
	}
	key := fmt.Sprintf(`scw iam api-key create application-id="$APP" default-project-id=%s description=%s expires-at=%dd`, a.Project, quoted(a.Name), a.Days)
	return []string{create, strings.Join(policy, " \\\n  "), key}
}

// quoted is a word for the shell. No value here holds a quote.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`"`, "'", "`", "'", "$", "", `\`, "").Replace(text) + `"`
}

// Script is all of it, to be read and pasted piece by piece: shell commands with
// the reasons as comments.
func Script(e *estate.Estate) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# What %s needs at Scaleway beside its project %s.
# bastide touches no IAM: a person with the right to (IAMApplicationManager and
# IAMPolicyManager, or IAMManager) runs this once. Nothing here gives more than a
# project's resources. Each key is shown once, by the command that makes it.
# Permission sets are named as in Scaleway's list; what no test shows is marked ?
`, e.Name, e.Scaleway.Project)
	for _, a := range Needed(e) {
		fmt.Fprintf(&b, "\n# %s: %s\n", a.Name, a.For)
		if a.When != "" {
			fmt.Fprintf(&b, "# needed %s\n", a.When)
		}
		for _, g := range a.Grants {
			fmt.Fprintf(&b, "#   %-35s %s\n", g.Set, g.Why)
			if g.Doubt != "" {
				fmt.Fprintf(&b, "#   %-35s ? %s\n", "", g.Doubt)
			}
		}
		fmt.Fprintf(&b, "# its key ends after %d days and goes into %s\n", a.Days, a.Keep)
		b.WriteString(strings.Join(a.Commands(), "\n") + "\n")
	}
	if r := e.Store.Replica; r != nil {
		fmt.Fprintf(&b, `
# The replica: a key of that provider's, made there and never the one above, into
# BASTIDE_REPLICA_ACCESS_KEY and BASTIDE_REPLICA_SECRET_KEY of whoever runs bastide up.
# In the bucket %s it may list, read and write objects; that it may delete them is
# needed for destroy --delete-data store alone.
`, r.Bucket)
	}
	return b.String()
}
