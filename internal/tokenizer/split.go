package tokenizer

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A preToken is a part of a text that the model splits into tokens separately from the other parts.
type preToken struct {
	text        string
	atTextStart bool // the part begins at the start of the whole text
}

// A splitter appends the parts of a word, none of them empty, to dst.
type splitter func(dst []preToken, w preToken) []preToken

type splitterSection struct {
	Type                        string           `json:"type"`
	Pretokenizers               []jsontext.Value `json:"pretokenizers"`
	Replacement                 string           `json:"replacement"`
	PrependScheme               *string          `json:"prepend_scheme"`
	AddPrefixSpace              *bool            `json:"add_prefix_space"`
	MetaspaceSplitsBeforeSpaces *bool            `json:"split"`
	Behavior                    *string          `json:"behavior"`
}

func parseSplitter(raw jsontext.Value) (splitter, error) {
	steps := 0
	return parseSplitterAtDepth(raw, 0, &steps)
}

func parseSplitterAtDepth(raw jsontext.Value, depth int, steps *int) (splitter, error) {
	if *steps++; depth > maxNormalizerOrSplitterDepth || *steps > maxNormalizerOrSplitterSteps {
		return nil, errors.New("the Sequence has too many steps")
	}
	if raw.Kind() == 'n' || raw.Kind() == 0 {
		return splitNothing, nil
	}
	var f splitterSection
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, shortenDecodeError(err)
	}
	switch f.Type {
	case "BertPreTokenizer":
		return splitBert, nil
	case "WhitespaceSplit":
		return splitAtSpaces, nil
	case "Punctuation":
		if f.Behavior != nil && *f.Behavior != "Isolated" {
			return nil, fmt.Errorf("the splitter Punctuation with behavior %.80q is not supported; use Isolated", *f.Behavior)
		}
		return isolatePunctuationMarks, nil
	case "Metaspace":
		return newMetaspaceSplitter(&f)
	case "Sequence":
		var all []splitter
		for _, p := range f.Pretokenizers {
			s, err := parseSplitterAtDepth(p, depth+1, steps)
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
		return chainSplitters(all), nil
	}
	return nil, fmt.Errorf("type %.80q is not supported; supported are BertPreTokenizer, Metaspace, Punctuation, Sequence and WhitespaceSplit", f.Type)
}

// chainSplitters applies one splitter after the other.
func chainSplitters(splitters []splitter) splitter {
	return func(dst []preToken, w preToken) []preToken {
		words := splitNothing(nil, w)
		for _, s := range splitters {
			var next []preToken
			for _, w := range words {
				next = s(next, w)
			}
			words = next
		}
		return append(dst, words...)
	}
}

// splitNothing leaves a text as it is.
func splitNothing(dst []preToken, w preToken) []preToken {
	if w.text == "" {
		return dst
	}
	return append(dst, w)
}

// splitAtSpaces divides at white space and drops it.
func splitAtSpaces(dst []preToken, w preToken) []preToken { return splitTextAtSpaces(dst, w, false) }

// splitBert divides at white space, which it drops, and around each punctuation
// mark.
func splitBert(dst []preToken, w preToken) []preToken { return splitTextAtSpaces(dst, w, true) }

func splitTextAtSpaces(dst []preToken, w preToken, alsoAtPunctuation bool) []preToken {
	start := 0
	take := func(from, to int) {
		if from < to {
			dst = append(dst, preToken{w.text[from:to], w.atTextStart && from == 0})
		}
	}
	for i, r := range w.text {
		switch {
		case unicode.IsSpace(r):
			take(start, i)
			start = i + utf8.RuneLen(r)
		case alsoAtPunctuation && isPunctuation(r):
			take(start, i)
			start = i + utf8.RuneLen(r)
			take(i, start)
		}
	}
	take(start, len(w.text))
	return dst
}

// isolatePunctuationMarks divides around each punctuation mark.
func isolatePunctuationMarks(dst []preToken, w preToken) []preToken {
	start := 0
	for i, r := range w.text {
		if !isPunctuation(r) {
			continue
		}
		if start < i {
			dst = append(dst, preToken{w.text[start:i], w.atTextStart && start == 0})
		}
		start = i + utf8.RuneLen(r)
		dst = append(dst, preToken{w.text[i:start], w.atTextStart && i == 0})
	}
	if start < len(w.text) {
		dst = append(dst, preToken{w.text[start:], w.atTextStart && start == 0})
	}
	return dst
}

// isPunctuation counts every ASCII character that is not a letter, digit, space
// or control as punctuation, as BERT does, and Unicode's classes beyond.
func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' && r < 0x7f && !('0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z')
	}
	return unicode.IsPunct(r)
}

// newMetaspaceSplitter returns the splitter that writes spaces as a visible character
// and divides before each.
func newMetaspaceSplitter(f *splitterSection) (splitter, error) {
	mark := f.Replacement
	if utf8.RuneCountInString(mark) != 1 {
		return nil, fmt.Errorf("the splitter Metaspace must replace by one character, not by %.80q", mark)
	}
	scheme := "always"
	switch {
	case f.PrependScheme != nil:
		scheme = *f.PrependScheme
	case f.AddPrefixSpace != nil && !*f.AddPrefixSpace:
		scheme = "never"
	}
	if scheme != "always" && scheme != "first" && scheme != "never" {
		return nil, fmt.Errorf("the splitter Metaspace with prepend_scheme %.80q is not supported", scheme)
	}
	apart := f.MetaspaceSplitsBeforeSpaces == nil || *f.MetaspaceSplitsBeforeSpaces
	return func(dst []preToken, w preToken) []preToken {
		text := strings.ReplaceAll(w.text, " ", mark)
		if text != "" && !strings.HasPrefix(text, mark) && (scheme == "always" || scheme == "first" && w.atTextStart) {
			text = mark + text
		}
		first := w.atTextStart
		for apart && text != "" {
			next := strings.Index(text[len(matchingPrefixOrEmpty(text, mark)):], mark)
			if next < 0 {
				break
			}
			next += len(matchingPrefixOrEmpty(text, mark))
			dst = append(dst, preToken{text[:next], first})
			text, first = text[next:], false
		}
		return splitNothing(dst, preToken{text, first})
	}, nil
}

// matchingPrefixOrEmpty returns prefix if text begins with it, else "".
func matchingPrefixOrEmpty(text, prefix string) string {
	if strings.HasPrefix(text, prefix) {
		return prefix
	}
	return ""
}
