package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// asZsh reports whether the text is read as zsh means it. Where nothing says of which
// shell it is, it is walked a second time if that makes a difference.
func (s *state) asZsh() bool {
	s.differs = s.differs || !s.shellNamed
	return s.zsh
}

// unusual reports whether options may make zsh read the text as other shells do.
func (s *state) unusual() bool { return s.zsh && s.posix }

// subscripted returns the parts of a word as zsh reads them: what stands in brackets behind
// the name of a variable is a subscript, be it in braces or not.
func (s *state) subscripted(parts []syntax.WordPart) []syntax.WordPart {
	for i := range parts {
		p, isParam := parts[i].(*syntax.ParamExp)
		if isParam && p.Exp != nil && hasBrace(p.Exp.Word) && s.asZsh() { // it ends at another brace
			s.param(p)
			return append(slices.Clone(parts[:i]), unknownPart())
		}
		if i+1 == len(parts) {
			break
		}
		l, isLit := parts[i+1].(*syntax.Lit)
		if isParam && isLit && p.Short && p.Param != nil && p.Index == nil {
			if other := s.modified(p, l); other != nil {
				return slices.Concat(parts[:i], other, parts[i+2:])
			}
		}
		if !isParam || !isLit || !p.Short || p.Index != nil || !strings.HasPrefix(l.Value, "[") || !s.asZsh() {
			continue
		}
		sub, rest, whole := strings.Cut(l.Value[1:], "]")
		member := *p
		if _, err := strconv.Atoi(sub); err == nil && whole && p.Param != nil && syntax.ValidName(p.Param.Value) {
			member.Index = literal(sub, l)
			parts = slices.Concat(parts[:i], []syntax.WordPart{&member}, literal(rest, l).Parts, parts[i+2:])
			continue
		}
		member.Index = &syntax.Word{Parts: []syntax.WordPart{unknownPart()}}
		for _, p := range parts[i+2:] {
			s.part(p)
		}
		return append(slices.Clone(parts[:i]), &member) // not worked out, nor where it ends
	}
	return parts
}

// zshOption notes that an option of zsh is set, or may be.
func (s *state) zshOption(v abstract.Value) {
	if !s.asZsh() {
		return
	}
	name := strings.ToLower(strings.ReplaceAll(v.Text, "_", ""))
	s.posix = true
	s.extGlobs = s.extGlobs || !v.Known() || strings.Contains(name, "extendedglob")
}

// usualOptions are those that all shells have and that change no word.
var usualOptions = map[string]bool{
	"allexport": true, "errexit": true, "errtrace": true, "functrace": true, "monitor": true, "noclobber": true, "noexec": true, "noglob": true,
	"nounset": true, "pipefail": true, "posix": true, "vi": true, "emacs": true, "verbose": true, "xtrace": true, "braceexpand": true,
	"keyword": true, "hashall": true, "histexpand": true, "history": true, "ignoreeof": true, "nolog": true, "notify": true, "onecmd": true,
	"physical": true, "privileged": true, "interactive-comments": true,
}

// setsZsh reports whether zsh is started with an option that changes how it reads words.
func setsZsh(argv []abstract.Value) (option abstract.Value, ok bool) {
	for i := 1; i < len(argv); i++ {
		v := argv[i]
		switch {
		case !v.Known():
			return v, true
		case len(v.Text) < 2 || v.Text[0] != '-' && v.Text[0] != '+' || v.Text == "--":
			return abstract.Value{}, false
		case strings.HasPrefix(v.Text, "--"):
			return v, v.Text != "--login" && v.Text != "--no-rcs" && v.Text != "--interactive"
		case strings.HasSuffix(v.Text, "o") && i+1 < len(argv):
			if i++; !usualOptions[argv[i].Text] {
				return argv[i], true
			}
		case strings.Trim(v.Text[1:], "cdefilnpsuvxo") != "":
			return v, true
		}
	}
	return abstract.Value{}, false
}

// otherInputs walks a statement with each of the inputs that only zsh gives it, which reads all that are named, and
// a pipe before them: others read the last.
func (s *state) otherInputs(st *syntax.Stmt, in abstract.Value, piped bool) {
	if len(st.Redirs) == 0 {
		return
	}
	var inputs []*syntax.Redirect
	for _, r := range st.Redirs {
		if (r.N == nil || r.N.Value == "0") && (r.Op == syntax.RdrIn || r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc) {
			inputs = append(inputs, r)
		}
	}
	if len(inputs) == 0 || !piped && len(inputs) == 1 || !s.asZsh() {
		return
	}
	if len(inputs) > 16 {
		s.giveUp("a command has too many inputs")
		return
	}
	others := inputs[:len(inputs)-1]
	if piped {
		others = append([]*syntax.Redirect{nil}, others...)
	}
	for _, other := range others {
		one := *st
		one.Redirs = slices.DeleteFunc(slices.Clone(st.Redirs), func(r *syntax.Redirect) bool { return slices.Contains(inputs, r) && r != other })
		s.mayRun(func() { s.stmt(&one, in) })
	}
}

// dirPrefix stands before the name of a folder that ~name means in zsh.
const dirPrefix = "\x00folder "

// tilde returns the parts of a word as zsh reads them that begins with $=name, or with ~name: that is a folder which hash -d
// has named, or a variable that holds a path.
func (s *state) tilde(parts []syntax.WordPart) []syntax.WordPart {
	if len(parts) == 0 {
		return nil
	}
	for i := range parts[1:] {
		if splits(parts[i], parts[i+1]) && s.asZsh() {
			return slices.Concat(parts[:i], []syntax.WordPart{unknownPart()}, parts[i+2:])
		}
	}
	l, ok := parts[0].(*syntax.Lit)
	if !ok || l.Value == "" || l.Value[0] != '~' {
		return parts
	}
	name, _, cut := strings.Cut(l.Value[1:], "/")
	if own := map[string]string{"": "HOME", "+": "PWD", "-": "OLDPWD"}[name]; own != "" && (cut || len(parts) == 1) && s.mentions(own) {
		return s.folder(own, l, parts[1:])
	}
	if !cut && len(parts) > 1 || !syntax.ValidName(name) {
		return parts
	}
	b, ok := s.attribute(dirPrefix + name)
	if !ok {
		if b, ok = s.attribute(name); !ok || b.array || b.kind == unset || b.val.Known() && !strings.HasPrefix(b.val.Text, "/") {
			return parts
		}
	}
	if !s.asZsh() {
		return parts
	}
	return s.folder(b.name, l, parts[1:])
}

// folder returns the parts of a word that begins with what a variable holds in the place of ~ and a name.
func (s *state) folder(variable string, l *syntax.Lit, behind []syntax.WordPart) []syntax.WordPart {
	rest := ""
	if at := strings.IndexByte(l.Value, '/'); at >= 0 {
		rest = l.Value[at:]
	}
	dir := &syntax.ParamExp{Short: true, Param: &syntax.Lit{ValuePos: l.ValuePos, Value: variable}}
	return slices.Concat([]syntax.WordPart{&syntax.DblQuoted{Parts: []syntax.WordPart{dir}}}, literal(rest, l).Parts, behind)
}

// mentions reports whether the text gives a variable a value anywhere.
func (s *state) mentions(name string) bool {
	return slices.ContainsFunc(s.vars, func(b binding) bool { return b.name == name })
}

// splits reports whether two parts of a word are a parameter as only zsh has it: $=x, $~x, $^x.
func splits(a, b syntax.WordPart) bool {
	sign, ok := a.(*syntax.Lit)
	name, also := b.(*syntax.Lit)
	return ok && also && sign.Value == "$" && len(name.Value) > 1 && strings.IndexByte("=~^+", name.Value[0]) >= 0
}

// extendedGlob reports whether text that is not quoted is a pattern of zsh where EXTENDED_GLOB is set.
func extendedGlob(text string) bool {
	i := strings.IndexAny(text, "^#~")
	return i > 0 || i == 0 && (text[0] != '~' || strings.ContainsAny(text[1:], "^#~"))
}

func unknownPart() *syntax.ParamExp {
	return &syntax.ParamExp{Short: true, Param: &syntax.Lit{Value: abstract.UnsetName}}
}

// hasBrace reports whether a word holds a brace that is not quoted.
func hasBrace(w *syntax.Word) bool {
	return w != nil && slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		l, ok := p.(*syntax.Lit)
		return ok && strings.Contains(l.Value, "{")
	})
}

func literal(text string, at *syntax.Lit) *syntax.Word {
	return &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{ValuePos: at.ValuePos, Value: text}}}
}

// merged returns what either of two walks of a text shows.
func merged(a, b effect.Result) effect.Result {
	a.Effects = added(a.Effects, b.Effects)
	have := map[string]bool{}
	for line := range strings.SplitSeq(a.Words, "\n") {
		have[line] = true
	}
	for line := range strings.SplitSeq(b.Words, "\n") {
		if !have[line] {
			a.Words += "\n" + line
		}
	}
	for _, f := range b.Files {
		if !slices.ContainsFunc(a.Files, func(o effect.File) bool {
			return o.Path == f.Path && o.Tree == f.Tree && slices.Equal(o.Labels, f.Labels)
		}) {
			a.Files = append(a.Files, f)
		}
	}
	for _, w := range b.Writes {
		if !slices.Contains(a.Writes, w) {
			a.Writes = append(a.Writes, w)
		}
	}
	return a
}

// added appends those effects that are not there yet.
func added(to, more []effect.Effect) []effect.Effect {
	type place struct {
		kind effect.Kind
		path string
		from effect.Span
	}
	have := map[place][]int{}
	for i := range to {
		at := place{to[i].Kind, to[i].Path, to[i].From}
		have[at] = append(have[at], i)
	}
	for i := range more {
		at := place{more[i].Kind, more[i].Path, more[i].From}
		if !slices.ContainsFunc(have[at], func(n int) bool { return sameEffect(&to[n], &more[i]) }) {
			to = append(to, more[i])
		}
	}
	return to
}
