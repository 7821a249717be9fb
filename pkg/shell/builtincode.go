package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// codeBuiltin is a special builtin that may run or load code, or loses what ran.
func (s *state) codeBuiltin(name string, argv []abstract.Value, io abstract.Streams) abstract.Value {
	switch name {
	case "history":
		if len(argv) > 1 && (argv[1].Text == "-c" || argv[1].Text == "-w" || argv[1].Text == "-a" || argv[1].Text == "-d") {
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
	case "jobs":
		// jobs -x CMD runs CMD.
		if len(argv) > 2 && argv[1].Text == "-x" {
			return s.invoke(argv[2:], io)
		}
	case "wait":
		for _, v := range argv[1:] {
			s.subscript(v.Text)
		}
	case "hash":
		// hash -p FILE NAME makes NAME run FILE.
		if len(argv) > 3 && argv[1].Text == "-p" && argv[2].Known() {
			s.shadow(argv[3].Text, argv[3].From)
			s.aliases = append(s.aliases, alias{argv[3].Text, argv[2].Text})
		}
	}
	return abstract.Value{}
}
