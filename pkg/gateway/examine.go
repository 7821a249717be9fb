package gateway

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/sanitize"
)

// A serverTextExaminer examines one text from a server. CleanTextAndFindings returns the text
// without invisible characters and secrets, and a description of what it found. A text without
// findings may still contain a prompt injection. Goroutines can use an examiner concurrently.
type serverTextExaminer interface {
	CleanTextAndFindings(text string) (clean string, findings []TextFinding)
}

// A TextFinding is one thing in a server's text that should not be there, such as a secret.
type TextFinding struct {
	Kind        string // such as "a secret"
	JSONPointer string // JSON pointer to the text
}

// Findings are the findings in one message or tool.
type Findings []TextFinding

// String returns the findings as text for a person.
func (f Findings) String() string {
	var out []string
	for _, one := range f {
		s := one.Kind
		if one.JSONPointer != "" {
			s += " at " + one.JSONPointer
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return strings.Join(out, ", ")
}

// A FindingsMode says what happens to a result with findings.
type FindingsMode string

// The modes. A result that does not match its tool's output schema is withheld in each mode except
// FindingsModeReportOnly.
const (
	FindingsModeReportOnly      FindingsMode = "flag"  // the result passes; the user and the log are told
	FindingsModeRemoveFoundText FindingsMode = "clean" // secrets and invisible characters are removed
	FindingsModeMarkAsData      FindingsMode = "wrap"  // secrets and invisible characters are removed, and all text for a model is marked as data
	FindingsModeWithhold        FindingsMode = "block" // a result with findings is withheld
)

// maxFindings is how many findings of one message are kept.
const maxFindings = 32

// A hiddenTextAndSecretExaminer examines texts with [sanitize.Examine].
type hiddenTextAndSecretExaminer struct{}

func (hiddenTextAndSecretExaminer) CleanTextAndFindings(text string) (clean string, findings []TextFinding) {
	report := sanitize.Examine(text)
	for _, f := range report.Findings {
		if kind := string(f.Kind); !slices.ContainsFunc(findings, func(f TextFinding) bool { return f.Kind == kind }) {
			findings = append(findings, TextFinding{Kind: kind})
		}
	}
	if findings == nil {
		return text, nil
	}
	clean, whole := report.SanitizeResult(sanitize.ModeRemoveInvisibleTextAndCredentials).Result.(string)
	if !whole {
		clean = report.ResultWithheldReason()
	}
	return clean, findings
}

// examineTexts examines every text of a value. It returns the value to forward; nil if the value
// must be withheld. c is the request that the value answers, or nil.
func (g *Gateway) examineTexts(value object, c *pendingCall) (forwardedValue object, findings Findings, isValueChanged bool) {
	w := textWalker{examiner: hiddenTextAndSecretExaminer{}, mustRemoveFindings: g.opts.ResultFindingsMode == FindingsModeRemoveFoundText || g.opts.ResultFindingsMode == FindingsModeMarkAsData}
	mark := g.opts.ResultFindingsMode == FindingsModeMarkAsData && g.opts.MarkTextAsData != nil && c != nil && c.action != nil
	result := object{}
	invalid := false
	for _, name := range sorted.Keys(value) {
		structured := name == "structuredContent"
		w.markTextAsData = nil
		if mark && !structured {
			w.markTextAsData = g.opts.MarkTextAsData
		}
		v, did := w.examineValue("/"+escapeJSONPointerSegment(name), name, value, value[name])
		result[name] = v
		isValueChanged = isValueChanged || did
		invalid = invalid || did && structured && c != nil && c.hasOutputSchema
	}
	switch {
	case g.opts.ResultFindingsMode == FindingsModeReportOnly, !isValueChanged && (w.mustRemoveFindings || len(w.findings) == 0):
		return value, w.findings, false
	case w.mustRemoveFindings && !invalid:
		return result, w.findings, true
	}
	return nil, w.findings, true
}

// A textWalker examines the texts of a value recursively.
type textWalker struct {
	examiner           serverTextExaminer
	mustRemoveFindings bool
	markTextAsData     func(string) string // marks text for a model as data; nil marks nothing
	findings           Findings
}

// examineValue returns a value without the removed texts, and whether anything was removed.
func (w *textWalker) examineValue(jsonPointer, memberName string, parent object, v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return w.examineText(jsonPointer, memberName, parent, v)
	case []any:
		out, changed := make([]any, len(v)), false
		for i, e := range v {
			var did bool
			out[i], did = w.examineValue(jsonPointer+"/"+strconv.Itoa(i), memberName, nil, e)
			changed = changed || did
		}
		if changed {
			return out, true
		}
	case object:
		out, changed := make(object, len(v)), false
		for _, name := range sorted.Keys(v) {
			at := jsonPointer + "/" + escapeJSONPointerSegment(name)
			w.examineText(at, "", nil, name) // a finding in a key is reported, but the key is not changed
			e, did := w.examineValue(at, name, v, v[name])
			out[name] = e
			changed = changed || did
		}
		if changed {
			return out, true
		}
	}
	return v, false
}

// examineText returns a text as it is forwarded. Base64 of an image or audio is not examined; base64 of text
// is, whatever MIME type the server declares.
func (w *textWalker) examineText(jsonPointer, memberName string, parent object, s string) (any, bool) {
	read, encoded := s, false
	if (memberName == "data" || memberName == "blob") && parent["mimeType"] != nil {
		plain, err := base64.StdEncoding.DecodeString(s)
		if err == nil && !utf8.Valid(plain) {
			return s, false
		}
		if encoded = err == nil; encoded {
			read = string(plain)
		}
	}
	clean, findings := w.examiner.CleanTextAndFindings(read)
	for _, f := range findings {
		if len(w.findings) < maxFindings {
			f.JSONPointer = jsonPointer
			w.findings = append(w.findings, f)
		}
	}
	if w.markTextAsData != nil && memberName == "text" {
		clean = w.markTextAsData(clean)
	}
	if !w.mustRemoveFindings || clean == read || memberName == "" {
		return s, false
	}
	if encoded {
		return base64.StdEncoding.EncodeToString([]byte(clean)), true
	}
	return clean, true
}

// escapeJSONPointerSegment returns a member name escaped for a JSON pointer that can be displayed.
func escapeJSONPointerSegment(name string) string {
	return pointerEscaper.Replace(canonjson.Quote(name))
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// notifyFindings notifies the user of findings, up to maxFindingNotices times.
func (g *Gateway) notifyFindings(where string, f Findings) {
	if len(f) == 0 {
		return
	}
	g.mu.Lock()
	g.findingNotices++
	n := g.findingNotices
	g.mu.Unlock()
	switch {
	case n < maxFindingNotices:
		g.notifyUser("%s contains %s (%s)", canonjson.Quote(where), f, describeResultTreatment(g.opts.ResultFindingsMode))
	case n == maxFindingNotices:
		g.notifyUser("shield found suspicious text in %d messages of the server and does not report more; if you do not trust the server, remove it from the client", n)
	}
}

func describeResultTreatment(m FindingsMode) string {
	switch m {
	case FindingsModeReportOnly:
		return "forwarded unchanged"
	case FindingsModeRemoveFoundText, FindingsModeMarkAsData:
		return "cleaned"
	case FindingsModeWithhold:
		return "withheld"
	}
	return fmt.Sprintf("mode %q", string(m))
}
