package shell

import (
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// fields returns the words to which a word of the text expands.
func (s *state) fields(w *syntax.Word) []abstract.Value {
	if !s.step(1) {
		return nil
	}
	at := s.spanOf(w)
	var out []abstract.Value
	words := s.braces(w)
	for _, parts := range words {
		out = s.split(out, parts, at)
		if len(out) > abstract.MaxFields {
			s.giveUp("a word expands to too many words")
			return out[:abstract.MaxFields]
		}
	}
	if len(words) > 1 && hasExpansion(w) && len(out) != len(words) && s.asZsh() { // zsh expands variables before braces, which gives other words
		return []abstract.Value{uncomputed("{…}", out...)}
	}
	return out
}

// plainWord returns the text of a word without quotes and expansions; false for other words.
func plainWord(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	l, ok := w.Parts[0].(*syntax.Lit)
	if !ok {
		return "", false
	}
	for i := 0; i < len(l.Value); i++ {
		switch l.Value[i] {
		case '\\', '*', '?', '[', '{', '~':
			return "", false
		}
	}
	return l.Value, true
}

// A splitter collects the fields into which one word is split.
type splitter struct {
	abstract.Builder
	out    []abstract.Value
	quoted bool // the word has quotes: an empty field counts
	many   bool // the field may become any number of words although it is quoted
	at     effect.Span
	usual  bool // IFS has its default: words are split at white space
	letter bool // IFS may contain letters
}

func (f *splitter) end() {
	if f.quoted || f.Any && f.Lit.Len() > 0 {
		v := f.Value()
		v.From = f.at
		v.Written = f.quoted && !f.many
		f.out = append(f.out, v)
	}
	f.Builder = abstract.Builder{}
	f.quoted, f.many = false, false
}

// usualIFS is the default value of IFS.
const usualIFS = " \t\n"

// usualSplit reports whether IFS has its default value.
func (s *state) usualSplit() bool {
	c, ok := s.lookup("IFS")
	return !ok || c.gone || c.val.Known() && c.val.Text == usualIFS && !c.array
}

// splitsLetters reports whether IFS may contain letters.
func (s *state) splitsLetters() bool {
	c, ok := s.lookup("IFS")
	return ok && (c.array || !c.val.Known() || strings.ContainsFunc(c.val.Text, unicode.IsLetter))
}

// unquoted adds the result of an unquoted expansion, which is subject to word splitting.
func (f *splitter) unquoted(v abstract.Value) {
	switch {
	case !v.Known():
		f.Add(f.apart(v, f.begins(v)))
		f.many = true
		return
	case !f.usual && (f.letter || strings.Trim(v.Text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != ""):
		f.Add(uncomputed("${…}", v))
		f.many = true
		return
	}
	text := v.Text
	for text != "" {
		i := strings.IndexAny(text, usualIFS)
		if i < 0 {
			f.globbed(text, v)
			return
		}
		if i > 0 {
			f.globbed(text[:i], v)
		}
		f.end()
		text = strings.TrimLeft(text[i:], usualIFS)
		if len(f.out) > abstract.MaxFields {
			return
		}
	}
}

// begins returns the length in bytes of the complete words at the start of a value with an unknown end.
func (f *splitter) begins(v abstract.Value) int {
	if !f.usual || v.Bare || v.Lines {
		return 0
	}
	known := strings.IndexAny(v.Text, `\*?[{`)
	if known < 0 || !strings.HasPrefix(v.Show, v.Text[:known]) {
		return 0
	}
	return strings.LastIndexAny(v.Text[:known], usualIFS) + 1
}

// apart adds the complete words at the start of a value, and returns the rest of the value.
func (f *splitter) apart(v abstract.Value, words int) abstract.Value {
	if words == 0 {
		return v
	}
	f.unquoted(abstract.Value{Text: v.Text[:words], Taint: v.Taint, Secrets: v.Secrets})
	v.Text, v.Show = v.Text[words:], v.Show[words:]
	if v.Bare = strings.Trim(v.Text, "*") == ""; v.Text[0] == '*' {
		v.Lead = v.Origin
	}
	return v
}

// globbed adds text in which glob characters are active.
func (f *splitter) globbed(text string, v abstract.Value) {
	if strings.ContainsAny(text, "*?[") {
		f.Add(abstract.Value{Text: abstract.GlobPattern(text), Show: text, IsPattern: true, Taint: v.Taint, Secrets: v.Secrets})
		return
	}
	v.Text = text
	f.Add(v)
}

// split appends the fields of a word's parts.
func (s *state) split(out []abstract.Value, parts []syntax.WordPart, at effect.Span) []abstract.Value {
	f := splitter{out: out, at: at, usual: s.usualSplit()}
	f.letter = !f.usual && s.splitsLetters()
	for _, part := range s.asWord(parts, false) {
		switch p := part.(type) {
		case *syntax.Lit:
			f.Unescaped(p.Value)
		case *syntax.SglQuoted:
			f.quoted = true
			f.Literal(sglText(p))
		case *syntax.DblQuoted:
			s.dblQuoted(&f, p)
		case *syntax.ParamExp:
			vs := s.param(p)
			if len(vs) > 1 && !f.usual { // shells differ in where one word ends and the next begins
				vs = []abstract.Value{uncomputed("${…}", vs...)}
			}
			for k, v := range vs {
				if k > 0 {
					f.end()
				}
				s.unsplit(&f, p, v)
			}
		default:
			if v := s.part(part); isProcess(part) {
				f.Add(v)
			} else {
				f.unquoted(v)
			}
		}
	}
	f.end()
	return f.out
}

func isProcess(p syntax.WordPart) bool {
	_, ok := p.(*syntax.ProcSubst)
	return ok
}

// unsplit adds the value of an unquoted parameter, which zsh does not split.
func (s *state) unsplit(f *splitter, p *syntax.ParamExp, v abstract.Value) {
	blank := strings.ContainsAny(v.Text, usualIFS) || f.begins(v) > 0
	switch {
	case blank && quotedDefault(p) && v.Known():
		f.Add(uncomputed("${…}", v))
	case v.Known() && v.Text == "" && quotedDefault(p): // one empty word, or none if the variable is empty
		f.Add(uncomputed("${…}", v))
		f.many = true
	case blank && s.asZsh():
		if s.dialect.odd {
			v = uncomputed("${…}", v)
		}
		f.Add(v)
		f.many = f.many || !v.Known()
	default:
		f.unquoted(v)
	}
}

// quotedDefault reports whether an expansion such as ${x:-"a b"} contains quotes.
func quotedDefault(p *syntax.ParamExp) bool {
	if p.Exp == nil || p.Exp.Word == nil || p.Exp.Op >= syntax.RemSmallSuffix {
		return false
	}
	return slices.ContainsFunc(p.Exp.Word.Parts, func(p syntax.WordPart) bool {
		switch p.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
			return true
		}
		return false
	})
}

func (s *state) dblQuoted(f *splitter, p *syntax.DblQuoted) {
	// "$@" without positional parameters expands to no word.
	lone := len(p.Parts) == 1
	f.quoted = true
	for _, inner := range s.asWord(p.Parts, true) {
		switch q := inner.(type) {
		case *syntax.Lit:
			f.Literal(unescapeDouble(q.Value))
		case *syntax.ParamExp:
			vs := s.param(q)
			list := isList(q)
			switch {
			case quotedDefault(q) && len(vs) == 1: // shells differ in how they read single quotes here
				vs = []abstract.Value{uncomputed("${…}", vs...)}
			case joined(q) || len(vs) > 1 && !list:
				vs = []abstract.Value{s.joinPositional(vs)}
			case len(vs) == 0 && (!lone || !list || q.Index != nil && s.asZsh()): // in zsh, an empty word
				vs = []abstract.Value{{}}
			}
			if len(vs) == 0 {
				f.quoted = false
			}
			for k, v := range vs {
				if k > 0 {
					f.end()
					f.quoted = true
				}
				f.Add(v)
				f.many = f.many || v.IsPattern && (zshForm(q) || q.Exp != nil && q.Exp.Word != nil && s.holdsList(q.Exp.Word) || !joined(q) && (q.Index != nil || list))
			}
		default:
			f.Add(s.part(inner))
		}
	}
}

// isList reports whether an expansion gives one word for each member of a list: $@, ${a[@]}.
func isList(p *syntax.ParamExp) bool {
	w, ok := p.Index.(*syntax.Word)
	return p.Param != nil && p.Param.Value == "@" || ok && w.Lit() == "@"
}

// joined reports whether an expansion joins the members of a list to one word when quoted: "$*".
func joined(p *syntax.ParamExp) bool {
	if p.Param == nil {
		return false
	}
	if p.Param.Value == "*" {
		return true
	}
	w, ok := p.Index.(*syntax.Word)
	return ok && w.Lit() == "*"
}

// joinPositional returns the values of "$*" as one word.
func (s *state) joinPositional(vs []abstract.Value) abstract.Value {
	if len(vs) > 1 && !s.usualSplit() {
		return uncomputed("$*", vs...)
	}
	return abstract.JoinValues(vs)
}

// part returns the value of one part of a word, without word splitting.
func (s *state) part(part syntax.WordPart) abstract.Value {
	switch p := part.(type) {
	case *syntax.Lit:
		return abstract.Lit(p.Value)
	case *syntax.SglQuoted:
		return abstract.Lit(sglText(p))
	case *syntax.DblQuoted:
		f := splitter{}
		s.dblQuoted(&f, p)
		f.end()
		return s.joinPositional(f.out)
	case *syntax.ParamExp:
		return s.joinPositional(s.param(p))
	case *syntax.CmdSubst:
		return s.substitution(p)
	case *syntax.ArithmExp:
		return s.arithm(p.X)
	case *syntax.ProcSubst:
		return s.procSubst(p)
	case *syntax.ExtGlob:
		return abstract.Value{Text: "*", Show: p.Op.String() + p.Pattern.Value + ")", IsPattern: true}
	case *syntax.BraceExp:
		return abstract.Unknown("{…}", 0)
	}
	return abstract.Unknown("…", 0)
}

// word returns the value of a word without word splitting, as in assignments and redirections.
func (s *state) word(w *syntax.Word) abstract.Value {
	if w == nil || !s.step(1) {
		return abstract.Value{}
	}
	f := splitter{}
	for _, part := range s.asWord(w.Parts, false) {
		if l, ok := part.(*syntax.Lit); ok {
			f.Unescaped(l.Value)
			continue
		}
		f.Add(s.part(part))
	}
	v := f.Value()
	v.From = s.spanOf(w)
	return v
}

// document returns the text of a here-document.
func (s *state) document(delim, body *syntax.Word) abstract.Value {
	if body == nil {
		return abstract.Value{}
	}
	raw := false
	for _, p := range delim.Parts {
		if l, ok := p.(*syntax.Lit); !ok || strings.Contains(l.Value, `\`) {
			raw = true
		}
	}
	var b abstract.Builder
	for _, part := range s.asWord(body.Parts, true) {
		l, ok := part.(*syntax.Lit)
		switch {
		case ok && raw:
			b.Literal(l.Value)
		case ok:
			b.Literal(unescapeDouble(l.Value))
		default:
			v := s.part(part)
			if p, ok := part.(*syntax.ParamExp); ok && quotedDefault(p) { // shells differ in how they read quotes here
				v = uncomputed("${…}", v)
			}
			b.Add(v)
		}
	}
	v := b.Value()
	v.From = s.spanOf(body)
	return v
}

// unescapeDouble resolves the backslash escapes inside double quotes.
func unescapeDouble(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case '$', '`', '"', '\\':
				i++
			case '\n':
				i++
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func sglText(p *syntax.SglQuoted) string {
	if p.Dollar {
		return plain.ANSIC(p.Value)
	}
	return p.Value
}
