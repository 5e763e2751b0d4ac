package node

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/api/cluster"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	timeapi "github.com/siderolabs/talos/pkg/machinery/api/time"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

type storageAPI struct {
	storage.UnimplementedStorageServiceServer
	node *node
}

func (a *storageAPI) Disks(context.Context, *emptypb.Empty) (*storage.DisksResponse, error) {
	out := &storage.Disks{}
	for _, d := range a.node.disks {
		out.Disks = append(out.Disks, &storage.Disk{
			Size: uint64(d.vol.SizeBytes), DeviceName: d.dev, Name: d.id, Serial: d.vol.ID, Type: storage.Disk_HDD,
			BusPath: "/virtio-" + d.id, SystemDisk: d.boot, Subsystem: "/sys/class/block",
		})
	}
	return &storage.DisksResponse{Messages: []*storage.Disks{out}}, nil
}

type timeAPI struct {
	timeapi.UnimplementedTimeServiceServer
	node *node
}

func (a *timeAPI) Time(context.Context, *emptypb.Empty) (*timeapi.TimeResponse, error) {
	return a.TimeCheck(context.Background(), &timeapi.TimeRequest{Server: "time.cloudflare.com"})
}

func (a *timeAPI) TimeCheck(_ context.Context, in *timeapi.TimeRequest) (*timeapi.TimeResponse, error) {
	if !a.node.defaultRoute() {
		return nil, fmt.Errorf("error querying NTP server %q: network is unreachable", in.Server)
	}
	now := timestamppb.Now()
	return &timeapi.TimeResponse{Messages: []*timeapi.Time{{Server: in.Server, Localtime: now, Remotetime: now}}}, nil
}

type clusterAPI struct {
	cluster.UnimplementedClusterServiceServer
	node *node
}

// HealthCheck looks at the cluster from this node until all is well or the
// request's patience ends. It checks what the node itself can see: services,
// readiness, and that etcd's members are all voters.
func (a *clusterAPI) HealthCheck(in *cluster.HealthCheckRequest, s grpc.ServerStreamingServer[cluster.HealthCheckProgress]) error {
	n := a.node
	if err := n.controlPlaneOnly("cluster health check"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.Context(), in.WaitTimeout.AsDuration())
	defer cancel()
	say := func(format string, args ...any) error {
		return s.Send(&cluster.HealthCheckProgress{Message: fmt.Sprintf(format, args...)})
	}
	info := in.GetClusterInfo()
	if err := say("discovered nodes: %q", slices.Concat(info.GetControlPlaneNodes(), info.GetWorkerNodes())); err != nil {
		return err
	}
	for _, check := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"etcd to be healthy", n.checkEtcd}, {"all nodes to finish boot sequence", n.checkBooted},
	} {
		last := ""
		for {
			err := check.do(ctx)
			line := "waiting for " + check.name + ": OK"
			if err != nil {
				line = "waiting for " + check.name + ": " + err.Error()
			}
			if line != last {
				last = line
				if err := say("%s", line); err != nil {
					return err
				}
			}
			if err == nil {
				break
			}
			if n.pause(ctx, 5*time.Second) != nil {
				return status.Error(codes.DeadlineExceeded, "context deadline exceeded")
			}
		}
	}
	return nil
}

func (n *node) checkEtcd(ctx context.Context) error {
	if !n.etcdHealthy() {
		return fmt.Errorf("service %q not healthy", "etcd")
	}
	c, err := n.etcdCluster(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	list, err := c.MemberList(ctx)
	if err != nil {
		return err
	}
	for _, m := range list.Members {
		if m.IsLearner || m.Name == "" {
			return fmt.Errorf("etcd member %016x is not a voter", m.ID)
		}
	}
	return nil
}

func (n *node) checkBooted(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.booted {
		return fmt.Errorf("the node has not finished its boot sequence")
	}
	return nil
}

type imageAPI struct {
	machine.UnimplementedImageServiceServer
	node *node
}

// Pull fetches an image, which takes its time and needs the Internet.
func (a *imageAPI) Pull(in *machine.ImageServicePullRequest, s grpc.ServerStreamingServer[machine.ImageServicePullResponse]) error {
	n := a.node
	if !n.defaultRoute() {
		return status.Errorf(codes.Unavailable, "failed to pull image %q: dial tcp: network is unreachable", in.ImageRef)
	}
	if err := n.spend(s.Context(), imagePullTime); err != nil {
		return status.FromContextError(err).Err()
	}
	n.mu.Lock()
	n.images = append(n.images, in.ImageRef)
	n.mu.Unlock()
	return s.Send(&machine.ImageServicePullResponse{Response: &machine.ImageServicePullResponse_Name{Name: in.ImageRef}})
}

type lifecycleAPI struct {
	machine.UnimplementedLifecycleServiceServer
	node *node
}

// Install refuses: the disk image is an installed system.
func (a *lifecycleAPI) Install(*machine.LifecycleServiceInstallRequest, grpc.ServerStreamingServer[machine.LifecycleServiceInstallResponse]) error {
	return status.Error(codes.AlreadyExists, "machine is already installed")
}

// Upgrade writes the other boot entry; it neither drains nor reboots.
func (a *lifecycleAPI) Upgrade(in *machine.LifecycleServiceUpgradeRequest, s grpc.ServerStreamingServer[machine.LifecycleServiceUpgradeResponse]) error {
	n := a.node
	image := in.GetSource().GetImageName()
	if image == "" {
		return status.Error(codes.InvalidArgument, "source image is required")
	}
	n.mu.Lock()
	pulled := slices.Contains(n.images, image)
	busy := n.upgrading
	n.upgrading = true
	n.mu.Unlock()
	if busy {
		return status.Error(codes.FailedPrecondition, "another installation/upgrade is already in progress")
	}
	defer func() { n.mu.Lock(); n.upgrading = false; n.mu.Unlock() }()
	if !pulled {
		return status.Errorf(codes.Internal, "upgrade failed: installer image %q not found in containerd store", image)
	}
	say := func(p *machine.LifecycleServiceInstallProgress) error {
		return s.Send(&machine.LifecycleServiceUpgradeResponse{Progress: p})
	}
	if err := say(&machine.LifecycleServiceInstallProgress{Response: &machine.LifecycleServiceInstallProgress_Message{Message: "running Talos installer " + imageTag(image)}}); err != nil {
		return err
	}
	if err := n.spend(s.Context(), imagePullTime); err != nil {
		return status.FromContextError(err).Err()
	}
	code := int32(0)
	if err := n.writeBootEntry(image); err != nil {
		n.log.Error("writing a boot entry", "err", err)
		code = 1
	}
	return say(&machine.LifecycleServiceInstallProgress{Response: &machine.LifecycleServiceInstallProgress_ExitCode{ExitCode: code}})
}

var factoryImage = regexp.MustCompile(`/([0-9a-f]{64}):`)

// writeBootEntry makes an installer image the next boot. The extensions are
// those of the image's schematic: only the present one is known here, so any
// other has none that the simulator could name.
func (n *node) writeBootEntry(image string) error {
	d := n.disks.system()
	next := &installed{Version: imageTag(image), Platform: d.Boot.Platform}
	if !strings.HasPrefix(next.Version, "v1.") {
		return fmt.Errorf("image %q has no Talos version as its tag", image)
	}
	if m := factoryImage.FindStringSubmatch(image); m != nil {
		next.Schematic = m[1]
		if m[1] == d.Boot.Schematic {
			next.Extensions, next.KernelArgs = d.Boot.Extensions, d.Boot.KernelArgs
		}
	}
	d.Previous, d.Boot = d.Boot, next
	return d.save()
}

// Upgrade is the old call that does everything: it checks etcd, installs and reboots.
func (a *talosAPI) Upgrade(ctx context.Context, in *machine.UpgradeRequest) (*machine.UpgradeResponse, error) {
	n := a.node
	if n.isControlPlane() && !in.Force && !in.Preserve {
		c, err := n.etcdCluster(ctx)
		if err != nil {
			return nil, fmt.Errorf("failed to create etcd client: %w", err)
		}
		defer c.Close()
		list, err := c.MemberList(ctx)
		if err != nil {
			return nil, err
		}
		if len(list.Members) == 2 {
			return nil, fmt.Errorf("error validating etcd for upgrade: etcd member count(%d) is insufficient to maintain quorum if upgrade commences", 2)
		}
	}
	actor := uuid.NewString()
	n.spawn(func() {
		if !n.claim("upgrade", actor) {
			return
		}
		n.setStage(runtime.MachineStageUpgrading)
		n.stopServices(actor)
		if err := n.writeBootEntry(in.Image); err != nil {
			n.console.printf("upgrade failed: %v", err)
		}
		n.end(errRebooting)
	})
	return &machine.UpgradeResponse{Messages: []*machine.Upgrade{{Ack: "Upgrade request received", ActorId: actor}}}, nil
}
