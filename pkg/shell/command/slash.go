package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// OfWindows returns the entry of the program that Windows runs under a name, and whether it is a Windows program.
// Some share their name with a program of other systems, such as find: they are listed as cmd:find.
func OfWindows(name string) (listed string, ok bool) {
	name = strings.ToLower(name)
	if listed = "cmd:" + name; find(programs[:], listed) != nil {
		return listed, true
	}
	g := lookup(name)
	return name, g != nil && g.style&slash != 0
}

// dashes are the characters that can begin options on Windows: PowerShell also accepts typographic dashes.
const dashes = "-/–—―"

// slashOption handles args[i] if it is a Windows option: /name, -name, /name:value, /name value, in any case.
func (r *reader) slashOption(i int) (next int, ok bool) {
	off := r.slashBundle(r.args[i].Text)
	w := cut(r.args[i], off)
	if r.level.style&expr != 0 {
		if a := r.lookup(strings.ToLower(w.Text)); a != nil {
			return r.valuesOf(a, w.Text, i+1), true
		}
	}
	start := len(w.Text) - len(strings.TrimLeft(w.Text, dashes))
	name, mark := w.Text[start:], "/"
	if start == 0 && hasPrefix(name, "+") && r.level.style&plus != 0 {
		start, name, mark = 1, name[1:], "+"
	}
	end := strings.IndexAny(name, ":=")
	if end >= 0 {
		name = name[:end]
	}
	if start == 0 || name == "" || w.Text[0] == '/' && strings.Contains(name, "/") {
		return i, false
	}
	name = mark + strings.ToLower(name)
	a := r.lookup(name)
	if a == nil && r.level.style&gnu != 0 {
		a = findPrefix(r.level.options, name)
	}
	switch {
	case a != nil && end >= 0:
		r.take(a, cut(w, start+end+1))
		return i + 1, true
	case a != nil:
		return r.valuesOf(a, name, i+1), true
	}
	if g := find(r.level.subs, name); g != nil {
		r.enter(g)
		return i + 1, true
	}
	if g := findPrefixed(r.level.subs, name, 1); g != nil {
		r.enter(g)
		return i + 1, true
	}
	return r.slashPrefixed(i, off+start, name), true
}

// slashBundle applies the switches before another one in the same word, as /q in /q/c, and returns their length in
// bytes.
func (r *reader) slashBundle(text string) int {
	off := 0
	for r.level.style&bundled != 0 && hasPrefix(text[off:], "/") {
		end := strings.IndexByte(text[off+1:], '/') + 1
		if end <= 1 {
			break
		}
		a := r.lookup(strings.ToLower(text[off : off+end]))
		if a == nil || len(a.values) > 0 {
			break
		}
		r.act(a)
		off += end
	}
	return off
}

// slashPrefixed handles a word that starts with the name of an option, as /cdir does with /c*.
func (r *reader) slashPrefixed(i, start int, name string) int {
	for k := range r.level.prefixes {
		o := &r.level.prefixes[k]
		if !hasPrefix(name, o.name) {
			continue
		}
		rest := cut(r.args[i], start+len(o.name)-1)
		if len(o.does.values) == 0 || !o.does.values[0].takesAll() {
			r.take(o.does, rest)
			return i + 1
		}
		r.act(o.does)
		words := r.args[i+1:]
		if rest.Text != "" {
			words = append([]Word{rest}, words...)
		}
		if len(words) > 0 {
			r.nest(o.does.values[0], words)
		}
		return len(r.args)
	}
	return r.unknown(i)
}

// maxTexts is the maximum length, in bytes, of the joined arguments that are searched for texts.
const maxTexts = 64 << 10

// findTexts applies the actions of texts that occur in the joined arguments. The value of a text is the text after
// it.
func (r *reader) findTexts(texts []option) {
	if len(r.args) < 2 {
		return
	}
	all := joined(r.args[1:])
	if len(all.Text) > maxTexts {
		r.doubt("the arguments of %s are too long", r.args[0].Text)
		r.raiseClass(anything)
		return
	}
	r.matchTexts(texts, all)
}

// matchTexts applies the actions of texts that occur in a word.
func (r *reader) matchTexts(texts []option, all Word) {
	lower := strings.ToLower(all.Text)
	for k := range texts {
		end := 0
		for part := range strings.SplitSeq(texts[k].name, "*") {
			at := strings.Index(lower[end:], part)
			if at < 0 {
				end = -1
				break
			}
			end += at + len(part)
		}
		if end < 0 {
			continue
		}
		value := all
		if len(lower) == len(all.Text) {
			value.Text = strings.Trim(all.Text[end:], " \"'")
		}
		r.take(texts[k].does, value)
	}
}

// findURLs records the URLs in the arguments.
func (r *reader) findURLs() {
	for _, w := range r.args[1:] {
		i := strings.Index(strings.ToLower(w.Text), "http")
		if i < 0 || i >= len(w.Text) || !strings.Contains(w.Text[i:], "://") {
			continue
		}
		w.Text = strings.Trim(w.Text[i:], `"'`)
		if end := strings.IndexAny(w.Text, `"')`); end > 0 {
			w.Text = w.Text[:end]
		}
		r.touch(effect.HTTPRequest, w, false)
		if r.flags&runURLs != 0 {
			r.effect(effect.RunDownload)
		}
	}
}
