package talos

import (
	"context"
	"fmt"
)

// Running is what image a node runs, as the node says.
type Running struct {
	Node      string
	Talos     string // version
	Schematic string // id; empty where the image does not say
	Unread    string // why the node could not be asked; empty when it was
}

// Running asks every node once what image it runs.
func (c *Cluster) Running(ctx context.Context) []Running {
	nodes := c.estate.Nodes()
	out := make([]Running, len(nodes))
	inTurn(len(nodes), atOnce, func(i int) {
		out[i].Node = nodes[i].Name
		seen, s, err := c.visit(ctx, nodes[i])
		if seen.state != Ours {
			out[i].Unread = identity(seen)
			return
		}
		if err != nil {
			out[i].Unread = fmt.Sprintf("it does not answer: %v", err)
			return
		}
		defer s.close()
		if out[i].Talos, err = s.version(ctx); err == nil {
			out[i].Schematic, err = s.schematic(ctx)
		}
		if err != nil {
			out[i].Unread = err.Error()
		}
	})
	return out
}
