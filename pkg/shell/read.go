package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// assignTo gives a value to what a word names: a variable, or a member of an array. If
// the word is not known, any variable may have it.
func (s *state) assignTo(to, v abstract.Value) {
	name, sub, member := strings.Cut(to.Text, "[")
	switch {
	case !to.Known() || !syntax.ValidName(name):
		s.forget()
	case member:
		s.arithmText(to.Text)
		target, ok := s.target(name)
		if !ok {
			s.forget()
			return
		}
		s.setsCommand(target, abstract.Lit(strings.TrimSuffix(sub, "]")), v)
		s.setElement(target, abstract.Lit(strings.TrimSuffix(sub, "]")), v, false)
	default:
		s.assign(name, v)
	}
}

// read binds variables from the input: read, mapfile, readarray.
func (s *state) read(argv []abstract.Value, io abstract.Streams) abstract.Value {
	in := io.In
	ended := s.remains != nil && s.remains.Text == "" && !io.Redirected
	ended = ended || io.Here && in.Known() && in.Text == ""
	d, other := s.readFrom(argv)
	if other {
		in, ended = d, false
	} else {
		s.consumed, s.remains = true, nil
	}
	o := s.readOptions(argv)
	lines, names := argv[0].Text != "read", o.names
	switch {
	case len(names) == 0 && lines:
		names = []abstract.Value{abstract.Lit("MAPFILE")}
	case !lines && s.posix && len(names) > 0 && strings.Contains(names[0].Text, "?"): // zsh takes it when it is called sh
		mark := len(s.vars)
		names[0].Text, _, _ = strings.Cut(names[0].Text, "?")
		s.readAnything(names, in)
		s.weaken(mark)
		return abstract.Value{}
	case len(names) == 0 && o.array, !lines && !s.withoutQuestion(names):
		return abstract.Value{}
	}
	if o.array {
		s.intoArray(argv, names[0], in, o.plainly && !o.counted())
		return abstract.Value{}
	}
	// From the terminal, or in a way that is not worked out, anything may come.
	raw := slices.ContainsFunc(argv, func(v abstract.Value) bool { return strings.HasPrefix(v.Text, "-") && strings.Contains(v.Text, "r") })
	ifs, known := s.ifs()
	if !known || !o.plainly || o.most > 0 && !ascii(in.Text) || !in.Known() || in.Text == "" && in.Plain() && !ended || strings.Contains(in.Text, "\\") && !raw {
		s.readAnything(names, in)
		return abstract.Value{}
	}
	mark := len(s.vars)
	line, after, whole := o.cut(in.Text)
	if o.counted() { // not all shells have that
		other = true
		defer func() { s.weaken(mark) }()
	}
	if !other && !s.constants {
		left := in
		left.Text = after
		s.remains, s.exit = &left, exitOf(whole, true)
	}
	if len(names) == 0 { // the line as it is in bash, without blanks around it in others
		v := abstract.Value{Text: line, Taint: in.Taint}
		if strings.Trim(line, ifs) != line {
			v = vague("$REPLY", v)
		}
		s.assign("REPLY", v)
		return abstract.Value{}
	}
	for i, n := range names {
		v := abstract.Value{Taint: in.Taint}
		if i < len(names)-1 {
			v.Text, line = nextField(line, ifs)
		} else {
			if v.Text = s.lastField(line, ifs); s.posix && endsField(line, ifs) { // it stays in some shells
				v = vague("$"+n.Text, v)
			}
		}
		s.assignTo(n, v)
	}
	return abstract.Value{}
}

// readOptions are what the words behind read or mapfile say.
type readOptions struct {
	names   []abstract.Value
	array   bool
	plainly bool   // with no option that changes what is read, but for these two
	end     string // of what is read
	most    int    // letters of it, or 0
}

func (s *state) readOptions(argv []abstract.Value) readOptions {
	lines := argv[0].Text != "read"
	o := readOptions{array: lines, plainly: true, end: "\n"}
	for i := 1; i < len(argv); i++ {
		v := argv[i]
		if !strings.HasPrefix(v.Text, "-") || !v.Known() {
			o.names = append(o.names, v)
			continue
		}
		letter := v.Text[len(v.Text)-1]
		o.array = o.array || letter == 'a' || letter == 'A'
		next := abstract.Unknown("", 0)
		if i+1 < len(argv) {
			next = argv[i+1]
		}
		switch n, err := decimal(next.Text); {
		case !lines && v.Text == "-d" && next.Known() && len(next.Text) == 1:
			o.end = next.Text
		case !lines && v.Text == "-n" && next.Known() && err == nil && n > 0:
			o.most = int(n)
		default:
			o.plainly = o.plainly && (lines && v.Text == "-t" || !lines && strings.Trim(v.Text[1:], "raAs") == "")
		}
		if lines {
			s.callback(argv[i:])
		}
		if !lines && strings.IndexByte("dnNptui", letter) >= 0 || lines && strings.IndexByte("dnOsuCc", letter) >= 0 {
			i++
		}
	}
	return o
}

// counted reports whether what is read may be other than a line.
func (o *readOptions) counted() bool { return o.end != "\n" || o.most > 0 }

func ascii(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 })
}

// cut takes what is read off a text. whole says that it does not end before that.
func (o *readOptions) cut(text string) (line, after string, whole bool) {
	line, after, whole = strings.Cut(text, o.end)
	if n := o.most; n > 0 && n <= len(line) {
		return text[:n], text[n:], true
	}
	return line, after, whole
}

// callback walks what an option makes mapfile call with the index and the text of a line.
func (s *state) callback(argv []abstract.Value) {
	code := argv[0]
	_, text, ok := strings.Cut(code.Text, "C")
	switch {
	case !ok || text == "" && len(argv) == 1:
		return
	case text == "":
		code = argv[1]
	default:
		code.Text = text
	}
	s.runText("shell", abstract.Concat(code, abstract.Lit(" "), abstract.Short("index", abstract.FromVariable)), "mapfile", code.From, nil)
}

// readAnything gives names what is not worked out of an input.
func (s *state) readAnything(names []abstract.Value, in abstract.Value) {
	if len(names) == 0 {
		names = []abstract.Value{abstract.Lit("REPLY")}
	}
	for i, n := range names {
		v := abstract.Unknown("$"+n.String(), in.Taint|abstract.Foreign).Of(abstract.FromInput)
		if i == 0 {
			v = entry(in, v)
		}
		s.assignTo(n, v)
	}
}

// withoutQuestion takes off what zsh asks behind a name. Elsewhere that is no name.
func (s *state) withoutQuestion(names []abstract.Value) bool {
	if len(names) == 0 || !names[0].Known() || !strings.Contains(names[0].Text, "?") {
		return true
	}
	names[0].Text, _, _ = strings.Cut(names[0].Text, "?")
	return s.asZsh()
}

// entry returns one line of a list, or what is given if the input is none.
func entry(in, unknown abstract.Value) abstract.Value {
	if !in.Lines {
		return unknown
	}
	in.Show, in.Taint = unknown.Show, unknown.Taint
	return in
}

// intoArray is mapfile, or read with an array. Shells differ in which of them they have.
func (s *state) intoArray(argv []abstract.Value, to, in abstract.Value, plainly bool) {
	mark := len(s.vars)
	if argv[0].Text == "read" {
		s.readArray(to, in, nil, plainly)
	} else {
		how, ok := listingOf(argv)
		s.readArray(to, in, &how, ok)
	}
	if slices.ContainsFunc(argv, func(v abstract.Value) bool { return strings.HasPrefix(v.Text, "-") && strings.Contains(v.Text, "A") }) != s.asZsh() {
		s.weaken(mark)
	}
}

// A listing is how mapfile makes members of lines.
type listing struct {
	ends              string // what a line ends with
	trims             bool   // its end is left out
	adds              bool   // to the members that are there
	skip, most, first int    // how many lines are left out and taken, 0 for all, and the index of the first
}

// listingOf returns how mapfile is told to do it, and whether that is worked out.
func listingOf(argv []abstract.Value) (l listing, ok bool) {
	l.ends = "\n"
	for i := 1; i < len(argv); i++ {
		option := argv[i].Text
		if !strings.HasPrefix(option, "-") {
			continue
		}
		if option == "-t" {
			l.trims = true
			continue
		}
		if i++; i == len(argv) || !argv[i].Known() {
			return l, false
		}
		n, err := decimal(argv[i].Text)
		switch option {
		case "-d":
			l.ends, n, err = argv[i].Text, int64(len(argv[i].Text))-1, nil
		case "-s":
			l.skip = int(n)
		case "-n":
			l.most = int(n)
		case "-O":
			l.first, l.adds = int(n), true
		default:
			return l, false
		}
		if err != nil || n < 0 || n > abstract.MaxFields {
			return l, false
		}
	}
	return l, len(l.ends) == 1
}

// split returns the members that a text yields.
func (l *listing) split(text string) []string {
	parts := strings.SplitAfter(text, l.ends)
	if last := len(parts) - 1; parts[last] == "" {
		parts = parts[:last]
	}
	parts = parts[min(l.skip, len(parts)):]
	if l.most > 0 {
		parts = parts[:min(l.most, len(parts))]
	}
	if l.trims {
		for i := range parts {
			parts[i] = strings.TrimSuffix(parts[i], l.ends)
		}
	}
	return parts
}

// readArray binds an array to the words of a line, or to lines as a listing says.
func (s *state) readArray(to, in abstract.Value, lines *listing, plainly bool) {
	ifs, known := s.ifs()
	name, ok := s.target(to.Text)
	if !to.Known() || !ok {
		s.forget()
		return
	}
	any := entry(in, abstract.Unknown("$"+name, in.Taint|abstract.Foreign).Of(abstract.FromInput))
	b := binding{name: name, array: true, unsure: true, alike: in.Lines, elems: []element{{"0", any}}}
	if known && plainly && in.Known() && in.Text != "" && !strings.Contains(in.Text, "\\") {
		b.unsure, b.alike, b.elems = false, false, nil
		first := 0
		var parts []string
		if lines != nil {
			if parts, first = lines.split(in.Text), lines.first; lines.adds {
				b.elems, b.unsure = s.oldMembers(name, true)
			}
		} else {
			line, _, _ := strings.Cut(in.Text, "\n")
			parts = splitFields(line, ifs)
			if s.asZsh() && (len(parts) == 0 || endsField(line, ifs)) {
				parts = append(parts, "")
			}
		}
		for i, p := range parts[:min(len(parts), abstract.MaxFields)] {
			v := abstract.Value{Text: p, Taint: in.Taint}
			if b.unsure {
				b.elems = append(b.elems, element{itoa(i), v})
			} else {
				b.put(first+i, v, false)
			}
		}
	}
	for _, e := range b.elems {
		s.keeps(name, e.val)
	}
	if old, ok := s.attribute(name); ok && old.kind > unset {
		b.unsure, b.alike, b.kind = true, false, old.lasting()
	}
	s.bind(b)
}

// usualIFS are the characters between words, if nothing sets them.
const usualIFS = " \t\n"

// ifs returns the characters between words, and whether they are known.
func (s *state) ifs() (string, bool) {
	if len(s.vars) == 0 {
		return usualIFS, true
	}
	b, ok := s.lookup("IFS")
	if !ok || b.kind == unset {
		return usualIFS, true
	}
	return b.val.Text, b.val.Known() && !b.array
}

// blanksOf returns those of the characters between words that count as one when
// they follow one another.
func blanksOf(ifs string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\n", r) {
			return r
		}
		return -1
	}, ifs)
}

// nextField cuts the first field off a line.
func nextField(line, ifs string) (field, rest string) {
	blanks := blanksOf(ifs)
	line = strings.TrimLeft(line, blanks)
	i := strings.IndexAny(line, ifs)
	if i < 0 {
		return line, ""
	}
	rest = strings.TrimLeft(line[i:], blanks)
	if strings.IndexByte(blanks, line[i]) < 0 {
		rest = strings.TrimLeft(line[i+1:], blanks)
	} else if rest != "" && strings.IndexByte(ifs, rest[0]) >= 0 {
		rest = strings.TrimLeft(rest[1:], blanks)
	}
	return line[:i], rest
}

// lastField returns what the last variable of read gets: the rest of the line, without one
// separator at its end if it holds no other, but in zsh.
func (s *state) lastField(line, ifs string) string {
	blanks := blanksOf(ifs)
	line = strings.Trim(line, blanks)
	if field, rest := nextField(line, ifs); rest == "" && (field == line || !s.asZsh()) {
		return field
	}
	return line
}

// splitFields returns the words of a line.
func splitFields(line, ifs string) []string {
	var out []string
	for line = strings.TrimLeft(line, blanksOf(ifs)); line != ""; {
		var field string
		field, line = nextField(line, ifs)
		out = append(out, field)
	}
	return out
}

func (s *state) readFrom(argv []abstract.Value) (abstract.Value, bool) {
	for i, v := range argv {
		n, ok := strings.CutPrefix(v.Text, "-u")
		if !ok || !v.Known() {
			continue
		}
		if n == "" && i+1 < len(argv) {
			n = argv[i+1].Text
		}
		d, ok := s.fd(n)
		return d.val, ok
	}
	return abstract.Value{}, false
}
