package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// expandWordBraces returns the parts of the words that brace expansion makes of a word.
func (s *analysisState) expandWordBraces(w *syntax.Word) [][]syntax.WordPart {
	split := syntax.Word{Parts: w.Parts} // copy: the syntax tree must not change, because it is walked again
	if !syntax.SplitBraces(&split) {
		return [][]syntax.WordPart{w.Parts}
	}
	if s.dialect.mayBePOSIX || s.dialect.zshOptionsChanged { // this shell may not expand braces
		for _, parts := range s.expandBraces(split.Parts) {
			for _, p := range parts {
				s.expandPart(p)
			}
		}
		return [][]syntax.WordPart{{&syntax.BraceExp{}}}
	}
	words := s.expandBraces(split.Parts)
	if len(words) > abstract.MaxExpandedWords {
		s.abortAnalysis("a brace expansion makes too many words")
		return words[:abstract.MaxExpandedWords]
	}
	return words
}

func (s *analysisState) expandBraces(parts []syntax.WordPart) [][]syntax.WordPart {
	words := [][]syntax.WordPart{nil}
	for _, part := range parts {
		brace, ok := part.(*syntax.BraceExp)
		if !ok {
			for i := range words {
				words[i] = appendWordParts(words[i], []syntax.WordPart{part})
			}
			continue
		}
		var options [][]syntax.WordPart
		if brace.Sequence {
			options = expandSequence(brace)
		} else {
			for _, e := range brace.Elems {
				options = append(options, s.expandBraces(e.Parts)...)
			}
		}
		if len(options)*len(words) > abstract.MaxExpandedWords || !s.spendSteps(len(options)*len(words)/4) {
			s.abortAnalysis("a brace expansion makes too many words")
			return words
		}
		next := make([][]syntax.WordPart, 0, len(words)*len(options))
		for _, word := range words {
			for _, o := range options {
				next = append(next, appendWordParts(word, o))
			}
		}
		words = next
	}
	return words
}

// appendWordParts joins the parts of a word. Braces are expanded before variables, so text after a variable's name can
// become part of the name.
func appendWordParts(word, more []syntax.WordPart) []syntax.WordPart {
	out := append(word[:len(word):len(word)], more...)
	if len(word) == 0 || len(more) == 0 {
		return out
	}
	p, ok := word[len(word)-1].(*syntax.ParamExp)
	l, isLit := more[0].(*syntax.Lit)
	if ok && p.Short && isLit && l.Value != "" && (l.Value[0] == '_' || syntax.ValidName(l.Value[:1]) || l.Value[0] >= '0' && l.Value[0] <= '9') {
		out[len(word)-1] = &syntax.BraceExp{}
	}
	return out
}

// expandSequence expands {1..5}, {a..e} and their steps.
func expandSequence(b *syntax.BraceExp) [][]syntax.WordPart {
	var ends [3]string
	for i, e := range b.Elems {
		if i < len(ends) {
			ends[i] = e.Lit()
		}
	}
	from, err1 := strconv.Atoi(ends[0])
	to, err2 := strconv.Atoi(ends[1])
	letters := err1 != nil || err2 != nil
	if letters {
		if len(ends[0]) != 1 || len(ends[1]) != 1 {
			return [][]syntax.WordPart{{&syntax.Lit{Value: "{" + strings.Join(ends[:2], "..") + "}"}}}
		}
		from, to = int(ends[0][0]), int(ends[1][0])
	}
	step := 1
	if n, err := strconv.Atoi(ends[2]); err == nil && n != 0 {
		step = max(n, -n)
	}
	var out [][]syntax.WordPart
	for n := 0; n <= abstract.MaxExpandedWords; n++ {
		at := from + n*step
		if from > to {
			at = from - n*step
		}
		if from <= to && at > to || from > to && at < to {
			break
		}
		text := strconv.Itoa(at)
		if letters {
			text = string(rune(at))
		} else if w := len(ends[0]); len(text) < w && strings.HasPrefix(strings.TrimPrefix(ends[0], "-"), "0") {
			text = strings.Repeat("0", w-len(text)) + text
		}
		out = append(out, []syntax.WordPart{&syntax.Lit{ValuePos: b.Pos(), Value: text}})
	}
	return out
}
