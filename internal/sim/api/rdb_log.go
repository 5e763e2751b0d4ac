package api

import (
	"net/http"
	"time"
)

// rdbLog is a file of an engine's log, made ready for download. There is
// nothing in it here.
type rdbLog struct {
	record
	Region   string
	Status   string // creating, ready
	Instance string
}

const rdbLogReady = 10 * time.Second

func (r *Region) rdbLogRoutes(base, one string) {
	r.route("POST "+one+"/prepare-logs", http.StatusOK, prepareRDBLogs)
	r.route("GET "+one+"/logs", http.StatusOK, listRDBLogs)
	r.route("GET "+base+"/logs/{id}", http.StatusOK, getRDBLog)
	r.route("GET "+one+"/logs-details", http.StatusOK, func(c *call) (any, error) {
		_, err := c.runningRDB()
		return doc{"details": []doc{}}, err
	})
	r.route("POST "+one+"/purge-logs", http.StatusNoContent, func(c *call) (any, error) {
		_, err := c.readyRDB(c.path("id"))
		return nil, err
	})
	r.route("GET "+one+"/metrics", http.StatusOK, func(c *call) (any, error) {
		_, err := c.runningRDB()
		return doc{"timeseries": []doc{}}, err
	})
}

func viewRDBLog(l *rdbLog) doc {
	var url any
	if l.Status == "ready" {
		url = "https://s3." + l.Region + ".scw.cloud/" + l.Project + "/" + l.Instance + "/" + l.ID + ".log"
	}
	return doc{"id": l.ID, "status": l.Status, "node_name": l.Name, "download_url": url, "expires_at": stamp(l.Created.Add(24 * time.Hour)),
		"created_at": stamp(l.Created), "region": l.Region}
}

func prepareRDBLogs(c *call) (any, error) {
	i, err := c.readyRDB(c.path("id"))
	if err != nil {
		return nil, err
	}
	l := &rdbLog{record: newRecord(i.Project, "node-1", nil), Region: i.Region, Status: "creating", Instance: i.ID}
	add(c.world, c.RDBLogs, l)
	id := l.ID
	c.after(rdbLogReady, func(w *world) {
		if l, ok := w.RDBLogs.get(id); ok {
			l.Status = "ready"
		}
	})
	return doc{"instance_logs": []doc{viewRDBLog(l)}}, nil
}

func listRDBLogs(c *call) (any, error) {
	i, err := c.runningRDB()
	if err != nil {
		return nil, err
	}
	items := c.RDBLogs.where(func(l *rdbLog) bool { return l.Instance == i.ID })
	sortBy(items, c.query("order_by"), "created_at_asc")
	return doc{"instance_logs": views(items, viewRDBLog)}, nil
}

func getRDBLog(c *call) (any, error) {
	if l, ok := c.RDBLogs.get(c.path("id")); ok && l.Region == c.regionName() {
		return viewRDBLog(l), nil
	}
	return nil, notFound("instance_log", c.path("id"))
}
