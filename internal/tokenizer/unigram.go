package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// unkPenalty is how much less an unknown character scores than the least likely
// token.
const unkPenalty = 10

// A unigram splits a word into the tokens whose scores have the largest sum. Consecutive unknown characters
// become one unknown token, or the tokens of their bytes if the vocabulary has these.
type unigram struct {
	tokenIDs                 map[string]int64
	scores                   []float64 // by id
	maxTokenBytesByFirstByte [256]int  // bytes of the longest token, by first byte
	unkScore                 float64
	unknownID                int64
	byteTokenIDs             *[256]int64 // tokens that spell an unknown character, or nil
}

// newUnigram returns the unigram model in a model file. It keeps the map known, the ids of the
// vocabulary, and deletes the special tokens from it.
func newUnigram(m *modelSection, known map[string]int64, special map[string]bool) (*unigram, error) {
	tokens := m.Vocab.tokens
	if m.UnkID == nil || *m.UnkID < 0 || *m.UnkID >= int64(len(tokens)) {
		return nil, errors.New("unk_id is not in the vocabulary; export the tokenizer again")
	}
	u := &unigram{tokenIDs: known, scores: make([]float64, len(tokens)), unknownID: *m.UnkID}
	if m.ByteFallback {
		u.byteTokenIDs = byteTokenIDs(known, special)
	}
	special[tokens[u.unknownID].text] = true
	for text := range special {
		delete(known, text)
	}
	least := tokens[0].score
	for _, t := range tokens {
		least = min(least, t.score)
		u.scores[t.id] = t.score
		u.maxTokenBytesByFirstByte[t.text[0]] = max(u.maxTokenBytesByFirstByte[t.text[0]], len(t.text))
	}
	u.unkScore = least - unkPenalty
	return u, nil
}

// byteTokenIDs returns the tokens <0x00> to <0xFF> and marks them as special, or
// returns nil if one is missing.
func byteTokenIDs(known map[string]int64, special map[string]bool) *[256]int64 {
	var out [256]int64
	for b := range out {
		name := fmt.Sprintf("<0x%02X>", b)
		id, ok := known[name]
		if !ok {
			return nil
		}
		out[b] = id
		special[name] = true
	}
	return &out
}

// A bestTokenizationToOffset is the best split of the first bytes of a word into tokens: the ID and start of the
// last token, and the sum of the scores of all tokens.
type bestTokenizationToOffset struct {
	score          float64
	lastTokenStart int32 // or -1
	lastTokenID    int32
}

// appendTokens appends the IDs of the tokens of word whose scores have the largest sum. It adds and compares
// scores in the same order as HuggingFace's library, so that both choose the same tokens if two sums are equal.
func (u *unigram) appendTokens(dst []int64, word string) []int64 {
	best := make([]bestTokenizationToOffset, len(word)+1)
	for i := range best {
		best[i].lastTokenStart = -1
	}
	for at := 0; at < len(word); {
		here := best[at].score
		_, char := utf8.DecodeRuneInString(word[at:])
		single := false
		for end := at + 1; end <= min(len(word), at+u.maxTokenBytesByFirstByte[word[at]]); end++ {
			if end < len(word) && !utf8.RuneStart(word[end]) {
				continue
			}
			id, ok := u.tokenIDs[word[at:end]]
			if !ok {
				continue
			}
			best[end].keepBetter(here+u.scores[id], at, id)
			single = single || end == at+char
		}
		if !single {
			best[at+char].keepBetter(here+u.unkScore, at, u.unknownID)
		}
		at += char
	}
	before := len(dst)
	for end := len(word); end > 0; {
		b := best[end]
		start := int(b.lastTokenStart)
		switch {
		case int64(b.lastTokenID) != u.unknownID:
			dst = append(dst, int64(b.lastTokenID))
		case u.byteTokenIDs != nil:
			for i := end - 1; i >= start; i-- {
				dst = append(dst, u.byteTokenIDs[word[i]])
			}
		case end == len(word) || dst[len(dst)-1] != u.unknownID:
			dst = append(dst, u.unknownID)
		}
		end = start
	}
	slices.Reverse(dst[before:])
	return dst
}

func (s *bestTokenizationToOffset) keepBetter(score float64, start int, id int64) {
	if s.lastTokenStart < 0 || score > s.score {
		*s = bestTokenizationToOffset{score, int32(start), int32(id)}
	}
}
