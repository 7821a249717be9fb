// Package prefilter selects, in one scan of a text, which of many regular
// expressions could match it. [RequiredLiteralAlternatives] finds literals of which every match
// contains at least one, and a [LiteralSet] looks for the literals of all expressions
// at once, so that only the few expressions that could match are run.
package prefilter

// MinLiteralBytes is the length, in bytes, that a literal must have at least.
const MinLiteralBytes = 3

const (
	gramHashBits       = 16
	gramHashValueCount = 1 << gramHashBits
	gramTableSlotBits  = 12 // number of leading bits of a hash that select the slot
	gramTableSlotCount = 1 << gramTableSlotBits
)

// A LiteralSet finds literals in texts, without regard to ASCII letter case.
// Goroutines may share it.
type LiteralSet struct {
	fourByteGramTable, threeByteGramTable gramToLiteralTable // fourByteGramTable indexes literals of at least 4 bytes by 4 bytes of each; threeByteGramTable indexes literals of 3 bytes
	entries                               []literalEntry
	expressionBitsetWords                 int
}

// A gramToLiteralTable holds entries by a gram, bytes that follow each other in a literal.
type gramToLiteralTable struct {
	hashBitmap [gramHashValueCount / 64]uint64 // bit h%64 of hashBitmap[h/64] is 1 if the gram of an entry has the hash h
	slotHeads  [gramTableSlotCount]uint16      // 1 + index of the first entry of a slot
}

// A literalEntry is one literal. Its gram, 4 consecutive bytes of the literal (3 if the literal has only 3),
// selects the entry in the table.
type literalEntry struct {
	littleEndianLookupGram uint32
	nextEntryInSlotPlusOne uint16 // 1 + index of the next entry of the slot
	gramEndInLiteral       uint16 // offset in the literal at which the gram ends
	literal                string // lower case
	expressionID           int
}

// TryNewLiteralSet returns a [LiteralSet] in which literals[i] belong to expression i. Literals are
// given as [RequiredLiteralAlternatives] returns them. An expression without literals is never found, so the
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
	var load [gramTableSlotCount]uint8
	ranks := byteFrequencyRanks()
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

// agentTextBytesByFrequency are the bytes of texts that agents write, from the most frequent on.
const agentTextBytesByFrequency = " etsoriancl\ndpmu\"-h.gf/b:y_vw0k=1,#x)(\t2|{}$3\\4j`6'5z8;[q>]*7<9+!@%&"

// byteFrequencyRanks returns a rank for each byte: the rarer the byte is in texts that agents write, the higher
// its rank. All bytes outside agentTextBytesByFrequency share the highest rank.
func byteFrequencyRanks() (ranks [256]uint32) {
	for c := range ranks {
		ranks[c] = uint32(len(agentTextBytesByFrequency)) + 2
	}
	for i := range len(agentTextBytesByFrequency) {
		ranks[agentTextBytesByFrequency[i]] = uint32(i) + 2
	}
	return ranks
}

func (s *LiteralSet) addLiteral(id int, lit string, entriesPerSlot *[gramTableSlotCount]uint8, ranks *[256]uint32) {
	if len(lit) == MinLiteralBytes {
		s.insertEntry(&s.threeByteGramTable, literalEntry{littleEndianLookupGram: firstGram("\x00" + lit), literal: lit, gramEndInLiteral: MinLiteralBytes, expressionID: id})
		return
	}
	best, most := 0, uint32(0)
	for i := range len(lit) - 3 {
		rarity := ranks[lit[i]] * ranks[lit[i+1]] * ranks[lit[i+2]] * ranks[lit[i+3]]
		if rarity/8 <= most {
			continue // these 4 bytes are too common: even in an empty hash slot they are no better than the best 4 so far
		}
		if rarity /= 8 + uint32(entriesPerSlot[slotOfGram(firstGram(lit[i:]))]); rarity > most {
			best, most = i, rarity
		}
	}
	g := firstGram(lit[best:])
	if h := slotOfGram(g); entriesPerSlot[h] < 255 {
		entriesPerSlot[h]++
	}
	s.insertEntry(&s.fourByteGramTable, literalEntry{littleEndianLookupGram: g, literal: lit, gramEndInLiteral: uint16(best + 4), expressionID: id})
}

func (s *LiteralSet) insertEntry(t *gramToLiteralTable, e literalEntry) {
	h := hashGram(e.littleEndianLookupGram)
	t.hashBitmap[h/64] |= 1 << (h % 64)
	e.nextEntryInSlotPlusOne = t.slotHeads[slotOfGram(e.littleEndianLookupGram)]
	s.entries = append(s.entries, e)
	t.slotHeads[slotOfGram(e.littleEndianLookupGram)] = uint16(len(s.entries))
}

// ExpressionBitsetWords is the number of words that the bit set given to [ScanForLiterals] must have.
func (s *LiteralSet) ExpressionBitsetWords() int { return s.expressionBitsetWords }

// ScanForLiterals sets bit i%64 of expressionBitset[i/64] for each expression i that has a literal
// in text. Bits that are already set stay set.
func ScanForLiterals[T string | []byte](s *LiteralSet, text T, expressionBitset []uint64) {
	visitLiteralsOfUnfoundExpressions(s, text, expressionBitset, func(id, _ int) { expressionBitset[id>>6] |= 1 << (id & 63) })
}

// EachLiteralMatch calls visit for each occurrence of a literal in text: id is the number of the
// literal's expression, and at is the offset of the occurrence. The occurrences are not exactly
// sorted by offset.
func EachLiteralMatch[T string | []byte](s *LiteralSet, text T, visit func(id, at int)) {
	visitLiteralsOfUnfoundExpressions(s, text, nil, visit)
}

// visitLiteralsOfUnfoundExpressions calls visit for each place of a literal whose expression has no bit in found.
func visitLiteralsOfUnfoundExpressions[T string | []byte](s *LiteralSet, text T, foundExpressionBitset []uint64, visit func(id, at int)) {
	if len(text) < MinLiteralBytes || len(s.entries) == 0 {
		return
	}
	g := uint32(lower(text[0]))<<16 | uint32(lower(text[1]))<<24
	for i := 2; i < len(text); i++ {
		g = g>>8 | uint32(lower(text[i]))<<24
		if s.fourByteGramTable.mayHaveGram(g) {
			visitLiteralsAt(s, &s.fourByteGramTable, g, text, i+1, foundExpressionBitset, visit)
		}
		if g := g &^ 0xff; s.threeByteGramTable.mayHaveGram(g) {
			visitLiteralsAt(s, &s.threeByteGramTable, g, text, i+1, foundExpressionBitset, visit)
		}
	}
}

// mayHaveGram reports whether an entry of the table can have the gram g. The result is usually
// false, which saves a search of the table's entries.
func (t *gramToLiteralTable) mayHaveGram(g uint32) bool {
	h := hashGram(g)
	return t.hashBitmap[h/64]&(1<<(h%64)) != 0
}

// visitLiteralsAt visits the literals in text that have the gram g, which consists of the bytes of
// text that end at the offset end.
func visitLiteralsAt[T string | []byte](s *LiteralSet, t *gramToLiteralTable, g uint32, text T, end int, found []uint64, visit func(id, at int)) {
	for e := t.slotHeads[slotOfGram(g)]; e != 0; {
		x := &s.entries[e-1]
		e = x.nextEntryInSlotPlusOne
		if x.littleEndianLookupGram != g || found != nil && found[x.expressionID>>6]&(1<<(x.expressionID&63)) != 0 {
			continue
		}
		if at := end - int(x.gramEndInLiteral); at >= 0 && at+len(x.literal) <= len(text) && equalsLowerCaseLiteral(text[at:at+len(x.literal)], x.literal) {
			visit(x.expressionID, at)
		}
	}
}

func equalsLowerCaseLiteral[T string | []byte](text T, lowerCaseLiteral string) bool {
	for i := range len(lowerCaseLiteral) {
		if lower(text[i]) != lowerCaseLiteral[i] {
			return false
		}
	}
	return true
}

// firstGram returns the first four bytes of a literal.
func firstGram(lit string) uint32 {
	return uint32(lit[0]) | uint32(lit[1])<<8 | uint32(lit[2])<<16 | uint32(lit[3])<<24
}

func hashGram(g uint32) uint32 { return g * 0x9E3779B1 >> (32 - gramHashBits) }

func slotOfGram(g uint32) uint32 { return hashGram(g) >> (gramHashBits - gramTableSlotBits) }

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b | 0x20
	}
	return b
}
