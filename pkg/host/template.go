package host

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// An installedTextTemplate is the text of a file with placeholders. @LINE@ is the command line of
// shield's hook, @QUOTED@ that command line as a JSON string, and @TIMEOUT@ the timeout in the
// host's unit. @AFTERLINE@ and @AFTER@ are the command line for tool results, plain and as a JSON
// string. The part between @[ and @] is always written, but can be missing in a file that is read.
type installedTextTemplate struct {
	text    string
	pattern *regexp.Regexp // matches every text of the template
}

// regexpByTemplatePlaceholder maps each placeholder of an [installedTextTemplate] to the regular expression that matches
// the text in its place.
var regexpByTemplatePlaceholder = map[string]string{
	"@LINE@":      `(?P<line>[^\n]*)`,
	"@QUOTED@":    `(?P<quoted>"(?:[^"\\\n]|\\.)*")`,
	"@AFTERLINE@": `(?P<afterline>[^\n]*)`,
	"@AFTER@":     `(?P<after>"(?:[^"\\\n]|\\.)*")`,
	"@TIMEOUT@":   `(?P<timeout>\d+)`,
	"@[":          `(?:`,
	"@]":          `)?`,
}

func newTemplate(text string) installedTextTemplate {
	form := regexp.QuoteMeta(text)
	for mark, group := range regexpByTemplatePlaceholder {
		form = strings.ReplaceAll(form, regexp.QuoteMeta(mark), group)
	}
	return installedTextTemplate{text, regexp.MustCompile(form)}
}

// fillPlaceholders returns the text with the placeholders replaced.
func (t installedTextTemplate) fillPlaceholders(beforeToolCommand, afterToolCommand string, timeout int) (string, error) {
	if strings.ContainsAny(beforeToolCommand+afterToolCommand, "\n\r\x00") {
		return "", errors.New("the command line of the hook contains a line break; remove it")
	}
	quoted, err := encodeCompactJSON(beforeToolCommand)
	if err != nil {
		return "", err
	}
	quotedAfter, err := encodeCompactJSON(afterToolCommand)
	if err != nil {
		return "", err
	}
	return strings.NewReplacer("@LINE@", beforeToolCommand, "@QUOTED@", string(quoted), "@AFTERLINE@", afterToolCommand, "@AFTER@", string(quotedAfter), "@TIMEOUT@", strconv.Itoa(timeout), "@[", "", "@]", "").Replace(t.text), nil
}

// A templateValues holds the values of the placeholders in a text.
type templateValues struct {
	beforeToolHookCommand string
	afterToolHookCommand  string  // the command line for results; "" if the template has none
	timeout               float64 // timeout in the host's unit; 0 if the template has none
}

// parseFile returns the values in a text, which must match the template as a whole.
func (t installedTextTemplate) parseFile(doc []byte) (templateValues, error) {
	all := t.pattern.FindSubmatchIndex(doc)
	if all == nil || all[0] != 0 || all[1] != len(doc) {
		return templateValues{}, errors.New("the file differs from the one that shield installs; run 'shield hook install' again")
	}
	return t.readPlaceholderValues(doc, all)
}

// cutText returns a file without the template's text, and that text; "" if the file does not contain it.
func (t installedTextTemplate) cutText(doc []byte) (rest []byte, block string, err error) {
	all := t.pattern.FindAllSubmatchIndex(doc, 2)
	switch {
	case len(all) == 0 && strings.Contains(string(doc), strings.SplitN(t.text, "\n", 2)[0]):
		return nil, "", errors.New("the hook was changed after shield installed it; remove it by hand")
	case len(all) == 0:
		return doc, "", nil
	case len(all) > 1:
		return nil, "", errors.New("the file contains the hook of shield twice; remove one by hand")
	}
	start, end := all[0][0], all[0][1]
	return append(doc[:start:start], doc[end:]...), string(doc[start:end]), nil
}

func (t installedTextTemplate) readPlaceholderValues(doc []byte, submatchOffsets []int) (f templateValues, err error) {
	for i, name := range t.pattern.SubexpNames() {
		if name == "" || submatchOffsets[2*i] < 0 {
			continue
		}
		text := string(doc[submatchOffsets[2*i]:submatchOffsets[2*i+1]])
		switch name {
		case "line":
			f.beforeToolHookCommand = text
		case "afterline":
			f.afterToolHookCommand = text
		case "quoted", "after":
			v, err := decodeStrictJSON([]byte(text))
			if err != nil {
				return templateValues{}, err
			}
			if line, _ := v.(string); name == "after" {
				f.afterToolHookCommand = line
			} else {
				f.beforeToolHookCommand = line
			}
		case "timeout":
			if f.timeout, err = strconv.ParseFloat(text, 64); err != nil {
				return templateValues{}, fmt.Errorf("timeout: %w", err)
			}
		}
	}
	return f, nil
}
