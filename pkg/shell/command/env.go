package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/knowledge"
)

// Variable returns the command or code that programs run because an
// environment variable is set, such as PAGER, LD_PRELOAD or GIT_SSH_COMMAND.
// Three languages occur only here: a "place" is files or folders, between ":",
// that programs take settings or code from, an "output" a file that they write,
// a "source" addresses that packages come from.
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
