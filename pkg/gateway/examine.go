package gateway

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/pkg/sanitize"
)

// An examiner looks at one text that comes from a server. clean is the text
// without what no reader sees and without secrets. No finding does not mean that
// the text is free of instructions. Goroutines share it.
type examiner interface {
	Examine(text string) (clean string, findings []Finding)
}

// A Finding is one thing that a text of a server should not hold.
type Finding struct {
	Kind  string // such as "a secret"
	Where string // JSON pointer to the text
}

// Findings are those of one message or tool.
type Findings []Finding

// String returns them as a person may read them.
func (f Findings) String() string {
	var out []string
	for _, one := range f {
		s := one.Kind
		if one.Where != "" {
			s += " at " + one.Where
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return strings.Join(out, ", ")
}

// A Mode says what happens to a result with findings.
type Mode string

// The modes. A result that the client could not read as its tool declares it is
// withheld in each of them but Flag.
const (
	Flag   Mode = "flag"  // it passes; a person and the log are told
	Clean  Mode = "clean" // secrets and what no reader sees are taken out
	Marked Mode = "wrap"  // and the texts for a model are marked as data, whatever was found
	Block  Mode = "block" // it is withheld
)

// maxFindings is how many findings of one message are kept.
const maxFindings = 32

// textExaminer finds what [sanitize.Examine] does.
type textExaminer struct{}

func (textExaminer) Examine(text string) (clean string, findings []Finding) {
	report := sanitize.Examine(text)
	for _, f := range report.Findings {
		if kind := string(f.Kind); !slices.ContainsFunc(findings, func(f Finding) bool { return f.Kind == kind }) {
			findings = append(findings, Finding{Kind: kind})
		}
	}
	if findings == nil {
		return text, nil
	}
	clean, whole := report.Apply(sanitize.Clean).Result.(string)
	if !whole {
		clean = report.Reason()
	}
	return clean, findings
}

// examined looks at every text of a value. out is the value as it passes; nil if it
// is to be withheld as a whole. c is the request that it answers, if any.
func (g *Gateway) examined(value object, c *call) (out object, findings Findings, changed bool) {
	w := walk{examiner: textExaminer{}, clean: g.opts.Mode == Clean || g.opts.Mode == Marked}
	mark := g.opts.Mode == Marked && g.opts.Mark != nil && c != nil && c.action != nil
	result := object{}
	invalid := false
	for _, name := range slices.Sorted(maps.Keys(value)) {
		structured := name == "structuredContent"
		w.wrap = nil
		if mark && !structured {
			w.wrap = g.opts.Mark
		}
		v, did := w.value("/"+pointer(name), name, value, value[name])
		result[name] = v
		changed = changed || did
		invalid = invalid || did && structured && c != nil && c.structure
	}
	switch {
	case g.opts.Mode == Flag, !changed && (w.clean || len(w.findings) == 0):
		return value, w.findings, false
	case w.clean && !invalid:
		return result, w.findings, true
	}
	return nil, w.findings, true
}

// A walk looks at the texts of a value.
type walk struct {
	examiner examiner
	clean    bool
	wrap     func(string) string // marks what is for a model as data; nil marks nothing
	findings Findings
}

// value returns a value without what was taken out, and whether it differs.
func (w *walk) value(where, name string, parent object, v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return w.text(where, name, parent, v)
	case []any:
		out, changed := make([]any, len(v)), false
		for i, e := range v {
			var did bool
			out[i], did = w.value(where+"/"+strconv.Itoa(i), name, nil, e)
			changed = changed || did
		}
		if changed {
			return out, true
		}
	case object:
		out, changed := make(object, len(v)), false
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := where + "/" + pointer(name)
			w.text(at, "", nil, name) // a name can be found, and stays
			e, did := w.value(at, name, v, v[name])
			out[name] = e
			changed = changed || did
		}
		if changed {
			return out, true
		}
	}
	return v, false
}

// text returns a text as it passes. What encodes a picture or a sound is not
// read; what encodes a text is, whatever the server calls it.
func (w *walk) text(where, name string, parent object, s string) (any, bool) {
	read, encoded := s, false
	if (name == "data" || name == "blob") && parent["mimeType"] != nil {
		plain, err := base64.StdEncoding.DecodeString(s)
		if err == nil && !utf8.Valid(plain) {
			return s, false
		}
		if encoded = err == nil; encoded {
			read = string(plain)
		}
	}
	clean, findings := w.examiner.Examine(read)
	for _, f := range findings {
		if len(w.findings) < maxFindings {
			f.Where = where
			w.findings = append(w.findings, f)
		}
	}
	if w.wrap != nil && name == "text" {
		clean = w.wrap(clean)
	}
	if !w.clean || clean == read || name == "" {
		return s, false
	}
	if encoded {
		return base64.StdEncoding.EncodeToString([]byte(clean)), true
	}
	return clean, true
}

// pointer returns a name as a part of a JSON pointer that can be shown.
func pointer(name string) string { return inPointer.Replace(canonjson.Quote(name)) }

var inPointer = strings.NewReplacer("~", "~0", "/", "~1")

// found tells of what was found in what the server has said, as long as that is
// not too often.
func (g *Gateway) found(where string, f Findings) {
	if len(f) == 0 {
		return
	}
	g.mu.Lock()
	g.finds++
	n := g.finds
	g.mu.Unlock()
	switch {
	case n < maxFinds:
		g.notify("%s contains %s (%s)", canonjson.Quote(where), f, modeWord(g.opts.Mode))
	case n == maxFinds:
		g.notify("%d messages of the server have findings; further ones are not reported", n)
	}
}

func modeWord(m Mode) string {
	switch m {
	case Flag:
		return "forwarded unchanged"
	case Clean, Marked:
		return "cleaned"
	case Block:
		return "withheld"
	}
	return fmt.Sprintf("mode %q", string(m))
}
