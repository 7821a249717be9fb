// Package prefilter selects, in one scan of a text, which of many regular
// expressions could match it. [Required] finds literals of which every match
// contains at least one, and a [Set] looks for the literals of all expressions
// at once, so that only the few expressions that could match are run.
package prefilter

// MinLiteral is the length, in bytes, that a literal must have at least.
const MinLiteral = 3

const (
	hashBits = 16
	hashes   = 1 << hashBits
	slotBits = 12 // the first of a hash
	slots    = 1 << slotBits
)

// A Set finds literals in texts, without regard to ASCII letter case.
// Goroutines may share it.
type Set struct {
	known   [hashes / 64]uint64 // bit i%64 of known[i/64]: an entry has hash i
	heads   [slots]uint16       // 1 + index of the first entry of a slot
	entries []entry
	words   int
}

// An entry is one literal, found by three of its bytes.
type entry struct {
	gram    uint32 // the three bytes at offset
	literal string // lower case
	offset  int    // of the three bytes in the literal
	id      int
	next    uint16 // 1 + index of the next entry of the slot
}

// New returns a Set in which literals[i] belong to expression i. Literals are
// given as [Required] returns them; an expression without literals is never
// found and has to be run on every text. At most 65,535 literals are kept;
// New reports whether all were.
func New(literals [][]string) (*Set, bool) {
	s := &Set{words: (len(literals) + 63) / 64}
	n := 0
	for _, list := range literals {
		n += len(list)
	}
	s.entries = make([]entry, 0, min(n, 1<<16-1))
	// The length of each slot's chain, to choose the rarest part of a literal.
	var load [slots]uint8
	for id, list := range literals {
		for _, lit := range list {
			if len(lit) < MinLiteral || len(s.entries) == 1<<16-1 {
				return s, false
			}
			s.add(id, lit, &load)
		}
	}
	return s, true
}

func (s *Set) add(id int, lit string, load *[slots]uint8) {
	best := 0
	for i := range len(lit) - 2 {
		if load[slot(gram(lit, i))] < load[slot(gram(lit, best))] {
			best = i
		}
	}
	g := gram(lit, best)
	s.known[hash(g)/64] |= 1 << (hash(g) % 64)
	h := slot(g)
	s.entries = append(s.entries, entry{gram: g, literal: lit, offset: best, id: id, next: s.heads[h]})
	s.heads[h] = uint16(len(s.entries))
	if load[h] < 255 {
		load[h]++
	}
}

// Words is the number of words that the bit set given to [Scan] must have.
func (s *Set) Words() int { return s.words }

// Scan sets a bit in found for each expression of which a literal is in
// text; bit i%64 of found[i/64] is expression i. Bits that are set stay set.
func Scan[T string | []byte](s *Set, text T, found []uint64) {
	if len(text) < MinLiteral || len(s.entries) == 0 {
		return
	}
	g := uint32(lower(text[0]))<<8 | uint32(lower(text[1]))<<16
	for i := 2; i < len(text); i++ {
		g = g>>8 | uint32(lower(text[i]))<<16
		if h := hash(g); s.known[h/64]&(1<<(h%64)) == 0 { // as in most places of most texts
			continue
		}
		for e := s.heads[slot(g)]; e != 0; {
			x := &s.entries[e-1]
			e = x.next
			if x.gram != g || found[x.id>>6]&(1<<(x.id&63)) != 0 {
				continue
			}
			if at := i - 2 - x.offset; at >= 0 && at+len(x.literal) <= len(text) && equal(text[at:at+len(x.literal)], x.literal) {
				found[x.id>>6] |= 1 << (x.id & 63)
			}
		}
	}
}

// Each calls visit for each place at which a literal is in text: with the
// expression it belongs to and with its first byte. Places come in the order in
// which their literals are recognised, which is not quite that of the text.
func Each[T string | []byte](s *Set, text T, visit func(id, at int)) {
	if len(text) < MinLiteral || len(s.entries) == 0 {
		return
	}
	g := uint32(lower(text[0]))<<8 | uint32(lower(text[1]))<<16
	for i := 2; i < len(text); i++ {
		g = g>>8 | uint32(lower(text[i]))<<16
		for e := s.heads[slot(g)]; e != 0; {
			x := &s.entries[e-1]
			e = x.next
			if x.gram != g {
				continue
			}
			if at := i - 2 - x.offset; at >= 0 && at+len(x.literal) <= len(text) && equal(text[at:at+len(x.literal)], x.literal) {
				visit(x.id, at)
			}
		}
	}
}

func equal[T string | []byte](text T, lit string) bool {
	for i := range len(lit) {
		if lower(text[i]) != lit[i] {
			return false
		}
	}
	return true
}

func gram(lit string, i int) uint32 {
	return uint32(lit[i]) | uint32(lit[i+1])<<8 | uint32(lit[i+2])<<16
}

func hash(g uint32) uint32 { return g * 0x9E3779B1 >> (32 - hashBits) }

func slot(g uint32) uint32 { return hash(g) >> (hashBits - slotBits) }

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b | 0x20
	}
	return b
}
