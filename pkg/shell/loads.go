package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

const foreignCode = abstract.Network | abstract.Socket | abstract.Decoded | abstract.Untrusted

// loadsProject looks for files that a program runs because they are in its folder, or
// are given to it, among those that the text wrote, downloaded or unpacked.
func (s *state) loadsProject(base string, argv []abstract.Value, use command.Use, io abstract.Streams) {
	if s.remote > 0 || len(argv) > 1 && use.Known && use.Class == effect.ReadOnly && len(use.Nested) == 0 {
		return
	}
	args := make([]string, len(argv)-1)
	for i, v := range argv[1:] {
		args[i] = v.Text
	}
	loaders := command.Loaders(base, args)
	if len(loaders) == 0 {
		return
	}
	s.loadsFiles(base, argv, loaders, s.place().CWD, s.argumentPaths(argv[1:]))
	for _, l := range loaders {
		s.recipes(argv, l, io.In)
	}
}

// loadsFiles looks for what a program loads among what earlier actions brought and
// what this text wrote.
func (s *state) loadsFiles(base string, argv []abstract.Value, loaders []*command.Loader, folder string, named []string) {
	s.loadsBrought(base, argv, loaders, folder, named)
	at := join(argv)
	for i := len(s.files) - 1; i >= 0 && s.step(1); i-- {
		f := s.files[i]
		if f.consumer != nil || f.pattern || !s.reached(&f, folder, named) {
			continue
		}
		if f.tree {
			s.runsForeign(base, &f, at)
			continue
		}
		for _, l := range loaders {
			if l.Loads(f.path) {
				s.loadFile(base, &f, at)
				break
			}
		}
	}
}

// loadsBrought looks for what a program loads among what earlier actions brought:
// the folder it works in, what it is given, and below either files of their names, or
// whole folders below what it is given.
func (s *state) loadsBrought(base string, argv []abstract.Value, loaders []*command.Loader, folder string, named []string) {
	if s.at.Brought == nil {
		return
	}
	at := join(argv)
	if folder != "" {
		s.broughtBefore(base, folder, at)
	}
	brought := s.at.Brought()
	for _, p := range named {
		_, tree := slices.BinarySearch(brought.All(), p+"/")
		if tree || path.Ext(p) == "" || slices.ContainsFunc(loaders, func(l *command.Loader) bool { return l.Loads(p) }) {
			s.broughtBefore(base, p, at)
		}
	}
	for _, in := range append(named, folder) {
		for _, p := range s.loadable(brought, loaders, in, in != folder) {
			if !s.step(1) {
				return
			}
			if in != folder || slices.ContainsFunc(loaders, func(l *command.Loader) bool {
				return l.Finds(p) || l.Loads(p) && mentioned(argv, path.Base(p))
			}) {
				s.broughtBefore(base, p, at)
			}
		}
	}
}

// loadable returns those of some paths below a folder that loaders may load and, if
// they are asked for, whole folders, in their order.
func (s *state) loadable(brought *effect.Paths, loaders []*command.Loader, in string, folders bool) (out []string) {
	for _, l := range loaders {
		out = append(out, below(brought.Chosen(l, l.Loads), in)...)
	}
	if folders {
		out = append(out, below(brought.Chosen("folders", func(p string) bool { return strings.HasSuffix(p, "/") }), in)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// below returns those of some paths, which are in order, that lie below a folder; all
// if no one knows which that is.
func below(paths []string, folder string) []string {
	if folder == "" {
		return paths
	}
	folder = strings.TrimSuffix(folder, "/") + "/"
	from, _ := slices.BinarySearch(paths, folder)
	n, _ := slices.BinarySearchFunc(paths[from:], folder, func(p, folder string) int {
		if strings.HasPrefix(p, folder) {
			return -1
		}
		return 1
	})
	return paths[from : from+n]
}

// mentioned reports whether the name of a file may be in an argument.
func mentioned(argv []abstract.Value, name string) bool {
	return slices.ContainsFunc(argv[1:], func(v abstract.Value) bool { return !v.Known() || strings.Contains(v.Text, name) })
}

// reached reports whether a program that works in a folder and is given some
// paths meets a file or, for a tree, works in it.
func (s *state) reached(f *file, folder string, named []string) bool {
	if folder == "" {
		return true // no one knows where it works
	}
	if f.tree {
		return under(folder, f.path) || slices.ContainsFunc(named, func(p string) bool { return under(p, f.path) })
	}
	return under(f.path, folder) || slices.ContainsFunc(named, func(p string) bool { return under(f.path, p) })
}

// under reports whether a canonical path is a folder or is below it.
func under(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(folder, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// argumentPaths returns the paths that arguments may name, by themselves or
// behind the sign of an option.
func (s *state) argumentPaths(argv []abstract.Value) []string {
	var out []string
	for _, v := range argv[:min(len(argv), maxNames)] {
		text := v.Text
		if strings.HasPrefix(text, "-") {
			_, text, _ = strings.Cut(text, "=")
		}
		text = strings.TrimSuffix(text, "/...") // as Go names all below a folder
		if !v.Known() || text == "" || len(text) > 4096 || strings.Contains(text, "://") {
			continue
		}
		if p, pattern := s.place().Path(text, false); !pattern {
			out = append(out, p)
		}
	}
	return out
}

// loadFile walks a file that the text wrote and a program loads, or says that
// it is foreign.
func (s *state) loadFile(base string, f *file, at effect.Span) {
	if f.val.Taint&foreignCode != 0 {
		s.runsForeign(base, f, at)
		return
	}
	language, _ := command.Recipe(f.path)
	if language != "code" {
		language = command.FileLanguage(f.path)
	}
	if language != "" && f.val.Known() {
		s.code(language, f.val.Text, at, []abstract.Value{})
	}
}

// namedClones are the programs that bring folders from one of these hosts, which they
// know by name.
var namedClones = map[string]bool{"gh": true, "glab": true}

// runsForeign records that a program runs what the text fetched.
func (s *state) runsForeign(base string, f *file, at effect.Span) {
	e := effect.Effect{Kind: effect.RunCode, Program: base, Path: f.path, Recursive: f.tree, From: at}
	switch {
	case f.hosted:
		e.Labels, e.Reason = []effect.Label{effect.LabelUntrusted}, base+" runs code that was just cloned"
	case f.val.Taint&(abstract.Network|abstract.Socket) != 0:
		e.Labels, e.Reason = []effect.Label{effect.LabelNetwork}, base+" runs code that was just downloaded"
	case f.val.Taint&abstract.Decoded != 0:
		e.Labels, e.Reason = []effect.Label{effect.LabelDecoded}, base+" runs code that was just decoded"
	case f.val.Taint&abstract.Untrusted != 0:
		e.Labels, e.Reason = []effect.Label{effect.LabelUntrusted}, base+" runs code that was copied from a clone"
	default:
		return
	}
	s.emitOnce(e)
}

// fetched records that a script was downloaded by an earlier action, or is in a
// folder that was unpacked or cloned here. One of these that is there already and
// can be read says itself what it does.
func (s *state) fetched(script abstract.Value, path string, at effect.Span) {
	s.broughtBefore(abstract.Clip(script.String()), path, at)
	f := s.newest(func(f *file) bool { return f.tree && f.val.Taint&foreignCode != 0 && under(path, f.path) })
	if f == nil {
		return
	}
	if s.at.Script != nil {
		if _, err := s.at.Script(path); err == nil {
			return
		}
	}
	s.runsForeign(abstract.Clip(script.String()), f, at)
}

// newest returns the file without a pattern that the text wrote last, of those for which something
// holds; nil if there is none.
func (s *state) newest(holds func(f *file) bool) *file {
	for i := len(s.files) - 1; i >= 0; i-- {
		if f := &s.files[i]; !f.pattern && holds(f) {
			return f
		}
	}
	return nil
}

// installed records that a program runs that was downloaded into a folder of
// programs, by this text or by an earlier action.
func (s *state) installed(base string, at effect.Span) {
	s.broughtAs(base, at, "/bin/", "/sbin/")
	if f := s.newest(func(f *file) bool {
		folder := path.Base(path.Dir(f.path))
		return !f.tree && path.Base(f.path) == base && (folder == "bin" || folder == "sbin")
	}); f != nil {
		s.runsForeign(base, f, at)
	}
}

// mounted records that a container runs a file of a name that was downloaded
// here: folders are mounted under other names there.
func (s *state) mounted(script abstract.Value, at effect.Span) {
	name := path.Base(script.Text)
	if !script.IsPattern {
		s.broughtAs(name, at, "/")
	}
	if f := s.newest(func(f *file) bool {
		if script.IsPattern {
			same, _ := path.Match(name, path.Base(f.path))
			return same && !f.tree
		}
		return path.Base(f.path) == name && !f.tree
	}); f != nil {
		s.runsForeign(abstract.Clip(script.String()), f, at)
	}
}

// broughtAs records that what an earlier action brought runs, if it has a name and
// is in a folder that ends in one of some ways.
func (s *state) broughtAs(name string, at effect.Span, folders ...string) {
	if s.at.Brought == nil || name == "" {
		return
	}
	for _, p := range s.at.Brought().Named(name) {
		in := strings.TrimSuffix(p, name)
		if slices.ContainsFunc(folders, func(folder string) bool { return strings.HasSuffix(in, folder) }) && s.runsBrought(abstract.Clip(name), p, s.at.Origin(p), at) {
			return
		}
	}
}

// codeHost reports whether all that a program contacts are hosts of
// repositories that anybody works with, by a way that no one can change on.
func codeHost(argv []abstract.Value, use command.Use) bool {
	found := false
	for _, v := range argv {
		if strings.HasPrefix(v.Text, "git://") {
			return false
		}
	}
	for _, t := range use.Touches {
		host := ""
		switch t.Kind {
		case effect.HTTPRequest:
			if !strings.HasPrefix(t.Word.Text, "https://") {
				return false
			}
			_, host = effect.URL(t.Word.Text)
		case effect.Connect:
			host = effect.Host(t.Word.Text[strings.LastIndexByte(t.Word.Text, '@')+1:])
		default:
			continue
		}
		if found = true; t.Word.Pattern || !command.CodeHosts[host] {
			return false
		}
	}
	return found
}
