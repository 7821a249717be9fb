package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/host/internal/form"
)

// Settings describe the configuration that makes a host call shield.
type Settings struct {
	Places []Place
	Off    []string // environment variables that disable the host's hooks
	Next   string   // what the user must do before the host runs the hook
	Sample []byte   // an event that must be denied
	host   *Host
}

// A Place is one settings file of a host, or a pattern of files that are only read.
type Place struct {
	form.Place
	host    *Host
	entries []element
	text    template // of Text or Block
	older   []template
	made    string // the text including the command line
}

// An element is an element of the list at a key path.
type element struct {
	path  []string
	value any
	left  bool // not to be installed, only removed
}

// Lines are the command lines that a host runs as hooks.
type Lines struct {
	Before     string // before a tool runs
	After      string // after it has returned something
	Permission string // for the event of [Host.Permission]; "" for none
	Prompt     string // for the event that tells what the user has written; "" for none
}

// Settings returns how to configure the host to run command lines as its hooks. timeout is in seconds;
// system is the operating system, as in GOOS.
func (h *Host) Settings(ctx context.Context, lines Lines, timeout int, cwd, system string) (*Settings, error) {
	sample, err := h.one(ctx, h.form.Sample, map[string]any{"cwd": cwd, "event": h.form.Before[0]})
	if err != nil {
		return nil, fmt.Errorf("%s settings: %w", h.Name, err)
	}
	s := &Settings{Off: h.form.Off, Next: h.form.Next, host: h}
	if s.Sample, err = encode(sample); err != nil {
		return nil, err
	}
	timeout *= h.perSecond()
	for _, f := range h.form.Places {
		if f.System != "" && f.System != system {
			continue
		}
		p := Place{Place: f, host: h, text: newTemplate(f.Text + f.Block)}
		for _, text := range f.Older {
			p.older = append(p.older, newTemplate(text))
		}
		for _, e := range f.Entries {
			line := lines.Before
			if e.Permission {
				line = lines.Permission
			}
			if e.Prompt {
				line = lines.Prompt
			}
			value, err := h.one(ctx, e.Value, map[string]any{"command": line, "after": lines.After, "timeout": timeout})
			if err != nil {
				return nil, fmt.Errorf("%s settings: %w", h.Name, err)
			}
			p.entries = append(p.entries, element{e.Path, value, line == "" || e.Older})
		}
		if p.made, err = p.text.fill(lines.Before, lines.After, timeout); err != nil {
			return nil, fmt.Errorf("%s settings: %w", h.Name, err)
		}
		s.Places = append(s.Places, p)
	}
	return s, nil
}

// perSecond returns how many of the host's timeout units make one second.
func (h *Host) perSecond() int {
	if h.form.Unit == "ms" {
		return 1000
	}
	return 1
}

// Install returns a settings file's text with the hook added once. It replaces an earlier
// installation.
func (p *Place) Install(ctx context.Context, doc []byte) ([]byte, error) {
	switch {
	case p.Text != "" && len(bytes.TrimSpace(doc)) > 0 && !p.Whole(doc) && !p.host.mentioned(doc):
		return nil, ErrForeign
	case p.Text != "":
		return []byte(p.made), nil
	case p.Block != "":
		rest, _, err := p.cut(doc)
		if err != nil {
			return nil, err
		}
		return p.append(rest, p.made), nil
	case len(bytes.TrimSpace(doc)) == 0 && p.Start != "":
		doc = []byte(p.Start)
	default:
		rest, gone, err := p.remove(ctx, doc)
		switch {
		case err != nil:
			return nil, err
		case same(gone, p.wanted()):
			return doc, nil
		}
		doc = rest
	}
	if err := ctx.Err(); err != nil { // the context ended, so shield's entries were not found
		return nil, err
	}
	return addAll(doc, p.wanted())
}

// wanted returns the entries to install.
func (p *Place) wanted() []element {
	return slices.DeleteFunc(slices.Clone(p.entries), func(e element) bool { return e.left })
}

// same reports whether two lists have the same elements in the same order.
func same(a, b []element) bool {
	return slices.EqualFunc(a, b, func(x, y element) bool {
		one, err := encode(x.value)
		other, otherErr := encode(y.value)
		return err == nil && otherErr == nil && slices.Equal(x.path, y.path) && bytes.Equal(one, other)
	})
}

// append returns a text with a block added at its end.
func (p *Place) append(doc []byte, block string) []byte {
	if len(doc) > 0 && !bytes.HasSuffix(doc, []byte("\n")) {
		doc = append(bytes.Clone(doc), '\n')
	}
	return append(bytes.Clone(doc), block...)
}

// A block is shield's lines in a file, with the template that parses them.
type block struct {
	text string
	form template
}

// cut returns a file without shield's blocks, and the blocks: at most one of this version, and one of
// each older version.
func (p *Place) cut(doc []byte) (rest []byte, blocks []block, err error) {
	rest = doc
	for _, form := range append([]template{p.text}, p.older...) {
		var text string
		if rest, text, err = form.cut(rest); err != nil {
			return nil, nil, err
		}
		if text != "" {
			blocks = append(blocks, block{text, form})
		}
	}
	return rest, blocks, nil
}

func addAll(doc []byte, entries []element) (out []byte, err error) {
	out = doc
	for _, e := range entries {
		if out, err = appendAt(out, e.path, e.value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// remove returns a JSON file without shield's entries, and the entries.
func (p *Place) remove(ctx context.Context, doc []byte) (rest []byte, gone []element, err error) {
	if rest = doc; len(bytes.TrimSpace(doc)) == 0 {
		return rest, nil, nil
	}
	for _, e := range p.entries {
		var raw [][]byte
		if rest, raw, err = removeAt(rest, e.path, p.host.ours(ctx)); err != nil {
			return nil, nil, err
		}
		for _, r := range raw {
			value, err := decode(r)
			if err != nil {
				return nil, nil, err
			}
			gone = append(gone, element{path: e.path, value: value})
		}
	}
	return rest, gone, nil
}

// Uninstall returns a settings file's text without the hook. If the file is exactly what Install
// produced from before, it returns before.
func (p *Place) Uninstall(ctx context.Context, doc, before []byte) ([]byte, error) {
	switch {
	case p.Text != "" && !p.Whole(doc) && !p.host.mentioned(doc):
		return nil, ErrNotInstalled
	case p.Text != "":
		if _, err := p.text.read(doc); err != nil {
			return nil, errors.New("the file was changed after shield installed it; remove the hook by hand")
		}
		return before, nil
	case p.Block != "":
		rest, blocks, err := p.cut(doc)
		switch {
		case err != nil:
			return nil, err
		case len(blocks) == 0:
			return nil, ErrNotInstalled
		case len(blocks) == 1 && bytes.Equal(p.append(before, blocks[0].text), doc):
			return before, nil
		}
		return rest, nil
	}
	rest, gone, err := p.remove(ctx, doc)
	if err != nil {
		return nil, err
	}
	if len(gone) == 0 {
		return nil, ErrNotInstalled
	}
	start := before
	if len(bytes.TrimSpace(before)) == 0 && p.Start != "" {
		start = []byte(p.Start)
	}
	if made, err := addAll(start, gone[:min(len(gone), len(p.entries))]); err == nil && bytes.Equal(made, doc) {
		return before, nil
	}
	for _, e := range gone {
		rest = removeEmpty(rest, e.path, before)
	}
	return rest, nil
}

// Installed reports whether a settings file contains shield's hook.
func (p *Place) Installed(ctx context.Context, doc []byte) bool {
	if len(p.entries) == 0 {
		return p.Whole(doc) || p.host.mentioned(doc)
	}
	_, gone, err := p.remove(ctx, doc)
	return err == nil && len(gone) > 0
}

// Whole reports whether a text is a whole file that Install creates.
func (p *Place) Whole(doc []byte) bool {
	_, err := p.text.read(doc)
	return p.Text != "" && err == nil
}

// Denied returns the reason in a hook's output, which must be the host's exact denial format. Other
// output, or output without a reason, is an error: some hosts treat it as permission.
func (s *Settings) Denied(ctx context.Context, out []byte) (reason string, err error) {
	got, err := decode(out)
	if err != nil {
		return "", err
	}
	const marked, shown = "the reason", "the user's text"
	for _, user := range []string{"", shown} {
		want, err := s.host.one(ctx, s.host.form.Deny, map[string]any{"reason": marked, "user": user})
		if err != nil {
			return "", err
		}
		if reason = sameBut(want, got, marked, shown); reason != "" {
			return reason, nil
		}
	}
	return "", errors.New("the hook's output is not a denial with a reason")
}

// sameBut returns the text in got at the place of marked in want, if both are otherwise equal apart
// from texts at the place of shown; else "".
func sameBut(want, got any, marked, shown string) string {
	reason := ""
	var fill func(want, got any) bool
	fill = func(want, got any) bool {
		switch want := want.(type) {
		case string:
			text, ok := got.(string)
			if ok && want == shown {
				return true
			}
			if ok && want == marked && (reason == "" || reason == text) {
				reason = text
				return true
			}
		case map[string]any:
			other, ok := got.(map[string]any)
			for key, v := range want {
				ok = ok && fill(v, other[key])
			}
			return ok && len(other) == len(want)
		}
		return reflect.DeepEqual(want, got)
	}
	if !fill(want, got) {
		return ""
	}
	return reason
}

// ErrForeign is the error for a file that belongs to another program.
var ErrForeign = errors.New("the file belongs to another program, and the host reads only one such file; rename it, then install again")

// ErrNotInstalled is the error for a settings file without shield's hook.
var ErrNotInstalled = errors.New("no hook of shield is installed")

// ours returns a function that reports whether a list element is a hook of shield.
func (h *Host) ours(ctx context.Context) func([]byte) bool {
	return func(raw []byte) bool {
		element, err := decode(raw)
		if err != nil {
			return false
		}
		out, err := h.one(ctx, `[.. | objects | shields(`+strconv.Quote(h.Name)+`)] | length > 0`, element)
		return err == nil && out == true
	}
}

// mentioned reports whether a text contains a command line that runs shield as this host's hook.
func (h *Host) mentioned(doc []byte) bool {
	return slices.ContainsFunc(strings.Split(string(doc), "\n"), func(line string) bool {
		_, rest, found := strings.Cut(line, "hook "+h.Name)
		return found && (rest == "" || !isNamePart(rest[0])) && (strings.Contains(line, "shield") || strings.Contains(line, "SHIELD_CONFIG="))
	})
}

func isNamePart(c byte) bool { return c == '-' || c >= 'a' && c <= 'z' }
