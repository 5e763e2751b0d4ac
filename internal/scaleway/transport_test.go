package scaleway

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"bastide/internal/blueprint"
	"bastide/internal/outcome"
	"bastide/internal/plan"

	"github.com/scaleway/scaleway-sdk-go/api/vpc/v2"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

const oneVPC = `{"id":"33333333-3333-4333-8333-333333333333","name":"staging","tags":["bastide:estate=staging","bastide:step=vpc/staging"]}`

// What is done about a failed call, by method and kind of failure.
func TestRetry(t *testing.T) {
	ok := reply{status: 200, body: oneVPC}
	failures := map[string]reply{
		"429 without a body": {status: 429, plain: true},
		"500":                {status: 500, body: `{"message":"internal error"}`},
		"503 html":           {status: 503, body: "<html>", plain: true},
		"cut connection":     {drop: true},
		"half an answer":     {status: 200, body: oneVPC, cut: true},
		"half of the JSON":   {status: 200, body: oneVPC[:40]},
		"a hang":             {status: 200, body: oneVPC, hang: time.Minute},
	}
	calls := map[string]func(*Cloud) error{
		"GET": func(c *Cloud) error {
			_, err := c.vpc.GetVPC(&vpc.GetVPCRequest{Region: "fr-par", VpcID: "x"}, scw.WithContext(context.Background()))
			return err
		},
		"PATCH": func(c *Cloud) error {
			_, err := c.vpc.UpdateVPC(&vpc.UpdateVPCRequest{Region: "fr-par", VpcID: "x"}, scw.WithContext(context.Background()))
			return err
		},
		"DELETE": func(c *Cloud) error {
			return c.vpc.DeleteVPC(&vpc.DeleteVPCRequest{Region: "fr-par", VpcID: "x"}, scw.WithContext(context.Background()))
		},
		"POST": func(c *Cloud) error {
			_, err := c.vpc.CreateVPC(&vpc.CreateVPCRequest{Region: "fr-par", ProjectID: testProject}, scw.WithContext(context.Background()))
			return err
		},
	}
	for name, failure := range failures {
		for method, call := range calls {
			t.Run(name+"/"+method, func(t *testing.T) {
				c, log := testCloud(t, &script{replies: []reply{failure, failure, ok}}, func(o *Options) { o.Retry.Attempt = 100 * time.Millisecond })
				err := call(c)
				if method == "POST" && failure.status != 429 {
					if err == nil || !uncertain(err) || len(log()) != 1 {
						t.Fatalf("a POST that may have worked must be tried once and be uncertain: %d calls, %v", len(log()), err)
					}
					return
				}
				if err != nil || len(log()) != 3 {
					t.Fatalf("want success at the third attempt, got %d calls and %v", len(log()), err)
				}
			})
		}
	}
}

// A permanent refusal ends the call at once, whatever its status looks like.
func TestPermanentRefusals(t *testing.T) {
	for _, r := range []reply{
		{status: 400, body: `{"type":"invalid_arguments","message":"m","details":[{"argument_name":"type","reason":"constraint","help_message":"unknown type"}]}`},
		{status: 403, body: `{"type":"permissions_denied","message":"m","details":[{"resource":"vpc","action":"write"}]}`},
		{status: 403, body: `{"type":"quotas_exceeded","message":"m","details":[{"resource":"vpcs","quota":5,"current":5}]}`},
		{status: 503, body: `{"type":"out_of_stock","message":"m","resource":"vpc"}`},
		{status: 501, plain: true},
		{status: 409, body: `{"message":"name is taken"}`},
	} {
		c, log := testCloud(t, &script{replies: []reply{r}})
		_, err := c.vpc.UpdateVPC(&vpc.UpdateVPCRequest{Region: "fr-par", VpcID: "x"}, scw.WithContext(t.Context()))
		if err == nil || len(log()) != 1 {
			t.Errorf("%d %s: want one call and an error, got %d calls and %v", r.status, r.body, len(log()), err)
		}
	}
}

func TestRetryEndsWithItsBudget(t *testing.T) {
	c, log := testCloud(t, &script{replies: []reply{{status: 503, plain: true}}}, func(o *Options) { o.Retry.Budget = 30 * time.Millisecond })
	_, err := c.vpc.GetVPC(&vpc.GetVPCRequest{Region: "fr-par", VpcID: "x"}, scw.WithContext(t.Context()))
	if statusOf(err) != 503 || len(log()) < 2 {
		t.Fatalf("want the last 503 after several attempts, got %v after %d", err, len(log()))
	}
}

func TestRetryHonoursTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := &script{replies: []reply{{status: 503, plain: true, perform: cancel}}}
	c, log := testCloud(t, h, func(o *Options) { o.Retry.Base, o.Retry.Cap = time.Hour, time.Hour })
	if _, err := c.vpc.GetVPC(&vpc.GetVPCRequest{Region: "fr-par", VpcID: "x"}, scw.WithContext(ctx)); err == nil {
		t.Fatal("want an error")
	}
	if len(log()) != 1 {
		t.Fatalf("want one call, got %d", len(log()))
	}
}

// The SDK's question for metadata never reaches the network.
func TestMetadataIsAnsweredHere(t *testing.T) {
	c, log := testCloud(t, &script{replies: []reply{{status: 200, body: oneVPC}}})
	if _, err := c.vpc.GetVPC(&vpc.GetVPCRequest{Region: "fr-par", VpcID: "x"}, scw.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	if calls := log(); len(calls) != 1 || strings.Contains(calls[0].Path, "metadata") {
		t.Fatalf("want the one real call, got %v", calls)
	}
}

func TestDryRun(t *testing.T) {
	h := &script{replies: []reply{{status: 200, body: `{"vpcs":[],"total_count":0}`}}}
	c, _ := testCloud(t, h, func(o *Options) { o.Decorators = append(o.Decorators, ReadOnly()) })
	step := blueprint.Step{ID: "vpc/staging", Kind: blueprint.KindVPC, Name: "staging", Spec: blueprint.VPC{Name: "staging"}}
	_, err := c.Apply(t.Context(), plan.Action{Step: step, Op: plan.Create}, nil)
	if !errors.Is(err, ErrReadOnly) {
		t.Fatalf("want the dry run's refusal, got %v", err)
	}
	if h.served != 1 {
		t.Fatalf("want one reading, got %d calls", h.served)
	}
	if outcome.CodeOf(err) != outcome.Failed {
		t.Fatalf("exit code %d", outcome.CodeOf(err))
	}
}
