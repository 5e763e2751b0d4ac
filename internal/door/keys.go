package door

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"bastide/internal/estate"
	"bastide/internal/outcome"
)

// IdentityVariable names a private key file that is to be used and no other.
const IdentityVariable = "BASTIDE_SSH_IDENTITY"

// maxOffered is how many keys are offered: OpenSSH servers hang up after six
// tries, and a person with a full agent must still get in.
const maxOffered = 5

// maxKeyFile bounds what is read as a key or as known hosts, in bytes.
const maxKeyFile = 1 << 20

// KeySource says where SSH keys may come from.
type KeySource struct {
	Getenv  func(string) string // os.Getenv
	Home    string              // what ~ stands for
	Dir     string              // where relative paths in Allowed start: the estate file's directory
	Allowed []string            // admin.sshKeys: public key files, or the keys themselves
	// Passphrase is asked for the passphrase of a key file, at most once a
	// file, and only when the bastion accepts that key. Nil: never.
	Passphrase func(file string) ([]byte, error)
}

// Keys are the SSH keys that may open the door.
type Keys struct {
	files   []ssh.Signer
	allowed map[string]bool // marshalled public keys
	socket  string          // SSH agent; empty for none
	mu      sync.Mutex
	agent   net.Conn
}

// FindKeys looks where a person keeps keys: in the file named by
// BASTIDE_SSH_IDENTITY and then nowhere else; or in the SSH agent, and as the
// private halves that lie beside the public key files of the estate.
func FindKeys(src KeySource) (*Keys, error) {
	k := &Keys{allowed: map[string]bool{}}
	if file := src.Getenv(IdentityVariable); file != "" {
		signer, err := loadKey(expand(file, src.Home, "."), nil, src.Passphrase)
		if err != nil {
			return nil, outcome.Refuse("the SSH key in "+IdentityVariable+" cannot be used", err.Error(),
				"point it at a private key file that you can read").Because(err)
		}
		k.files = []ssh.Signer{signer}
		return k, nil
	}
	k.socket = src.Getenv("SSH_AUTH_SOCK")
	for _, entry := range src.Allowed {
		if err := k.beside(entry, src); err != nil {
			return nil, err
		}
	}
	if len(k.files) == 0 && k.socket == "" {
		return nil, outcome.Refuse("there is no SSH key to open the door with",
			"no private key lies beside the files in admin.sshKeys, and no SSH agent runs",
			"set "+IdentityVariable+" to a private key file, or start an agent that holds the key")
	}
	return k, nil
}

// beside takes one entry of admin.sshKeys: its public key is known from then
// on, and its private half is used where it lies beside it.
func (k *Keys) beside(entry string, src KeySource) error {
	if public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(entry)); err == nil {
		k.allowed[string(public.Marshal())] = true
		return nil
	}
	file := expand(entry, src.Home, src.Dir)
	text, err := estate.ReadFile(file, maxKeyFile)
	if err != nil {
		return outcome.Refuse("a public key of admin.sshKeys cannot be read", err.Error(), "correct the path "+entry).Because(err)
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey(text)
	if err != nil {
		return outcome.Refuse(file+" is not a public SSH key", err.Error(), "name the file that ends in .pub").Because(err)
	}
	k.allowed[string(public.Marshal())] = true
	private, isPublic := strings.CutSuffix(file, ".pub")
	if !isPublic {
		return nil
	}
	signer, err := loadKey(private, public, src.Passphrase)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil // the key of a colleague, or kept in the agent only
	}
	if err != nil {
		return outcome.Refuse("the SSH key "+private+" cannot be used", err.Error(), "repair the file, or remove it if an agent holds the key").Because(err)
	}
	k.files = append(k.files, signer)
	return nil
}

// Signers lists the keys to offer: those that the estate names first, from the
// agent and then from files, then whatever else the agent holds.
func (k *Keys) Signers() ([]ssh.Signer, error) {
	var first, last []ssh.Signer
	held, agentErr := k.agentSigners()
	for _, s := range held {
		if k.allowed[string(s.PublicKey().Marshal())] {
			first = append(first, s)
		} else {
			last = append(last, s)
		}
	}
	var out []ssh.Signer
	seen := map[string]bool{}
	for _, s := range append(append(first, k.files...), last...) {
		id := string(s.PublicKey().Marshal())
		if !seen[id] && len(out) < maxOffered {
			seen[id] = true
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		why := "the SSH agent holds none"
		if agentErr != nil {
			why = "the SSH agent does not answer: " + agentErr.Error()
		}
		return nil, outcome.Refuse("there is no SSH key to open the door with", why,
			"add the key to the agent with ssh-add, or set "+IdentityVariable+" to a private key file").Because(agentErr)
	}
	return out, nil
}

// agentSigners asks the agent anew: it may have been locked or restarted.
func (k *Keys) agentSigners() ([]ssh.Signer, error) {
	if k.socket == "" {
		return nil, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.agent != nil {
		_ = k.agent.Close()
		k.agent = nil
	}
	c, err := net.Dial("unix", k.socket)
	if err != nil {
		return nil, err
	}
	k.agent = c // the signers use it later
	return agent.NewClient(c).Signers()
}

// Close lets go of the agent.
func (k *Keys) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.agent == nil {
		return nil
	}
	return k.agent.Close()
}

func expand(path, home, dir string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home, rest)
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// loadKey reads a private key. public may be nil. An encrypted key is only
// decrypted when it has to sign.
func loadKey(file string, public ssh.PublicKey, ask func(string) ([]byte, error)) (ssh.Signer, error) {
	text, err := estate.ReadFile(file, maxKeyFile)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(text)
	var locked *ssh.PassphraseMissingError
	if !errors.As(err, &locked) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if public != nil && !bytes.Equal(signer.PublicKey().Marshal(), public.Marshal()) {
			return nil, fmt.Errorf("%s is not the private half of %s.pub", file, file)
		}
		return signer, nil
	}
	if ask == nil {
		return nil, fmt.Errorf("%s has a passphrase and there is no terminal to ask for it", file)
	}
	if public == nil {
		public = locked.PublicKey // only the OpenSSH format carries it
	}
	if public == nil {
		if side, err := estate.ReadFile(file+".pub", maxKeyFile); err == nil {
			public, _, _, _, _ = ssh.ParseAuthorizedKey(side)
		}
	}
	l := &lockedKey{file: file, text: text, public: public, ask: ask}
	if public == nil {
		// Nothing tells which key it is, so it has to be opened to be offered.
		return l.unlock()
	}
	return l, nil
}

// lockedKey is a key file with a passphrase. Offering it costs nothing; the
// passphrase is asked for when the server wants a signature.
type lockedKey struct {
	file   string
	text   []byte
	public ssh.PublicKey
	ask    func(string) ([]byte, error)
	once   sync.Once
	signer ssh.Signer
	err    error
}

func (l *lockedKey) PublicKey() ssh.PublicKey { return l.public }

func (l *lockedKey) unlock() (ssh.Signer, error) {
	l.once.Do(func() {
		passphrase, err := l.ask(l.file)
		if err != nil {
			l.err = outcome.Refuse("the SSH key "+l.file+" could not be opened", "no passphrase was given: "+err.Error(),
				"run the command on a terminal, or add the key to the SSH agent").Because(err)
			return
		}
		defer clear(passphrase)
		if l.signer, err = ssh.ParsePrivateKeyWithPassphrase(l.text, passphrase); err != nil {
			l.err = outcome.Refuse("the SSH key "+l.file+" could not be opened", err.Error(), "run the command again with the right passphrase").Because(err)
		}
	})
	return l.signer, l.err
}

func (l *lockedKey) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	s, err := l.unlock()
	if err != nil {
		return nil, err
	}
	return s.Sign(rand, data)
}

// SignWithAlgorithm lets RSA keys use SHA-2, which servers insist on.
func (l *lockedKey) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	s, err := l.unlock()
	if err != nil {
		return nil, err
	}
	if with, ok := s.(ssh.AlgorithmSigner); ok {
		return with.SignWithAlgorithm(rand, data, algorithm)
	}
	return s.Sign(rand, data)
}
