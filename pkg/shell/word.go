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

// expandFields returns the words to which a word of the text expands.
func (s *analysisState) expandFields(w *syntax.Word) []abstract.Value {
	if !s.spendSteps(1) {
		return nil
	}
	at := s.spanOf(w)
	var out []abstract.Value
	words := s.expandWordBraces(w)
	for _, parts := range words {
		out = s.splitWord(out, parts, at)
		if len(out) > abstract.MaxExpandedWords {
			s.abortAnalysis("a word expands to too many words")
			return out[:abstract.MaxExpandedWords]
		}
	}
	if len(words) > 1 && hasExpansion(w) && len(out) != len(words) && s.readsAsZsh() { // zsh expands variables before braces, which gives other words
		return []abstract.Value{unknownValueWithTaintsOf("{…}", out...)}
	}
	return out
}

// literalWord returns the text of a word without quotes and expansions; false for other words.
func literalWord(w *syntax.Word) (string, bool) {
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

// A fieldSplitter collects the fields into which one word is split.
type fieldSplitter struct {
	abstract.Builder
	fields                     []abstract.Value
	hasQuotes                  bool // the word has quotes: an empty field counts
	mayCurrentFieldBeManyWords bool // the field may become any number of words although it is quoted
	span                       effect.CommandTextSpan
	hasDefaultIFS              bool // IFS has its default: words are split at white space
	ifsMayHaveLetters          bool // IFS may contain letters
}

func (f *fieldSplitter) endField() {
	if f.hasQuotes || f.HasAddedPart && f.Text.Len() > 0 {
		v := f.Value()
		v.SourceSpan = f.span
		v.IsSingleWord = f.hasQuotes && !f.mayCurrentFieldBeManyWords
		f.fields = append(f.fields, v)
	}
	f.Builder = abstract.Builder{}
	f.hasQuotes, f.mayCurrentFieldBeManyWords = false, false
}

// defaultIFS is the default value of IFS.
const defaultIFS = " \t\n"

// hasDefaultIFS reports whether IFS has its default value.
func (s *analysisState) hasDefaultIFS() bool {
	c, ok := s.lookup("IFS")
	return !ok || c.isUnset || c.val.IsLiteral() && c.val.Text == defaultIFS && !c.isArray
}

// ifsMayHaveLetters reports whether IFS may contain letters.
func (s *analysisState) ifsMayHaveLetters() bool {
	c, ok := s.lookup("IFS")
	return ok && (c.isArray || !c.val.IsLiteral() || strings.ContainsFunc(c.val.Text, unicode.IsLetter))
}

// addUnquoted adds the result of an unquoted expansion, which is subject to word splitting.
func (f *fieldSplitter) addUnquoted(v abstract.Value) {
	switch {
	case !v.IsLiteral():
		f.Add(f.addCompleteWords(v, f.completeWordsPrefixLen(v)))
		f.mayCurrentFieldBeManyWords = true
		return
	case !f.hasDefaultIFS && (f.ifsMayHaveLetters || strings.Trim(v.Text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != ""):
		f.Add(unknownValueWithTaintsOf("${…}", v))
		f.mayCurrentFieldBeManyWords = true
		return
	}
	text := v.Text
	for text != "" {
		i := strings.IndexAny(text, defaultIFS)
		if i < 0 {
			f.addGlobText(text, v)
			return
		}
		if i > 0 {
			f.addGlobText(text[:i], v)
		}
		f.endField()
		text = strings.TrimLeft(text[i:], defaultIFS)
		if len(f.fields) > abstract.MaxExpandedWords {
			return
		}
	}
}

// completeWordsPrefixLen returns the length in bytes of the complete words at the start of a value with an unknown end.
func (f *fieldSplitter) completeWordsPrefixLen(v abstract.Value) int {
	if !f.hasDefaultIFS || v.FullyUnknown || v.HasPathPerLine {
		return 0
	}
	known := strings.IndexAny(v.Text, `\*?[{`)
	if known < 0 || !strings.HasPrefix(v.Display, v.Text[:known]) {
		return 0
	}
	return strings.LastIndexAny(v.Text[:known], defaultIFS) + 1
}

// addCompleteWords adds the complete words at the start of a value, and returns the rest of the value.
func (f *fieldSplitter) addCompleteWords(v abstract.Value, completeWordsBytes int) abstract.Value {
	if completeWordsBytes == 0 {
		return v
	}
	f.addUnquoted(abstract.Value{Text: v.Text[:completeWordsBytes], Taint: v.Taint, SecretDescription: v.SecretDescription})
	v.Text, v.Display = v.Text[completeWordsBytes:], v.Display[completeWordsBytes:]
	if v.FullyUnknown = strings.Trim(v.Text, "*") == ""; v.Text[0] == '*' {
		v.FirstPartOrigin = v.Origin
	}
	return v
}

// addGlobText adds text in which glob characters are active.
func (f *fieldSplitter) addGlobText(text string, v abstract.Value) {
	if strings.ContainsAny(text, "*?[") {
		f.Add(abstract.Value{Text: abstract.EffectPathPatternFromShellGlob(text), Display: text, IsGlobPattern: true, Taint: v.Taint, SecretDescription: v.SecretDescription})
		return
	}
	v.Text = text
	f.Add(v)
}

// splitWord appends the fields of a word's parts.
func (s *analysisState) splitWord(out []abstract.Value, parts []syntax.WordPart, at effect.CommandTextSpan) []abstract.Value {
	f := fieldSplitter{fields: out, span: at, hasDefaultIFS: s.hasDefaultIFS()}
	f.ifsMayHaveLetters = !f.hasDefaultIFS && s.ifsMayHaveLetters()
	for _, part := range s.rewritePartsForDialect(parts, false) {
		switch p := part.(type) {
		case *syntax.Lit:
			f.AddUnquotedText(p.Value)
		case *syntax.SglQuoted:
			f.hasQuotes = true
			f.AddLiteral(singleQuotedText(p))
		case *syntax.DblQuoted:
			s.addDoubleQuoted(&f, p)
		case *syntax.ParamExp:
			vs := s.expandParameter(p)
			if len(vs) > 1 && !f.hasDefaultIFS { // shells differ in where one word ends and the next begins
				vs = []abstract.Value{unknownValueWithTaintsOf("${…}", vs...)}
			}
			for k, v := range vs {
				if k > 0 {
					f.endField()
				}
				s.addUnquotedParameter(&f, p, v)
			}
		default:
			if v := s.expandPart(part); isProcessSubstitution(part) {
				f.Add(v)
			} else {
				f.addUnquoted(v)
			}
		}
	}
	f.endField()
	return f.fields
}

func isProcessSubstitution(p syntax.WordPart) bool {
	_, ok := p.(*syntax.ProcSubst)
	return ok
}

// addUnquotedParameter adds the value of an unquoted parameter, which zsh does not split.
func (s *analysisState) addUnquotedParameter(f *fieldSplitter, p *syntax.ParamExp, v abstract.Value) {
	blank := strings.ContainsAny(v.Text, defaultIFS) || f.completeWordsPrefixLen(v) > 0
	switch {
	case blank && hasQuotedDefault(p) && v.IsLiteral():
		f.Add(unknownValueWithTaintsOf("${…}", v))
	case v.IsLiteral() && v.Text == "" && hasQuotedDefault(p): // an empty quoted default gives one empty word, an empty variable gives none
		f.Add(unknownValueWithTaintsOf("${…}", v))
		f.mayCurrentFieldBeManyWords = true
	case blank && s.readsAsZsh():
		if s.dialect.zshOptionsChanged {
			v = unknownValueWithTaintsOf("${…}", v)
		}
		f.Add(v)
		f.mayCurrentFieldBeManyWords = f.mayCurrentFieldBeManyWords || !v.IsLiteral()
	default:
		f.addUnquoted(v)
	}
}

// hasQuotedDefault reports whether an expansion such as ${x:-"a b"} contains quotes.
func hasQuotedDefault(p *syntax.ParamExp) bool {
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

func (s *analysisState) addDoubleQuoted(f *fieldSplitter, p *syntax.DblQuoted) {
	// "$@" without positional parameters expands to no word.
	lone := len(p.Parts) == 1
	f.hasQuotes = true
	for _, inner := range s.rewritePartsForDialect(p.Parts, true) {
		switch q := inner.(type) {
		case *syntax.Lit:
			f.AddLiteral(unescapeDoubleQuoted(q.Value))
		case *syntax.ParamExp:
			vs := s.expandParameter(q)
			list := expandsToList(q)
			switch {
			case hasQuotedDefault(q) && len(vs) == 1: // shells differ in how they read single quotes here
				vs = []abstract.Value{unknownValueWithTaintsOf("${…}", vs...)}
			case joinsMembers(q) || len(vs) > 1 && !list:
				vs = []abstract.Value{s.joinFieldsIntoWord(vs)}
			case len(vs) == 0 && (!lone || !list || q.Index != nil && s.readsAsZsh()): // an empty expansion in quotes is one empty word, except a lone "$@" or, outside zsh, a lone "${a[@]}"
				vs = []abstract.Value{{}}
			}
			if len(vs) == 0 {
				f.hasQuotes = false
			}
			for k, v := range vs {
				if k > 0 {
					f.endField()
					f.hasQuotes = true
				}
				f.Add(v)
				f.mayCurrentFieldBeManyWords = f.mayCurrentFieldBeManyWords || v.IsGlobPattern && (isZshExpansion(q) || q.Exp != nil && q.Exp.Word != nil && s.containsListExpansion(q.Exp.Word) || !joinsMembers(q) && (q.Index != nil || list))
			}
		default:
			f.Add(s.expandPart(inner))
		}
	}
}

// expandsToList reports whether an expansion gives one word for each member of a list: $@, ${a[@]}.
func expandsToList(p *syntax.ParamExp) bool {
	w, ok := p.Index.(*syntax.Word)
	return p.Param != nil && p.Param.Value == "@" || ok && w.Lit() == "@"
}

// joinsMembers reports whether an expansion joins the members of a list to one word when quoted: "$*".
func joinsMembers(p *syntax.ParamExp) bool {
	if p.Param == nil {
		return false
	}
	if p.Param.Value == "*" {
		return true
	}
	w, ok := p.Index.(*syntax.Word)
	return ok && w.Lit() == "*"
}

// joinFieldsIntoWord returns the values of "$*" as one word.
func (s *analysisState) joinFieldsIntoWord(vs []abstract.Value) abstract.Value {
	if len(vs) > 1 && !s.hasDefaultIFS() {
		return unknownValueWithTaintsOf("$*", vs...)
	}
	return abstract.JoinWithSpaces(vs)
}

// expandPart returns the value of one part of a word, without word splitting.
func (s *analysisState) expandPart(part syntax.WordPart) abstract.Value {
	switch p := part.(type) {
	case *syntax.Lit:
		return abstract.Lit(p.Value)
	case *syntax.SglQuoted:
		return abstract.Lit(singleQuotedText(p))
	case *syntax.DblQuoted:
		f := fieldSplitter{}
		s.addDoubleQuoted(&f, p)
		f.endField()
		return s.joinFieldsIntoWord(f.fields)
	case *syntax.ParamExp:
		return s.joinFieldsIntoWord(s.expandParameter(p))
	case *syntax.CmdSubst:
		return s.walkCommandSubstitution(p)
	case *syntax.ArithmExp:
		return s.walkArithmetic(p.X)
	case *syntax.ProcSubst:
		return s.walkProcessSubstitution(p)
	case *syntax.ExtGlob:
		return abstract.Value{Text: "*", Display: p.Op.String() + p.Pattern.Value + ")", IsGlobPattern: true}
	case *syntax.BraceExp:
		return abstract.Unknown("{…}", 0)
	}
	return abstract.Unknown("…", 0)
}

// expandWord returns the value of a word without word splitting, as in assignments and redirections.
func (s *analysisState) expandWord(w *syntax.Word) abstract.Value {
	if w == nil || !s.spendSteps(1) {
		return abstract.Value{}
	}
	f := fieldSplitter{}
	for _, part := range s.rewritePartsForDialect(w.Parts, false) {
		if l, ok := part.(*syntax.Lit); ok {
			f.AddUnquotedText(l.Value)
			continue
		}
		f.Add(s.expandPart(part))
	}
	v := f.Value()
	v.SourceSpan = s.spanOf(w)
	return v
}

// hereDocument returns the text of a here-document.
func (s *analysisState) hereDocument(delim, body *syntax.Word) abstract.Value {
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
	for _, part := range s.rewritePartsForDialect(body.Parts, true) {
		l, ok := part.(*syntax.Lit)
		switch {
		case ok && raw:
			b.AddLiteral(l.Value)
		case ok:
			b.AddLiteral(unescapeDoubleQuoted(l.Value))
		default:
			v := s.expandPart(part)
			if p, ok := part.(*syntax.ParamExp); ok && hasQuotedDefault(p) { // shells differ in how they read quotes here
				v = unknownValueWithTaintsOf("${…}", v)
			}
			b.Add(v)
		}
	}
	v := b.Value()
	v.SourceSpan = s.spanOf(body)
	return v
}

// unescapeDoubleQuoted resolves the backslash escapes inside double quotes.
func unescapeDoubleQuoted(s string) string {
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

func singleQuotedText(p *syntax.SglQuoted) string {
	if p.Dollar {
		return plain.UnescapeANSIC(p.Value)
	}
	return p.Value
}
