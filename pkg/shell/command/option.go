package command

import "strings"

// option handles args[i] if it is an option, with the arguments that are its values, and returns the index of the
// next argument.
func (r *reader) option(i int) (next int, ok bool) {
	w := r.args[i].Text
	style := r.level.style
	if style&slash != 0 {
		return r.slashOption(i)
	}
	if style&expr != 0 {
		if a := r.lookup(w); a != nil {
			return r.valuesOf(a, w, i+1), true
		}
	}
	if w == "-" {
		a := r.lookup(w)
		if a == nil {
			return i, false
		}
		r.act(a)
		return i + 1, true
	}
	if len(w) > 1 && w[0] == '@' {
		return r.prefixed(i) // @FILE: a file with more arguments
	}
	if len(w) < 2 || w[0] != '-' && (w[0] != '+' || style&plus == 0) {
		return i, false
	}
	if w == "--" && style&literal == 0 {
		r.ended = true
		return i + 1, true
	}
	if style&numeric != 0 && isNumeric(w) {
		return i + 1, true
	}
	if hasPrefix(w, "--") || style&long != 0 {
		next, ok = r.longOption(i)
		if ok || style&bundled == 0 || hasPrefix(w, "--") {
			if !ok && style&literal != 0 {
				return i, false
			}
			if !ok {
				next = r.unknown(i)
			}
			return next, true
		}
	}
	if style&literal != 0 && r.lookup(w[:2]) == nil {
		return i, false
	}
	return r.cluster(i, w[1:]), true
}

// lookup returns the action of an option by its full name.
func (r *reader) lookup(name string) *action {
	for d := r.depth - 1; d >= 0; d-- {
		if a := find(r.levels[d].options, name); a != nil {
			return a
		}
		if r.isOwn(d) {
			break
		}
	}
	return nil
}

// isOwn reports whether the options of parent levels are invalid at level d.
func (r *reader) isOwn(d int) bool { return d > 0 && r.levels[d-1].style&own != 0 }

// longOption handles --name, --name=value, --name value, abbreviations of GNU options, and the same with one dash.
func (r *reader) longOption(i int) (next int, ok bool) {
	w := r.args[i]
	name, eq := w.Text, strings.IndexByte(w.Text, '=')
	if eq >= 0 {
		name = w.Text[:eq]
	}
	a := r.lookup(name)
	if a == nil && r.level.style&long != 0 && hasPrefix(name, "--") {
		a = r.lookup(name[1:])
	}
	if a == nil && len(name) > 2 && hasPrefix(name, "--") {
		a = r.abbreviated(name)
	}
	if a == nil {
		return r.prefixed(i)
	}
	if eq < 0 {
		return r.valuesOf(a, name, i+1), true
	}
	r.take(a, cut(w, eq+1))
	if a.flags&reject != 0 {
		r.doubt("option %s cannot be judged", name)
	}
	if len(a.values) > 0 && a.values[0].takesAll() {
		r.values = r.values[:len(r.values)-1]
		r.nest(a.values[0], []Word{cut(w, eq+1)})
	}
	return i + 1, true
}

// Actions of options that nearly every program has, and of negated options.
var (
	helpOption    = action{streams: streams{setIn: true}}
	negatedOption = action{}
)

// abbreviated returns the action of an option that is abbreviated as GNU programs allow, negated with --no-, or
// common to nearly all programs.
func (r *reader) abbreviated(name string) *action {
	for d := r.depth - 1; d >= 0; d-- {
		g := r.levels[d]
		if g.style&gnu != 0 {
			if a := findPrefix(g.options, name); a != nil {
				return a
			}
		}
		if r.isOwn(d) {
			break
		}
	}
	if name == "--help" || name == "--version" {
		return &helpOption
	}
	if hasPrefix(name, "--no-") {
		if a := r.lookup("--" + name[len("--no-"):]); a != nil && a.flags&reject == 0 {
			return &negatedOption
		}
	}
	return nil
}

// prefixed handles a word that starts with the name of an option, as -Wall does with -W*.
func (r *reader) prefixed(i int) (next int, ok bool) {
	w := r.args[i]
	for d := r.depth - 1; d >= 0; d-- {
		for k := range r.levels[d].prefixes {
			o := &r.levels[d].prefixes[k]
			if hasPrefix(w.Text, o.name) {
				r.take(o.does, cut(w, len(o.name)))
				if len(o.does.values) == 1 && o.does.values[0] == roleMaybePath && !strings.Contains(w.Text, "=") {
					r.unreadNext(i)
				}
				if o.does.flags&reject != 0 {
					r.doubt("option %s cannot be judged", w.Text)
				}
				return i + 1, true
			}
		}
		if r.isOwn(d) {
			break
		}
	}
	return i, false
}

// cluster handles bundled option letters, the last of which may have a value: -rf, -ofile, -o file.
func (r *reader) cluster(i int, letters string) int {
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
		a := r.lookup(string(name[:]))
		if a == nil {
			if k == 0 {
				if next, ok := r.prefixed(i); ok {
					return next
				}
			}
			if r.level.style&numeric != 0 && letters[k] >= '0' && letters[k] <= '9' {
				continue
			}
			return r.unknown(i)
		}
		if (start == 0 || r.level.style&apart != 0) && len(a.values) > 0 {
			// Without a dash, as in tar cfz x.tar, the values are the next arguments.
			after = r.valuesOf(a, string(name[:]), after)
			continue
		}
		rest := cut(w, start+k+1)
		if len(a.values) == 0 {
			r.act(a)
			r.checkReject(a, name[:])
			continue
		}
		if a.attached {
			// An optional value is the rest of the word: sed -i.bak, sed -iE.
			r.act(a)
			if rest.Text != "" {
				r.values = append(r.values, value{a.values[0], rest, len(r.operands), a.loads()})
			}
			return i + 1
		}
		if rest.Text != "" {
			r.checkReject(a, name[:])
			if a.values[0].takesAll() {
				r.act(a)
				r.nest(a.values[0], []Word{rest})
				return i + 1
			}
			r.take(a, rest)
			return i + 1
		}
		return r.valuesOf(a, string(name[:]), i+1)
	}
	return after
}

func (r *reader) checkReject(a *action, name []byte) {
	if a.flags&reject != 0 {
		r.doubt("option %s cannot be judged", string(name))
	}
}

// valuesOf applies an option and reads its values from args[i] on.
func (r *reader) valuesOf(a *action, name string, i int) int {
	r.act(a)
	if a.flags&reject != 0 {
		r.doubt("option %s cannot be judged", name)
	}
	if a.attached {
		return i
	}
	for _, role := range a.values {
		if role.takesAll() {
			end := len(r.args)
			if role == roleArgvSemi {
				end = r.semicolon(i)
			}
			if i < end {
				r.nest(role, r.args[i:end])
			}
			return min(end+1, len(r.args))
		}
		if i >= len(r.args) {
			r.doubt("option %s has no value", name)
			return i
		}
		r.values = append(r.values, value{role, r.args[i], len(r.operands), a.loads()})
		i++
	}
	return i
}

// semicolon returns the index of the word that ends a nested command of find, or the number of words if none does.
func (r *reader) semicolon(i int) int {
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

// unknown handles an unlisted option. If unlisted options are allowed, it only means that the program may do more
// than read. The next word may be its value, and is also treated as an operand.
func (r *reader) unknown(i int) int {
	w := r.args[i]
	r.lettersHarm(w.Text)
	if !r.isOpen() || w.Pattern {
		r.doubt("unknown option %s", w.Text)
	} else {
		r.raiseClass(localWrite)
	}
	if eq := strings.IndexByte(w.Text, '='); eq >= 0 {
		r.values = append(r.values, value{role: roleMaybePath, word: cut(w, eq+1)})
		return i + 1
	}
	r.unread(w, true)
	r.unreadNext(i)
	return i + 1
}

// unreadNext records the word after an unknown option, which may be its value. Devices are skipped: they are
// operands.
func (r *reader) unreadNext(i int) {
	if i+1 < len(r.args) && !hasPrefix(r.args[i+1].Text, "-") && !hasPrefix(r.args[i+1].Text, "/dev/") {
		r.unread(r.args[i+1], true)
	}
}

// unread records a word without a meaning in any entry.
func (r *reader) unread(w Word, option bool) {
	r.use.Unread = append(r.use.Unread, Unread{w, option})
}

// isOpen reports whether unlisted options are allowed at this level; the program may do more than read.
func (r *reader) isOpen() bool {
	for d := r.depth - 1; d >= 0; d-- {
		if r.levels[d].style&open != 0 {
			return true
		}
		if r.isOwn(d) {
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
