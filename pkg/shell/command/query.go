package command

import "strings"

// queryPrefix begins the language of text that only one program reads: the
// rest is the program's name.
const queryPrefix = "query:"

// IsQuery reports whether a language is that of one program.
func IsQuery(language string) bool { return hasPrefix(language, queryPrefix) }

// Query returns what a program does that reads text as it reads standard input;
// language is as in [Use].
func Query(language string, text Word) (Use, bool) {
	name, ok := strings.CutPrefix(language, queryPrefix)
	g := lookup(name)
	if !ok || g == nil || g.input == 0 {
		return Use{}, false
	}
	r := readers.Get().(*reader)
	defer r.release()
	r.args = []Word{{Text: name, From: text.From}}
	r.enter(g)
	r.use.Stdin = Data
	r.apply(g.input, text, false)
	r.elsewhere()
	r.use.Known = r.use.Reason == ""
	r.use.Class = r.class.class()
	return r.use, true
}

// stdinRead notes that the program's text is given elsewhere than on standard
// input.
func (r *reader) stdinRead() {
	if r.codeRead {
		r.use.Stdin, r.codeRead = Data, false
	}
}

// maxLines bounds how many lines of a text are looked at.
const maxLines = 4096

// lines acts upon lines that are subcommands of the program.
func (r *reader) lines(w Word) {
	r.stdinRead()
	n := 0
	for line := range strings.Lines(w.Text) {
		if n++; n > maxLines {
			r.doubt("the input of %s is too long", r.args[0].Text)
			r.raise(anything)
			return
		}
		first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		g := findProgram(r.levels[0].subs, strings.ToLower(first))
		if g != nil && g.base != nil {
			r.act(g.base)
		}
	}
}
