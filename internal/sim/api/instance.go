package api

import "net/http"

// Instances: v1 is what every client speaks, with envelopes and its own
// timestamps; v2alpha1 shows private NICs and placement groups another way.

func (r *Region) instanceRoutes() {
	const v1 = "/instance/v1/zones/{zone}"
	r.serverRoutes(v1)
	r.userDataRoutes(v1)
	r.nicRoutes(v1)
	r.flexibleIPRoutes(v1)
	r.securityGroupRoutes(v1)
	r.placementGroupRoutes(v1)
	r.localVolumeRoutes(v1)
	r.imageRoutes(v1)
	const v2 = "/instance/v2alpha1/zones/{zone}"
	r.nicV2Routes(v2)
	r.placementGroupV2Routes(v2)
}

// task is what v1 answers to actions. Tasks are fake: nothing can be polled.
func task(path, result, zone string) doc {
	return doc{"id": "00000000-0000-0000-0000-000000000000", "description": "fake task", "status": "pending", "href_from": path,
		"href_result": result, "started_at": stampV1(now()), "terminated_at": nil, "progress": 0, "zone": zone}
}

// badRequest is an older kind of error of instance v1.
func badRequest(message string) error {
	return &refusal{http.StatusBadRequest, doc{"type": "invalid_request_error", "message": message}}
}
