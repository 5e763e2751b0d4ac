package door

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"bastide/internal/outcome"
)

// hostKeys is the estate's memory of its gateway's host key. Scaleway publishes
// none, so the first one seen is kept and any other refused from then on.
//
// The key belongs to the gateway, by its ID, not to its address: a gateway that
// was rebuilt is a new one although it may get the old address, and one whose
// address changed is still the same. The file is in OpenSSH's format, so that
// ssh -o UserKnownHostsFile=... works with it.
type hostKeys struct {
	file   string
	id     string // may be empty: then the address stands for the gateway
	notice func(string)
	mu     sync.Mutex
}

type knownKey struct {
	line    int // 1-based
	names   []string
	key     ssh.PublicKey
	revoked bool
}

// idName is how a gateway's ID is written among the names of a line.
func (h *hostKeys) idName() string { return "gateway-" + h.id }

// name is what a line must carry to speak of this gateway.
func (h *hostKeys) name(gateway netip.AddrPort) string {
	if h.id == "" {
		return knownhosts.Normalize(gateway.String())
	}
	return h.idName()
}

// algorithms limits the handshake to the type of the known key; a server with
// keys of several types would otherwise present another, and look changed.
func (h *hostKeys) algorithms(gateway netip.AddrPort) ([]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, _, err := h.read()
	if err != nil {
		return nil, err
	}
	for _, k := range known {
		if slices.Contains(k.names, h.name(gateway)) && !k.revoked {
			if k.key.Type() == ssh.KeyAlgoRSA {
				return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}, nil
			}
			return []string{k.key.Type()}, nil
		}
	}
	return nil, nil
}

// check accepts the known key, records a first one, and refuses any other.
func (h *hostKeys) check(gateway netip.AddrPort, key ssh.PublicKey) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	unlock, err := h.lock()
	if err != nil {
		return err
	}
	defer unlock()
	known, text, err := h.read()
	if err != nil {
		return err
	}
	for _, k := range known {
		same := bytes.Equal(k.key.Marshal(), key.Marshal())
		switch {
		case k.revoked && same:
			return h.refuse(gateway, k, key, "that line revokes the key that it shows")
		case k.revoked || !slices.Contains(k.names, h.name(gateway)):
		case same:
			return nil
		default:
			return h.refuse(gateway, k, key, fmt.Sprintf("it shows the host key %s, and %s was recorded",
				ssh.FingerprintSHA256(key), ssh.FingerprintSHA256(k.key)))
		}
	}
	if err := h.record(gateway, key, known, text); err != nil {
		return err
	}
	if h.notice != nil {
		h.notice(fmt.Sprintf("first contact with the bastion at %s: its host key is %s (%s), recorded in %s",
			gateway, ssh.FingerprintSHA256(key), key.Type(), h.file))
	}
	return nil
}

func (h *hostKeys) refuse(gateway netip.AddrPort, k knownKey, key ssh.PublicKey, why string) error {
	return outcome.Refuse(fmt.Sprintf("the bastion at %s is not the one that %s:%d knows", gateway, h.file, k.line), why,
		fmt.Sprintf("find out who changed it; only if this gateway's key (%s) is known to be right, remove line %d and run the command again",
			ssh.FingerprintSHA256(key), k.line))
}

// record adds a line. A line of another gateway that had this address goes:
// an address has one gateway, and the newest is the one that answered.
func (h *hostKeys) record(gateway netip.AddrPort, key ssh.PublicKey, known []knownKey, text []byte) error {
	address := knownhosts.Normalize(gateway.String())
	stale := map[int]bool{}
	for _, k := range known {
		if !k.revoked && slices.Contains(k.names, address) {
			stale[k.line] = true
		}
	}
	var out strings.Builder
	for i, line := range strings.SplitAfter(string(text), "\n") {
		if !stale[i+1] {
			out.WriteString(line)
		}
	}
	if s := out.String(); s != "" && !strings.HasSuffix(s, "\n") {
		out.WriteString("\n")
	}
	names := []string{address}
	if h.id != "" {
		names = append(names, h.idName())
	}
	out.WriteString(knownhosts.Line(names, key) + "\n")
	return h.write(out.String())
}

// write replaces the file at once, so that a reader never sees half of it.
func (h *hostKeys) write(text string) error {
	f, err := os.CreateTemp(filepath.Dir(h.file), ".known_hosts-*") // 0600
	if err != nil {
		return fmt.Errorf("recording the bastion's host key: %w", err)
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), h.file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("recording the bastion's host key: %w", err)
	}
	return nil
}

// read gives the lines that hold a key, and the file as it is.
func (h *hostKeys) read() ([]knownKey, []byte, error) {
	text, err := os.ReadFile(h.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, outcome.CannotTell("the known hosts could not be read", err.Error(), "make the file readable").Because(err)
	}
	var known []knownKey
	for i, line := range bytes.Split(text, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		marker, names, key, _, _, err := ssh.ParseKnownHosts(line)
		if err != nil {
			// A line that cannot be read may be the one that would refuse.
			return nil, nil, outcome.CannotTell(fmt.Sprintf("%s:%d is not a known_hosts line", h.file, i+1), err.Error(),
				"repair or remove the line").Because(err)
		}
		if marker != "cert-authority" {
			known = append(known, knownKey{line: i + 1, names: names, key: key, revoked: marker == "revoked"})
		}
	}
	return known, text, nil
}

// lock keeps two processes from recording at the same time; it ends with them.
func (h *hostKeys) lock() (func(), error) {
	dir := filepath.Dir(h.file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("recording the bastion's host key: %w", err)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("recording the bastion's host key: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("recording the bastion's host key: %w", err)
	}
	return func() { _ = f.Close() }, nil
}
