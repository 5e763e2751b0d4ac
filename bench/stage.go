package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"bastide/internal/estate"
	"bastide/internal/rehearsal"
)

// controlPlanes is how many of an estate's nodes are control plane nodes.
const controlPlanes = 3

// scene is a region with an environment of some size on it.
type scene struct {
	*rehearsal.Play
	name string
	seen int // the last call of the region's log that was read
}

var poolCount = regexp.MustCompile(`(?m)^(\s+)count: \d+$`)

// open sets a stage for the environment with that many nodes and starts a
// region on it.
func open(ctx context.Context, c config, nodes int, speed float64) (*scene, error) {
	dir := filepath.Join(c.dir, fmt.Sprintf("%d-nodes-%g", nodes, speed))
	if err := os.RemoveAll(dir); err != nil { // of a measurement before this one; its region has ended
		return nil, err
	}
	grown := filepath.Join(dir, "source")
	if err := os.CopyFS(grown, os.DirFS(c.env)); err != nil {
		return nil, err
	}
	file := filepath.Join(grown, "estate.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	counts := poolCount.FindAllIndex(text, -1)
	if len(counts) < 2 {
		return nil, fmt.Errorf("%s has no pool to grow", file)
	}
	last := counts[len(counts)-1]
	grew := append(bytes.Clone(text[:last[0]]), fmt.Sprintf("    count: %d", nodes-controlPlanes)...)
	if err := os.WriteFile(file, append(grew, text[last[1]:]...), 0o600); err != nil {
		return nil, err
	}
	e, err := estate.Load(grown)
	if err != nil {
		return nil, err
	}
	if n := len(e.Nodes()); n != nodes {
		return nil, fmt.Errorf("%s came to %d nodes, not %d", file, n, nodes)
	}
	stage, err := rehearsal.Build(e, filepath.Join(dir, "stage"), time.Now())
	if err != nil {
		return nil, err
	}
	play, err := rehearsal.Open(ctx, stage, c.binary, speed, "")
	if err != nil {
		return nil, err
	}
	return &scene{Play: play, name: e.Name}, nil
}

// outcomeOf is how one run of a command went.
type outcomeOf struct {
	begin, end time.Time
	cpu        time.Duration // of the command itself, user and system
	peak       int64         // resident memory, bytes
}

func (o outcomeOf) wall() time.Duration { return o.end.Sub(o.begin) }

// bastide runs a command of the program on the stage, which must succeed.
func (s *scene) bastide(ctx context.Context, args ...string) (outcomeOf, error) {
	return timed(s.Command(ctx, args...))
}

func timed(cmd *exec.Cmd) (outcomeOf, error) {
	var words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &words, &words
	o := outcomeOf{begin: time.Now()}
	err := cmd.Run()
	o.end = time.Now()
	if err != nil {
		text := words.String()
		return o, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, text[max(0, len(text)-4000):])
	}
	o.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	o.peak = peak(cmd.ProcessState)
	return o, nil
}

// request is a call as the region's log has it.
type request struct {
	Seq    int       `json:"seq"`
	Time   time.Time `json:"time"`
	Method string    `json:"method"`
	Path   string    `json:"path"`
	Query  string    `json:"query"`
	Millis float64   `json:"ms"`
}

func (r request) span() span {
	return span{r.Method + " " + r.Path, r.Time, r.Time.Add(time.Duration(r.Millis * float64(time.Millisecond)))}
}

// rpc says whether it is a call of a node's Talos API.
func (r request) rpc() bool { return r.Method == "RPC" }

// calls are the calls since they were last asked for. The whole log each time
// would leave the region, while it is measured, with the garbage of it.
func (s *scene) calls(ctx context.Context) ([]request, error) {
	var log []request
	err := s.Page(ctx, fmt.Sprintf("/sim/requests?since=%d", s.seen), &log)
	if len(log) > 0 {
		s.seen = log[len(log)-1].Seq
	}
	return log, err
}

// slow makes the region add a delay, in real time, to every call of Scaleway's
// API and, if so wished, of the nodes' Talos API.
func (s *scene) slow(ctx context.Context, speed float64, http_, rpc time.Duration) error {
	scaled := func(d time.Duration) string { return time.Duration(float64(d) * speed).String() } // the script is in the region's time
	script := map[string]any{}
	if http_ > 0 {
		script["http"] = []map[string]any{{"path": "/**", "delay": scaled(http_)}}
	}
	if rpc > 0 {
		script["rpc"] = []map[string]any{{"rpc": "*", "delay": scaled(rpc)}}
	}
	body, err := json.Marshal(script)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Access.URL+"/sim/faults", bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
		return errors.New("the region does not take the fault script: " + string(text))
	}
	return nil
}
