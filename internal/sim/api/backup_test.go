package api_test

import (
	"strings"
	"testing"
)

// A backup is an image with a snapshot of each disk, which it holds until it is
// deleted.
func TestBackupOfAServer(t *testing.T) {
	r := newRegion(t)
	extra := str(r.do("POST", volumes, body{"name": "v", "project_id": project, "from_empty": body{"size": 10e9}}), "id")
	r.untilStatus(volumes+"/"+extra, "available")
	srv := str(r.do("POST", servers, body{"name": "s", "project": project, "commercial_type": "PLAY2-NANO", "image": r.image("instance_sbs"),
		"volumes": body{"0": body{"volume_type": "sbs_volume", "size": 20e9}, "1": body{"id": extra, "volume_type": "sbs_volume"}}}), "server", "id")
	const base = "/instance/v1/zones/" + zone
	image := base + str(r.do("POST", servers+"/"+srv+"/action", body{"action": "backup", "name": "nightly"}), "task", "href_result")
	i := r.do("GET", image, nil)
	if str(i, "image", "name") != "nightly" || str(i, "image", "from_server") != srv || str(i, "image", "root_volume", "volume_type") != "sbs_snapshot" {
		t.Fatalf("image of the backup: %v", i)
	}
	root, second := snapshots+"/"+str(i, "image", "root_volume", "id"), snapshots+"/"+str(i, "image", "extra_volumes", "1", "id")
	for path, name := range map[string]string{root: "nightly_snap_0", second: "nightly_snap_1"} {
		s := r.do("GET", path, nil)
		if str(s, "name") != name || s["status"] != "in_use" || str(s, "references", 0, "product_resource_type") != "instance_image" {
			t.Errorf("snapshot of the backup: %v", s)
		}
		if status, _ := r.refused("DELETE", path, nil); status != 412 {
			t.Errorf("a snapshot that an image needs was deleted: %d", status)
		}
	}
	if n := r.do("GET", root, nil)["size"]; n != 20e9 {
		t.Errorf("size of the root's snapshot: %v", n)
	}
	// What it holds can become a server again.
	again := r.do("POST", servers, body{"name": "again", "project": project, "commercial_type": "PLAY2-NANO", "image": strings.TrimPrefix(image, base+"/images/")})
	if len(again["server"].(map[string]any)["volumes"].(map[string]any)) != 2 {
		t.Errorf("server of a backup: %v", again)
	}
	r.do("DELETE", image, nil)
	r.untilStatus(root, "available")
	r.do("DELETE", root, nil)
}

// A copy is never smaller than its source, and a root volume takes a snapshot
// that is named for it before the image's.
func TestVolumesFromSnapshots(t *testing.T) {
	r := newRegion(t)
	vol := str(r.do("POST", volumes, body{"name": "v", "project_id": project, "from_empty": body{"size": 15e9}}), "id")
	r.untilStatus(volumes+"/"+vol, "available")
	snap := str(r.do("POST", snapshots, body{"name": "s", "project_id": project, "volume_id": vol}), "id")
	r.untilStatus(snapshots+"/"+snap, "available")
	status, b := r.refused("POST", volumes, body{"project_id": project, "from_snapshot": body{"snapshot_id": snap, "size": 10e9}})
	if status != 412 || b["precondition"] != "resource_not_usable" {
		t.Errorf("smaller copy: %d %v", status, b)
	}
	larger := r.do("POST", volumes, body{"project_id": project, "from_snapshot": body{"snapshot_id": snap, "size": 20e9}})
	if larger["size"] != 20e9 || larger["parent_snapshot_id"] != snap {
		t.Errorf("larger copy: %v", larger)
	}
	r.untilStatus(snapshots+"/"+snap, "available")
	srv := r.do("POST", servers, body{"name": "s", "project": project, "commercial_type": "PLAY2-NANO", "image": r.image("instance_sbs"),
		"volumes": body{"0": body{"base_snapshot": snap, "volume_type": "sbs_volume"}}})
	root := r.do("GET", volumes+"/"+str(srv, "server", "volumes", "0", "id"), nil)
	if root["size"] != 15e9 || root["parent_snapshot_id"] != snap {
		t.Errorf("root of a named snapshot: %v", root)
	}
}
