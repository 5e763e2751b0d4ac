// Package node runs simulated Talos machines: the maintenance API, the machine
// configuration, services, events and resources that talosctl reads, with a
// real etcd and a real kube-apiserver per control plane node.
//
// What is real and what is not. etcd and kube-apiserver are the real programs,
// as child processes with the certificates of the machine configuration. The
// Talos API speaks the generated protocol types and validates configurations
// with the machinery library. kubelet, kube-controller-manager and the
// scheduler are loops of a few lines that leave in the API server what the real
// ones would leave there for an administrator to see; no container ever runs.
//
// A machine has a life across power cycles (instance), a boot for each start of
// the operating system (node), and disks that outlive both (disk).
package node
