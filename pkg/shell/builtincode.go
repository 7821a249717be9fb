package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// codeBuiltin is a special builtin that may run or load code, or loses what ran.
func (s *state) codeBuiltin(name string, argv []abstract.Value, io abstract.Streams) abstract.Value {
	switch name {
	case "history":
		if len(argv) > 1 && strings.HasPrefix(argv[1].Text, "-") && strings.ContainsAny(argv[1].Text, "cwad") {
			s.emit(effect.Effect{Kind: effect.Destroy, Program: "history", Cause: effect.CauseHistory, Reason: "changes the command history", From: join(argv)})
		}
		return abstract.Output(name, abstract.Local)
	case "enable":
		// enable -f loads a shared object into the shell.
		for i, v := range argv {
			if v.Text == "-f" && i+1 < len(argv) {
				s.dynamic(effect.CauseCode, "loads code into the shell: "+argv[i+1].String(), join(argv))
			}
		}
	case "fc":
		// What fc runs is in the history; fc -l only shows it.
		if comparesFiles(argv[1:]) {
			for _, v := range argv[len(argv)-2:] {
				s.path(effect.ReadFile, v, false)
			}
		} else if !listsHistory(argv[1:]) {
			s.dynamic(effect.CauseCode, "runs a line from the history", join(argv))
		}
	case "bind":
		// bind -x '"KEY": CMD' makes a key run CMD.
		for i, v := range argv {
			if v.Text == "-x" && i+1 < len(argv) {
				_, code, _ := strings.Cut(argv[i+1].Text, ":")
				s.nested(code, argv[i+1].From)
			}
		}
	case "complete", "compgen":
		for i, v := range argv {
			if (v.Text == "-C" || v.Text == "-W") && i+1 < len(argv) && argv[i+1].Known() {
				s.nested(argv[i+1].Text, argv[i+1].From)
			}
		}
	case "emulate":
		s.emulates(argv, io)
	case "jobs":
		// jobs -x CMD runs CMD.
		if len(argv) > 2 && argv[1].Text == "-x" {
			return s.invoke(argv[2:], io)
		}
	case "wait":
		for _, v := range argv[1:] {
			s.subscript(v.Text)
		}
	case "unfunction", "unhash", "disable":
		s.disables(argv)
	case "hash":
		// hash -p FILE NAME makes NAME run FILE.
		if len(argv) > 3 && argv[1].Text == "-p" && argv[2].Known() {
			s.shadow(argv[3].Text, argv[3].From)
			s.aliases = append(s.aliases, alias{argv[3].Text, argv[2].Text, true})
		}
	}
	return abstract.Value{}
}

// commandTables are the arrays in which a shell looks up what a name runs: those of bash, and
// those of zsh, which are ordinary ones elsewhere.
var commandTables = map[string]bool{
	"BASH_ALIASES": true, "BASH_CMDS": true, "aliases": true, "commands": true, "functions": true, "galiases": true,
}

// keyText returns the key of a member of such an array.
func (s *state) keyText(array string, index syntax.ArithmExpr) abstract.Value {
	if w, ok := index.(*syntax.Word); ok && commandTables[array] {
		return s.word(w)
	}
	return abstract.Unknown("[…]", 0)
}

// setsCommand follows such a member. In a shell without the array, the name runs what it does
// otherwise; what is not known of the value runs as it is written.
func (s *state) setsCommand(array string, key, v abstract.Value) {
	own := strings.HasPrefix(array, "BASH_")
	switch {
	case !commandTables[array]:
	case own && (!key.Known() || !v.Known()):
		s.dynamic(v.Cause(), "unknown command: "+abstract.Clip(v.String()), v.From)
	case !key.Known() || len(s.aliases) > 256:
	case array == "functions":
		before := s.outcomes()
		s.nested("function "+key.Text+" {\n"+v.String()+"\n}", v.From)
		s.uncertain(before)
	default:
		s.shadow(key.Text, key.From)
		s.aliases = append(s.aliases, alias{key.Text, v.String(), array == "BASH_CMDS" || array == "commands"})
	}
}
