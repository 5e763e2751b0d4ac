package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Object is any object of the Kubernetes API.
type Object interface {
	runtime.Object
	metav1.Object
}

// Resource is the objects of one kind, in one namespace, in all, or in none.
type Resource[T Object, L runtime.Object] struct {
	client          rest.Interface
	name, namespace string
	object          func() T
	list            func() L
}

func resource[T Object, L runtime.Object](c rest.Interface, name, namespace string, object func() T, list func() L) Resource[T, L] {
	return Resource[T, L]{c, name, namespace, object, list}
}

func (r Resource[T, L]) at(q *rest.Request, name string) *rest.Request {
	q = q.NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.name)
	if name != "" {
		q = q.Name(name)
	}
	return q
}

// Get reads one object.
func (r Resource[T, L]) Get(ctx context.Context, name string) (T, error) {
	out := r.object()
	return out, r.at(r.client.Get(), name).Do(ctx).Into(out)
}

// List reads all that the options select.
func (r Resource[T, L]) List(ctx context.Context, o metav1.ListOptions) (L, error) {
	out := r.list()
	return out, r.at(r.client.Get(), "").VersionedParams(&o, parameters()).Do(ctx).Into(out)
}

// Watch follows what the options select, from their resource version on.
func (r Resource[T, L]) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return r.at(r.client.Get(), "").VersionedParams(&o, parameters()).Watch(ctx)
}

// Create stores a new object and returns it as it is stored.
func (r Resource[T, L]) Create(ctx context.Context, o T) (T, error) {
	out := r.object()
	return out, r.at(r.client.Post(), "").Body(o).Do(ctx).Into(out)
}

// Update stores everything of an object but its status.
func (r Resource[T, L]) Update(ctx context.Context, o T) (T, error) { return r.put(ctx, o) }

// UpdateStatus stores an object's status alone.
func (r Resource[T, L]) UpdateStatus(ctx context.Context, o T) (T, error) {
	return r.put(ctx, o, "status")
}

func (r Resource[T, L]) put(ctx context.Context, o T, part ...string) (T, error) {
	out := r.object()
	return out, r.at(r.client.Put(), o.GetName()).SubResource(part...).Body(o).Do(ctx).Into(out)
}

// Delete marks an object for deletion, or deletes it, as its kind is.
func (r Resource[T, L]) Delete(ctx context.Context, name string) error {
	return r.delete(ctx, name, &metav1.DeleteOptions{})
}

// DeleteNow deletes without the time to end gracefully.
func (r Resource[T, L]) DeleteNow(ctx context.Context, name string) error {
	none := int64(0)
	return r.delete(ctx, name, &metav1.DeleteOptions{GracePeriodSeconds: &none})
}

// DeleteAll deletes every object of the kind in the namespace.
func (r Resource[T, L]) DeleteAll(ctx context.Context) error {
	return r.delete(ctx, "", &metav1.DeleteOptions{})
}

func (r Resource[T, L]) delete(ctx context.Context, name string, o *metav1.DeleteOptions) error {
	return r.at(r.client.Delete(), name).Body(o).Do(ctx).Error()
}

func parameters() runtime.ParameterCodec { return runtime.NewParameterCodec(kinds()) }
