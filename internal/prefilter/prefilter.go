// Package prefilter selects, in one scan of a text, which of many regular
// expressions could match it. [RequiredLiterals] finds literals of which every match
// contains at least one, and a [LiteralSet] looks for the literals of all expressions
// at once, so that only the few expressions that could match are run.
package prefilter

// MinLiteralBytes is the length, in bytes, that a literal must have at least.
const MinLiteralBytes = 3

const (
	hashBits  = 16
	hashCount = 1 << hashBits
	slotBits  = 12 // number of leading bits of a hash that select the slot
	slotCount = 1 << slotBits
)

// A LiteralSet finds literals in texts, without regard to ASCII letter case.
// Goroutines may share it.
type LiteralSet struct {
	fourByteGramTable, threeByteGramTable gramTable // fourByteGramTable has the literals of four bytes or more, by four of them; threeByteGramTable those of three
	entries                               []literalEntry
	expressionBitsetWords                 int
}

// A gramTable holds entries by a gram, bytes that follow each other in a literal.
type gramTable struct {
	hashBitmap [hashCount / 64]uint64 // bit i%64 of known[i/64]: an entry has hash i
	slotHeads  [slotCount]uint16      // 1 + index of the first entry of a slot
}

// A literalEntry is one literal, found by its gram.
type literalEntry struct {
	gram         uint32
	next         uint16 // 1 + index of the next entry of the slot
	gramEnd      uint16 // offset in the literal at which the gram ends
	literal      string // lower case
	expressionID int
}

// TryNewLiteralSet returns a [LiteralSet] in which literals[i] belong to expression i. Literals are
// given as [RequiredLiterals] returns them. An expression without literals is never found, so the
// caller has to run it on every text. The set has room for 65,535 literals of at most 65,535 bytes
// each; the second result is false if it does not contain all literals.
func TryNewLiteralSet(literals [][]string) (*LiteralSet, bool) {
	s := &LiteralSet{expressionBitsetWords: (len(literals) + 63) / 64}
	n := 0
	for _, list := range literals {
		n += len(list)
	}
	s.entries = make([]literalEntry, 0, min(n, 1<<16-1))
	// The length of each slot's chain, to choose the rarest part of a literal.
	var load [slotCount]uint8
	ranks := byteRanks()
	for id, list := range literals {
		for _, lit := range list {
			if len(lit) < MinLiteralBytes || len(lit) >= 1<<16 || len(s.entries) == 1<<16-1 {
				return s, false
			}
			s.addLiteral(id, lit, &load, &ranks)
		}
	}
	return s, true
}

// frequentBytes are the bytes of texts that agents write, from the most frequent on.
const frequentBytes = " etsoriancl\ndpmu\"-h.gf/b:y_vw0k=1,#x)(\t2|{}$3\\4j`6'5z8;[q>]*7<9+!@%&"

// byteRanks returns the place of each byte among the common ones.
func byteRanks() (ranks [256]uint32) {
	for c := range ranks {
		ranks[c] = uint32(len(frequentBytes)) + 2
	}
	for i := range len(frequentBytes) {
		ranks[frequentBytes[i]] = uint32(i) + 2
	}
	return ranks
}

func (s *LiteralSet) addLiteral(id int, lit string, entriesPerSlot *[slotCount]uint8, ranks *[256]uint32) {
	if len(lit) == MinLiteralBytes {
		s.insertEntry(&s.threeByteGramTable, literalEntry{gram: firstGram("\x00" + lit), literal: lit, gramEnd: MinLiteralBytes, expressionID: id})
		return
	}
	best, most := 0, uint32(0)
	for i := range len(lit) - 3 {
		rarity := ranks[lit[i]] * ranks[lit[i+1]] * ranks[lit[i+2]] * ranks[lit[i+3]]
		if rarity/8 <= most {
			continue // too common to be better than the best gram so far, even in an empty hash slot
		}
		if rarity /= 8 + uint32(entriesPerSlot[slotOfGram(firstGram(lit[i:]))]); rarity > most {
			best, most = i, rarity
		}
	}
	g := firstGram(lit[best:])
	if h := slotOfGram(g); entriesPerSlot[h] < 255 {
		entriesPerSlot[h]++
	}
	s.insertEntry(&s.fourByteGramTable, literalEntry{gram: g, literal: lit, gramEnd: uint16(best + 4), expressionID: id})
}

func (s *LiteralSet) insertEntry(t *gramTable, e literalEntry) {
	h := hashGram(e.gram)
	t.hashBitmap[h/64] |= 1 << (h % 64)
	e.next = t.slotHeads[slotOfGram(e.gram)]
	s.entries = append(s.entries, e)
	t.slotHeads[slotOfGram(e.gram)] = uint16(len(s.entries))
}

// ExpressionBitsetWords is the number of words that the bit set given to [ScanForLiterals] must have.
func (s *LiteralSet) ExpressionBitsetWords() int { return s.expressionBitsetWords }

// ScanForLiterals sets a bit in found for each expression of which a literal is in
// text; bit i%64 of found[i/64] is expression i. Bits that are set stay set.
func ScanForLiterals[T string | []byte](s *LiteralSet, text T, expressionBitset []uint64) {
	scan(s, text, expressionBitset, func(id, _ int) { expressionBitset[id>>6] |= 1 << (id & 63) })
}

// EachLiteralMatch calls visit for each place at which a literal is in text: with the
// expression it belongs to and with its first byte. Places come in the order in
// which their literals are recognised, which is not quite that of the text.
func EachLiteralMatch[T string | []byte](s *LiteralSet, text T, visit func(id, at int)) {
	scan(s, text, nil, visit)
}

// scan calls visit for each place of a literal whose expression has no bit in found.
func scan[T string | []byte](s *LiteralSet, text T, found []uint64, visit func(id, at int)) {
	if len(text) < MinLiteralBytes || len(s.entries) == 0 {
		return
	}
	g := uint32(lower(text[0]))<<16 | uint32(lower(text[1]))<<24
	for i := 2; i < len(text); i++ {
		g = g>>8 | uint32(lower(text[i]))<<24
		if s.fourByteGramTable.mayHaveGram(g) {
			visitLiteralsAt(s, &s.fourByteGramTable, g, text, i+1, found, visit)
		}
		if g := g &^ 0xff; s.threeByteGramTable.mayHaveGram(g) {
			visitLiteralsAt(s, &s.threeByteGramTable, g, text, i+1, found, visit)
		}
	}
}

// mayHaveGram reports whether an entry of the table may have a gram. This is false at most
// positions of most texts, so that few positions are examined further.
func (t *gramTable) mayHaveGram(g uint32) bool {
	h := hashGram(g)
	return t.hashBitmap[h/64]&(1<<(h%64)) != 0
}

// visitLiteralsAt visits the literals in text that have the gram g, which consists of the bytes of
// text that end at the offset end.
func visitLiteralsAt[T string | []byte](s *LiteralSet, t *gramTable, g uint32, text T, end int, found []uint64, visit func(id, at int)) {
	for e := t.slotHeads[slotOfGram(g)]; e != 0; {
		x := &s.entries[e-1]
		e = x.next
		if x.gram != g || found != nil && found[x.expressionID>>6]&(1<<(x.expressionID&63)) != 0 {
			continue
		}
		if at := end - int(x.gramEnd); at >= 0 && at+len(x.literal) <= len(text) && equalFold(text[at:at+len(x.literal)], x.literal) {
			visit(x.expressionID, at)
		}
	}
}

func equalFold[T string | []byte](text T, lit string) bool {
	for i := range len(lit) {
		if lower(text[i]) != lit[i] {
			return false
		}
	}
	return true
}

// firstGram returns the first four bytes of a literal.
func firstGram(lit string) uint32 {
	return uint32(lit[0]) | uint32(lit[1])<<8 | uint32(lit[2])<<16 | uint32(lit[3])<<24
}

func hashGram(g uint32) uint32 { return g * 0x9E3779B1 >> (32 - hashBits) }

func slotOfGram(g uint32) uint32 { return hashGram(g) >> (hashBits - slotBits) }

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b | 0x20
	}
	return b
}
