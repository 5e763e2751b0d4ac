package estate

import "fmt"

// Role is what a node is in the cluster.
type Role string

const (
	RoleControlPlane Role = "control-plane"
	RoleWorker       Role = "worker"
)

// ControlPlanePool is the pool name that control plane nodes carry.
const ControlPlanePool = "control-plane"

// Node is one machine that the file asks for.
type Node struct {
	Name      string // unique in the estate, and the Kubernetes node name: staging-cp-1, staging-system-2
	Role      Role
	Pool      string // pool name; ControlPlanePool for control plane nodes
	Index     int    // 1-based within the pool
	Zone      string
	Type      string // Instance type
	Disk      Disk
	Ephemeral *Disk
	Labels    map[string]string
	Taints    []Taint
}

// Nodes lists every node of the estate in a fixed order: the control plane
// first, then the pools as written, each by index.
func (e *Estate) Nodes() []Node {
	var zone string
	if len(e.Scaleway.Zones) > 0 {
		zone = e.Scaleway.Zones[0]
	}
	var nodes []Node
	for i := 1; i <= e.ControlPlane.Count; i++ {
		nodes = append(nodes, Node{
			Name: fmt.Sprintf("%s-cp-%d", e.Name, i), Role: RoleControlPlane, Pool: ControlPlanePool, Index: i,
			Zone: zone, Type: e.ControlPlane.Type, Disk: e.ControlPlane.Disk, Ephemeral: e.ControlPlane.Ephemeral,
			Labels: e.ControlPlane.Labels,
		})
	}
	for _, p := range e.Pools {
		for i := 1; i <= p.Count; i++ {
			nodes = append(nodes, Node{
				Name: fmt.Sprintf("%s-%s-%d", e.Name, p.Name, i), Role: RoleWorker, Pool: p.Name, Index: i,
				Zone: zone, Type: p.Type, Disk: p.Disk, Ephemeral: p.Ephemeral, Labels: p.Labels, Taints: p.Taints,
			})
		}
	}
	return nodes
}
