package qcow2

import "bytes"

// Zero says whether all bytes are zero. It compares the bytes with themselves,
// shifted by some, so that the runtime's vector comparison does the work and
// stops where the first differ.
func Zero(p []byte) bool {
	const shift = 32
	n := min(shift, len(p))
	for _, b := range p[:n] {
		if b != 0 {
			return false
		}
	}
	return bytes.Equal(p[n:], p[:len(p)-n])
}
