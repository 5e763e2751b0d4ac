//go:build tools

// Package kubernetes pins the control plane and client that the simulated region runs.
// It is never compiled: the imports keep what ../build.sh builds in go.mod.
package kubernetes

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
