package command

import (
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// Variable returns the command or code that programs run because an
// environment variable is set, such as PAGER, LD_PRELOAD or GIT_SSH_COMMAND.
// Four languages occur only here: "place" is files or folders, separated by ":", from which programs load settings
// or code; "output" is a file that they write; "source" is URLs of package sources; "check" disables a check.
// setting has the form NAME=VALUE.
func Variable(setting Word) (n Nested, ok bool) {
	i := strings.IndexByte(setting.Text, '=')
	if i <= 0 || i == len(setting.Text)-1 {
		return Nested{}, false
	}
	value := cut(setting, i+1)
	for _, r := range knowledge.RunningVariables(setting.Text[:i]) {
		if !value.Pattern && (!r.RunsValue(value.Text) || r.Test == "pager" && isPager(value)) {
			continue
		}
		if r.Prefix != "" {
			value.Text = strings.TrimLeft(value.Text, r.Prefix)
		}
		language := r.Runs
		if language == "" {
			language = r.Holds
		}
		return Nested{Language: language, Of: r.Of, Variable: setting.Text[:i], Words: []Word{value}}, true
	}
	return Nested{}, false
}

// IsPublicHost reports whether an address is that of a public machine: neither this machine nor in a private
// network.
func IsPublicHost(address string) bool {
	_, ok := Variable(Word{Text: "ALL_PROXY=http://" + address})
	return ok
}

// OptionVariables returns the variables whose values a program adds to its options.
func OptionVariables(program string) []string {
	entry := lookup(program)
	if entry == nil {
		return nil
	}
	return optionVariables()[entry]
}

var optionVariables = sync.OnceValue(func() map[*syntax][]string {
	out := map[*syntax][]string{}
	for _, g := range knowledge.RunningGroups {
		if g.Holds != "options" {
			continue
		}
		program, _, _ := strings.Cut(g.Of, " ")
		for _, name := range g.Names {
			if !strings.Contains(name, "*") {
				out[lookup(program)] = append(out[lookup(program)], name)
			}
		}
	}
	return out
})

// RunsUnknown reports whether an unknown value of a variable may be code, a program or a code file to the programs
// that read it. Variables for folders and other places do not count.
func RunsUnknown(name string) bool {
	for _, r := range knowledge.RunningVariables(name) {
		if r.Runs != "" && !r.Folders() {
			return true
		}
	}
	return false
}

// runByVariable records the code that NAME=VALUE makes programs run.
func (r *reader) runByVariable(w Word) {
	if n, ok := Variable(w); ok {
		r.use.Nested = append(r.use.Nested, n)
	}
}

// setting records NAME=VALUE for the nested command.
func (r *reader) setting(w Word) {
	r.use.Env = append(r.use.Env, w)
	if hasPrefix(w.Text, "SHIELD_") {
		r.effect(effect.ChangeGuard)
	}
}
