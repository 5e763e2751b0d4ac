package format

import (
	"errors"
	"fmt"
)

// Reason is why a file is not taken, as a word that programs can compare.
type Reason string

// The reasons.
const (
	WrongFormat   Reason = "wrong-format"   // recognised, or not, as something else than what was wanted
	Truncated     Reason = "truncated"      // it ends before what it announces
	Corrupt       Reason = "corrupt"        // a checksum or a structure is wrong
	TrailingJunk  Reason = "trailing-junk"  // it goes on after its end
	TooLarge      Reason = "too-large"      // the disk, or the memory that it would take, is over a limit
	NeedsOther    Reason = "needs-other"    // a backing file or an external data file
	Encrypted     Reason = "encrypted"      // its content cannot be read
	Unsupported   Reason = "unsupported"    // a version or feature that is not taken
	NoPartitions  Reason = "no-partitions"  // no valid GPT
	NotTalos      Reason = "not-talos"      // a disk, but not one with Talos's partitions
	NotCheckable  Reason = "not-checkable"  // it cannot be checked in the way that it came
	NotAFile      Reason = "not-a-file"     // a folder, a pipe, a socket, a terminal
	ServerMessage Reason = "server-message" // what came is a server's message instead of the file
)

// Refusal is why a file was not taken: nothing is wrong with bastide or the
// network, so trying again with the same file ends the same.
type Refusal struct {
	Reason Reason
	Kind   Kind   // what the file is, where that is known
	Text   string // one sentence without a full stop, such as "it is gzip, not qcow2"
	Do     string // what to do about it, where something can be said
}

func (r *Refusal) Error() string { return r.Text }

// Refuse makes a refusal.
func Refuse(reason Reason, kind Kind, text string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Kind: kind, Text: fmt.Sprintf(text, args...)}
}

// Fit is what to do about a disk that is too large.
const Fit = "take a smaller disk, such as the Factory's scaleway image, or give the nodes larger root volumes"

// Advise adds what to do about it.
func (r *Refusal) Advise(do string) *Refusal {
	r.Do = do
	return r
}

// Refused finds the refusal in an error, nil if there is none.
func Refused(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return nil
}

// Instead is the refusal of a file that is of another kind than the one wanted,
// with a word on each kind that people are known to mix up.
func Instead(k Kind, want string) *Refusal {
	switch k {
	case Empty:
		return Refuse(Truncated, k, "it is empty").Advise("fetch it again")
	case HTML, XML, JSON:
		return Refuse(ServerMessage, k, "it is %s, such as a server's error page, not %s", k, want).Advise("open it to read what the server said, and fetch it again")
	case Raw:
		return Refuse(WrongFormat, k, "it is a raw disk, not %s", want).Advise("let `bastide image build --from` convert it")
	case Zstd, XZ:
		return Refuse(WrongFormat, k, "it is compressed with %s, not %s", k, want).Advise("let `bastide image build --from` decompress and convert it")
	case Gzip, Bzip2, LZ4:
		return Refuse(WrongFormat, k, "it is compressed with %s, not %s", k, want).Advise("decompress it first, or take the Factory's .raw.zst, .raw.xz or .qcow2")
	case Tar, Zip:
		return Refuse(WrongFormat, k, "it is a %s archive, not %s", k, want).Advise("take the Factory's .raw.zst, .raw.xz or .qcow2")
	case VMDK, VHD, VHDX, VDI:
		return Refuse(WrongFormat, k, "it is a %s disk of another hypervisor, not %s", k, want).Advise("take the Factory's scaleway image")
	case ISO:
		return Refuse(WrongFormat, k, "it is an ISO 9660 image, not %s", want).Advise("take the Factory's scaleway disk image, not the ISO")
	case PE:
		return Refuse(WrongFormat, k, "it is an EFI program, not %s", want).Advise("take the Factory's scaleway disk image, not the UKI")
	case Unknown:
		return Refuse(WrongFormat, k, "its first bytes are those of no disk image, so it is not %s", want).Advise("take the Factory's scaleway disk image")
	}
	return Refuse(WrongFormat, k, "it is %s, not %s", k, want)
}
