package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Anything reads and applies objects of kinds that are known from the API
// server alone. What it learns of a group is kept for as long as it lives.
type Anything struct {
	client *Client

	mu     sync.Mutex
	groups map[schema.GroupVersion][]metav1.APIResource
}

// Anything starts without knowing any kind.
func (c *Client) Anything() *Anything {
	return &Anything{client: c, groups: map[schema.GroupVersion][]metav1.APIResource{}}
}

// NoKindError says that the API server does not have a kind, or not yet.
type NoKindError struct{ Kind schema.GroupVersionKind }

func (e *NoKindError) Error() string {
	return fmt.Sprintf("no matches for kind %q in version %q", e.Kind.Kind, e.Kind.GroupVersion())
}

// Kind finds how objects of a kind are addressed: the name in paths, and
// whether they are in namespaces. A kind that is not there is a *NoKindError,
// and its group is asked for again the next time.
func (a *Anything) Kind(ctx context.Context, kind schema.GroupVersionKind) (metav1.APIResource, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	version := kind.GroupVersion()
	known, ok := a.groups[version]
	if !ok {
		raw, err := a.client.core.Get().AbsPath(root(version)).Do(ctx).Raw()
		if apierrors.IsNotFound(err) {
			return metav1.APIResource{}, &NoKindError{kind}
		}
		var list metav1.APIResourceList
		if err == nil {
			err = json.Unmarshal(raw, &list)
		}
		if err != nil {
			return metav1.APIResource{}, fmt.Errorf("asking for the kinds of %s: %w", version, err)
		}
		known = list.APIResources
		a.groups[version] = known
	}
	for _, r := range known {
		if r.Kind == kind.Kind && path.Base(r.Name) == r.Name { // not a part of one, such as pods/status
			return r, nil
		}
	}
	delete(a.groups, version)
	return metav1.APIResource{}, &NoKindError{kind}
}

// Exists says whether an object is there.
func (a *Anything) Exists(ctx context.Context, r metav1.APIResource, o *unstructured.Unstructured) (bool, error) {
	err := a.client.core.Get().AbsPath(address(r, o)).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// Apply is a server-side apply in the name of a manager.
func (a *Anything) Apply(ctx context.Context, r metav1.APIResource, o *unstructured.Unstructured, manager string) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return a.client.core.Patch(types.ApplyPatchType).AbsPath(address(r, o)).Param("fieldManager", manager).Body(body).Do(ctx).Error()
}

func root(v schema.GroupVersion) string {
	if v.Group == "" {
		return "/api/" + v.Version
	}
	return "/apis/" + v.Group + "/" + v.Version
}

func address(r metav1.APIResource, o *unstructured.Unstructured) string {
	at := root(o.GroupVersionKind().GroupVersion())
	if r.Namespaced {
		at = path.Join(at, "namespaces", o.GetNamespace())
	}
	return path.Join(at, r.Name, o.GetName())
}
