package talos

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/plan"
)

// KubernetesNode is a Node object, as far as it matters here.
type KubernetesNode struct {
	Name           string
	Ready          bool
	Why            string // why it is not Ready, in the kubelet's words
	InternalIPs    []string
	KubeletVersion string
	OSImage        string
	Schedulable    bool
	Roles          []string
	ProviderID     string
}

// KubernetesNodes lists the nodes that Kubernetes knows, through the load
// balancer, as the admin of the bundle.
func (c *Cluster) KubernetesNodes(ctx context.Context) ([]KubernetesNode, error) {
	client, err := c.kubernetes()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	var out []KubernetesNode
	next := ""
	for range maxPages {
		query := url.Values{"limit": {"500"}}
		if next != "" {
			query.Set("continue", next)
		}
		var page nodeList
		if err := c.getJSON(ctx, client, "/api/v1/nodes?"+query.Encode(), &page); err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			out = append(out, item.node())
		}
		if next = page.Metadata.Continue; next == "" {
			return out, nil
		}
	}
	return nil, fmt.Errorf("the Kubernetes API's list of nodes does not end after %d pages", maxPages)
}

// KubernetesVersion is the version that the API server gives, such as v1.36.3.
func (c *Cluster) KubernetesVersion(ctx context.Context) (string, error) {
	client, err := c.kubernetes()
	if err != nil {
		return "", err
	}
	defer client.CloseIdleConnections()
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	err = c.getJSON(ctx, client, "/version", &v)
	return v.GitVersion, err
}

// kubernetes is a client of the Kubernetes API. Two kinds of request do not
// justify a client library that is larger than the rest of this program.
func (c *Cluster) kubernetes() (*http.Client, error) {
	cert, pool, err := c.bundle.KubernetesClient(c.now(), sessionLifetime)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return c.dial(ctx, network, address)
		},
		TLSClientConfig:   &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}}, nil
}

// maxPages bounds a listing: an estate has at most 512 nodes.
const maxPages = 20

// maxAnswer bounds an answer of the Kubernetes API; 500 nodes are under 10 MiB.
const maxAnswer = 64 << 20

func (c *Cluster) getJSON(ctx context.Context, client *http.Client, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Call)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.addresses.Endpoint()+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask the Kubernetes API: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the Kubernetes API's answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the Kubernetes API answers %s to GET %s", response.Status, strings.SplitN(path, "?", 2)[0])
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("decode the Kubernetes API's answer: %w", err)
	}
	return nil
}

type nodeList struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []nodeItem `json:"items"`
}

type nodeItem struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Unschedulable bool   `json:"unschedulable"`
		ProviderID    string `json:"providerID"`
	} `json:"spec"`
	Status struct {
		Conditions []struct{ Type, Status, Reason, Message string } `json:"conditions"`
		Addresses  []struct{ Type, Address string }                 `json:"addresses"`
		NodeInfo   struct {
			KubeletVersion string `json:"kubeletVersion"`
			OSImage        string `json:"osImage"`
		} `json:"nodeInfo"`
	} `json:"status"`
}

func (i nodeItem) node() KubernetesNode {
	n := KubernetesNode{
		Name: i.Metadata.Name, KubeletVersion: i.Status.NodeInfo.KubeletVersion, OSImage: i.Status.NodeInfo.OSImage,
		Schedulable: !i.Spec.Unschedulable, ProviderID: i.Spec.ProviderID, Why: "its kubelet has not reported",
	}
	for _, cond := range i.Status.Conditions {
		if cond.Type == "Ready" {
			n.Ready, n.Why = cond.Status == "True", strings.TrimSpace(cond.Reason+": "+cond.Message)
		}
	}
	if n.Ready {
		n.Why = ""
	}
	for _, a := range i.Status.Addresses {
		if a.Type == "InternalIP" {
			n.InternalIPs = append(n.InternalIPs, a.Address)
		}
	}
	for label := range i.Metadata.Labels {
		if role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/"); ok {
			n.Roles = append(n.Roles, role)
		}
	}
	slices.Sort(n.Roles)
	return n
}

// applyNodes waits until Kubernetes calls all nodes of the estate Ready and each
// node itself says that nothing is left to come up: the second and third API
// server start well after the nodes are Ready.
func (c *Cluster) applyNodes(ctx context.Context, a plan.Action) (plan.Observed, error) {
	want := a.Step.Spec.(blueprint.KubernetesNodes).Ready
	var last []KubernetesNode
	var lastErr error
	up := make(map[string]bool) // nodes that said so themselves; they are not asked again
	err := c.until(ctx, c.limits.Ready, func(ctx context.Context) error {
		nodes, err := c.KubernetesNodes(ctx)
		if ctx.Err() != nil {
			return nil // cut short: it says nothing of the API
		}
		if lastErr = err; err != nil {
			c.note("", "Kubernetes API: "+err.Error())
			return nil
		}
		nodes = c.withStages(ctx, nodes, up)
		if ctx.Err() != nil {
			return nil
		}
		last = nodes
		waiting := notReady(want, last)
		if len(waiting) == 0 {
			return errStop
		}
		for _, name := range want {
			if why := waiting[name]; why != "" {
				c.note(name, "Kubernetes: "+why)
			}
		}
		return nil
	}, func(after time.Duration) error { return c.nodesFailure(want, last, lastErr, after) })
	if err != nil {
		return plan.Observed{}, err
	}
	return plan.Observed{Step: a.Step.ID, Status: "ready", Settled: true, Spec: blueprint.KubernetesNodes{Ready: readyNames(last, c.estate.Nodes())}}, nil
}

// withStages takes back the Ready of nodes that have not finished coming up, and
// adds those that have to up.
func (c *Cluster) withStages(ctx context.Context, nodes []KubernetesNode, up map[string]bool) []KubernetesNode {
	out := slices.Clone(nodes)
	var ask []int
	for i, k := range out {
		if _, ours := c.node(k.Name); ours && k.Ready && !up[k.Name] {
			ask = append(ask, i)
		}
	}
	inTurn(len(ask), atOnce, func(i int) {
		n, _ := c.node(out[ask[i]].Name)
		out[ask[i]].unlessReady(c.stageOf(ctx, n))
	})
	for _, i := range ask {
		up[out[i].Name] = out[i].Ready
	}
	return out
}

// stageOf looks at a node for its stage alone.
func (c *Cluster) stageOf(ctx context.Context, n estate.Node) sight {
	s := sight{node: n}
	var session *session
	if s.contact, session, s.err = c.visit(ctx, n); session != nil {
		defer session.close()
		s.stage, s.err = session.stage(ctx)
	}
	return s
}

// unlessReady takes a node's Ready back when the node itself is not.
func (n *KubernetesNode) unlessReady(s sight) {
	switch {
	case s.contact.state != Ours:
		n.Ready, n.Why = false, fmt.Sprintf("its Talos API is %s %s", s.contact.state, s.contact.why)
	case s.err != nil:
		n.Ready, n.Why = false, s.err.Error()
	case !s.stage.ready:
		n.Ready, n.Why = false, s.stage.String()
	}
}

func (c *Cluster) nodesFailure(want []string, last []KubernetesNode, err error, after time.Duration) error {
	if err != nil {
		return outcome.Fail(fmt.Sprintf("the Kubernetes API did not answer within %s", after), "", "look at the API servers with `talosctl service` and `talosctl logs -k`, then run `bastide up` again").Because(err)
	}
	waiting := notReady(want, last)
	var why []string
	for _, name := range want {
		if waiting[name] != "" {
			why = append(why, name+": "+waiting[name])
		}
	}
	return outcome.Fail(fmt.Sprintf("%d of %d nodes are not Ready after %s", len(waiting), len(want), after), strings.Join(why, "; "), "look at them with `kubectl describe node`, then run `bastide up` again")
}

// notReady says why each wanted node is not Ready.
func notReady(want []string, nodes []KubernetesNode) map[string]string {
	out := map[string]string{}
	for _, name := range want {
		out[name] = "it has not joined"
	}
	for _, n := range nodes {
		if _, wanted := out[n.Name]; !wanted {
			continue
		}
		if out[n.Name] = n.Why; n.Ready {
			delete(out, n.Name)
		}
	}
	return out
}

// readyNames are the estate's nodes that are Ready, sorted.
func readyNames(nodes []KubernetesNode, of []estate.Node) []string {
	var out []string
	for _, n := range nodes {
		if n.Ready && slices.ContainsFunc(of, func(e estate.Node) bool { return e.Name == n.Name }) {
			out = append(out, n.Name)
		}
	}
	slices.Sort(out)
	return out
}
