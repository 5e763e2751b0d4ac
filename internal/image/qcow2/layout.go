// Package qcow2 writes and checks QEMU's copy-on-write disk images, as far as
// this program needs: written are version 3 images in one pass over a stream, and
// checked is that an image is complete in itself and sound. The format is that of
// QEMU's docs/interop/qcow2. All numbers in it are big-endian.
package qcow2

// What the writer makes. Clusters of 64 KiB are QEMU's default.
const (
	clusterBits = 16
	cluster     = 1 << clusterBits
	perTable    = cluster / 8        // entries in an L2 table, which is one cluster
	perL1       = perTable * cluster // bytes of the disk that an L1 entry stands for: 512 MiB
	perBlock    = cluster / 2        // clusters that a refcount block counts, 16 bits each

	refcountTableAt = 1 * cluster
	l1At            = 2 * cluster

	// HeadSize is how long the head is: header, refcount table and L1 table, a
	// cluster each. What comes after it is the body.
	HeadSize = 3 * cluster

	// MaxVirtual is the largest disk that the head has room for: 4 TiB.
	MaxVirtual = perTable * perL1

	copied = 1 << 63 // in an L1 or L2 entry: nothing else uses this cluster
)

// The header's fixed part, version 3, and the extension that ends the list.
const (
	magic        = 0x514649fb // "QFI" 0xfb
	headerLength = 104
)
