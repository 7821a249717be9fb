package session

import (
	"crypto/hmac"
	mathbits "math/bits"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

// A sentValueExtent says whether an action sends none, a part or the whole of a value that the session has
// read.
type sentValueExtent uint8

const (
	sentValueExtentNone sentValueExtent = iota
	sentValueExtentPart
	sentValueExtentWhole
)

// A valueMatcher finds values in texts. It is immutable, so that the actions of a session share it.
type valueMatcher struct {
	values                   []HashedSensitiveValue
	shortHashFilter          []uint64         // one bit for each tag (short hash) of a piece of a value
	filterMask               uint32           // selects the low bits of a short hash: the index of its bit in shortHashFilter
	slots                    []ngramTableSlot // open-addressing hash table: a power of two slots, at most half of them used
	ngramCountByValueIndex   []int            // number of different pieces, by value
	valueIndexesByPrefixHash map[uint32][]int // indexes of the values without NGramHashes, by the short hash of their first ngramBytes bytes
}

// A ngramTableSlot says which value has a piece with some hash.
type ngramTableSlot struct {
	ngramHash   uint64
	valueNumber int // counted from 1; 0 for a free slot
}

// minHashFilterSizeLog2 is the base-2 logarithm of the smallest filter's size.
const minHashFilterSizeLog2 = 6

func newValueMatcher(values []HashedSensitiveValue) *valueMatcher {
	n := len(values)
	for i := range values {
		n += len(values[i].NGramHashes) / storedNGramBytes
	}
	size := min(max(mathbits.Len(uint(32*n)), minHashFilterSizeLog2), shortHashBits)
	m := &valueMatcher{values: values, shortHashFilter: make([]uint64, 1<<size/64), filterMask: 1<<size - 1, slots: make([]ngramTableSlot, 1<<mathbits.Len(uint(2*n))), ngramCountByValueIndex: make([]int, len(values)), valueIndexesByPrefixHash: map[uint32][]int{}}
	for i := range values {
		v := &values[i]
		if len(v.NGramHashes) == 0 {
			m.setFilterBit(v.PrefixShortHash)
			m.valueIndexesByPrefixHash[v.PrefixShortHash] = append(m.valueIndexesByPrefixHash[v.PrefixShortHash], i)
		}
		v.eachNGramHashes(func(tag uint32, sum uint64) {
			m.setFilterBit(tag)
			m.insert(sum, i)
		})
	}
	return m
}

func (m *valueMatcher) setFilterBit(tag uint32) {
	m.shortHashFilter[tag&m.filterMask/64] |= 1 << (tag & m.filterMask % 64)
}

// insert adds a piece of a value, unless it is present.
func (m *valueMatcher) insert(sum uint64, value int) {
	at := sum
	for ; m.slot(at).valueNumber != 0; at++ {
		if s := m.slot(at); s.ngramHash == sum && s.valueNumber == value+1 {
			return
		}
	}
	*m.slot(at) = ngramTableSlot{sum, value + 1}
	m.ngramCountByValueIndex[value]++
}

func (m *valueMatcher) slot(at uint64) *ngramTableSlot {
	return &m.slots[at&uint64(len(m.slots)-1)]
}

// A sensitiveValueSearch searches the texts of one action. It belongs to one goroutine.
type sensitiveValueSearch struct {
	*valueMatcher
	hasher               *hasher
	remainingNGramBudget int // pieces that may still be hashed and compared
	matchedNGramSlots    map[ngramTableSlot]bool
}

func (m *valueMatcher) newSensitiveValueSearch(hashKey [32]byte) *sensitiveValueSearch {
	return &sensitiveValueSearch{valueMatcher: m, hasher: newHasher(hashKey), remainingNGramBudget: maxHashedNGrams}
}

// find returns how much a text contains of each value, by index; nil if it contains none.
func (s *sensitiveValueSearch) find(text string) (found map[int]sentValueExtent) {
	clear(s.matchedNGramSlots)
	for i := 0; i+ngramBytes <= len(text); i++ {
		piece := littleEndianUint64At(text, i)
		tag := s.hasher.ngramShortHash(piece)
		if s.shortHashFilter[tag&s.filterMask/64]&(1<<(tag&s.filterMask%64)) == 0 {
			continue
		}
		if s.remainingNGramBudget--; s.remainingNGramBudget < 0 {
			break
		}
		for _, v := range s.valueIndexesByPrefixHash[tag] {
			if s.containsWholeValueAt(text, i, v) {
				found = raiseSentValueExtent(found, v, sentValueExtentPart)
			}
		}
		sum := s.hasher.ngramHash(piece)
		for at := sum; s.slot(at).valueNumber != 0; at++ {
			if have := *s.slot(at); have.ngramHash == sum {
				if s.matchedNGramSlots == nil {
					s.matchedNGramSlots = map[ngramTableSlot]bool{}
				}
				s.matchedNGramSlots[have] = true
			}
		}
	}
	count := map[int]int{}
	for have := range s.matchedNGramSlots {
		v := have.valueNumber - 1
		if count[v]++; count[v] >= s.ngramCountByValueIndex[v] {
			found = raiseSentValueExtent(found, v, sentValueExtentWhole)
		} else {
			found = raiseSentValueExtent(found, v, sentValueExtentPart)
		}
	}
	return found
}

func raiseSentValueExtent(found map[int]sentValueExtent, value int, f sentValueExtent) map[int]sentValueExtent {
	if found == nil {
		found = map[int]sentValueExtent{}
	}
	found[value] = max(found[value], f)
	return found
}

// containsWholeValueAt reports whether the whole value with the index valueIndex is at byteOffset of a text. A
// word of a private file must be a separate word there.
func (s *sensitiveValueSearch) containsWholeValueAt(text string, byteOffset, valueIndex int) bool {
	v := &s.values[valueIndex]
	end := byteOffset + v.Length
	if end > len(text) || v.IsPrivateFileWord && !isWord(text, byteOffset, end) {
		return false
	}
	return hmac.Equal(s.hasher.hash(text[byteOffset:end])[:valueHashBytes], v.Hash)
}

// isWord reports whether part of a text is a word: no adjacent byte continues it.
func isWord(text string, start, end int) bool {
	at := func(i int) byte {
		if i < 0 || i >= len(text) {
			return ' '
		}
		return text[i]
	}
	return !continuesMatchedWord(at(start-1), at(start-2)) && !continuesMatchedWord(at(end), at(end+1))
}

// continuesMatchedWord reports whether the byte next to a match continues a word, so that the match
// is only a part of that word. secondByteFromMatch is the byte after it, farther from the match.
func continuesMatchedWord(byteNextToMatch, secondByteFromMatch byte) bool {
	if byteNextToMatch == '.' || byteNextToMatch == '-' {
		byteNextToMatch = secondByteFromMatch
	} else if byteNextToMatch == '@' || byteNextToMatch == '_' {
		return true
	}
	return '0' <= byteNextToMatch && byteNextToMatch <= '9' || 'a' <= byteNextToMatch|0x20 && byteNextToMatch|0x20 <= 'z'
}

// largestSentValueExtent returns the largest part of any sensitive value that a case sends: none, a part or the
// whole. The result is at most sentValueExtentPart if it is uncertain that the case sends anything.
func (m *valueMatcher) largestSentValueExtent(hashKey [32]byte, c *analysis.ActionCase) sentValueExtent {
	o := c.FindOutgoingText()
	if o == nil {
		return sentValueExtentNone
	}
	s := m.newSensitiveValueSearch(hashKey)
	worst := sentValueExtentNone
	for _, text := range o.Texts {
		for _, f := range s.find(text) {
			worst = max(worst, f)
		}
	}
	for _, text := range o.LoginCredentials {
		for i := range s.find(text) {
			if !m.values[i].allHostsBelongToService(o.Hosts) && !contactsOnlyTrustedDestinations(c) {
				worst = max(worst, sentValueExtentPart)
			}
		}
	}
	if (s.remainingNGramBudget < 0 || o.Truncated) && !o.IsSendUncertain {
		worst = max(worst, sentValueExtentPart)
	}
	if o.IsSendUncertain {
		worst = min(worst, sentValueExtentPart)
	}
	return worst
}

// textsContainCredential reports whether a text contains part of a credential, or the limit of the search was
// reached.
func (m *valueMatcher) textsContainCredential(hashKey [32]byte, texts []string) bool {
	s := m.newSensitiveValueSearch(hashKey)
	for _, text := range texts {
		for i := range s.find(text) {
			if !m.values[i].IsPrivateFileWord {
				return true
			}
		}
	}
	return s.remainingNGramBudget < 0
}

// contactsOnlyTrustedDestinations reports whether a case contacts only trusted places.
func contactsOnlyTrustedDestinations(c *analysis.ActionCase) bool {
	found := false
	for i := range c.Effects {
		switch e := &c.Effects[i]; e.KindForPolicies() {
		case effect.SendData, effect.SendMessage, effect.HTTPRequest, effect.Connect:
			if found = true; !e.IsTargetTrusted {
				return false
			}
		}
	}
	return found
}
