package node

import "github.com/siderolabs/talos/pkg/machinery/role"

// rules says which roles may call a method; a method without a rule is for
// administrators. ApplyConfiguration and BlockDeviceWipe are open to readers
// because maintenance gives everybody that role: their handlers look again.
var rules = tableOfRoles()

func tableOfRoles() map[string]role.Set {
	table := map[string]role.Set{}
	for _, g := range []struct {
		roles   []role.Role
		methods []string
	}{
		{[]role.Role{role.Admin, role.Operator, role.Reader}, []string{
			"/cluster.ClusterService/HealthCheck", "/inspect.InspectService/ControllerRuntimeDependencies", "/machine.ImageService/List",
			"/machine.MachineService/CPUInfo", "/machine.MachineService/CPUFreqStats", "/machine.MachineService/Containers",
			"/machine.MachineService/DiskStats", "/machine.MachineService/DiskUsage", "/machine.MachineService/Dmesg", "/machine.MachineService/Events",
			"/machine.MachineService/Hostname", "/machine.MachineService/ImageList", "/machine.MachineService/List", "/machine.MachineService/LoadAvg",
			"/machine.MachineService/Logs", "/machine.MachineService/LogsContainers", "/machine.MachineService/Memory", "/machine.MachineService/Mounts",
			"/machine.MachineService/NetworkDeviceStats", "/machine.MachineService/Netstat", "/machine.MachineService/Processes",
			"/machine.MachineService/ServiceList", "/machine.MachineService/Stats", "/machine.MachineService/SystemStat", "/machine.MachineService/Version",
			"/cosi.resource.State/Get", "/cosi.resource.State/List", "/cosi.resource.State/Watch", "/storage.StorageService/Disks", "/time.TimeService/Time",
			"/time.TimeService/TimeCheck",
		}},
		{[]role.Role{role.Admin, role.Operator}, []string{
			"/machine.ImageService/Pull", "/machine.MachineService/EtcdAlarmDisarm", "/machine.MachineService/EtcdDefragment",
			"/machine.MachineService/ImagePull", "/machine.MachineService/PacketCapture", "/machine.MachineService/Reboot", "/machine.MachineService/Restart",
			"/machine.MachineService/ServiceRestart", "/machine.MachineService/ServiceStart", "/machine.MachineService/ServiceStop",
			"/machine.MachineService/Shutdown",
		}},
		{[]role.Role{role.Admin, role.Operator, role.Reader, role.ImageVerifier}, []string{
			"/machine.ImageService/Verify",
		}},
		{[]role.Role{role.Admin, role.Reader}, []string{
			"/machine.MachineService/ApplyConfiguration", "/storage.StorageService/BlockDeviceWipe",
		}},
		{[]role.Role{role.Admin, role.Operator, role.Reader, role.EtcdBackup}, []string{
			"/machine.MachineService/EtcdAlarmList", "/machine.MachineService/EtcdMemberList", "/machine.MachineService/EtcdStatus",
		}},
		{[]role.Role{role.Admin, role.Operator, role.EtcdBackup}, []string{
			"/machine.MachineService/EtcdSnapshot",
		}},
		{[]role.Role{role.Admin, role.MetaWriter}, []string{
			"/machine.MachineService/MetaWrite", "/machine.MachineService/MetaDelete",
		}},
	} {
		for _, m := range g.methods {
			table[m] = role.MakeSet(g.roles...)
		}
	}
	return table
}
