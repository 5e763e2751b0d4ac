package talos

import (
	"context"

	cosiv1alpha1 "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	cosiserver "github.com/cosi-project/runtime/pkg/state/protobuf/server"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

// fakeResources serves the resources that are read, made anew for each request.
type fakeResources struct {
	cosiv1alpha1.UnimplementedStateServer
	node *fakeNode
}

func (r *fakeResources) Get(ctx context.Context, in *cosiv1alpha1.GetRequest) (*cosiv1alpha1.GetResponse, error) {
	made, err := r.made(ctx)
	if err != nil {
		return nil, err
	}
	return made.Get(ctx, in)
}

func (r *fakeResources) List(in *cosiv1alpha1.ListRequest, stream cosiv1alpha1.State_ListServer) error {
	made, err := r.made(stream.Context())
	if err != nil {
		return err
	}
	return made.List(in, stream)
}

func (r *fakeResources) made(ctx context.Context) (*cosiserver.State, error) {
	n := r.node
	n.farm.mu.Lock()
	core := state.WrapCore(namespaced.NewState(inmem.Build))
	for id, text := range map[string][]byte{configres.ActiveID: n.active, configres.PersistentID: n.stored} {
		if text == nil {
			continue
		}
		p, err := n.farm.parsed(text)
		if err == nil {
			err = core.Create(ctx, configres.NewMachineConfigWithID(p, id))
		}
		if err != nil {
			n.farm.mu.Unlock()
			return nil, err
		}
	}
	st := runtime.NewMachineStatus()
	st.TypedSpec().Stage = n.stage
	n.farm.mu.Unlock()
	if err := core.Create(ctx, st); err != nil {
		return nil, err
	}
	return cosiserver.NewState(core), nil
}
