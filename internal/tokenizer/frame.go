package tokenizer

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxSpecialTokensPerSide is how many ids may be before a text, and after it.
const maxSpecialTokensPerSide = 16

type postProcessorSection struct {
	Type          string           `json:"type"`
	Processors    []jsontext.Value `json:"processors"`
	Cls           jsontext.Value   `json:"cls"`
	Sep           jsontext.Value   `json:"sep"`
	Single        []templatePart   `json:"single"`
	SpecialTokens map[string]struct {
		IDs    []int64  `json:"ids"`
		Tokens []string `json:"tokens"`
	} `json:"special_tokens"`
}

type templatePart struct {
	SpecialToken *struct {
		ID string `json:"id"`
	} `json:"SpecialToken"`
	Sequence *struct {
		ID string `json:"id"`
	} `json:"Sequence"`
}

// parseSpecialPrefixAndSuffix returns the token ids before and after a text, and marks their tokens as special. For
// a file without post_processor, these are the ids of [CLS] and [SEP], or of <s> and </s>, if the
// vocabulary contains them.
func parseSpecialPrefixAndSuffix(raw jsontext.Value, ids map[string]int64, special map[string]bool) (prefix, suffix []int64, err error) {
	if raw.Kind() == 'n' || raw.Kind() == 0 {
		for _, pair := range [][2]string{{"[CLS]", "[SEP]"}, {"<s>", "</s>"}} {
			cls, ok1 := ids[pair[0]]
			sep, ok2 := ids[pair[1]]
			if ok1 && ok2 {
				special[pair[0]], special[pair[1]] = true, true
				return []int64{cls}, []int64{sep}, nil
			}
		}
		return nil, nil, nil
	}
	var f postProcessorSection
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, nil, shortenDecodeError(err)
	}
	switch f.Type {
	case "BertProcessing", "RobertaProcessing":
		prefix, err = parseTokenAndIDPair(f.Cls)
		if err == nil {
			suffix, err = parseTokenAndIDPair(f.Sep)
		}
	case "TemplateProcessing":
		prefix, suffix, err = f.parseTemplate()
	case "Sequence":
		if len(f.Processors) != 1 {
			return nil, nil, fmt.Errorf("a Sequence of %d steps is not supported", len(f.Processors))
		}
		var inner postProcessorSection
		if json.Unmarshal(f.Processors[0], &inner) == nil && inner.Type == "Sequence" {
			return nil, nil, errors.New("a Sequence in a Sequence is not supported")
		}
		return parseSpecialPrefixAndSuffix(f.Processors[0], ids, special)
	default:
		return nil, nil, fmt.Errorf("type %.80q is not supported; use BertProcessing, RobertaProcessing or TemplateProcessing", f.Type)
	}
	if err != nil {
		return nil, nil, err
	}
	return prefix, suffix, markSpecialTokens(append(append([]int64(nil), prefix...), suffix...), ids, special)
}

// parseTokenAndIDPair reads a pair of token and id.
func parseTokenAndIDPair(raw jsontext.Value) ([]int64, error) {
	var pair []jsontext.Value
	var id int64
	if json.Unmarshal(raw, &pair) != nil || len(pair) != 2 || json.Unmarshal(pair[1], &id) != nil {
		return nil, errors.New("cls and sep must be pairs of token and ID")
	}
	return []int64{id}, nil
}

// parseTemplate returns the ids of the special tokens before and after the text, from the template
// for a single text.
func (f *postProcessorSection) parseTemplate() (prefix, suffix []int64, err error) {
	at, seen := &prefix, false
	for _, part := range f.Single {
		switch {
		case part.Sequence != nil && part.SpecialToken == nil && !seen:
			at, seen = &suffix, true
		case part.SpecialToken != nil && part.Sequence == nil:
			t, ok := f.SpecialTokens[part.SpecialToken.ID]
			if !ok {
				return nil, nil, fmt.Errorf("special token %.80q is not defined", part.SpecialToken.ID)
			}
			*at = append(*at, t.IDs...)
		default:
			return nil, nil, errors.New("the template for one text may name only special tokens and the text, once; export the tokenizer again")
		}
		if len(prefix) > maxSpecialTokensPerSide || len(suffix) > maxSpecialTokensPerSide {
			return nil, nil, fmt.Errorf("more than %d special tokens", maxSpecialTokensPerSide)
		}
	}
	if !seen {
		return nil, nil, errors.New("the template for one text leaves the text out; export the tokenizer again")
	}
	return prefix, suffix, nil
}

// markSpecialTokens marks the tokens of some ids as special. All have to be known.
func markSpecialTokens(specialIDs []int64, ids map[string]int64, special map[string]bool) error {
	want := map[int64]bool{}
	for _, id := range specialIDs {
		want[id] = true
	}
	for text, id := range ids {
		if want[id] {
			special[text] = true
			delete(want, id)
		}
	}
	for id := range want {
		return fmt.Errorf("no token has the id %d", id)
	}
	return nil
}
