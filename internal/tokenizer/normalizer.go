package tokenizer

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"
)

// A normalizer applies the normalization of a tokenizer.json file, or one step of it, to a text
// before the text is split into words.
type normalizer func(text string) string

type normalizerSection struct {
	Type        string           `json:"type"`
	Normalizers []jsontext.Value `json:"normalizers"`

	CleanText            *bool `json:"clean_text"`
	SeparateChineseChars *bool `json:"handle_chinese_chars"`
	StripAccent          *bool `json:"strip_accents"`
	Lower                *bool `json:"lowercase"`

	StripLeft  *bool `json:"strip_left"`
	StripRight *bool `json:"strip_right"`

	Pattern struct {
		String string `json:"String"`
		Regex  string `json:"Regex"`
	} `json:"pattern"`
	Content string `json:"content"`

	Charsmap string `json:"precompiled_charsmap"`
}

// runNormalizerOnText normalizes a text as a tokenizer.json file specifies. Normalization stops
// early if the text grows beyond maxUnnormalizedTextBytes; the incomplete result is also too long
// for [Tokenizer.Encode].
func runNormalizerOnText(n normalizer, text string) string {
	return n(strings.ToValidUTF8(text, string(utf8.RuneError)))
}

// parseNormalizer returns nil for a file that has none.
func parseNormalizer(raw jsontext.Value) (normalizer, error) {
	if raw.Kind() == 'n' || raw.Kind() == 0 {
		return nil, nil
	}
	steps := 0
	return parseNormalizerAtDepth(raw, 0, &steps)
}

func parseNormalizerAtDepth(raw jsontext.Value, depth int, steps *int) (normalizer, error) {
	if *steps++; depth > maxNormalizerOrSplitterDepth || *steps > maxNormalizerOrSplitterSteps {
		return nil, errors.New("the Sequence has too many steps")
	}
	var f normalizerSection
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, shortenDecodeError(err)
	}
	switch f.Type {
	case "NFC":
		return norm.NFC.String, nil
	case "NFD":
		return norm.NFD.String, nil
	case "NFKC":
		return norm.NFKC.String, nil
	case "NFKD":
		return norm.NFKD.String, nil
	case "Lowercase":
		return toLower, nil
	case "StripAccents":
		return func(text string) string { return dropRunes(unicode.M, text) }, nil
	case "Strip":
		return f.newSpaceStripper(), nil
	case "Replace":
		return f.newReplacer()
	case "Precompiled":
		return f.newCharsmapNormalizer()
	case "BertNormalizer":
		return f.newBERTNormalizer(), nil
	case "Sequence":
		return f.newNormalizerSequence(depth, steps)
	}
	return nil, fmt.Errorf("type %.80q is not supported; supported are BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, Precompiled, Replace, Sequence, Strip and StripAccents", f.Type)
}

func (f *normalizerSection) newNormalizerSequence(depth int, steps *int) (normalizer, error) {
	var all []normalizer
	for _, raw := range f.Normalizers {
		n, err := parseNormalizerAtDepth(raw, depth+1, steps)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return func(text string) string {
		for _, n := range all {
			if len(text) > maxUnnormalizedTextBytes {
				break
			}
			text = n(text)
		}
		return text
	}, nil
}

// toLower is Unicode's full mapping of single characters: one of them, I with a
// dot, becomes two.
func toLower(text string) string {
	return strings.Map(unicode.ToLower, strings.ReplaceAll(text, "İ", "i\u0307"))
}

// dropRunes drops the runes of a class.
func dropRunes(class *unicode.RangeTable, text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(class, r) {
			return -1
		}
		return r
	}, text)
}

func (f *normalizerSection) newSpaceStripper() normalizer {
	left, right := f.StripLeft == nil || *f.StripLeft, f.StripRight == nil || *f.StripRight
	return func(text string) string {
		if left {
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
		}
		if right {
			text = strings.TrimRightFunc(text, unicode.IsSpace)
		}
		return text
	}
}

// newReplacer returns a normalizer that replaces text. It supports literal patterns and the one
// regular expression that tokenizer files use in practice, since different dialects of regular
// expressions agree on little more.
func (f *normalizerSection) newReplacer() (normalizer, error) {
	if len(f.Content) > 16 {
		return nil, errors.New("the normalizer Replace by more than 16 bytes is not supported")
	}
	switch {
	case f.Pattern.String != "" && f.Pattern.Regex == "":
		return func(text string) string { return strings.ReplaceAll(text, f.Pattern.String, f.Content) }, nil
	case f.Pattern.Regex == " {2,}" && f.Pattern.String == "":
		return func(text string) string { return replaceSpaces(text, f.Content) }, nil
	}
	return nil, fmt.Errorf("the normalizer Replace with the pattern %.80q is not supported", f.Pattern.Regex)
}

// replaceSpaces replaces each run of two and more spaces.
func replaceSpaces(text, by string) string {
	i := strings.Index(text, "  ")
	if i < 0 {
		return text
	}
	var b strings.Builder
	for ; i >= 0; i = strings.Index(text, "  ") {
		b.WriteString(text[:i])
		b.WriteString(by)
		text = strings.TrimLeft(text[i:], " ")
	}
	b.WriteString(text)
	return b.String()
}

func (f *normalizerSection) newCharsmapNormalizer() (normalizer, error) {
	raw, err := base64.StdEncoding.DecodeString(f.Charsmap)
	if err != nil {
		return nil, errors.New("the Precompiled charsmap is not base64")
	}
	m, err := parseCharsmap(raw)
	if err != nil {
		return nil, fmt.Errorf("the Precompiled charsmap: %w", err)
	}
	return m.normalize, nil
}

// newBERTNormalizer returns BERT's normalizer. Unless the file sets strip_accents, it removes
// accents exactly if it also converts letters to lower case.
func (f *normalizerSection) newBERTNormalizer() normalizer {
	is := func(b *bool) bool { return b == nil || *b }
	clean, chinese, small := is(f.CleanText), is(f.SeparateChineseChars), is(f.Lower)
	accents := f.StripAccent == nil && small || f.StripAccent != nil && *f.StripAccent
	return func(text string) string {
		if clean || chinese {
			text = cleanBERT(text, clean, chinese)
		}
		if accents {
			text = dropRunes(unicode.Mn, norm.NFD.String(text))
		}
		if small {
			text = toLower(text)
		}
		return text
	}
}

func cleanBERT(text string, clean, chinese bool) string {
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range text {
		switch {
		case clean && (r == '\t' || r == '\n' || r == '\r'):
			b.WriteByte(' ')
		case clean && (r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co)):
		case clean && unicode.IsSpace(r):
			b.WriteByte(' ')
		case chinese && isIdeograph(r):
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
