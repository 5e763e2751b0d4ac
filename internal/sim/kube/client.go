// Package kube is the simulated nodes' client of the Kubernetes API: typed for
// the dozen kinds of objects that they handle, and without a type for what
// manifests hold. client-go's own typed client, with informers and elections,
// links every group of the API in every version, which is a fifth of this
// program's size and a part of every start.
package kube

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	apps "k8s.io/api/apps/v1"
	certs "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// kinds are the groups of the API that nodes know types of.
var kinds = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{core.AddToScheme, apps.AddToScheme, certs.AddToScheme, coordination.AddToScheme, discovery.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // two types under one name: a mistake in the list above
		}
	}
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return s
})

// Client speaks for one identity. It is safe for concurrent use.
type Client struct {
	core, apps, certs, coordination, discovery rest.Interface
}

// New makes a client; nothing is dialled yet.
func New(conf *rest.Config) (*Client, error) {
	transport, err := rest.HTTPClientFor(conf)
	if err != nil {
		return nil, fmt.Errorf("client of the Kubernetes API: %w", err)
	}
	c := &Client{}
	for _, g := range []struct {
		at      *rest.Interface
		version schema.GroupVersion
	}{
		{&c.core, core.SchemeGroupVersion}, {&c.apps, apps.SchemeGroupVersion}, {&c.certs, certs.SchemeGroupVersion},
		{&c.coordination, coordination.SchemeGroupVersion}, {&c.discovery, discovery.SchemeGroupVersion},
	} {
		if *g.at, err = group(conf, transport, g.version); err != nil {
			return nil, fmt.Errorf("client of %s: %w", g.version, err)
		}
	}
	return c, nil
}

func group(conf *rest.Config, transport *http.Client, version schema.GroupVersion) (rest.Interface, error) {
	own := *conf
	own.GroupVersion, own.APIPath = &version, "/apis"
	if version.Group == "" {
		own.APIPath = "/api"
	}
	own.NegotiatedSerializer = serializer.NewCodecFactory(kinds()).WithoutConversion()
	return rest.RESTClientForConfigAndClient(&own, transport)
}

// The kinds that have no namespace.

// Nodes are the cluster's nodes.
func (c *Client) Nodes() Resource[*core.Node, *core.NodeList] {
	return resource(c.core, "nodes", "", func() *core.Node { return &core.Node{} }, func() *core.NodeList { return &core.NodeList{} })
}

// Namespaces are the cluster's namespaces.
func (c *Client) Namespaces() Resource[*core.Namespace, *core.NamespaceList] {
	return resource(c.core, "namespaces", "", func() *core.Namespace { return &core.Namespace{} }, func() *core.NamespaceList { return &core.NamespaceList{} })
}

// Finalize takes a namespace's finalizers away, as its own controller does.
func (c *Client) Finalize(ctx context.Context, ns *core.Namespace) error {
	return c.core.Put().Resource("namespaces").Name(ns.Name).SubResource("finalize").Body(ns).Do(ctx).Error()
}

// SigningRequests are the requests for certificates.
func (c *Client) SigningRequests() Resource[*certs.CertificateSigningRequest, *certs.CertificateSigningRequestList] {
	return resource(c.certs, "certificatesigningrequests", "", func() *certs.CertificateSigningRequest { return &certs.CertificateSigningRequest{} },
		func() *certs.CertificateSigningRequestList { return &certs.CertificateSigningRequestList{} })
}

// Approve stores what a request's conditions say of its approval.
func (c *Client) Approve(ctx context.Context, csr *certs.CertificateSigningRequest) (*certs.CertificateSigningRequest, error) {
	return c.SigningRequests().put(ctx, csr, "approval")
}

// The kinds that are in a namespace; an empty one means all of them.

// Pods are the pods of a namespace.
func (c *Client) Pods(namespace string) Resource[*core.Pod, *core.PodList] {
	return resource(c.core, "pods", namespace, func() *core.Pod { return &core.Pod{} }, func() *core.PodList { return &core.PodList{} })
}

// Bind puts a pod on a node.
func (c *Client) Bind(ctx context.Context, pod *core.Pod, node string) error {
	b := &core.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Target: core.ObjectReference{Kind: "Node", Name: node}}
	return c.core.Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("binding").Body(b).Do(ctx).Error()
}

// ConfigMaps are the configuration maps of a namespace.
func (c *Client) ConfigMaps(namespace string) Resource[*core.ConfigMap, *core.ConfigMapList] {
	return resource(c.core, "configmaps", namespace, func() *core.ConfigMap { return &core.ConfigMap{} }, func() *core.ConfigMapList { return &core.ConfigMapList{} })
}

// Secrets are the secrets of a namespace.
func (c *Client) Secrets(namespace string) Resource[*core.Secret, *core.SecretList] {
	return resource(c.core, "secrets", namespace, func() *core.Secret { return &core.Secret{} }, func() *core.SecretList { return &core.SecretList{} })
}

// ServiceAccounts are the service accounts of a namespace.
func (c *Client) ServiceAccounts(namespace string) Resource[*core.ServiceAccount, *core.ServiceAccountList] {
	return resource(c.core, "serviceaccounts", namespace, func() *core.ServiceAccount { return &core.ServiceAccount{} }, func() *core.ServiceAccountList { return &core.ServiceAccountList{} })
}

// DaemonSets are the daemon sets of a namespace.
func (c *Client) DaemonSets(namespace string) Resource[*apps.DaemonSet, *apps.DaemonSetList] {
	return resource(c.apps, "daemonsets", namespace, func() *apps.DaemonSet { return &apps.DaemonSet{} }, func() *apps.DaemonSetList { return &apps.DaemonSetList{} })
}

// Deployments are the deployments of a namespace.
func (c *Client) Deployments(namespace string) Resource[*apps.Deployment, *apps.DeploymentList] {
	return resource(c.apps, "deployments", namespace, func() *apps.Deployment { return &apps.Deployment{} }, func() *apps.DeploymentList { return &apps.DeploymentList{} })
}

// ReplicaSets are the replica sets of a namespace.
func (c *Client) ReplicaSets(namespace string) Resource[*apps.ReplicaSet, *apps.ReplicaSetList] {
	return resource(c.apps, "replicasets", namespace, func() *apps.ReplicaSet { return &apps.ReplicaSet{} }, func() *apps.ReplicaSetList { return &apps.ReplicaSetList{} })
}

// Leases are the leases of a namespace.
func (c *Client) Leases(namespace string) Resource[*coordination.Lease, *coordination.LeaseList] {
	return resource(c.coordination, "leases", namespace, func() *coordination.Lease { return &coordination.Lease{} }, func() *coordination.LeaseList { return &coordination.LeaseList{} })
}

// EndpointSlices are the endpoint slices of a namespace.
func (c *Client) EndpointSlices(namespace string) Resource[*discovery.EndpointSlice, *discovery.EndpointSliceList] {
	return resource(c.discovery, "endpointslices", namespace, func() *discovery.EndpointSlice { return &discovery.EndpointSlice{} },
		func() *discovery.EndpointSliceList { return &discovery.EndpointSliceList{} })
}
