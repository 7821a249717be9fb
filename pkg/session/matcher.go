package session

import (
	"crypto/hmac"
	mathbits "math/bits"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

// A carriedPart says how much of a value that the session has read an action sends.
type carriedPart uint8

const (
	carriesNone carriedPart = iota
	carriesPart
	carriesWhole
)

// A matcher finds values in texts. It is immutable, so that the actions of a session share it.
type matcher struct {
	values       []Value
	filter       []uint64         // one bit for each tag of a value's pieces
	mask         uint32           // selects the tag bits that index the filter
	slots        []slot           // open-addressing hash table: a power of two slots, at most half of them used
	pieces       []int            // number of different pieces, by value
	byFirstPiece map[uint32][]int // indices of values that only match as a whole, by the tag of their first piece
}

// A slot says which value has a piece with some hash.
type slot struct {
	sum   uint64
	value int // counted from 1; 0 for a free slot
}

// minFilterBits is the base-2 logarithm of the smallest filter's size.
const minFilterBits = 6

func newMatcher(values []Value) *matcher {
	n := len(values)
	for i := range values {
		n += len(values[i].Pieces) / keptSize
	}
	size := min(max(mathbits.Len(uint(32*n)), minFilterBits), tagBits)
	m := &matcher{values: values, filter: make([]uint64, 1<<size/64), mask: 1<<size - 1, slots: make([]slot, 1<<mathbits.Len(uint(2*n))), pieces: make([]int, len(values)), byFirstPiece: map[uint32][]int{}}
	for i := range values {
		v := &values[i]
		if len(v.Pieces) == 0 {
			m.mark(v.Tag)
			m.byFirstPiece[v.Tag] = append(m.byFirstPiece[v.Tag], i)
		}
		v.eachPiece(func(tag uint32, sum uint64) {
			m.mark(tag)
			m.insert(sum, i)
		})
	}
	return m
}

func (m *matcher) mark(tag uint32) { m.filter[tag&m.mask/64] |= 1 << (tag & m.mask % 64) }

// insert adds a piece of a value, unless it is present.
func (m *matcher) insert(sum uint64, value int) {
	at := sum
	for ; m.slot(at).value != 0; at++ {
		if s := m.slot(at); s.sum == sum && s.value == value+1 {
			return
		}
	}
	*m.slot(at) = slot{sum, value + 1}
	m.pieces[value]++
}

func (m *matcher) slot(at uint64) *slot { return &m.slots[at&uint64(len(m.slots)-1)] }

// A search searches the texts of one action. It belongs to one goroutine.
type search struct {
	*matcher
	h          *hasher
	piecesLeft int // pieces that may still be hashed and compared
	seenSlots  map[slot]bool
}

func (m *matcher) search(key [32]byte) *search {
	return &search{matcher: m, h: newHasher(key), piecesLeft: maxHashed}
}

// find returns how much a text contains of each value, by index; nil if it contains none.
func (s *search) find(text string) (found map[int]carriedPart) {
	clear(s.seenSlots)
	for i := 0; i+pieceSize <= len(text); i++ {
		piece := pieceAt(text, i)
		tag := s.h.pieceTag(piece)
		if s.filter[tag&s.mask/64]&(1<<(tag&s.mask%64)) == 0 {
			continue
		}
		if s.piecesLeft--; s.piecesLeft < 0 {
			break
		}
		for _, v := range s.byFirstPiece[tag] {
			if s.holdsWhole(text, i, v) {
				found = addFound(found, v, carriesPart)
			}
		}
		sum := s.h.pieceHash(piece)
		for at := sum; s.slot(at).value != 0; at++ {
			if have := *s.slot(at); have.sum == sum {
				if s.seenSlots == nil {
					s.seenSlots = map[slot]bool{}
				}
				s.seenSlots[have] = true
			}
		}
	}
	count := map[int]int{}
	for have := range s.seenSlots {
		v := have.value - 1
		if count[v]++; count[v] >= s.pieces[v] {
			found = addFound(found, v, carriesWhole)
		} else {
			found = addFound(found, v, carriesPart)
		}
	}
	return found
}

func addFound(found map[int]carriedPart, value int, f carriedPart) map[int]carriedPart {
	if found == nil {
		found = map[int]carriedPart{}
	}
	found[value] = max(found[value], f)
	return found
}

// holdsWhole reports whether a text contains a whole value at offset i: for a private word, delimited
// as a word.
func (s *search) holdsWhole(text string, i, value int) bool {
	v := &s.values[value]
	end := i + v.Length
	if end > len(text) || v.Private && !isWord(text, i, end) {
		return false
	}
	return hmac.Equal(s.h.hash(text[i:end])[:sumSize], v.Sum)
}

// isWord reports whether part of a text is a word: no adjacent byte continues it.
func isWord(text string, start, end int) bool {
	at := func(i int) byte {
		if i < 0 || i >= len(text) {
			return ' '
		}
		return text[i]
	}
	return !continuesWord(at(start-1), at(start-2)) && !continuesWord(at(end), at(end+1))
}

// continuesWord reports whether the adjacent byte near continues a word; beyond is the byte on the far
// side of near.
func continuesWord(near, beyond byte) bool {
	if near == '.' || near == '-' {
		near = beyond
	} else if near == '@' || near == '_' {
		return true
	}
	return '0' <= near && near <= '9' || 'a' <= near|0x20 && near|0x20 <= 'z'
}

// carriedParts returns how much of the values a case sends.
func (m *matcher) carriedParts(key [32]byte, c *analysis.Case) carriedPart {
	o := c.Outgoing()
	if o == nil {
		return carriesNone
	}
	s := m.search(key)
	worst := carriesNone
	for _, text := range o.Said {
		for _, f := range s.find(text) {
			worst = max(worst, f)
		}
	}
	for _, text := range o.Signing {
		for i := range s.find(text) {
			if !m.values[i].belongsTo(o.Hosts) && !sendsToTrusted(c) {
				worst = max(worst, carriesPart)
			}
		}
	}
	if (s.piecesLeft < 0 || o.Cut) && !o.Perhaps {
		worst = max(worst, carriesPart)
	}
	if o.Perhaps {
		worst = min(worst, carriesPart)
	}
	return worst
}

// holdsCredential reports whether a text contains part of a credential, or the limit of the search was
// reached.
func (m *matcher) holdsCredential(key [32]byte, texts []string) bool {
	s := m.search(key)
	for _, text := range texts {
		for i := range s.find(text) {
			if !m.values[i].Private {
				return true
			}
		}
	}
	return s.piecesLeft < 0
}

// sendsToTrusted reports whether a case contacts only trusted places.
func sendsToTrusted(c *analysis.Case) bool {
	found := false
	for i := range c.Effects {
		switch e := &c.Effects[i]; e.Word() {
		case effect.SendData, effect.SendMessage, effect.HTTPRequest, effect.Connect:
			if found = true; !e.Trusted {
				return false
			}
		}
	}
	return found
}
