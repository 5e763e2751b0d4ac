package node

import (
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
)

func TestWhichCallsChange(t *testing.T) {
	const service = "/machine.MachineService/"
	for _, c := range []struct {
		method  string
		request any
		want    bool
	}{
		{service + "ApplyConfiguration", &machine.ApplyConfigurationRequest{}, true},
		{service + "ApplyConfiguration", &machine.ApplyConfigurationRequest{DryRun: true}, false},
		{service + "Bootstrap", &machine.BootstrapRequest{}, true},
		{service + "Reset", nil, true},
		{service + "EtcdRemoveMemberByID", nil, true},
		{service + "EtcdLeaveCluster", nil, true},
		{"/machine.LifecycleService/Upgrade", nil, true},
		{"/storage.StorageService/BlockDeviceWipe", nil, true},
		{"/cosi.resource.State/Update", nil, true},
		{"/cosi.resource.State/Watch", nil, false},
		{service + "EtcdMemberList", nil, false},
		{service + "Version", nil, false},
	} {
		if got := changes(c.method, c.request); got != c.want {
			t.Errorf("%s changes: %v", c.method, got)
		}
	}
}

// A name that no service has would be a change that is taken for one and a
// reading that is not.
func TestReadingCallsExist(t *testing.T) {
	for method := range readOnly {
		if _, _, err := methodTypes(method); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
}
