package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// WindowsProgramTableName returns the name of the entry for the program that Windows runs under a name, and
// whether it is a Windows program. Some share their name with a program of other systems, such as find: they are
// listed as cmd:find.
func WindowsProgramTableName(name string) (programTableName string, isWindowsProgram bool) {
	name = strings.ToLower(name)
	if programTableName = "cmd:" + name; findEntry(programs[:], programTableName) != nil {
		return programTableName, true
	}
	g := lookupProgram(name)
	return name, g != nil && g.argStyle&argStyleWindowsSlashOptions != 0
}

// windowsOptionMarks are the characters that can begin options on Windows: PowerShell also accepts typographic dashes.
const windowsOptionMarks = "-/–—―"

// parseSlashOption handles args[i] if it is a Windows option: /name, -name, /name:value, /name value, in any case.
func (r *argParser) parseSlashOption(i int) (next int, ok bool) {
	off := r.consumeBundledSlashOptions(r.args[i].Text)
	w := skipBytes(r.args[i], off)
	if r.innermostSyntax.argStyle&argStyleDashlessOptions != 0 {
		if a := r.lookupOption(strings.ToLower(w.Text)); a != nil {
			return r.parseOptionValues(a, w.Text, i+1), true
		}
	}
	start := len(w.Text) - len(strings.TrimLeft(w.Text, windowsOptionMarks))
	name, mark := w.Text[start:], "/"
	if start == 0 && hasPrefix(name, "+") && r.innermostSyntax.argStyle&argStylePlusOptions != 0 {
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
	if a == nil && r.innermostSyntax.argStyle&argStyleGNUAbbreviations != 0 {
		a = findOptionByAbbreviation(r.innermostSyntax.options, name)
	}
	switch {
	case a != nil && end >= 0:
		r.applyOption(a, skipBytes(w, start+end+1))
		return i + 1, true
	case a != nil:
		return r.parseOptionValues(a, name, i+1), true
	}
	if g := findEntry(r.innermostSyntax.subcommands, name); g != nil {
		r.enterSyntax(g)
		return i + 1, true
	}
	if g := findLongestPrefix(r.innermostSyntax.subcommands, name, 1); g != nil {
		r.enterSyntax(g)
		return i + 1, true
	}
	return r.consumeSlashOption(i, off+start, name), true
}

// consumeBundledSlashOptions applies the switches before another one in the same word, as /q in /q/c, and returns their length in
// bytes.
func (r *argParser) consumeBundledSlashOptions(text string) int {
	off := 0
	for r.innermostSyntax.argStyle&argStyleBundledLetters != 0 && hasPrefix(text[off:], "/") {
		end := strings.IndexByte(text[off+1:], '/') + 1
		if end <= 1 {
			break
		}
		a := r.lookupOption(strings.ToLower(text[off : off+end]))
		if a == nil || len(a.valueRoles) > 0 {
			break
		}
		r.applyAction(a)
		off += end
	}
	return off
}

// consumeSlashOption handles a Windows option that starts with the name of a listed prefix
// option: if the entry lists /c*, the argument /cdir is the option /c with the value dir. nameOffset is the
// index of the name, after its slash, in the argument.
func (r *argParser) consumeSlashOption(argIndex, nameOffset int, name string) int {
	for k := range r.innermostSyntax.optionsMatchedByPrefix {
		o := &r.innermostSyntax.optionsMatchedByPrefix[k]
		if !hasPrefix(name, o.name) {
			continue
		}
		rest := skipBytes(r.args[argIndex], nameOffset+len(o.name)-1)
		if len(o.value.valueRoles) == 0 || !o.value.valueRoles[0].coversRemainingArgs() {
			r.applyOption(o.value, rest)
			return argIndex + 1
		}
		r.applyAction(o.value)
		words := r.args[argIndex+1:]
		if rest.Text != "" {
			words = append([]Word{rest}, words...)
		}
		if len(words) > 0 {
			r.addNestedCommand(o.value.valueRoles[0], words)
		}
		return len(r.args)
	}
	return r.addUnknownOption(argIndex)
}

// maxJoinedArgsBytes is the maximum length, in bytes, of a program's joined arguments that is
// searched for the texts that the program's entry lists.
const maxJoinedArgsBytes = 64 << 10

// applyArgTextPatternActions searches a program's joined arguments for the texts in patterns, which come from
// the program's entry, and applies the action of each text that occurs. The value of the action is the part of
// the arguments after the text.
func (r *argParser) applyArgTextPatternActions(patterns []option) {
	if len(r.args) < 2 {
		return
	}
	all := joinWords(r.args[1:])
	if len(all.Text) > maxJoinedArgsBytes {
		r.setNotUnderstood("the arguments of %s are too long", r.args[0].Text)
		r.raiseProgramClass(unknownProgramClassRank)
		return
	}
	r.applyTextPatternActions(patterns, all)
}

// applyTextPatternActions applies the action of each text of a program's entry that occurs in a word. In
// a text, * matches any characters; case is ignored.
func (r *argParser) applyTextPatternActions(patterns []option, searchedText Word) {
	lower := strings.ToLower(searchedText.Text)
	for k := range patterns {
		end := 0
		for part := range strings.SplitSeq(patterns[k].name, "*") {
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
		value := searchedText
		if len(lower) == len(searchedText.Text) {
			value.Text = strings.Trim(searchedText.Text[end:], " \"'")
		}
		r.applyOption(patterns[k].value, value)
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
		if r.activeActionFlags&actionFlagRunsURLResponses != 0 {
			r.addEffect(effect.RunDownload)
		}
	}
}
