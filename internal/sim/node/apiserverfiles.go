package node

import (
	"github.com/siderolabs/talos/pkg/machinery/config/config"
)

type object = map[string]any

// encryption is how secrets are kept in etcd: the configured ciphers first, and
// plain text for what was written before.
func encryption(cl config.ClusterConfig) object {
	var providers []any
	if s := cl.SecretboxEncryptionSecret(); s != "" {
		providers = append(providers, object{"secretbox": object{"keys": []any{object{"name": "key2", "secret": s}}}})
	}
	if s := cl.AESCBCEncryptionSecret(); s != "" {
		providers = append(providers, object{"aescbc": object{"keys": []any{object{"name": "key1", "secret": s}}}})
	}
	providers = append(providers, object{"identity": object{}})
	return object{
		"apiVersion": "v1", "kind": "EncryptionConfig",
		"resources": []any{object{"resources": []any{"secrets"}, "providers": providers}},
	}
}

// admission is the configuration of the admission plug-ins.
func admission(cl config.ClusterConfig) object {
	plugins := []any{}
	for _, p := range cl.APIServer().AdmissionControl() {
		plugins = append(plugins, object{"name": p.Name(), "configuration": p.Configuration()})
	}
	return object{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins}
}

// authorizers are the configured ones with Node and RBAC, which are always there.
func authorizers(cl config.ClusterConfig) object {
	var list []any
	has := map[string]bool{}
	for _, a := range cl.APIServer().AuthorizationConfig() {
		has[a.Type()] = true
		entry := object{"type": a.Type(), "name": a.Name()}
		if w := a.Webhook(); len(w) > 0 {
			entry["webhook"] = w
		}
		list = append(list, entry)
	}
	if !has["RBAC"] {
		list = append([]any{object{"type": "RBAC", "name": "rbac"}}, list...)
	}
	if !has["Node"] {
		list = append([]any{object{"type": "Node", "name": "node"}}, list...)
	}
	return object{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration", "authorizers": list}
}
