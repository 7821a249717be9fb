package command

import "strings"

// parseOption handles args[i] if it is an option, with the arguments that are its values, and returns the index of the
// next argument.
func (r *argParser) parseOption(i int) (next int, ok bool) {
	w := r.args[i].Text
	style := r.innermostLevel.style
	if style&slash != 0 {
		return r.parseSlashOption(i)
	}
	if style&expr != 0 {
		if a := r.lookupOption(w); a != nil {
			return r.parseOptionValues(a, w, i+1), true
		}
	}
	if w == "-" {
		a := r.lookupOption(w)
		if a == nil {
			return i, false
		}
		r.applyAction(a)
		return i + 1, true
	}
	if len(w) > 1 && w[0] == '@' {
		return r.parsePrefixedOption(i) // @FILE: a file with more arguments
	}
	if len(w) < 2 || w[0] != '-' && (w[0] != '+' || style&plus == 0) {
		return i, false
	}
	if w == "--" && style&literal == 0 {
		r.optionsEnded = true
		return i + 1, true
	}
	if style&numeric != 0 && isNumeric(w) {
		return i + 1, true
	}
	if hasPrefix(w, "--") || style&long != 0 {
		next, ok = r.parseLongOption(i)
		if ok || style&bundled == 0 || hasPrefix(w, "--") {
			if !ok && style&literal != 0 {
				return i, false
			}
			if !ok {
				next = r.addUnknownOption(i)
			}
			return next, true
		}
	}
	if style&literal != 0 && r.lookupOption(w[:2]) == nil {
		return i, false
	}
	return r.parseBundledOptions(i, w[1:]), true
}

// lookupOption returns the action of an option by its full name.
func (r *argParser) lookupOption(name string) *action {
	for d := r.levelCount - 1; d >= 0; d-- {
		if a := findEntry(r.levels[d].options, name); a != nil {
			return a
		}
		if r.excludesParentOptions(d) {
			break
		}
	}
	return nil
}

// excludesParentOptions reports whether the options of parent levels are invalid at level d.
func (r *argParser) excludesParentOptions(d int) bool { return d > 0 && r.levels[d-1].style&own != 0 }

// parseLongOption handles --name, --name=value, --name value, abbreviations of GNU options, and the same with one dash.
func (r *argParser) parseLongOption(i int) (next int, ok bool) {
	w := r.args[i]
	name, eq := w.Text, strings.IndexByte(w.Text, '=')
	if eq >= 0 {
		name = w.Text[:eq]
	}
	a := r.lookupOption(name)
	if a == nil && r.innermostLevel.style&long != 0 && hasPrefix(name, "--") {
		a = r.lookupOption(name[1:])
	}
	if a == nil && len(name) > 2 && hasPrefix(name, "--") {
		a = r.lookupAbbreviated(name)
	}
	if a == nil {
		return r.parsePrefixedOption(i)
	}
	if eq < 0 {
		return r.parseOptionValues(a, name, i+1), true
	}
	r.applyOption(a, skipBytes(w, eq+1))
	if a.flags&reject != 0 {
		r.setNotUnderstood("option %s cannot be judged", name)
	}
	if len(a.values) > 0 && a.values[0].takesAll() {
		r.values = r.values[:len(r.values)-1]
		r.addNestedWords(a.values[0], []Word{skipBytes(w, eq+1)})
	}
	return i + 1, true
}

// Actions of options that nearly every program has, and of negated options.
var (
	helpOption    = action{streams: streams{setIn: true}}
	negatedOption = action{}
)

// lookupAbbreviated returns the action of an option that is abbreviated as GNU programs allow, negated with --no-, or
// common to nearly all programs.
func (r *argParser) lookupAbbreviated(name string) *action {
	for d := r.levelCount - 1; d >= 0; d-- {
		g := r.levels[d]
		if g.style&gnu != 0 {
			if a := findAbbreviated(g.options, name); a != nil {
				return a
			}
		}
		if r.excludesParentOptions(d) {
			break
		}
	}
	if name == "--help" || name == "--version" {
		return &helpOption
	}
	if hasPrefix(name, "--no-") {
		if a := r.lookupOption("--" + name[len("--no-"):]); a != nil && a.flags&reject == 0 {
			return &negatedOption
		}
	}
	return nil
}

// parsePrefixedOption handles a word that starts with the name of an option, as -Wall does with -W*.
func (r *argParser) parsePrefixedOption(i int) (next int, ok bool) {
	w := r.args[i]
	for d := r.levelCount - 1; d >= 0; d-- {
		for k := range r.levels[d].prefixes {
			o := &r.levels[d].prefixes[k]
			if hasPrefix(w.Text, o.name) {
				r.applyOption(o.value, skipBytes(w, len(o.name)))
				if len(o.value.values) == 1 && o.value.values[0] == roleMaybePath && !strings.Contains(w.Text, "=") {
					r.addPossibleValue(i)
				}
				if o.value.flags&reject != 0 {
					r.setNotUnderstood("option %s cannot be judged", w.Text)
				}
				return i + 1, true
			}
		}
		if r.excludesParentOptions(d) {
			break
		}
	}
	return i, false
}

// parseBundledOptions handles bundled option letters, the last of which may have a value: -rf, -ofile, -o file.
func (r *argParser) parseBundledOptions(i int, letters string) int {
	w := r.args[i]
	start := len(w.Text) - len(letters)
	after := i + 1
	var name [2]byte
	name[0] = '-'
	if w.Text[0] == '+' {
		name[0] = '+'
	}
	for k := 0; k < len(letters); k++ {
		name[1] = letters[k]
		a := r.lookupOption(string(name[:]))
		if a == nil {
			if k == 0 {
				if next, ok := r.parsePrefixedOption(i); ok {
					return next
				}
			}
			if r.innermostLevel.style&numeric != 0 && letters[k] >= '0' && letters[k] <= '9' {
				continue
			}
			return r.addUnknownOption(i)
		}
		if (start == 0 || r.innermostLevel.style&apart != 0) && len(a.values) > 0 {
			// Without a dash, as in tar cfz x.tar, the values are the next arguments.
			after = r.parseOptionValues(a, string(name[:]), after)
			continue
		}
		rest := skipBytes(w, start+k+1)
		if len(a.values) == 0 {
			r.applyAction(a)
			r.noteRejectedOption(a, name[:])
			continue
		}
		if a.attached {
			// An optional value is the rest of the word: sed -i.bak, sed -iE.
			r.applyAction(a)
			if rest.Text != "" {
				r.values = append(r.values, valueWithRole{a.values[0], rest, len(r.operands), a.valueRunsFirst()})
			}
			return i + 1
		}
		if rest.Text != "" {
			r.noteRejectedOption(a, name[:])
			if a.values[0].takesAll() {
				r.applyAction(a)
				r.addNestedWords(a.values[0], []Word{rest})
				return i + 1
			}
			r.applyOption(a, rest)
			return i + 1
		}
		return r.parseOptionValues(a, string(name[:]), i+1)
	}
	return after
}

func (r *argParser) noteRejectedOption(a *action, name []byte) {
	if a.flags&reject != 0 {
		r.setNotUnderstood("option %s cannot be judged", string(name))
	}
}

// parseOptionValues applies an option and reads its values from args[i] on.
func (r *argParser) parseOptionValues(a *action, name string, i int) int {
	r.applyAction(a)
	if a.flags&reject != 0 {
		r.setNotUnderstood("option %s cannot be judged", name)
	}
	if a.attached {
		return i
	}
	for _, role := range a.values {
		if role.takesAll() {
			end := len(r.args)
			if role == roleArgvSemi {
				end = r.findSemicolon(i)
			}
			if i < end {
				r.addNestedWords(role, r.args[i:end])
			}
			return min(end+1, len(r.args))
		}
		if i >= len(r.args) {
			r.setNotUnderstood("option %s has no value", name)
			return i
		}
		r.values = append(r.values, valueWithRole{role, r.args[i], len(r.operands), a.valueRunsFirst()})
		i++
	}
	return i
}

// findSemicolon returns the index of the word that ends a nested command of find, or the number of words if none does.
func (r *argParser) findSemicolon(i int) int {
	for ; i < len(r.args); i++ {
		switch r.args[i].Text {
		case ";", `\;`:
			return i
		case "+":
			if r.args[i-1].Text == "{}" {
				return i
			}
		}
	}
	return i
}

// addUnknownOption handles an unlisted option. If unlisted options are allowed, it only means that the program may do more
// than read. The next word may be its value, and is also treated as an operand.
func (r *argParser) addUnknownOption(i int) int {
	w := r.args[i]
	r.addBundledHarms(w.Text)
	if !r.allowsUnlistedOptions() || w.Pattern {
		r.setNotUnderstood("unknown option %s", w.Text)
	} else {
		r.raiseClass(localWrite)
	}
	if eq := strings.IndexByte(w.Text, '='); eq >= 0 {
		r.values = append(r.values, valueWithRole{role: roleMaybePath, word: skipBytes(w, eq+1)})
		return i + 1
	}
	r.addUnrecognized(w, true)
	r.addPossibleValue(i)
	return i + 1
}

// addPossibleValue records the word after an unknown option, which may be its value. Devices are skipped: they are
// operands.
func (r *argParser) addPossibleValue(i int) {
	if i+1 < len(r.args) && !hasPrefix(r.args[i+1].Text, "-") && !hasPrefix(r.args[i+1].Text, "/dev/") {
		r.addUnrecognized(r.args[i+1], true)
	}
}

// addUnrecognized records a word without a meaning in any entry.
func (r *argParser) addUnrecognized(w Word, option bool) {
	r.result.Unrecognized = append(r.result.Unrecognized, UnrecognizedWord{w, option})
}

// allowsUnlistedOptions reports whether unlisted options are allowed at this level; the program may do more than read.
func (r *argParser) allowsUnlistedOptions() bool {
	for d := r.levelCount - 1; d >= 0; d-- {
		if r.levels[d].style&open != 0 {
			return true
		}
		if r.excludesParentOptions(d) {
			break
		}
	}
	return false
}

// isNumeric reports whether w is a signed number, as in head -5 or tail +3.
func isNumeric(w string) bool {
	for i := 1; i < len(w); i++ {
		if w[i] < '0' || w[i] > '9' {
			return false
		}
	}
	return true
}

// isSetting reports whether w has the form NAME=VALUE. NAME may contain characters that shells do not allow, as in
// exported bash functions.
func isSetting(w string) bool {
	name, _, ok := strings.Cut(w, "=")
	return ok && name != "" && !strings.ContainsAny(name, "/ \t\n") && (name[0] == '_' || name[0]|0x20 >= 'a' && name[0]|0x20 <= 'z')
}
