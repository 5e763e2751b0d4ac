package node

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
)

// talosAPI serves machine.MachineService. What is not implemented answers
// Unimplemented.
type talosAPI struct {
	machine.UnimplementedMachineServiceServer
	node *node
}

// controlPlaneOnly refuses what only control plane nodes do.
func (n *node) controlPlaneOnly(api string) error {
	cfg := n.config()
	switch {
	case cfg == nil || cfg.Machine() == nil:
		return status.Errorf(codes.Unimplemented, "machine type is not set, cannot use %s API", api)
	case !cfg.Machine().Type().IsControlPlane():
		return status.Errorf(codes.Unimplemented, "%s is only available on control plane nodes", api)
	}
	return nil
}

func (a *talosAPI) Version(context.Context, *emptypb.Empty) (*machine.VersionResponse, error) {
	v := &machine.Version{
		Version:  &machine.VersionInfo{Tag: a.node.version(), Sha: "simulated", GoVersion: "go1.26.1", Os: "linux", Arch: "amd64"},
		Platform: &machine.PlatformInfo{Name: "scaleway", Mode: "cloud"},
	}
	if a.node.configured() {
		v.Features = &machine.FeaturesInfo{Rbac: true}
	}
	return &machine.VersionResponse{Messages: []*machine.Version{v}}, nil
}

func (a *talosAPI) ServiceList(context.Context, *emptypb.Empty) (*machine.ServiceListResponse, error) {
	return a.node.services.response(), nil
}

func (a *talosAPI) Hostname(context.Context, *emptypb.Empty) (*machine.HostnameResponse, error) {
	return &machine.HostnameResponse{Messages: []*machine.Hostname{{Hostname: a.node.hostname()}}}, nil
}

func (a *talosAPI) Memory(context.Context, *emptypb.Empty) (*machine.MemoryResponse, error) {
	// The kernel keeps a part of the memory for itself.
	total := uint64(max(0, a.node.hw.RAMBytes-90*mib)) / 1024
	return &machine.MemoryResponse{Messages: []*machine.Memory{{Meminfo: &machine.MemInfo{
		Memtotal: total, Memfree: total / 2, Memavailable: total * 2 / 3, Cached: total / 5,
	}}}}, nil
}

func (a *talosAPI) LoadAvg(context.Context, *emptypb.Empty) (*machine.LoadAvgResponse, error) {
	return &machine.LoadAvgResponse{Messages: []*machine.LoadAvg{{Load1: 0.3, Load5: 0.2, Load15: 0.1}}}, nil
}

func (a *talosAPI) SystemStat(context.Context, *emptypb.Empty) (*machine.SystemStatResponse, error) {
	s := &machine.SystemStat{BootTime: uint64(a.node.bootTime.Unix()), CpuTotal: &machine.CPUStat{}, SoftIrq: &machine.SoftIRQStat{}}
	for range a.node.hw.CPUs {
		s.Cpu = append(s.Cpu, &machine.CPUStat{})
	}
	return &machine.SystemStatResponse{Messages: []*machine.SystemStat{s}}, nil
}

func (a *talosAPI) CPUInfo(context.Context, *emptypb.Empty) (*machine.CPUInfoResponse, error) {
	info := &machine.CPUsInfo{}
	for i := range a.node.hw.CPUs {
		info.CpuInfo = append(info.CpuInfo, &machine.CPUInfo{Processor: uint32(i), VendorId: "AuthenticAMD", ModelName: "AMD EPYC"})
	}
	return &machine.CPUInfoResponse{Messages: []*machine.CPUsInfo{info}}, nil
}

func (a *talosAPI) Mounts(context.Context, *emptypb.Empty) (*machine.MountsResponse, error) {
	m := &machine.Mounts{}
	if size := uint64(a.node.ephemeralSize()); size > 0 {
		m.Stats = append(m.Stats, &machine.MountStat{Filesystem: "/dev/disk/by-partlabel/EPHEMERAL", Size: size, Available: size / 10 * 9, MountedOn: "/var"})
	}
	return &machine.MountsResponse{Messages: []*machine.Mounts{m}}, nil
}

// Read serves the files that clients of Talos read.
func (a *talosAPI) Read(in *machine.ReadRequest, s grpc.ServerStreamingServer[common.Data]) error {
	text := map[string]string{
		"/proc/sys/kernel/random/boot_id": a.node.bootID + "\n",
		"/proc/cmdline":                   "console=tty1 console=ttyS0 net.ifnames=0 talos.dashboard.disabled=1 talos.platform=scaleway\n",
		"/etc/hostname":                   a.node.hostname() + "\n",
		"/proc/uptime":                    fmt.Sprintf("%.2f 0.00\n", time.Since(a.node.bootTime).Seconds()),
		"/etc/os-release":                 fmt.Sprintf("NAME=\"Talos\"\nID=talos\nVERSION_ID=%s\nPRETTY_NAME=\"Talos (%s)\"\n", a.node.version(), a.node.version()),
	}[in.Path]
	if text == "" {
		return fmt.Errorf("stat %s: no such file or directory", in.Path)
	}
	return s.Send(&common.Data{Bytes: []byte(text)})
}

// List serves what clients look for on a node's disks: etcd's data.
func (a *talosAPI) List(in *machine.ListRequest, s grpc.ServerStreamingServer[machine.FileInfo]) error {
	root := strings.TrimRight(in.Root, "/")
	dir := a.node.varPath("etcd")
	if root != constants.EtcdDataPath {
		return status.Errorf(codes.Unimplemented, "listing %s is not simulated", in.Root)
	}
	if _, err := os.Stat(dir); err != nil || dir == "" {
		return fmt.Errorf("stat %s: no such file or directory", root)
	}
	return filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone meanwhile
		}
		relative, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		if info, err := e.Info(); err == nil {
			if err := s.Send(&machine.FileInfo{Name: path.Join(root, relative), RelativeName: relative, Size: info.Size(), Mode: uint32(info.Mode()),
				Modified: info.ModTime().Unix(), IsDir: e.IsDir()}); err != nil {
				return err
			}
		}
		if e.IsDir() && relative != "." && !in.Recurse {
			return fs.SkipDir
		}
		return nil
	})
}

func (a *talosAPI) Dmesg(in *machine.DmesgRequest, s grpc.ServerStreamingServer[common.Data]) error {
	keep := -1
	if in.Tail {
		keep = 0
	}
	return sendLines(s, a.node.console, keep, in.Follow)
}

// Logs serves the log of a service, or of a container of Kubernetes.
func (a *talosAPI) Logs(in *machine.LogsRequest, s grpc.ServerStreamingServer[common.Data]) error {
	id := in.Id
	if i := strings.LastIndexAny(id, ":/"); i >= 0 { // kube-system/pod:container
		id = id[i+1:]
	}
	a.node.mu.Lock()
	_, known := a.node.logs[id]
	a.node.mu.Unlock()
	if !known && a.node.services.state(id) == "" {
		return fmt.Errorf("log %q was not registered", in.Id)
	}
	return sendLines(s, a.node.logOf(id), int(in.TailLines), in.Follow)
}

func sendLines(s grpc.ServerStreamingServer[common.Data], c *console, keep int, follow bool) error {
	send := func(l string) error { return s.Send(&common.Data{Bytes: []byte(l + "\n")}) }
	lines, next := c.tail(keep)
	for _, l := range lines {
		if err := send(l); err != nil {
			return err
		}
	}
	if !follow {
		return nil
	}
	return c.follow(s.Context(), next, send)
}

func (a *talosAPI) LogsContainers(context.Context, *emptypb.Empty) (*machine.LogsContainersResponse, error) {
	r := &machine.LogsContainer{}
	for _, s := range a.node.services.list() {
		r.Ids = append(r.Ids, s.Id)
	}
	return &machine.LogsContainersResponse{Messages: []*machine.LogsContainer{r}}, nil
}

// Events streams what happens on the node; an empty event says hello first.
func (a *talosAPI) Events(in *machine.EventsRequest, s grpc.ServerStreamingServer[machine.Event]) error {
	if err := s.Send(&machine.Event{Data: &anypb.Any{TypeUrl: "talos/runtime/google.protobuf.Empty"}}); err != nil {
		return err
	}
	return a.node.events.follow(s.Context(), a.node.ctx.Done(), in, s.Send)
}

// Kubeconfig sends the administrator's configuration as a compressed archive of one file.
func (a *talosAPI) Kubeconfig(_ *emptypb.Empty, s grpc.ServerStreamingServer[common.Data]) error {
	if err := a.node.controlPlaneOnly("kubeconfig"); err != nil {
		return err
	}
	text, err := a.node.adminKubeconfig()
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "kubeconfig", Size: int64(len(text)), ModTime: time.Now(), Mode: 0o600}); err != nil {
		return err
	}
	if _, err := tw.Write(text); err != nil {
		return err
	}
	if err := zw.Close(); err != nil { // Talos does not close the archive itself either
		return err
	}
	return s.Send(&common.Data{Bytes: buf.Bytes()})
}

func (a *talosAPI) ServiceStart(_ context.Context, in *machine.ServiceStartRequest) (*machine.ServiceStartResponse, error) {
	if in.Id != "etcd" {
		return nil, fmt.Errorf("service %q doesn't support start operation via API", in.Id)
	}
	e := a.node.etcd
	e.mu.Lock()
	e.stopped = false
	end := e.round
	e.mu.Unlock()
	if end != nil && a.node.services.state("etcd") != stateRunning {
		end()
	}
	return &machine.ServiceStartResponse{Messages: []*machine.ServiceStart{{Resp: fmt.Sprintf("Service %q started", in.Id)}}}, nil
}

func (a *talosAPI) ServiceRestart(_ context.Context, in *machine.ServiceRestartRequest) (*machine.ServiceRestartResponse, error) {
	switch in.Id {
	case "etcd":
		a.node.etcd.mu.Lock()
		end := a.node.etcd.round
		a.node.etcd.mu.Unlock()
		if end != nil {
			end()
		}
	case "kubelet":
		a.node.kubelet.poke()
	default:
		return nil, fmt.Errorf("service %q doesn't support restart operation via API", in.Id)
	}
	return &machine.ServiceRestartResponse{Messages: []*machine.ServiceRestart{{Resp: fmt.Sprintf("Service %q restarted", in.Id)}}}, nil
}
