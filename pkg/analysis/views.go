package analysis

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/decode"
	"github.com/shieldcli/shield/internal/sorted"
)

// A View is one text that rules and models read.
type PayloadTextVariant struct {
	TransformationName string `json:"view"`  // raw, folded, base64, …, words
	Field              string `json:"field"` // canonical payload field the text came from, such as "command"
	Text               string `json:"text"`
}

const (
	maxViews     = 8
	maxViewBytes = 64 << 10
)

// defaultViewFields are the payload's fields that rules read by default.
var defaultViewFields = [...]string{"command", "path", "source", "destination", "url", "pattern"}

// Views returns the texts of a case that rules and models read, at most 8 and 64 KiB in total. They are
// computed on first use. If there is more text, Views sets Unexamined.
func (c *ActionCase) Views() []PayloadTextVariant {
	if c.cachedTextViews == nil {
		c.cachedTextViews = c.collectViews(defaultViewFields[:], c.resolvedCommandText)
	}
	return c.cachedTextViews
}

// FieldViews returns the views of other payload fields, within the same limits. A field that is not text is read as
// the texts in it, one per line. The new text of edits is the field content, and their diff is the field
// change, see [diffOfEdits]. The views are computed on first use; the caller must not change fields
// afterwards.
func (c *ActionCase) FieldViews(fields ...string) []PayloadTextVariant {
	for i := range c.fieldViewCache {
		if slices.Equal(c.fieldViewCache[i].fields, fields) {
			return c.fieldViewCache[i].views
		}
	}
	t := fieldViews{fields, c.collectViews(fields, "")}
	c.fieldViewCache = append(c.fieldViewCache, t)
	return t.views
}

// fieldViews caches the views of some fields.
type fieldViews struct {
	fields []string
	views  []PayloadTextVariant
}

// A decodedText caches the decoded layers of a text.
type decodedText struct {
	text   string
	layers []decode.Layer
}

// A foldedText caches the result of [decode.FoldUnicodeLookalikes].
type foldedText struct{ text, folded string }

// maxCachedTexts is the maximum number of texts in these caches.
const maxCachedTexts = 16

// decodedLayers returns [decode.Layers] of a text, cached because several lists of fields may contain it.
func (c *ActionCase) decodedLayers(text string) []decode.Layer {
	for i := range c.decodedCache {
		if c.decodedCache[i].text == text {
			return c.decodedCache[i].layers
		}
	}
	layers := decode.Layers(text)
	if len(c.decodedCache) < maxCachedTexts {
		c.decodedCache = append(c.decodedCache, decodedText{text, layers})
	}
	return layers
}

// foldText returns [decode.FoldUnicodeLookalikes] of a text, cached because several lists of fields may contain it.
func (c *ActionCase) foldText(text string) string {
	for i := range c.foldedCache {
		if c.foldedCache[i].text == text {
			return c.foldedCache[i].folded
		}
	}
	folded := decode.FoldUnicodeLookalikes(text)
	if folded != text && len(c.foldedCache) < maxCachedTexts {
		c.foldedCache = append(c.foldedCache, foldedText{text, folded})
	}
	return folded
}

// collectViews returns the views of some fields: first the raw texts, then the command's words, then the folded and
// decoded texts.
func (c *ActionCase) collectViews(fieldNames []string, resolvedCommandText string) []PayloadTextVariant {
	r := viewCollector{c: c, views: make([]PayloadTextVariant, 0, 4)}
	for _, field := range fieldNames {
		if field == "change" {
			r.add("raw", field, diffOfEdits(c.Action.Payload))
			continue
		}
		if v, ok := c.Action.Payload[field]; ok {
			r.add("raw", field, joinTexts(v))
		}
		if field == "content" {
			r.add("raw", field, editedText(c.Action.Payload))
			if c.Action.Type == "write_file" && c.Action.Payload["content"] == nil {
				r.add("raw", field, unknownFieldsText(c.Action.Payload))
			}
		}
	}
	raw := len(r.views)
	if resolvedCommandText != "" {
		r.add("words", "command", resolvedCommandText)
	}
	for _, v := range r.views[:raw] {
		r.add("folded", v.Field, c.foldText(v.Text))
	}
	for _, v := range slices.Clip(r.views) {
		for _, l := range c.decodedLayers(v.Text) {
			r.add(l.Name, v.Field, l.Text)
			if folded := c.foldText(l.Text); folded != l.Text {
				r.add(l.Name+"+folded", v.Field, folded)
			}
		}
	}
	return r.views
}

// A viewCollector collects views up to the limits.
type viewCollector struct {
	c              *ActionCase
	views          []PayloadTextVariant
	collectedBytes int
}

func (r *viewCollector) add(name, field, text string) {
	if text == "" {
		return
	}
	for _, v := range r.views {
		if v.Text == text && (name != "raw" || v.Field == field) {
			return
		}
	}
	room := maxViewBytes - r.collectedBytes
	switch {
	case len(r.views) == maxViews:
		r.c.setUnexamined("the action has more than 8 texts to scan")
		return
	case len(text) > room:
		r.c.setUnexamined("the action has more text than shield scans")
		if text = strings.ToValidUTF8(text[:room], ""); text == "" {
			return
		}
	}
	r.collectedBytes += len(text)
	r.views = append(r.views, PayloadTextVariant{TransformationName: name, Field: field, Text: text})
}

// joinTexts returns the texts in a value, one per line.
func joinTexts(v any) string {
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
			if line := joinTexts(item); line != "" {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "\n")
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		sorted.Strings(names)
		lines := make([]any, len(names))
		for i, name := range names {
			lines[i] = v[name]
		}
		return joinTexts(lines)
	}
	return ""
}
