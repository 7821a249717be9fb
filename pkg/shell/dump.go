package shell

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// dumpsHere reports whether a program writes what a database of this machine
// holds: that is no download.
func (s *state) dumpsHere(argv []abstract.Value, use command.Use) bool {
	if !use.Database || use.Stdout != command.Download || strings.Contains(s.text, "HOST=") {
		return false
	}
	before := ""
	for _, v := range argv[1:] {
		host, named := strings.CutPrefix(v.Text, "--host=")
		short, bundled := strings.CutPrefix(v.Text, "-h")
		_, address, isURL := strings.Cut(v.Text, "://")
		switch {
		case !v.Known():
			return false
		case before == "-h" || before == "--host":
			host, named = v.Text, true
		case bundled && short != "":
			host, named = short, true
		case isURL:
			host, _, _ = strings.Cut(address[strings.LastIndexByte(address, '@')+1:], "/")
			named = true
		}
		if name, _, _ := strings.Cut(host, ":"); named && !effect.Loopback(effect.Host(name)) {
			return false
		}
		before = v.Text
	}
	return true
}

// imports records that the client of a database runs what an earlier action
// brought, and reports whether that is so: nothing in this text comes from
// elsewhere.
func (s *state) imports(base string, at effect.Span) bool {
	away := func(e effect.Effect) bool { return e.Kind == effect.HTTPRequest || e.Kind == effect.Connect }
	if slices.ContainsFunc(s.effects, away) {
		return false
	}
	for i := range s.effects {
		if e := &s.effects[i]; e.Kind == effect.ReadFile && s.runsBrought(base, e.Path, s.origin(e.Path, e.Pattern), at) {
			return true
		}
	}
	return false
}
