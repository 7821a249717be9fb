package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// WindowsEntryName returns the entry of the program that Windows runs under a name, and whether it is a Windows program.
// Some share their name with a program of other systems, such as find: they are listed as cmd:find.
func WindowsEntryName(name string) (listed string, ok bool) {
	name = strings.ToLower(name)
	if listed = "cmd:" + name; findEntry(programs[:], listed) != nil {
		return listed, true
	}
	g := lookupProgram(name)
	return name, g != nil && g.style&slash != 0
}

// windowsOptionMarks are the characters that can begin options on Windows: PowerShell also accepts typographic dashes.
const windowsOptionMarks = "-/–—―"

// parseSlashOption handles args[i] if it is a Windows option: /name, -name, /name:value, /name value, in any case.
func (r *argParser) parseSlashOption(i int) (next int, ok bool) {
	off := r.applySlashBundle(r.args[i].Text)
	w := skipBytes(r.args[i], off)
	if r.innermostLevel.style&expr != 0 {
		if a := r.lookupOption(strings.ToLower(w.Text)); a != nil {
			return r.parseOptionValues(a, w.Text, i+1), true
		}
	}
	start := len(w.Text) - len(strings.TrimLeft(w.Text, windowsOptionMarks))
	name, mark := w.Text[start:], "/"
	if start == 0 && hasPrefix(name, "+") && r.innermostLevel.style&plus != 0 {
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
	a := r.lookupOption(name)
	if a == nil && r.innermostLevel.style&gnu != 0 {
		a = findAbbreviated(r.innermostLevel.options, name)
	}
	switch {
	case a != nil && end >= 0:
		r.applyOption(a, skipBytes(w, start+end+1))
		return i + 1, true
	case a != nil:
		return r.parseOptionValues(a, name, i+1), true
	}
	if g := findEntry(r.innermostLevel.subs, name); g != nil {
		r.enterSyntax(g)
		return i + 1, true
	}
	if g := findLongestPrefix(r.innermostLevel.subs, name, 1); g != nil {
		r.enterSyntax(g)
		return i + 1, true
	}
	return r.parseSlashPrefixed(i, off+start, name), true
}

// applySlashBundle applies the switches before another one in the same word, as /q in /q/c, and returns their length in
// bytes.
func (r *argParser) applySlashBundle(text string) int {
	off := 0
	for r.innermostLevel.style&bundled != 0 && hasPrefix(text[off:], "/") {
		end := strings.IndexByte(text[off+1:], '/') + 1
		if end <= 1 {
			break
		}
		a := r.lookupOption(strings.ToLower(text[off : off+end]))
		if a == nil || len(a.values) > 0 {
			break
		}
		r.applyAction(a)
		off += end
	}
	return off
}

// parseSlashPrefixed handles a word that starts with the name of an option, as /cdir does with /c*.
func (r *argParser) parseSlashPrefixed(i, start int, name string) int {
	for k := range r.innermostLevel.prefixes {
		o := &r.innermostLevel.prefixes[k]
		if !hasPrefix(name, o.name) {
			continue
		}
		rest := skipBytes(r.args[i], start+len(o.name)-1)
		if len(o.value.values) == 0 || !o.value.values[0].takesAll() {
			r.applyOption(o.value, rest)
			return i + 1
		}
		r.applyAction(o.value)
		words := r.args[i+1:]
		if rest.Text != "" {
			words = append([]Word{rest}, words...)
		}
		if len(words) > 0 {
			r.addNestedWords(o.value.values[0], words)
		}
		return len(r.args)
	}
	return r.addUnknownOption(i)
}

// maxSearchedBytes is the maximum length, in bytes, of a program's joined arguments that is
// searched for the texts that the program's entry lists.
const maxSearchedBytes = 64 << 10

// applyTextsInArgs searches the joined arguments for texts of a program's entry and applies the
// action of each text that occurs. The action's value is what follows the text.
func (r *argParser) applyTextsInArgs(texts []option) {
	if len(r.args) < 2 {
		return
	}
	all := joinWords(r.args[1:])
	if len(all.Text) > maxSearchedBytes {
		r.setNotUnderstood("the arguments of %s are too long", r.args[0].Text)
		r.raiseClass(anything)
		return
	}
	r.applyMatchingTexts(texts, all)
}

// applyMatchingTexts applies the action of each text of a program's entry that occurs in a word. In
// a text, * matches any characters; case is ignored.
func (r *argParser) applyMatchingTexts(texts []option, all Word) {
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
		r.applyOption(texts[k].value, value)
	}
}

// addURLsInArgs records the URLs in the arguments.
func (r *argParser) addURLsInArgs() {
	for _, w := range r.args[1:] {
		i := strings.Index(strings.ToLower(w.Text), "http")
		if i < 0 || i >= len(w.Text) || !strings.Contains(w.Text[i:], "://") {
			continue
		}
		w.Text = strings.Trim(w.Text[i:], `"'`)
		if end := strings.IndexAny(w.Text, `"')`); end > 0 {
			w.Text = w.Text[:end]
		}
		r.addOperandEffect(effect.HTTPRequest, w, false)
		if r.flags&runURLs != 0 {
			r.addEffect(effect.RunDownload)
		}
	}
}
