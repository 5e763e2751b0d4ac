package door

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"bastide/internal/outcome"
)

// lair is the private directory of one Run: the child's kubeconfig and
// talosconfig, readable by nobody else, and a note of who lives here, so that
// a later run can tell whether it was abandoned.
type lair struct {
	dir  string
	note note
}

// note identifies processes. A process ID alone is not enough: IDs are reused.
type note struct {
	Owner      int    `json:"owner"`
	OwnerBorn  string `json:"ownerBorn"`
	Child      int    `json:"child,omitempty"`
	ChildBorn  string `json:"childBorn,omitempty"`
	ChildGroup bool   `json:"childGroup,omitempty"` // the child leads a process group
}

const noteFile = "owner.json"

// base is where all lairs of this user are.
func base() string {
	return filepath.Join(os.TempDir(), "bastide-door-"+strconv.Itoa(os.Getuid()))
}

// openBase makes the base directory, or makes sure that it is ours: in a
// directory that everyone may write to, somebody else could have made it first.
func openBase() (string, error) {
	dir := base()
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("making a private directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("making a private directory: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm() != 0o700 || !ok || int(owner.Uid) != os.Getuid() {
		return "", outcome.Refuse(dir+" cannot be used for secrets", "it is not a directory that only you can read",
			"find out who made it, remove it and run the command again")
	}
	return dir, nil
}

// newLair makes the directory of a run.
func newLair(estate string) (*lair, error) {
	in, err := openBase()
	if err != nil {
		return nil, err
	}
	born, _ := processBorn(os.Getpid())
	l := &lair{note: note{Owner: os.Getpid(), OwnerBorn: born}}
	for n := 0; ; n++ { // one process may hold several doors
		name := fmt.Sprintf("%s-%d", estate, os.Getpid())
		if n > 0 {
			name += fmt.Sprintf(".%d", n)
		}
		l.dir = filepath.Join(in, name)
		if err = os.Mkdir(l.dir, 0o700); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err == nil {
		err = l.save()
	}
	if err != nil {
		l.remove()
		return nil, fmt.Errorf("making a private directory: %w", err)
	}
	return l, nil
}

// put writes a file that only the user can read and gives its path.
func (l *lair) put(name string, content []byte) (string, error) {
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("writing a private file: %w", err)
	}
	return path, nil
}

// adopt notes the child, before anything can go wrong with it.
func (l *lair) adopt(pid int, group bool) error {
	born, ok := processBorn(pid)
	if !ok {
		return nil // it has ended already
	}
	l.note.Child, l.note.ChildBorn, l.note.ChildGroup = pid, born, group
	return l.save()
}

func (l *lair) save() error {
	text, err := json.Marshal(l.note)
	if err != nil {
		return err
	}
	// Renamed into place: a sweep must never read half a note.
	next := filepath.Join(l.dir, noteFile+".next")
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(l.dir, noteFile))
}

func (l *lair) remove() { _ = os.RemoveAll(l.dir) }

// Sweep removes what a run for this estate left behind when it was killed: its
// private directory and, should it still run, the program that it had started,
// whose proxy is gone. Runs that are alive are left alone. It returns a
// sentence for each thing that it removed.
func Sweep(estate string) ([]string, error) {
	if _, err := os.Lstat(base()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	in, err := openBase()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(in)
	if err != nil {
		return nil, fmt.Errorf("looking for what earlier runs left: %w", err)
	}
	var swept []string
	for _, e := range entries {
		owner, ok := ownerOf(e.Name(), estate)
		if !ok {
			continue
		}
		said, err := sweepOne(filepath.Join(in, e.Name()), owner)
		if err != nil {
			return swept, err
		}
		swept = append(swept, said...)
	}
	return swept, nil
}

// ownerOf reads <estate>-<pid>[.<n>].
func ownerOf(name, estate string) (int, bool) {
	rest, ok := strings.CutPrefix(name, estate+"-")
	if !ok {
		return 0, false
	}
	rest, _, _ = strings.Cut(rest, ".")
	pid, err := strconv.Atoi(rest) // fails for estates whose name merely begins alike
	return pid, err == nil
}

func sweepOne(dir string, owner int) ([]string, error) {
	n := note{Owner: owner}
	if text, err := os.ReadFile(filepath.Join(dir, noteFile)); err == nil {
		_ = json.Unmarshal(text, &n)
	}
	if alive(n.Owner, n.OwnerBorn) {
		return nil, nil
	}
	var swept []string
	if n.Child > 0 && n.ChildBorn != "" && alive(n.Child, n.ChildBorn) {
		target := n.Child
		if n.ChildGroup {
			target = -n.Child
		}
		if err := syscall.Kill(target, syscall.SIGTERM); err == nil {
			swept = append(swept, fmt.Sprintf("ended process %d, which a killed run had started and whose way in is gone", n.Child))
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return swept, fmt.Errorf("removing what a killed run left: %w", err)
	}
	return append(swept, "removed "+dir+", which a killed run had left"), nil
}

// alive says whether this very process runs. One whose birth was never noted
// is taken for alive while its ID is in use: removing nothing is the safe side.
func alive(pid int, born string) bool {
	now, ok := processBorn(pid)
	return ok && (born == "" || now == born)
}
