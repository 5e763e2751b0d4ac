package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"bastide/internal/sim/kube"
)

const (
	inventoryName       = "talos-bootstrap-manifests-inventory"
	inventoryAnnotation = "config.k8s.io/owning-inventory"
	fieldManager        = "talos"
	manifestLock        = "talos:v1:manifestApplyMutex"
)

// applyManifests creates what is missing of the bootstrap manifests, and again
// when the configuration changes. It never changes or deletes anything.
func (n *node) applyManifests() {
	for {
		n.mu.Lock()
		changed := n.changed
		n.mu.Unlock()
		done := n.untilDone(n.ctx, manifestPeriod, "controller-runtime", func(ctx context.Context) error {
			objects, err := n.manifests(ctx)
			if err != nil {
				return err
			}
			return n.locked(ctx, func() error { return n.createMissing(ctx, objects) })
		})
		if !done {
			return
		}
		select {
		case <-n.ctx.Done():
			return
		case <-changed:
		}
	}
}

// locked runs f while this node alone of the cluster applies manifests.
func (n *node) locked(ctx context.Context, f func() error) error {
	c, err := n.etcdLocal(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := concurrency.NewSession(c, concurrency.WithTTL(10), concurrency.WithContext(clientv3.WithRequireLeader(ctx)))
	if err != nil {
		return fmt.Errorf("error creating etcd session: %w", err)
	}
	defer s.Close()
	mutex := concurrency.NewMutex(s, manifestLock)
	if err := mutex.Lock(ctx); err != nil {
		return fmt.Errorf("error acquiring mutex for key %s: %w", manifestLock, err)
	}
	return errors.Join(f(), mutex.Unlock(context.WithoutCancel(ctx)))
}

// manifests renders all objects: Talos's own, the network plug-in's, those at
// URLs, and the inline ones.
func (n *node) manifests(ctx context.Context) ([]*unstructured.Unstructured, error) {
	cl := n.config().Cluster()
	all, err := decode(n.bootstrapManifests())
	if err != nil {
		return nil, fmt.Errorf("bootstrap manifests: %w", err)
	}
	urls := append(append(append([]string(nil), cl.Network().CNI().URLs()...), cl.ExternalCloudProvider().ManifestURLs()...), cl.ExtraManifestURLs()...)
	for _, u := range urls {
		text, err := n.download(ctx, u)
		if err != nil {
			return nil, fmt.Errorf("error downloading manifest %q: %w", u, err)
		}
		more, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("manifest %q: %w", u, err)
		}
		all = append(all, more...)
	}
	for _, m := range cl.InlineManifests() {
		more, err := decode(m.Contents())
		if err != nil {
			return nil, fmt.Errorf("inline manifest %q: %w", m.Name(), err)
		}
		all = append(all, more...)
	}
	rank := func(o *unstructured.Unstructured) int {
		switch o.GetKind() {
		case "Namespace":
			return 0
		case "CustomResourceDefinition":
			return 1
		}
		return 2
	}
	sort.SliceStable(all, func(i, j int) bool { return rank(all[i]) < rank(all[j]) })
	return all, nil
}

func (n *node) download(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: n.dial, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(raw), err
}

func decode(text string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := d.Decode(o)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}

// createMissing applies the objects that are neither in the inventory nor in
// the cluster, and keeps the inventory.
func (n *node) createMissing(ctx context.Context, objects []*unstructured.Unstructured) error {
	c, err := n.adminClient(n.ownDial)
	if err != nil {
		return err
	}
	api := c.Anything()
	inv, err := readInventory(ctx, c)
	if err != nil {
		return err
	}
	var failed []error
	for _, o := range objects {
		fatal, err := n.createOne(ctx, api, inv, o)
		if err != nil {
			failed = append(failed, fmt.Errorf("error creating %s/%s: %w", o.GetKind(), o.GetName(), err))
		}
		if fatal {
			break
		}
	}
	return errors.Join(errors.Join(failed...), inv.write(ctx, c))
}

// createOne reports as fatal what no other object would fare better with.
func (n *node) createOne(ctx context.Context, api *kube.Anything, inv *inventory, o *unstructured.Unstructured) (fatal bool, err error) {
	kind, err := api.Kind(ctx, o.GroupVersionKind())
	if err != nil {
		var unknown *kube.NoKindError
		return !errors.As(err, &unknown), err
	}
	switch {
	case !kind.Namespaced:
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace("default")
	}
	id := inventoryID(o)
	if inv.has(id) {
		return false, nil
	}
	switch there, err := api.Exists(ctx, kind, o); {
	case err != nil:
		return true, err
	case there:
		inv.add(id)
		return false, nil
	}
	notes := o.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	notes[inventoryAnnotation] = inventoryName
	o.SetAnnotations(notes)
	if err := api.Apply(ctx, kind, o, fieldManager); err != nil {
		return !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) && !apierrors.IsMethodNotSupported(err) && !isNotFound(err), err
	}
	inv.add(id)
	return false, nil
}

// inventory is the ConfigMap by which Talos remembers what it once created.
type inventory struct {
	object  *core.ConfigMap
	missing bool
	changed bool
}

func inventoryID(o *unstructured.Unstructured) string {
	return fmt.Sprintf("%s_%s_%s_%s", o.GetNamespace(), strings.ReplaceAll(o.GetName(), ":", "__"), o.GroupVersionKind().Group, o.GetKind())
}

func readInventory(ctx context.Context, c *kube.Client) (*inventory, error) {
	cm, err := c.ConfigMaps("kube-system").Get(ctx, inventoryName)
	if isNotFound(err) {
		cm = &core.ConfigMap{ObjectMeta: metaOf("kube-system", inventoryName)}
		cm.Labels = map[string]string{"cli-utils.sigs.k8s.io/inventory-id": inventoryName}
		return &inventory{object: cm, missing: true}, nil
	}
	return &inventory{object: cm}, err
}

func (i *inventory) has(id string) bool { _, ok := i.object.Data[id]; return ok }

func (i *inventory) add(id string) {
	if i.object.Data == nil {
		i.object.Data = map[string]string{}
	}
	i.object.Data[id], i.changed = "", true
}

func (i *inventory) write(ctx context.Context, c *kube.Client) error {
	var err error
	switch {
	case i.missing:
		_, err = c.ConfigMaps("kube-system").Create(ctx, i.object)
	case i.changed:
		_, err = c.ConfigMaps("kube-system").Update(ctx, i.object)
	}
	if err != nil {
		return fmt.Errorf("updating inventory failed: %w", err)
	}
	return nil
}
