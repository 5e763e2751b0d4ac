package node_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bastide/internal/sim/hardware"
	"bastide/internal/sim/node"
	"bastide/internal/sim/program"
)

// bootstrap sends the one Bootstrap call as soon as the node takes it.
func (r *region) bootstrap(c *client.Client) {
	r.t.Helper()
	r.until("bootstrap", func(ctx context.Context) error { return c.Bootstrap(ctx, &machine.BootstrapRequest{}) })
}

// voters waits until etcd has so many voters and no learner.
func (r *region) voters(c *client.Client, want int) {
	r.t.Helper()
	r.until(fmt.Sprintf("%d voters", want), func(ctx context.Context) error {
		resp, err := c.EtcdMemberList(ctx, &machine.EtcdMemberListRequest{})
		if err != nil {
			return err
		}
		voters := 0
		for _, m := range resp.Messages[0].Members {
			if !m.IsLearner && m.Hostname != "" {
				voters++
			}
		}
		if voters != want || len(resp.Messages[0].Members) != want {
			return fmt.Errorf("%d voters of %d members", voters, len(resp.Messages[0].Members))
		}
		return nil
	})
}

// readyNodes waits until so many Kubernetes nodes are Ready.
func (r *region) readyNodes(c *client.Client, want int) {
	r.t.Helper()
	k := r.kube(c)
	r.until(fmt.Sprintf("%d ready nodes", want), func(ctx context.Context) error {
		list, err := k.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for _, o := range list.Items {
			for _, cond := range o.Status.Conditions {
				if cond.Type == core.NodeReady && cond.Status == core.ConditionTrue {
					ready++
				}
			}
		}
		if ready != want {
			return fmt.Errorf("%d of %d nodes ready", ready, len(list.Items))
		}
		return nil
	})
}

func TestOneControlPlane(t *testing.T) {
	r := newRegion(t, func(o *node.Options) { o.APIServerProgram = program.Need(t, "kube-apiserver") })
	r.balance("172.16.0.11")
	r.raise([]hardware.Machine{hardwareOf("cp-1", "172.16.0.11")}, func(hardware.Machine) []byte { return r.machineConfig(machinetype.TypeControlPlane, nil) })
	c := r.talos("172.16.0.11")
	r.bootstrap(c)
	r.voters(c, 1)
	r.until("kubernetes", func(ctx context.Context) error { _, err := r.tryKube(ctx, c); return err })
	r.readyNodes(c, 1)
}

func TestThreeControlPlanesAndWorkers(t *testing.T) {
	r := newRegion(t, func(o *node.Options) { o.APIServerProgram = program.Need(t, "kube-apiserver") })
	r.balance("172.16.0.11", "172.16.0.12", "172.16.0.13")
	machines := []hardware.Machine{
		hardwareOf("cp-1", "172.16.0.11"), hardwareOf("cp-2", "172.16.0.12"), hardwareOf("cp-3", "172.16.0.13"),
		hardwareOf("w-1", "172.16.0.21"), hardwareOf("w-2", "172.16.0.22"),
	}
	r.raise(machines, func(m hardware.Machine) []byte {
		if m.Name[0] == 'w' {
			return r.machineConfig(machinetype.TypeWorker, nil)
		}
		return r.machineConfig(machinetype.TypeControlPlane, nil)
	})
	c := r.talos("172.16.0.11")
	r.bootstrap(c)
	start := time.Now()
	r.voters(c, 3)
	t.Logf("three voters after %s", time.Since(start))
	for _, addr := range []string{"172.16.0.11", "172.16.0.12", "172.16.0.13"} {
		r.until("etcd status of "+addr, func(ctx context.Context) error {
			resp, err := r.talos(addr).EtcdStatus(ctx)
			if err == nil && resp.Messages[0].MemberStatus.IsLearner {
				err = errors.New("a learner")
			}
			return err
		})
	}
	t.Logf("three members answer after %s", time.Since(start))
	r.readyNodes(c, 5)
	t.Logf("five ready nodes after %s", time.Since(start))
	for _, addr := range []string{"172.16.0.21", "172.16.0.22"} {
		w := r.talos(addr)
		r.until("API of worker "+addr, func(ctx context.Context) error { _, err := w.Version(ctx); return err })
	}
}
