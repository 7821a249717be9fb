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

// A unigram divides a word where the sum of its tokens' scores is largest.
// Consecutive unknown characters are one unknown token.
type unigram struct {
	pieces   map[string]piece
	longest  [256]int // bytes of the longest token, by first byte
	unkScore float64
	unk      int64
	bytes    *[256]int64 // tokens that spell an unknown character, or nil
}

type piece struct {
	id    int64
	score float64
}

func newUnigram(m *modelFile, special map[string]bool) (*unigram, error) {
	tokens := m.Vocab.tokens
	if m.UnkID == nil || *m.UnkID < 0 || *m.UnkID >= int64(len(tokens)) {
		return nil, errors.New("unk_id names no token of the vocabulary")
	}
	u := &unigram{pieces: make(map[string]piece, len(tokens)), unk: *m.UnkID}
	if m.ByteFallback {
		u.bytes = byteTokens(tokens, special)
	}
	least := tokens[0].score
	for _, t := range tokens {
		least = min(least, t.score)
		if special[t.text] || t.id == u.unk {
			continue
		}
		u.pieces[t.text] = piece{t.id, t.score}
		u.longest[t.text[0]] = max(u.longest[t.text[0]], len(t.text))
	}
	u.unkScore = least - unkPenalty
	return u, nil
}

// byteTokens returns the tokens <0x00> to <0xFF> and marks them as special, or
// returns nil if one is missing.
func byteTokens(tokens []token, special map[string]bool) *[256]int64 {
	ids := map[string]int64{}
	for _, t := range tokens {
		if len(t.text) == len("<0x00>") && t.text[0] == '<' {
			ids[t.text] = t.id
		}
	}
	var out [256]int64
	for b := range out {
		name := fmt.Sprintf("<0x%02X>", b)
		id, ok := ids[name]
		if !ok {
			return nil
		}
		out[b] = id
		special[name] = true
	}
	return &out
}

// A step is the best way to an end: the token that leads there, where it begins,
// and the sum of the scores so far.
type step struct {
	score float64
	start int32 // or -1
	id    int32
}

// tokens follows HuggingFace's order of additions and comparisons, so that equal
// sums are decided equally.
func (u *unigram) tokens(dst []int64, word string) []int64 {
	best := make([]step, len(word)+1)
	for i := range best {
		best[i].start = -1
	}
	for at := 0; at < len(word); {
		here := best[at].score
		_, char := utf8.DecodeRuneInString(word[at:])
		single := false
		for end := at + 1; end <= min(len(word), at+u.longest[word[at]]); end++ {
			if end < len(word) && !utf8.RuneStart(word[end]) {
				continue
			}
			p, ok := u.pieces[word[at:end]]
			if !ok {
				continue
			}
			best[end].offer(here+p.score, at, p.id)
			single = single || end == at+char
		}
		if !single {
			best[at+char].offer(here+u.unkScore, at, u.unk)
		}
		at += char
	}
	before := len(dst)
	for end := len(word); end > 0; {
		b := best[end]
		start := int(b.start)
		switch {
		case int64(b.id) != u.unk:
			dst = append(dst, int64(b.id))
		case u.bytes != nil:
			for i := end - 1; i >= start; i-- {
				dst = append(dst, u.bytes[word[i]])
			}
		case end == len(word) || dst[len(dst)-1] != u.unk:
			dst = append(dst, u.unk)
		}
		end = start
	}
	slices.Reverse(dst[before:])
	return dst
}

func (s *step) offer(score float64, start int, id int64) {
	if s.start < 0 || score > s.score {
		*s = step{score, int32(start), int32(id)}
	}
}
