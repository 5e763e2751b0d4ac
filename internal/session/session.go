// Package session is one environment opened for work: its file, its secrets,
// the cloud, the door and the cluster, each opened when a command first needs
// it, and the handful of things that commands do with them together.
package session

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"bastide/internal/door"
	"bastide/internal/estate"
	"bastide/internal/outcome"
	"bastide/internal/scaleway"
	"bastide/internal/store"
	"bastide/internal/vault"
)

// Config says which environment, and how a person is reached.
type Config struct {
	Path      string      // ENV: a directory with estate.yaml, or the file
	Need      estate.Need // how much of it the command stands on
	LookupEnv func(string) (string, bool)
	UserAgent string
	Command   string // for others to read, such as "bastide up envs/staging"
	// ReadOnly fails every call that would change something at Scaleway, so that
	// looking can never write.
	ReadOnly bool
	// Patience is how long a survey looks for nodes that do not answer; 0 is
	// the short default of the cluster layer.
	Patience time.Duration
	// Notice tells a person what is worth knowing and no error.
	Notice func(string)
	// Note says what a node is being waited for; nil is allowed.
	Note func(node, text string)
	// Step says how far a step is; nil is allowed.
	Step func(step, text string)
	// Reading says the same of a step that reads, with its numbers; nil is allowed.
	Reading func(step, text string, r Reading)
	// Learnt is told the secrets of the bundle when it is opened, so that no
	// output ever holds one; nil is allowed.
	Learnt func(secrets ...string)
	// Ask prompts for a secret on the terminal; nil without one.
	Ask func(label string) (vault.Secret, error)
}

// Session is an environment at work. It is safe for concurrent use.
type Session struct {
	Estate *estate.Estate

	config Config
	cloud  *scaleway.Cloud
	bundle *vault.Bundle
	kept   *store.Store
	images *store.Store               // the same bucket, for files of images
	held   atomic.Pointer[store.Held] // the lock, while it is held
	wrote  atomic.Bool                // something was changed, or may have been

	mu      sync.Mutex
	way     *door.Door
	sshKeys *door.Keys
}

// Open reads the file. Nothing else is touched yet.
func Open(c Config) (*Session, error) {
	e, ignored, err := estate.LoadFor(c.Path, c.Need)
	if err != nil {
		return nil, outcome.Refuse(c.Path+" cannot be used", "", "").Because(err)
	}
	for _, p := range ignored {
		c.Notice("ignored, because this command does without it: " + p.Error())
	}
	if c.Need != estate.Place { // which leaves nothing to warn of
		for _, w := range e.Warnings() {
			c.Notice(w.Error())
		}
	}
	return &Session{Estate: e, config: c}, nil
}

// Close shuts the door, if it was opened.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.way != nil {
		err = s.way.Close()
		s.way = nil
	}
	if s.sshKeys != nil {
		_ = s.sshKeys.Close()
	}
	return err
}

// Vault is the environment's encrypted bundle.
func (s *Session) Vault() vault.File {
	return vault.File{Path: filepath.Join(s.Estate.Dir, vault.FileName), Recipients: s.Estate.Secrets.Recipients}
}

// Unlock decrypts the bundle. Without one it says how to make or bring one.
func (s *Session) Unlock() (*vault.Bundle, error) {
	if s.bundle == nil {
		identity, _ := s.config.LookupEnv(vault.IdentityVariable)
		b, err := s.Vault().Load(vault.Keys{IdentityFile: identity, Prompt: s.config.Ask}, time.Now())
		if err != nil {
			return nil, err
		}
		s.bundle = b
		if s.config.Learnt != nil {
			for _, secret := range b.Secrets() {
				s.config.Learnt(secret.Reveal())
			}
		}
	}
	return s.bundle, nil
}

// Cloud connects to Scaleway.
func (s *Session) Cloud(ctx context.Context) (*scaleway.Cloud, error) {
	if s.cloud == nil {
		o := s.reach()
		o.Decorators = append(o.Decorators, scaleway.Guard(s.writes))
		c, warnings, err := scaleway.New(ctx, o)
		for _, w := range warnings {
			s.config.Notice(w)
		}
		if err != nil {
			return nil, err
		}
		s.cloud = c
	}
	return s.cloud, nil
}

// reach is how anything at Scaleway is reached.
func (s *Session) reach() scaleway.Options {
	o := scaleway.Options{Estate: s.Estate, UserAgent: s.config.UserAgent, LookupEnv: s.config.LookupEnv, Notice: s.config.Notice, Learnt: s.config.Learnt}
	if s.config.ReadOnly {
		o.Decorators = append(o.Decorators, scaleway.ReadOnly())
	}
	return o
}

func (s *Session) getenv(name string) string {
	v, _ := s.config.LookupEnv(name)
	return v
}
