package analysis

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/decode"
	"github.com/shieldcli/shield/internal/sorted"
)

// A PayloadTextVariant is one text that rules and models read, in one form, such as decoded from
// Base64.
type PayloadTextVariant struct {
	TransformationName string `json:"view"`  // raw, folded, base64, …, words
	Field              string `json:"field"` // canonical payload field the text came from, such as "command"
	Text               string `json:"text"`
}

const (
	maxTextVariants           = 8
	maxTextVariantsTotalBytes = 64 << 10
)

// defaultTextVariantFields are the payload's fields that rules read by default.
var defaultTextVariantFields = [...]string{"command", "path", "source", "destination", "url", "pattern"}

// TextVariants returns the texts of a case that rules and models read, at most 8 texts and 64 KiB
// in total. They are computed on first use. If there is more text, TextVariants sets
// [ActionCase.UnexaminedReason].
func (c *ActionCase) TextVariants() []PayloadTextVariant {
	if c.cachedTextVariants == nil {
		c.cachedTextVariants = c.collectTextVariants(defaultTextVariantFields[:], c.resolvedCommandText)
	}
	return c.cachedTextVariants
}

// FieldTextVariants returns the text variants of the named payload fields, within the same limits
// as [ActionCase.TextVariants]. A field that is not text is read as the texts in it, one per line.
// The name "content" also covers the new text of edits, and the name "change" means their diff, see
// [diffOfEdits]. The variants are computed on first use; the caller must not change the payload
// afterwards.
func (c *ActionCase) FieldTextVariants(fieldNames ...string) []PayloadTextVariant {
	for i := range c.cachedFieldTextVariants {
		if slices.Equal(c.cachedFieldTextVariants[i].fields, fieldNames) {
			return c.cachedFieldTextVariants[i].variants
		}
	}
	t := fieldTextVariants{fieldNames, c.collectTextVariants(fieldNames, "")}
	c.cachedFieldTextVariants = append(c.cachedFieldTextVariants, t)
	return t.variants
}

// fieldTextVariants caches the text variants of a list of payload fields.
type fieldTextVariants struct {
	fields   []string
	variants []PayloadTextVariant
}

// A decodedText caches the decoded layers of a text.
type decodedText struct {
	sourceText string
	layers     []decode.DecodedLayer
}

// A lookalikeFoldedText caches the result of [decode.FoldUnicodeLookalikes].
type lookalikeFoldedText struct{ sourceText, foldedText string }

// maxCachedTransformedTexts is the maximum number of texts in each cache of decoded or folded texts.
const maxCachedTransformedTexts = 16

// decodedLayers returns [decode.Layers] of a text, cached because several lists of fields may contain it.
func (c *ActionCase) decodedLayers(text string) []decode.DecodedLayer {
	for i := range c.decodedTextLayersCache {
		if c.decodedTextLayersCache[i].sourceText == text {
			return c.decodedTextLayersCache[i].layers
		}
	}
	layers := decode.Layers(text)
	if len(c.decodedTextLayersCache) < maxCachedTransformedTexts {
		c.decodedTextLayersCache = append(c.decodedTextLayersCache, decodedText{text, layers})
	}
	return layers
}

// foldUnicodeLookalikes returns [decode.FoldUnicodeLookalikes] of a text, cached because several lists of fields may contain it.
func (c *ActionCase) foldUnicodeLookalikes(text string) string {
	for i := range c.lookalikeFoldedTextCache {
		if c.lookalikeFoldedTextCache[i].sourceText == text {
			return c.lookalikeFoldedTextCache[i].foldedText
		}
	}
	folded := decode.FoldUnicodeLookalikes(text)
	if folded != text && len(c.lookalikeFoldedTextCache) < maxCachedTransformedTexts {
		c.lookalikeFoldedTextCache = append(c.lookalikeFoldedTextCache, lookalikeFoldedText{text, folded})
	}
	return folded
}

// collectTextVariants returns the text variants of payload fields: first the raw texts, then
// resolvedCommandText, then the texts with Unicode lookalikes replaced, and then the decoded texts.
func (c *ActionCase) collectTextVariants(fieldNames []string, resolvedCommandText string) []PayloadTextVariant {
	r := textVariantCollector{c: c, variants: make([]PayloadTextVariant, 0, 4)}
	for _, field := range fieldNames {
		if field == "change" {
			r.addVariant("raw", field, diffOfEdits(c.Action.Payload))
			continue
		}
		if v, ok := c.Action.Payload[field]; ok {
			r.addVariant("raw", field, joinPayloadTextsByNewline(v))
		}
		if field == "content" {
			r.addVariant("raw", field, newTextOfEdits(c.Action.Payload))
			if c.Action.Type == "write_file" && c.Action.Payload["content"] == nil {
				r.addVariant("raw", field, unknownFieldsText(c.Action.Payload))
			}
		}
	}
	raw := len(r.variants)
	if resolvedCommandText != "" {
		r.addVariant("words", "command", resolvedCommandText)
	}
	for _, v := range r.variants[:raw] {
		r.addVariant("folded", v.Field, c.foldUnicodeLookalikes(v.Text))
	}
	for _, v := range slices.Clip(r.variants) {
		for _, l := range c.decodedLayers(v.Text) {
			r.addVariant(l.Name, v.Field, l.Text)
			if folded := c.foldUnicodeLookalikes(l.Text); folded != l.Text {
				r.addVariant(l.Name+"+folded", v.Field, folded)
			}
		}
	}
	return r.variants
}

// A textVariantCollector collects text variants up to the limits on their number and total size.
type textVariantCollector struct {
	c              *ActionCase
	variants       []PayloadTextVariant
	collectedBytes int
}

func (r *textVariantCollector) addVariant(transformationName, field, text string) {
	if text == "" {
		return
	}
	for _, v := range r.variants {
		if v.Text == text && (transformationName != "raw" || v.Field == field) {
			return
		}
	}
	room := maxTextVariantsTotalBytes - r.collectedBytes
	switch {
	case len(r.variants) == maxTextVariants:
		r.c.setUnexamined("the action has more than 8 texts to scan")
		return
	case len(text) > room:
		r.c.setUnexamined("the action has more text than shield scans")
		if text = strings.ToValidUTF8(text[:room], ""); text == "" {
			return
		}
	}
	r.collectedBytes += len(text)
	r.variants = append(r.variants, PayloadTextVariant{TransformationName: transformationName, Field: field, Text: text})
}

// joinPayloadTextsByNewline returns the texts in a value, one per line.
func joinPayloadTextsByNewline(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		if v {
			return "true"
		}
	case []any:
		lines := make([]string, 0, len(v))
		for _, item := range v {
			if line := joinPayloadTextsByNewline(item); line != "" {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "\n")
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		sorted.SortStrings(names)
		lines := make([]any, len(names))
		for i, name := range names {
			lines[i] = v[name]
		}
		return joinPayloadTextsByNewline(lines)
	}
	return ""
}
