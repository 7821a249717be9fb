package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// fields returns the words that one word of the text becomes.
func (s *state) fields(w *syntax.Word) []abstract.Value {
	if !s.step(1) {
		return nil
	}
	at := s.spanOf(w)
	var out []abstract.Value
	words, single := s.braces(w), true
	for i, parts := range words {
		out = s.split(out, parts, at)
		if len(out) > abstract.MaxFields {
			s.giveUp("a word expands to too many words")
			return out[:abstract.MaxFields]
		}
		single = single && len(out) == i+1 && (!out[i].IsPattern || out[i].Written || asWritten(parts))
	}
	if len(words) > 1 && !single { // zsh expands what the braces hold first, and these hold other words then
		if s.asZsh() {
			return []abstract.Value{vague("{…}", out...)}
		}
	}
	return out
}

// asWritten reports whether parts hold no expansion, so that a pattern is one of file
// names.
func asWritten(parts []syntax.WordPart) bool {
	for _, p := range parts {
		switch p.(type) {
		case *syntax.Lit, *syntax.SglQuoted, *syntax.ExtGlob:
		default:
			return false
		}
	}
	return true
}

// plainWord returns the text of a word that stands for itself.
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

// A splitter collects the fields of one word.
type splitter struct {
	abstract.Builder
	out    []abstract.Value
	quoted bool // an empty field still counts
	ended  bool // so it does behind a separator
	many   bool // it may be any number of words, though it is quoted
	at     effect.Span

	ifs     string
	unsplit bool // IFS is not known
	small   bool // shells may differ in whether there is an empty field at the end
}

func (f *splitter) end() {
	if f.quoted || f.ended || f.Any && f.Lit.Len() > 0 {
		v := f.Value()
		v.From = f.at
		v.Written = f.quoted && !f.many
		f.out = append(f.out, v)
	}
	f.Builder = abstract.Builder{}
	f.quoted, f.ended, f.many = false, false, false
}

// unquoted adds the result of an expansion, which is split at the characters of
// IFS.
func (f *splitter) unquoted(v abstract.Value) {
	switch {
	case !v.Known():
		f.Add(f.apart(v, f.begins(v)))
		f.many = true
		return
	case f.unsplit && v.Text != "" || f.small && endsField(v.Text, f.ifs):
		f.Add(vague("${…}", v))
		f.many = true
		return
	}
	blanks := blanksOf(f.ifs)
	text := v.Text
	for text != "" {
		i := strings.IndexAny(text, f.ifs)
		if i < 0 {
			f.globbed(text, v)
			return
		}
		if i > 0 {
			f.globbed(text[:i], v)
		}
		behind := strings.TrimLeft(text[i:], blanks)
		if behind != "" && strings.IndexByte(f.ifs, behind[0]) >= 0 { // it ends a field, be it empty
			behind = strings.TrimLeft(behind[1:], blanks)
			f.ended = true
		}
		f.end()
		text = behind
		if len(f.out) > abstract.MaxFields {
			return
		}
	}
}

// begins returns how much of a value of which only the end is not known are whole words.
func (f *splitter) begins(v abstract.Value) int {
	if f.unsplit || v.Bare || v.Lines || strings.Trim(f.ifs, " \t\n") != "" {
		return 0
	}
	known := strings.IndexAny(v.Text, `\*?[{`)
	if known < 0 || !strings.HasPrefix(v.Show, v.Text[:known]) {
		return 0
	}
	return strings.LastIndexAny(v.Text[:known], f.ifs) + 1
}

// apart adds the words that a value begins with, and returns the rest of it.
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

// endsField reports whether a text ends in a separator that is not blank.
func endsField(text, ifs string) bool {
	text = strings.TrimRight(text, blanksOf(ifs))
	return text != "" && strings.IndexByte(ifs, text[len(text)-1]) >= 0
}

// globbed adds text in which glob characters count.
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
	f := splitter{out: out, at: at}
	ifs, known := s.ifs()
	f.ifs, f.unsplit, f.small = ifs, !known, s.posix
	for _, part := range s.subscripted(s.tilde(parts)) {
		switch p := part.(type) {
		case *syntax.Lit:
			if glob, ok := s.qualified(p); ok {
				f.Add(glob)
				continue
			}
			if s.extGlobs && extendedGlob(p.Value) {
				f.Add(abstract.Value{Text: "*", Show: p.Value + "*", IsPattern: true})
				continue
			}
			f.Unescaped(p.Value)
		case *syntax.SglQuoted:
			f.quoted = true
			f.Literal(sglText(p))
		case *syntax.DblQuoted:
			s.dblQuoted(&f, p)
		case *syntax.ParamExp:
			vs := s.param(p)
			apart := strings.Trim(f.ifs, " \t\n")
			differ := joined(p) && !f.unsplit && f.ifs == "" || // in what is assigned, bash joins them
				apart != "" && slices.ContainsFunc(vs, func(v abstract.Value) bool { return v.Text == "" || strings.ContainsAny(v.Text, apart) })
			if len(vs) > 1 && differ && (!s.asZsh() || s.unusual()) {
				vs = []abstract.Value{vague("${…}", vs...)} // shells differ in where one ends and another begins
			}
			for k, v := range vs {
				if k > 0 {
					f.end()
				}
				s.unsplit(&f, p, v)
			}
		default:
			v := s.part(part)
			_, process := part.(*syntax.ProcSubst)
			switch {
			case process:
				f.Add(v)
			case v.Known() && strings.ContainsAny(v.Text, f.ifs) && strings.Trim(f.ifs, " \t\n") != "" && s.asZsh():
				f.Add(vague("$(…)", v)) // zsh keeps a last field that is empty
			default:
				f.unquoted(v)
			}
		}
	}
	f.end()
	return f.out
}

// unsplit adds the value of a parameter that is not quoted. zsh does not split it.
func (s *state) unsplit(f *splitter, p *syntax.ParamExp, v abstract.Value) {
	if !v.Known() {
		if words := f.begins(v); words > 0 && !s.asZsh() {
			v = f.apart(v, words)
		}
		f.Add(v)
		f.many = true
		return
	}
	if quotedDefault(p) && (v.Text == "" || strings.ContainsAny(v.Text, f.ifs)) {
		f.Add(vague("${…}", v))
		return
	}
	if f.unsplit || !strings.ContainsAny(v.Text, f.ifs) {
		f.unquoted(v)
		return
	}
	switch {
	case !s.asZsh():
		f.unquoted(v)
	case s.unusual():
		f.Add(vague("${…}", v))
	default:
		f.Add(v)
	}
}

// quotedDefault reports whether an expansion such as ${x:-"a b"} holds quotes of its own.
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
	// "$@" without positional parameters is not a word at all.
	lone := len(p.Parts) == 1
	f.quoted = true
	for _, inner := range s.subscripted(p.Parts) {
		switch q := inner.(type) {
		case *syntax.Lit:
			f.Literal(unescapeDouble(q.Value))
		case *syntax.ParamExp:
			vs := s.param(q)
			if quotedDefault(q) && len(vs) == 1 { // single quotes may be letters here
				vs = []abstract.Value{vague("${…}", vs...)}
			}
			vs = s.emptyList(q, vs)
			if len(vs) > 1 && q.Index == nil && q.Param != nil && q.Param.Value != "@" && (q.Repl != nil || q.Exp != nil) {
				vs = []abstract.Value{vague("${…}", vs...)} // zsh joins them first
			}
			if joined(q) || len(vs) > 1 && q.Index == nil && q.Param != nil && q.Param.Value != "@" {
				vs = []abstract.Value{s.star(vs)}
			}
			if len(vs) == 0 && lone {
				f.quoted = false
			}
			for k, v := range vs {
				if k > 0 {
					f.end()
					f.quoted = true
				}
				f.Add(v)
				f.many = f.many || v.IsPattern && (zshForm(q) || q.Exp != nil && q.Exp.Word != nil && s.holdsList(q.Exp.Word) || !joined(q) && (q.Index != nil || q.Param != nil && q.Param.Value == "@"))
			}
		default:
			f.Add(s.part(inner))
		}
	}
}

// emptyList returns the values of a quoted expansion as zsh has them: an array without members
// is a word. Where its members are asked for, that depends on what it was before.
func (s *state) emptyList(p *syntax.ParamExp, vs []abstract.Value) []abstract.Value {
	list := s.listIndex(p)
	switch {
	case p.Param == nil || len(vs) > 1 || len(vs) == 1 && (!list || p.Slice == nil || vs[0].Text != "") || !s.asZsh() && !(list && s.posix):
	case list:
		return []abstract.Value{vague("${…}", vs...)}
	case p.Index == nil && p.Param.Value != "@" && p.Param.Value != "*":
		return []abstract.Value{{}}
	}
	return vs
}

// joined reports whether a quoted expansion of a list is one word: "$*".
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

// isStar reports whether a part is $* or the like, of which zsh drops what is empty.
func isStar(p syntax.WordPart) bool {
	e, ok := p.(*syntax.ParamExp)
	return ok && joined(e)
}

// star returns the values of "$*" as one word: the first character of IFS is between them.
func (s *state) star(vs []abstract.Value) abstract.Value {
	if len(vs) < 2 || s.blankFirst() {
		return abstract.JoinValues(vs)
	}
	ifs, known := s.ifs()
	if !known || slices.ContainsFunc(vs, func(v abstract.Value) bool { return !v.Known() }) {
		return vague("$*", vs...)
	}
	v := abstract.JoinValues(vs)
	v.Text = strings.Join(texts(vs), ifs[:min(1, len(ifs))])
	return v
}

// blankFirst reports whether "$*" has blanks between its values.
func (s *state) blankFirst() bool {
	ifs, known := s.ifs()
	return known && strings.HasPrefix(ifs, " ")
}

// joinedAt returns the values of $@ where they are one word: bash has blanks between them,
// other shells what IFS says.
func (s *state) joinedAt(vs []abstract.Value) abstract.Value {
	v := abstract.JoinValues(vs)
	if len(vs) > 1 && s.star(vs).Text != v.Text {
		return vague("$@", vs...)
	}
	return v
}

// part returns an expansion as one value, without splitting.
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
		return s.joinedAt(f.out)
	case *syntax.ParamExp:
		vals := s.param(p)
		if joined(p) || len(vals) > 1 && p.Index == nil && p.Param != nil && p.Param.Value != "@" {
			return s.star(vals)
		}
		return s.joinedAt(vals)
	case *syntax.CmdSubst:
		return s.substitution(p)
	case *syntax.ArithmExp:
		return s.arithm(p.X)
	case *syntax.ProcSubst:
		return s.procSubst(p)
	case *syntax.ExtGlob:
		// In zsh, *(e:'code':) and *(+function) run code for each file.
		if q := p.Pattern.Value; qualifierRuns(q) {
			s.dynamic(effect.CauseCode, "a glob may run code: "+abstract.Clip(q), s.spanOf(p))
		}
		return abstract.Value{Text: "*", Show: p.Op.String() + p.Pattern.Value + ")", IsPattern: true}
	case *syntax.BraceExp:
		return abstract.Unknown("{…}", 0)
	}
	return abstract.Unknown("…", 0)
}

// word returns a word as one value, as in assignments and redirects.
func (s *state) word(w *syntax.Word) abstract.Value {
	if w == nil || !s.step(1) {
		return abstract.Value{}
	}
	f := splitter{}
	for _, part := range s.subscripted(s.tilde(w.Parts)) {
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
	for _, part := range s.subscripted(body.Parts) {
		l, ok := part.(*syntax.Lit)
		switch {
		case ok && raw:
			b.Literal(l.Value)
		case ok:
			b.Literal(unescapeDouble(l.Value))
		default:
			v := s.part(part)
			if p, ok := part.(*syntax.ParamExp); ok && (quotedDefault(p) || s.joinsFirst(p) || joined(p) && !s.blankFirst()) { // quotes may be letters here, and bash joins with blanks
				v = vague("${…}", v)
			}
			b.Add(v)
		}
	}
	v := b.Value()
	v.From = s.spanOf(body)
	return v
}

// joinsFirst reports whether zsh joins the members of an array before an operator counts.
func (s *state) joinsFirst(p *syntax.ParamExp) bool {
	if p.Exp == nil && p.Repl == nil || p.Param == nil || p.Index != nil {
		return false
	}
	b, ok := s.attribute(p.Param.Value)
	return ok && b.array && s.asZsh()
}

// unescapeDouble resolves the backslashes that count inside double quotes.
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
