package ui

import "time"

// Status is what status found. Empty parts were not looked at, or could not be;
// Problems then says why.
type Status struct {
	Estate     string      `json:"estate"`
	Healthy    bool        `json:"healthy"`
	Cloud      []CloudItem `json:"cloud"`
	Nodes      []NodeItem  `json:"nodes"`
	Etcd       *Etcd       `json:"etcd,omitempty"`
	Kubernetes *Kubernetes `json:"kubernetes,omitempty"`
	Problems   []string    `json:"problems"` // sentences, worst first
}

// CloudItem is a resource at Scaleway.
type CloudItem struct {
	Kind string `json:"kind"` // as in a plan
	Name string `json:"name"`
	ID   string `json:"id,omitempty"`
	Zone string `json:"zone,omitempty"`
	// State is the provider's own word.
	State string `json:"state"`
	OK    bool   `json:"ok"`
	Note  string `json:"note,omitempty"`
}

// NodeItem is a machine of the cluster.
type NodeItem struct {
	Name    string `json:"name"`
	Role    string `json:"role"` // control-plane or worker
	Address string `json:"address"`
	Power   string `json:"power"`           // running, stopped, ...
	Stage   string `json:"stage"`           // Talos's word: maintenance, booting, running, ...
	Talos   string `json:"talos,omitempty"` // version
	Kube    string `json:"kubernetes"`      // Ready, NotReady, absent
	OK      bool   `json:"ok"`
	Note    string `json:"note,omitempty"`
}

// Etcd is the cluster's memory.
type Etcd struct {
	ClusterID string       `json:"clusterID,omitempty"`
	Members   []EtcdMember `json:"members"`
	Alarms    []string     `json:"alarms"`
	// Picture is the quorum drawn in a few lines, as the quorum arithmetic draws it.
	Picture string `json:"picture,omitempty"`
	OK      bool   `json:"ok"`
}

// EtcdMember is one member of etcd.
type EtcdMember struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	Role    string `json:"role"` // voter or learner
	Leader  bool   `json:"leader"`
	Healthy bool   `json:"healthy"`
	Size    int64  `json:"sizeBytes,omitempty"`
	Note    string `json:"note,omitempty"`
}

// Kubernetes is the API and what it says.
type Kubernetes struct {
	Endpoint  string `json:"endpoint"`
	Version   string `json:"version,omitempty"`
	Reachable bool   `json:"reachable"`
	Ready     int    `json:"readyNodes"`
	Nodes     int    `json:"nodes"`
	Note      string `json:"note,omitempty"`
}

// Table is any list. In JSON each row is an object with the columns as keys.
type Table struct {
	Kind    string // the document's type, such as inventory
	Title   string // may be empty
	Columns []string
	Rows    [][]string
	Empty   string // what to say when there are no rows
}

// Timeline is what happened when, drawn as bars.
type Timeline struct {
	Title string
	Bars  []Bar // in the order in which they are drawn
}

// Bar is one span, from the timeline's zero.
type Bar struct {
	Label  string
	From   time.Duration
	To     time.Duration
	Failed bool
	Note   string
}

// Verdict is how a rehearsal or a check ended.
type Verdict struct {
	Passed   bool    `json:"passed"`
	Sentence string  `json:"sentence"`
	Checks   []Check `json:"checks"`
}

// Check is one thing that was verified.
type Check struct {
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	Detail string `json:"detail,omitempty"`
}
