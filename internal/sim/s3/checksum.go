package s3

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// checksums are base64 values by algorithm, in lower case.
type checksums map[string]string

// algorithms are the checksums that the store knows.
var algorithms = []string{"crc32", "crc32c", "crc64nvme", "sha1", "sha256"}

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	nvme       = crc64.MakeTable(0x9a6c9329ac4bc9b5) // reflected polynomial of NVM Express
)

func newHash(algorithm string) hash.Hash {
	switch algorithm {
	case "crc32":
		return crc32.NewIEEE()
	case "crc32c":
		return crc32.New(castagnoli)
	case "crc64nvme":
		return crc64.New(nvme)
	case "sha1":
		return sha1.New()
	case "sha256":
		return sha256.New()
	}
	return nil
}

const checksumPrefix = "X-Amz-Checksum-"

// claimedChecksums are the checksums in a header or trailer.
func claimedChecksums(h http.Header) (checksums, error) {
	out := checksums{}
	for name := range h {
		algorithm, ok := strings.CutPrefix(http.CanonicalHeaderKey(name), checksumPrefix)
		algorithm = strings.ToLower(algorithm)
		if !ok || algorithm == "mode" || algorithm == "type" || algorithm == "algorithm" {
			continue
		}
		if !slices.Contains(algorithms, algorithm) {
			return nil, notImplemented("The checksum algorithm of the header " + strings.ToLower(name))
		}
		value := h.Get(name)
		raw, err := base64.StdEncoding.DecodeString(value)
		if err != nil || len(raw) != newHash(algorithm).Size() {
			return nil, invalidRequest("Value for x-amz-checksum-%s header is invalid.", algorithm)
		}
		out[algorithm] = value
	}
	if len(out) > 1 {
		return nil, invalidRequest("Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.")
	}
	return out, nil
}

// wantedChecksums are the algorithms to compute over a body: those claimed in
// the header and those that the trailer will claim.
func wantedChecksums(h http.Header) ([]string, error) {
	claimed, err := claimedChecksums(h)
	if err != nil {
		return nil, err
	}
	wanted := slices.Collect(maps.Keys(claimed))
	for _, t := range strings.Split(h.Get("X-Amz-Trailer"), ",") {
		if t = strings.ToLower(strings.TrimSpace(t)); t == "" {
			continue
		}
		algorithm, ok := strings.CutPrefix(t, strings.ToLower(checksumPrefix))
		if !ok || !slices.Contains(algorithms, algorithm) {
			return nil, invalidRequest("The value specified in the x-amz-trailer header is not supported")
		}
		wanted = append(wanted, algorithm)
	}
	sdk := strings.ToLower(h.Get("X-Amz-Sdk-Checksum-Algorithm"))
	if sdk == "" {
		return wanted, nil
	}
	if !slices.Contains(algorithms, sdk) {
		return nil, invalidRequest("Checksum algorithm provided is unsupported. Please try again with any of the valid types: [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]")
	}
	if !slices.Contains(wanted, sdk) {
		return nil, invalidRequest("x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers were found.")
	}
	return wanted, nil
}

// refusesChecksums says whether a request has anything that a store of before
// the checksums would not know.
func refusesChecksums(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, checksumPrefix) {
			return true
		}
	}
	sum := h.Get("X-Amz-Content-Sha256")
	return h.Get("X-Amz-Sdk-Checksum-Algorithm") != "" || h.Get("X-Amz-Trailer") != "" ||
		(strings.HasPrefix(sum, "STREAMING-") && strings.HasSuffix(sum, "-TRAILER"))
}

// write puts checksums into an answer's header.
func (c checksums) write(h http.Header) {
	for algorithm, value := range c {
		h.Set(checksumPrefix+algorithm, value)
	}
	if len(c) > 0 {
		h.Set(checksumPrefix+"Type", c.kind())
	}
}

// kind tells checksums of an object from those of its parts' checksums, which
// carry the number of parts.
func (c checksums) kind() string {
	for _, v := range c {
		if strings.Contains(v, "-") {
			return "COMPOSITE"
		}
	}
	if len(c) == 0 {
		return ""
	}
	return "FULL_OBJECT"
}

// name is the algorithm in upper case, as listings have it.
func (c checksums) name() string {
	for algorithm := range c {
		return strings.ToUpper(algorithm)
	}
	return ""
}

// elements are checksums in an XML answer.
type elements struct {
	ChecksumCRC32     string `xml:",omitempty"`
	ChecksumCRC32C    string `xml:",omitempty"`
	ChecksumCRC64NVME string `xml:",omitempty"`
	ChecksumSHA1      string `xml:",omitempty"`
	ChecksumSHA256    string `xml:",omitempty"`
}

func (c checksums) elements() elements {
	return elements{c["crc32"], c["crc32c"], c["crc64nvme"], c["sha1"], c["sha256"]}
}

func (e elements) checksums() checksums {
	out := checksums{}
	for i, v := range []string{e.ChecksumCRC32, e.ChecksumCRC32C, e.ChecksumCRC64NVME, e.ChecksumSHA1, e.ChecksumSHA256} {
		if v != "" {
			out[algorithms[i]] = v
		}
	}
	return out
}
