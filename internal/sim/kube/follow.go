package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Followed is a copy of all objects of one kind that a watch keeps up to date.
// What it returns is shared and must not be changed.
type Followed[T Object] struct{ informer cache.SharedIndexInformer }

// Following is a Followed of whatever kind.
type Following interface {
	start(ctx context.Context, changed func()) (synced func() bool, err error)
}

// Follow prepares to follow a resource in all namespaces; Start begins.
func Follow[T Object, L runtime.Object](r Resource[T, L]) *Followed[T] {
	source := &cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return r.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return r.Watch(ctx, o) },
	}
	return &Followed[T]{cache.NewSharedIndexInformer(source, r.object(), 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
}

// Start follows until the context ends and tells of every change. It returns
// when all of them are known whole, or false when the context ended before.
func Start(ctx context.Context, changed func(), all ...Following) bool {
	var synced []cache.InformerSynced
	for _, f := range all {
		s, err := f.start(ctx, changed)
		if err != nil {
			return false // only of an informer that has been stopped
		}
		synced = append(synced, s)
	}
	return cache.WaitForCacheSync(ctx.Done(), synced...)
}

func (f *Followed[T]) start(ctx context.Context, changed func()) (func() bool, error) {
	_, err := f.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return nil, err
	}
	go f.informer.RunWithContext(ctx)
	return f.informer.HasSynced, nil
}

// All are the objects of every namespace, in no order.
func (f *Followed[T]) All() []T { return typed[T](f.informer.GetStore().List()) }

// In are the objects of one namespace, in no order.
func (f *Followed[T]) In(namespace string) []T {
	found, err := f.informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil // only of an index that was not asked for above
	}
	return typed[T](found)
}

// Get finds one object; the namespace is empty for kinds that have none.
func (f *Followed[T]) Get(namespace, name string) (T, bool) {
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	var none T
	found, ok, err := f.informer.GetStore().GetByKey(key)
	if err != nil || !ok {
		return none, false
	}
	return found.(T), true
}

func typed[T Object](all []any) []T {
	out := make([]T, 0, len(all))
	for _, o := range all {
		out = append(out, o.(T))
	}
	return out
}
