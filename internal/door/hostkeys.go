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
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"bastide/internal/estate"
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
	// unkept is the key of a first contact that could not be recorded: for as
	// long as this process runs it is held to, as a recorded one would be.
	unkept ssh.PublicKey
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
			return algorithmsOf(k.key), nil
		}
	}
	if h.unkept != nil {
		return algorithmsOf(h.unkept), nil
	}
	return nil, nil
}

func algorithmsOf(key ssh.PublicKey) []string {
	if key.Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{key.Type()}
}

// check accepts the known key, records a first one, and refuses any other. An
// environment that cannot be written to can still be looked at: a first key is
// then taken for this run, and a person is told that the next will ask nothing.
func (h *hostKeys) check(gateway netip.AddrPort, key ssh.PublicKey) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	unlock, locked := h.lock()
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
	if h.unkept != nil {
		return h.checkUnkept(gateway, key)
	}
	kept := locked
	if kept == nil {
		kept = h.record(gateway, key, known, text)
	}
	if kept != nil {
		h.unkept = key
	}
	h.tell(gateway, key, kept)
	return nil
}

func (h *hostKeys) checkUnkept(gateway netip.AddrPort, key ssh.PublicKey) error {
	if bytes.Equal(h.unkept.Marshal(), key.Marshal()) {
		return nil
	}
	return outcome.Refuse(fmt.Sprintf("the bastion at %s changed its host key while this command ran", gateway),
		fmt.Sprintf("it shows %s, and showed %s before", ssh.FingerprintSHA256(key), ssh.FingerprintSHA256(h.unkept)),
		"find out who changed it before anything else")
}

// tell says what a first contact showed, and why it is not remembered if so.
func (h *hostKeys) tell(gateway netip.AddrPort, key ssh.PublicKey, notKept error) {
	if h.notice == nil {
		return
	}
	seen := fmt.Sprintf("first contact with the bastion at %s: its host key is %s (%s)", gateway, ssh.FingerprintSHA256(key), key.Type())
	if notKept != nil {
		h.notice(fmt.Sprintf("%s, and it cannot be recorded in %s: %v; until it can, each command trusts whatever key it meets first", seen, h.file, notKept))
		return
	}
	h.notice(seen + ", recorded in " + h.file)
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
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), h.file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// read gives the lines that hold a key, and the file as it is.
func (h *hostKeys) read() ([]knownKey, []byte, error) {
	text, err := estate.ReadFile(h.file, maxKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, outcome.CannotTell("the known hosts could not be read", err.Error(), "make it a readable file, or move it away").Because(err)
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
		if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "|") }) {
			return nil, nil, outcome.CannotTell(fmt.Sprintf("%s:%d hides its names", h.file, i+1), "a hashed name cannot be matched with the gateway's",
				"remove the line if it is an old one; this file is bastide's own and holds names in the clear")
		}
		if marker != "cert-authority" {
			known = append(known, knownKey{line: i + 1, names: names, key: key, revoked: marker == "revoked"})
		}
	}
	return known, text, nil
}

// lockPatience bounds the wait for another process that records a key, which
// takes it milliseconds unless it was stopped.
const lockPatience = 5 * time.Second

// lock keeps two processes from recording at the same time; it ends with them.
// Without a lock nothing may be recorded.
func (h *hostKeys) lock() (unlock func(), err error) {
	nothing := func() {}
	dir := filepath.Dir(h.file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nothing, err
	}
	f, err := os.Open(dir)
	if err != nil {
		return nothing, err
	}
	for end := time.Now().Add(lockPatience); ; time.Sleep(10 * time.Millisecond) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nothing, fmt.Errorf("another process holds %s: %w", dir, err)
	}
	return func() { _ = f.Close() }, nil
}
