package scaleway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/scaleway/scaleway-sdk-go/scw"
)

// access is how Scaleway is reached, for messages. The access key is no secret.
type access struct{ key, from, endpoint string }

func (a access) String() string {
	return fmt.Sprintf("the API key %s of %s", orText(a.key, "in use"), orText(a.from, "your settings"))
}

// again is the advice for what may go better next time; readAgain is the same
// before anything was changed.
const (
	again     = "run the command again; it continues where this one stopped"
	readAgain = "run the command again; nothing was changed"
)

// explain turns an error into what a person needs: the reason, and what to do.
func (c *Cloud) explain(err error) (why, do string) {
	var (
		quota    *scw.QuotasExceededError
		stock    *scw.OutOfStockError
		denied   *scw.PermissionsDeniedError
		invalid  *scw.InvalidArgumentsError
		locked   *scw.ResourceLockedError
		auth     *scw.DeniedAuthenticationError
		pre      *scw.PreconditionFailedError
		missing  *scw.ResourceNotFoundError
		busy     *scw.TransientStateError
		response *scw.ResponseError
	)
	switch {
	case errors.As(err, &quota):
		return quotas(quota), "delete what is not needed or ask Scaleway for a higher quota, then run the command again"
	case errors.As(err, &stock):
		return fmt.Sprintf("%s is out of stock in %s", orText(stock.Resource, "it"), c.zone), "choose another type or zone in the file, or try again later"
	case errors.As(err, &denied):
		var parts []string
		for _, d := range denied.Details {
			parts = append(parts, fmt.Sprintf("%s on %s", d.Action, d.Resource))
		}
		return fmt.Sprintf("%s lacks the permission %s in the project %s", c.access, orText(strings.Join(parts, ", "), "for it"), c.project), c.permit(denied)
	case errors.As(err, &auth):
		return fmt.Sprintf("Scaleway does not accept %s: %s", c.access, orText(auth.Reason, "authentication denied")), c.otherKey()
	case errors.As(err, &invalid):
		var parts []string
		for _, d := range invalid.Details {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s (%s) %s", d.ArgumentName, d.Reason, d.HelpMessage)))
		}
		return "Scaleway refuses the value of " + orText(strings.Join(parts, ", "), "an argument"), "correct the file"
	case errors.As(err, &locked):
		return "Scaleway has locked it", "ask Scaleway's support to unlock it"
	case errors.As(err, &pre):
		return "a precondition is not met: " + orText(pre.HelpMessage, pre.Precondition), "see in the Scaleway console what uses it; then run the command again"
	case errors.As(err, &missing):
		return fmt.Sprintf("Scaleway knows no %s in the project %s", strings.TrimSpace(orText(missing.Resource, "such thing")+" "+missing.ResourceID), c.project),
			"run the command again, because it may be just gone; if that does not help, check scaleway.project in the file"
	case errors.As(err, &busy):
		return fmt.Sprintf("the %s %s is still busy (%s)", orText(busy.Resource, "thing"), busy.ResourceID, busy.CurrentState), again
	case errors.As(err, &response):
		return c.answered(response)
	}
	return c.unanswered(err)
}

func quotas(err *scw.QuotasExceededError) string {
	var parts []string
	for _, d := range err.Details {
		parts = append(parts, fmt.Sprintf("the quota %s allows %d and %d are in use", d.Resource, d.Quota, d.Current))
	}
	return orText(strings.Join(parts, ", "), "a quota of the project is used up")
}

// answered explains an answer without a type that the SDK knows.
func (c *Cloud) answered(r *scw.ResponseError) (why, do string) {
	// Without a JSON body the SDK takes the status line for the message.
	message := orText(strings.TrimSpace(strings.TrimPrefix(r.Message, fmt.Sprint(r.StatusCode))), http.StatusText(r.StatusCode))
	why, do = fmt.Sprintf("Scaleway answered %d: %s", r.StatusCode, message), again
	switch {
	case r.StatusCode >= 300 && r.StatusCode < 400:
		// The API sends nobody elsewhere: a proxy's login page, or the address of
		// something else.
		return why + ", which sends the call elsewhere; it was not followed there, so that nobody else gets the key", "check " + c.where()
	case r.StatusCode == http.StatusUnauthorized:
		return why + ", so it does not accept " + c.access.String(), c.otherKey()
	case r.StatusCode == http.StatusForbidden:
		return fmt.Sprintf("%s, so %s may not do this in the project %s", why, c.access, c.project), c.permit(nil)
	case r.StatusCode == http.StatusNotFound && !isObject(r.RawBody):
		return why + ", which is not how its API says that something does not exist", "check " + c.where()
	case r.StatusCode == http.StatusConflict:
		do = "look in the Scaleway console for what is in the way and rename or remove it; then run the command again"
	case r.StatusCode == http.StatusPreconditionFailed:
		do = "see in the Scaleway console what uses it; then run the command again"
	case r.StatusCode == http.StatusTooManyRequests:
		do = "wait some minutes; then run the command again"
	case r.StatusCode < 500:
		do = "correct what it names in the file or in the Scaleway settings; then run the command again"
	}
	return why, do
}

// unanswered explains that there was no answer, or none that can be used.
func (c *Cloud) unanswered(err error) (why, do string) {
	var nobody *unreachableError
	var lost *lostError
	switch {
	case errors.As(err, &nobody):
		return nobody.Error(), "check the network and " + c.where()
	case errors.As(err, &lost) && errors.Is(lost, context.DeadlineExceeded):
		return lost.Error(), "give it more time with --timeout, or run the command again; it continues where this one stopped"
	case errors.As(err, &lost):
		return lost.Error(), again
	case misread(err):
		return "the answer of the Scaleway API was not understood: " + strings.TrimPrefix(err.Error(), "scaleway-sdk-go: "), again
	}
	return strings.TrimPrefix(err.Error(), "scaleway-sdk-go: "), again
}

// where names the setting of the endpoint.
func (c *Cloud) where() string {
	if c.access.endpoint == "" {
		return "that nothing between here and Scaleway, such as a proxy, is in the way"
	}
	return "the API's address in " + c.access.endpoint
}

func (c *Cloud) otherKey() string {
	return fmt.Sprintf("put a valid key into %s; nothing will work until then", orText(c.access.from, "SCW_ACCESS_KEY and SCW_SECRET_KEY"))
}

// permissionSets are IAM's names for what may be done with the things that a
// refusal names. The first word that is found decides.
var permissionSets = []struct{ word, set string }{
	{"rdb", "RelationalDatabasesFullAccess"}, {"database", "RelationalDatabasesFullAccess"}, {"endpoint", "RelationalDatabasesFullAccess"},
	{"volume", "BlockStorageFullAccess"}, {"snapshot", "BlockStorageFullAccess"}, {"block", "BlockStorageFullAccess"},
	{"namespace", "ContainerRegistryFullAccess"}, {"secret", "SecretManagerFullAccess"}, {"dns", "DomainsDNSFullAccess"},
	{"ssh", "SSHKeysFullAccess"}, {"gateway", "VPCGatewayFullAccess"}, {"private_network", "PrivateNetworksFullAccess"},
	{"vpc", "VPCFullAccess"}, {"ipam", "IPAMFullAccess"}, {"lb", "LoadBalancersFullAccess"}, {"load", "LoadBalancersFullAccess"},
	{"compute", "InstancesFullAccess"}, {"instance", "InstancesFullAccess"}, {"server", "InstancesFullAccess"}, {"security_group", "InstancesFullAccess"},
}

// permit is the advice for a refusal: repeating the command cannot help.
func (c *Cloud) permit(denied *scw.PermissionsDeniedError) string {
	set := ""
	if denied != nil {
		for _, d := range denied.Details {
			set = orText(set, permissionSet(d.Resource))
		}
	}
	return fmt.Sprintf("give the key's IAM application %s in that project, or check scaleway.project in the file",
		orText(set, "the permission sets that `bastide iam ENV` prints"))
}

func permissionSet(resource string) string {
	if resource == "instance" { // of a database; servers are compute_servers
		return "RelationalDatabasesFullAccess"
	}
	for _, p := range permissionSets {
		if strings.Contains(strings.ToLower(resource), p.word) {
			return p.set
		}
	}
	return ""
}
