package qcow2

// Beginning is how many bytes of an image are needed to begin a check while it
// streams by: QEMU puts the first table, and what is at the disk's beginning, into
// the first few hundred kilobytes.
const Beginning = 16 << 20

// Stream checks an image while it streams by, as Check does with a file.
type Stream struct {
	h      *Header
	guest  *Guest
	tables []tablePlace // not yet seen, in the order of the file
	l2     []byte       // of the one that is being read
	offset int64        // of the next byte
	end    int64        // how long the file has to be at least
}

// NewStream begins a check with the first Beginning bytes of an image, or all if
// it has fewer. length is negative if it is not known.
//
// Errors: *format.Refusal.
func NewStream(begin []byte, length, limit int64) (*Stream, error) {
	if len(begin) < Beginning {
		length = int64(len(begin))
	}
	h, err := ParseHeader(begin[:min(len(begin), prefix)], length, limit)
	if err != nil {
		return nil, err
	}
	s := &Stream{h: h, guest: NewGuest(h, beginning{begin, len(begin) < Beginning}, length), l2: make([]byte, 0, h.ClusterSize)}
	s.end = max(h.l1At+h.l1Entries*8, h.refcountsAt+h.refcountsTable)
	if s.tables, err = s.guest.tables(); err != nil {
		return nil, err
	}
	_, err = s.Write(begin)
	return s, err
}

// Header is the image's header.
func (s *Stream) Header() *Header { return s.h }

// Guest reads the disk, as far as it is in the first Beginning bytes.
func (s *Stream) Guest() *Guest { return s.guest }

// Write takes the next bytes of the image; NewStream has taken the first.
//
// Errors: *format.Refusal.
func (s *Stream) Write(p []byte) (int, error) {
	begin, next := s.offset, s.offset+int64(len(p))
	for len(s.tables) > 0 {
		t := s.tables[0]
		from := max(t.at+int64(len(s.l2)), begin)
		if from >= next {
			break
		}
		to := min(t.at+s.h.ClusterSize, next)
		s.l2 = append(s.l2, p[from-begin:to-begin]...)
		if int64(len(s.l2)) < s.h.ClusterSize {
			break
		}
		end, err := s.h.checkTable(s.l2, t.guest, s.guest.length)
		if err != nil {
			return 0, err
		}
		s.end = max(s.end, end)
		s.tables, s.l2 = s.tables[1:], s.l2[:0]
	}
	s.offset = next
	return len(p), nil
}

// Close says whether the image that ended here was whole.
//
// Errors: *format.Refusal.
func (s *Stream) Close() error {
	if len(s.tables) > 0 {
		return truncated("its tables reach to byte %d at least, and it ends after %d", s.tables[0].at+s.h.ClusterSize, s.offset)
	}
	if s.offset < s.end {
		return truncated("its content reaches to byte %d, and it ends after %d", s.end, s.offset)
	}
	return nil
}
