package ui

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"bastide/internal/outcome"
	"bastide/internal/plan"
)

const (
	token = `pa"ss<word>&more`
	pem   = "-----BEGIN KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ8s\nAbCdEfGhIjKlMnOp\n-----END KEY-----\n"
)

func TestNoPrinterLetsASecretThrough(t *testing.T) {
	for mode, o := range modes {
		t.Run(mode, func(t *testing.T) {
			var s streams
			o.Out, o.Err, o.Redactor = &s.out, &s.err, Redact([]string{token})
			p := New(o)
			p.Redact(pem)
			for _, secret := range []string{token, pem, base64.StdEncoding.EncodeToString([]byte(token)), base64.StdEncoding.EncodeToString([]byte(pem)), "AbCdEfGhIjKlMnOp"} {
				p.Plan(plan.Plan{Estate: "staging", Notes: []string{secret}, Strays: []plan.Stray{{Name: secret}}, Actions: []plan.Action{{Op: plan.Refuse, Reason: secret}}}, nil)
				p.Status(Status{Problems: []string{secret}})
				p.Table(Table{Kind: "x", Columns: []string{"a"}, Rows: [][]string{{secret}}})
				p.Timeline(Timeline{Title: secret})
				p.Verdict(Verdict{Sentence: secret})
				p.Result("x", secret, secret)
				p.Notice(secret)
				p.Warn(secret)
				p.Error(outcome.Fail("it failed", "the server said "+secret, "do it again"), secret)
				g := p.Progress(secret, 1)
				g.Start(secret)
				g.Note(secret, secret)
				g.Failed(secret, time.Second, errors.New(secret))
				g.End()
			}
			got := s.out.String() + s.err.String()
			for _, form := range []string{token, `pa\"ss`, `ss<word>`, `u003cword`, "MC4CAQAwBQYDK2VwBCIEIJ8s", "AbCdEfGhIjKlMnOp",
				base64.StdEncoding.EncodeToString([]byte(token)), base64.StdEncoding.EncodeToString([]byte(pem))} {
				if strings.Contains(got, form) {
					t.Errorf("%q got through", form)
				}
			}
			if !strings.Contains(got, mask) {
				t.Error("nothing was masked")
			}
		})
	}
}

// A live line that is cut must not show half of a secret.
func TestTheLiveLineMasksBeforeItCuts(t *testing.T) {
	var s streams
	p := New(Options{Out: &s.out, Err: &s.err, Live: true, Width: 20, Redactor: Redact([]string{"0123456789abcdefghij"})}).(*text)
	a := &account{t: p, stop: make(chan struct{})}
	a.Start("x 0123456789abcdefghij")
	if strings.Contains(s.err.String(), "0123") {
		t.Errorf("half a secret is shown: %q", s.err.String())
	}
}

func TestRevealIsTheWayAround(t *testing.T) {
	var s streams
	p := New(Options{Out: &s.out, Err: &s.err, Redactor: Redact([]string{token})})
	if err := p.Reveal("token", "", token); err != nil || s.out.String() != token {
		t.Errorf("got %q, %v", s.out.String(), err)
	}
}

func TestShortAndOverlappingSecrets(t *testing.T) {
	r := Redact([]string{"", "root", "longsecret", "longsecretandmore"})
	for in, want := range map[string]string{
		"root stays":            "root stays",
		"a longsecret here":     "a [redacted] here",
		"longsecretandmore, ok": "[redacted], ok",
	} {
		if got := r.String(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
