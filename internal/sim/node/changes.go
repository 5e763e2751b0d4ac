package node

import "github.com/siderolabs/talos/pkg/machinery/api/machine"

// readOnly are the methods that never change a node. Every other one counts as a
// change, so that a method that is new here is seen rather than missed.
var readOnly = setOf(map[string][]string{
	"/cluster.ClusterService/": {"HealthCheck"},
	"/cosi.resource.State/":    {"Get", "List", "Watch"},
	"/inspect.InspectService/": {"ControllerRuntimeDependencies"},
	"/machine.ImageService/":   {"List", "Verify"},
	"/machine.MachineService/": {
		"CPUFreqStats", "CPUInfo", "Containers", "Copy", "DiskStats", "DiskUsage", "Dmesg", "EtcdAlarmList", "EtcdDowngradeValidate",
		"EtcdMemberList", "EtcdSnapshot", "EtcdStatus", "Events", "GenerateClientConfiguration", "Hostname", "ImageList", "Kubeconfig", "List",
		"LoadAvg", "Logs", "LogsContainers", "Memory", "Mounts", "Netstat", "NetworkDeviceStats", "PacketCapture", "Processes", "Read",
		"ServiceList", "Stats", "SystemStat", "Version",
	},
	"/storage.StorageService/": {"Disks"},
	"/time.TimeService/":       {"Time", "TimeCheck"},
})

func setOf(services map[string][]string) map[string]bool {
	out := map[string]bool{}
	for service, methods := range services {
		for _, m := range methods {
			out[service+m] = true
		}
	}
	return out
}

// changes says whether a call is to change the node. The request is nil for
// streams, none of which has a dry run.
func changes(method string, request any) bool {
	if apply, ok := request.(*machine.ApplyConfigurationRequest); ok && apply.GetDryRun() {
		return false
	}
	return !readOnly[method]
}
