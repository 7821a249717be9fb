package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// startFiles are the names of the files that shells read as they start, in the home folder: the first always, those
// of more where somebody types or logs in.
var startFiles = map[string]struct{ always, more []string }{
	"zsh":  {always: []string{".zshenv"}, more: []string{".zprofile", ".zshrc", ".zlogin", ".zlogout"}},
	"bash": {more: []string{".bashrc", ".bash_profile", ".bash_login", ".profile", ".bash_logout"}},
	"sh":   {more: []string{".profile"}},
	"dash": {more: []string{".profile"}},
	"ash":  {more: []string{".profile"}},
	"ksh":  {more: []string{".profile", ".kshrc"}},
	"mksh": {more: []string{".profile", ".mkshrc"}},
}

// starts walks the files that a shell reads as it starts: those that the text wrote, and those in a folder that
// it made the home folder.
func (s *state) starts(program string, argv []abstract.Value) {
	files, ok := startFiles[program]
	if !ok || s.remote > 0 {
		return
	}
	names := files.always
	if typed(argv) {
		names = append(slices.Clone(names), files.more...)
	}
	home, set := s.lookup("HOME")
	for _, name := range names {
		for i := len(s.files) - 1; i >= 0 && s.step(1); i-- {
			if f := s.files[i]; path.Base(f.path) == name {
				s.mayRun(func() { s.runText("shell", f.val, program, f.val.From, nil) })
			}
		}
		if !set || s.at.Script == nil || !home.val.Known() {
			continue
		}
		if p, pattern := s.place().Path(home.val.Text+"/"+name, false); !pattern && path.Dir(p) != s.at.Home {
			if data, err := s.at.Script(p); err == nil {
				s.mayRun(func() { s.runText("shell", abstract.Lit(string(data)), program, home.val.From, nil) })
			}
		}
	}
}

// typed reports whether a shell may be started as one that somebody types into, or logs in with.
func typed(argv []abstract.Value) bool {
	for _, v := range argv[1:] {
		switch {
		case !v.Known() || v.Text == "--login" || v.Text == "--interactive":
			return true
		case strings.HasPrefix(v.Text, "--"):
		case v.Text == "" || v.Text[0] != '-':
			return false
		case strings.ContainsAny(v.Text, "il"):
			return true
		}
	}
	return len(argv) == 1
}
