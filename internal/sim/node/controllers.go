package node

import (
	"context"
	"crypto/rand"
	stdx509 "crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"time"

	certs "k8s.io/api/certificates/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func metaOf(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func ignore(err error, kinds ...func(error) bool) error {
	for _, k := range kinds {
		if k(err) {
			return nil
		}
	}
	return err
}

// signRequests approves and signs the certificate requests of kubelets. Like
// the real approver it lets a bootstrap token ask for any node and a node only
// for itself; serving certificates are for somebody else to approve.
func (m *controllers) signRequests(ctx context.Context) error {
	all := m.signingRequests.All()
	var failed []error
	for _, csr := range all {
		if len(csr.Status.Certificate) == 0 && csr.Spec.SignerName == certs.KubeAPIServerClientKubeletSignerName {
			failed = append(failed, m.signRequest(ctx, csr.DeepCopy()))
		}
	}
	return errors.Join(failed...)
}

func (m *controllers) signRequest(ctx context.Context, csr *certs.CertificateSigningRequest) error {
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return nil
	}
	req, err := stdx509.ParseCertificateRequest(block.Bytes)
	if err != nil || req.CheckSignature() != nil {
		return nil
	}
	bootstrapper := slices.Contains(csr.Spec.Groups, "system:bootstrappers:nodes")
	if !slices.Equal(req.Subject.Organization, []string{"system:nodes"}) || !strings.HasPrefix(req.Subject.CommonName, "system:node:") ||
		!(bootstrapper || csr.Spec.Username == req.Subject.CommonName) {
		return nil
	}
	api := m.c.SigningRequests()
	approved := slices.ContainsFunc(csr.Status.Conditions, func(c certs.CertificateSigningRequestCondition) bool { return c.Type == certs.CertificateApproved })
	if !approved {
		csr.Status.Conditions = append(csr.Status.Conditions, certs.CertificateSigningRequestCondition{
			Type: certs.CertificateApproved, Status: core.ConditionTrue, Reason: "AutoApproved", Message: "Auto approving kubelet client certificate after SubjectAccessReview.",
		})
		if csr, err = m.c.Approve(ctx, csr); err != nil {
			return ignore(err, apierrors.IsConflict, isNotFound)
		}
	}
	if csr.Status.Certificate, err = m.issue(req); err != nil {
		return err
	}
	_, err = api.UpdateStatus(ctx, csr)
	return ignore(err, apierrors.IsConflict, isNotFound)
}

// issue signs a client certificate with the cluster's authority.
func (m *controllers) issue(req *stdx509.CertificateRequest) ([]byte, error) {
	ca := m.node.config().Cluster().IssuingCA()
	caCert, err := ca.GetCert()
	if err != nil {
		return nil, err
	}
	caKey, err := ca.GetKey()
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	der, err := stdx509.CreateCertificate(rand.Reader, &stdx509.Certificate{
		SerialNumber: serial, Subject: req.Subject, NotBefore: time.Now().Add(-5 * time.Minute), NotAfter: time.Now().Add(365 * day),
		KeyUsage: stdx509.KeyUsageDigitalSignature, ExtKeyUsage: []stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}, caCert, req.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// fillNamespaces gives each namespace its default service account and the
// cluster's certificate authority, without which no pod can be created there;
// a namespace that is being deleted loses its finalizer when it is empty.
func (m *controllers) fillNamespaces(ctx context.Context) error {
	all := m.namespaces.All()
	ca := string(m.node.kubeConfig(nil).CAData)
	var failed []error
	for _, ns := range all {
		if ns.DeletionTimestamp != nil {
			failed = append(failed, m.emptyNamespace(ctx, ns.DeepCopy()))
			continue
		}
		if _, ok := m.serviceAccounts.Get(ns.Name, "default"); !ok {
			_, err := m.c.ServiceAccounts(ns.Name).Create(ctx, &core.ServiceAccount{ObjectMeta: metaOf(ns.Name, "default")})
			failed = append(failed, ignore(err, apierrors.IsAlreadyExists, isNotFound))
		}
		if _, ok := m.configMaps.Get(ns.Name, "kube-root-ca.crt"); !ok {
			_, err := m.c.ConfigMaps(ns.Name).Create(ctx, &core.ConfigMap{ObjectMeta: metaOf(ns.Name, "kube-root-ca.crt"), Data: map[string]string{"ca.crt": ca}})
			failed = append(failed, ignore(err, apierrors.IsAlreadyExists, isNotFound))
		}
	}
	return errors.Join(failed...)
}

func (m *controllers) emptyNamespace(ctx context.Context, ns *core.Namespace) error {
	failed := errors.Join(
		m.c.Deployments(ns.Name).DeleteAll(ctx), m.c.DaemonSets(ns.Name).DeleteAll(ctx),
		m.c.ReplicaSets(ns.Name).DeleteAll(ctx), m.c.Pods(ns.Name).DeleteAll(ctx),
		m.c.ConfigMaps(ns.Name).DeleteAll(ctx), m.c.Secrets(ns.Name).DeleteAll(ctx),
		m.c.ServiceAccounts(ns.Name).DeleteAll(ctx),
	)
	left, err := m.c.Pods(ns.Name).List(ctx, metav1.ListOptions{})
	if failed != nil || err != nil || len(left.Items) > 0 {
		return errors.Join(failed, err)
	}
	ns.Spec.Finalizers = nil
	return ignore(m.c.Finalize(ctx, ns), apierrors.IsConflict, isNotFound)
}

// judgeNodes allots pod networks, turns silent nodes Unknown, and keeps the
// taints that say a node is not ready.
func (m *controllers) judgeNodes(ctx context.Context) error {
	all := m.nodes.All()
	used := map[string]bool{}
	for _, o := range all {
		used[o.Spec.PodCIDR] = true
	}
	slices.SortFunc(all, func(a, b *core.Node) int { return strings.Compare(a.Name, b.Name) })
	var failed []error
	for _, o := range all {
		failed = append(failed, m.judgeNode(ctx, o.DeepCopy(), used))
	}
	return errors.Join(failed...)
}

func (m *controllers) judgeNode(ctx context.Context, o *core.Node, used map[string]bool) error {
	n := m.node
	if lease, ok := m.leases.Get("kube-node-lease", o.Name); ok && lease.Spec.RenewTime != nil {
		silence := max(n.farm.opt.Clock.Scale(leaseDuration), 20*time.Second)
		if time.Since(lease.Spec.RenewTime.Time) > silence && conditionOf(o, core.NodeReady) != core.ConditionUnknown {
			for _, t := range []core.NodeConditionType{core.NodeReady, core.NodeMemoryPressure, core.NodeDiskPressure, core.NodePIDPressure} {
				setCondition(&o.Status, t, core.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.")
			}
			updated, err := m.c.Nodes().UpdateStatus(ctx, o)
			if err != nil {
				return ignore(err, apierrors.IsConflict, isNotFound)
			}
			o = updated
		}
	}
	before := o.DeepCopy()
	if o.Spec.PodCIDR == "" {
		if cidr := nextCIDR(n.config().Cluster().Network().PodCIDRs(), used); cidr != "" {
			o.Spec.PodCIDR, o.Spec.PodCIDRs = cidr, []string{cidr}
			used[cidr] = true
		}
	}
	ready := conditionOf(o, core.NodeReady)
	taint(o, core.TaintNodeNotReady, ready == core.ConditionFalse)
	taint(o, core.TaintNodeUnreachable, ready == core.ConditionUnknown)
	taint(o, core.TaintNodeUnschedulable, o.Spec.Unschedulable)
	if before.Spec.PodCIDR == o.Spec.PodCIDR && len(before.Spec.Taints) == len(o.Spec.Taints) {
		return nil
	}
	_, err := m.c.Nodes().Update(ctx, o)
	return ignore(err, apierrors.IsConflict, isNotFound)
}

func conditionOf(o *core.Node, t core.NodeConditionType) core.ConditionStatus {
	for _, c := range o.Status.Conditions {
		if c.Type == t {
			return c.Status
		}
	}
	return ""
}

func taint(o *core.Node, key string, on bool) {
	i := slices.IndexFunc(o.Spec.Taints, func(t core.Taint) bool { return t.Key == key && t.Effect == core.TaintEffectNoSchedule })
	switch {
	case on && i < 0:
		o.Spec.Taints = append(o.Spec.Taints, core.Taint{Key: key, Effect: core.TaintEffectNoSchedule})
	case !on && i >= 0:
		o.Spec.Taints = slices.Delete(o.Spec.Taints, i, i+1)
	}
}

// nextCIDR finds the first /24 of the pod network that no node has.
func nextCIDR(cidrs []string, used map[string]bool) string {
	for _, c := range cidrs {
		p, err := netip.ParsePrefix(c)
		if err != nil || !p.Addr().Is4() || p.Bits() > 24 {
			continue
		}
		b := p.Masked().Addr().As4()
		for i := range 1 << (24 - p.Bits()) {
			net := netip.PrefixFrom(netip.AddrFrom4([4]byte{b[0], b[1] + byte(i>>8), b[2] + byte(i), 0}), 24).String()
			if !used[net] {
				return net
			}
		}
	}
	return ""
}
