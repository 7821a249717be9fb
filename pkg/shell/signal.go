package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A reach says whether a signal reaches shield, a program of its hook line or the agent's host.
type reach uint8

const (
	outOfReach reach = iota
	mayReach
	reaches
)

// signals records that a signal or a process limit can stop shield or the programs around it. A stopped timeout
// program leaves the host waiting, and hosts then run the action without an answer.
func (s *state) signals(base string, argv []abstract.Value, use command.Use) {
	if last := argv[len(argv)-1]; base == "kill" && last.Text == "-1" && len(argv) > 2 { // kill reads -1 as an option, not as a process
		use.Signals = append(use.Signals, command.Signal{By: command.ByID, Word: commandWords(argv[len(argv)-1:])[0]})
	}
	if len(use.Signals) == 0 || s.remote > 0 && !slices.ContainsFunc(s.effects, func(e effect.Effect) bool { return e.Host != "" && effect.Loopback(e.Host) }) {
		return
	}
	signal := signalOf(argv)
	if signal == "0" || signal == "CONT" {
		return // these signals stop no process
	}
	stopping := signal == "STOP" || signal == "TSTP" || signal == "TTIN" || signal == "TTOU"
	most := outOfReach
	for _, g := range use.Signals {
		most = max(most, s.meets(g, wordValue(g.Word, argv), argv, stopping))
	}
	if slices.ContainsFunc(argv, func(a abstract.Value) bool { return len(a.Text) > 4 && strings.HasPrefix("--inverse", a.Text) }) {
		most = reaches // all processes except the named ones
	}
	// pkill and killall without a name mean all processes of a user.
	if group := slices.ContainsFunc(use.Signals, func(g command.Signal) bool { return g.By == command.ByGroup }); group && !slices.ContainsFunc(use.Signals, byName) {
		most = reaches
	}
	if most == outOfReach {
		return
	}
	s.emitOnce(effect.Effect{
		Kind: effect.ChangeGuard, Program: base, Sure: effect.If(most != mayReach), From: join(argv),
		Reason: base + " can stop shield, the programs of its hook line or the agent's host",
	})
}

// byName reports whether a signal goes only to processes with a given name or command line.
func byName(g command.Signal) bool {
	return (g.By == command.ByName || g.By == command.ByPattern || g.By == command.ByLine || g.By == command.ByExact) && !strings.HasPrefix(g.Word.Text, "-") // otherwise the word is the signal
}

// signalOf returns the name, without SIG, of the signal in the arguments of kill and the like; "" if there is
// none.
func signalOf(argv []abstract.Value) string {
	for i, v := range argv[1:] {
		text := strings.TrimPrefix(strings.TrimPrefix(v.Text, "--signal="), "-")
		switch {
		case v.Text == "-s" || v.Text == "--signal" || v.Text == "-n":
			if text = ""; i+2 < len(argv) {
				text = argv[i+2].Text
			}
		case text == v.Text:
			continue
		case strings.HasPrefix(v.Text, "-s") && len(v.Text) > 2:
			text = v.Text[2:]
		}
		text = strings.TrimPrefix(strings.ToUpper(text), "SIG")
		if name, ok := signalNames[text]; ok {
			return name
		}
	}
	return ""
}

// signalNames maps names and numbers of the relevant signals to their names.
var signalNames = map[string]string{
	"0": "0", "CONT": "CONT", "18": "CONT", "STOP": "STOP", "17": "STOP", "19": "STOP", "TSTP": "TSTP", "20": "TSTP",
	"TTIN": "TTIN", "21": "TTIN", "TTOU": "TTOU", "22": "TTOU", "HUP": "HUP", "TERM": "TERM", "KILL": "KILL", "INT": "INT", "1": "HUP", "2": "INT", "9": "KILL", "15": "TERM",
}

// meets returns whether the processes that a word names may include shield or the programs around it.
func (s *state) meets(g command.Signal, v abstract.Value, argv []abstract.Value, stopping bool) reach {
	switch g.By {
	case command.ByID:
		return s.meetsID(v, argv, stopping)
	case command.ByParent:
		if isParentPID(v) {
			return reaches
		}
		return outOfReach
	case command.ByGroup:
		if stopping {
			return mayReach
		}
		return outOfReach
	case command.ByFile:
		return s.meetsFile(v)
	case command.ByName, command.ByPattern, command.ByLine, command.ByExact:
	}
	ignore := slices.ContainsFunc(argv, func(a abstract.Value) bool { return a.Text == "-i" || a.Text == "-I" || a.Text == "--ignore-case" })
	switch {
	case v.Bare:
		if stopping {
			return mayReach
		}
		return outOfReach
	case g.By == command.ByName:
		return s.meetsName(v, ignore)
	}
	by := g.By
	if by != command.ByName && slices.ContainsFunc(argv, func(a abstract.Value) bool { return matchesCommandLine(a.Text) }) { // bundled options
		by = command.ByLine
	}
	return s.meetsPattern(v, by, ignore)
}

// matchesCommandLine reports whether an option of pgrep and pkill makes them match full command lines.
func matchesCommandLine(option string) bool {
	letters, short := strings.CutPrefix(option, "-")
	return option == "--full" || short && strings.Contains(letters, "f") && strings.Trim(letters, "abcdefghijklmnopqrstuvwxyz") == ""
}

// meetsFile handles a signal to all processes that use a file: it reaches the guard if the file is a guard
// program, or a folder that contains the working folder.
func (s *state) meetsFile(v abstract.Value) reach {
	if guardProgram(path.Base(v.Text)) {
		return reaches
	}
	if p, pattern := s.place().Path(v.Text, v.IsPattern); !pattern && v.Known() && p != "" && liesIn(s.at.CWD, p) {
		return reaches
	}
	return outOfReach
}

// liesIn reports whether a path is a folder or lies in it.
func liesIn(p, folder string) bool {
	return p == folder || strings.HasPrefix(p, strings.TrimSuffix(folder, "/")+"/")
}

// meetsID handles a signal to a process ID; kill also accepts a process name.
func (s *state) meetsID(v abstract.Value, argv []abstract.Value, stopping bool) reach {
	number := strings.TrimLeft(v.Text, "0123456789") == "" && v.Text != ""
	switch {
	case isParentPID(v), v.Text == "-1":
		return reaches
	case v.Known() && number && v.Text != "0", strings.HasPrefix(v.Text, "-") && v.Known():
		return outOfReach
	case v.Known() && v.Text == "0", v.Job():
		if stopping && !v.Job() {
			return mayReach // the host may be in the same process group
		}
		return outOfReach
	case v.Known():
		return s.meetsName(v, false)
	case s.listsGuard():
		return reaches
	case stopping && v.Origin&^abstract.FromVariable != 0:
		return mayReach
	}
	return outOfReach
}

// isParentPID reports whether a word is the ID of the shell's parent process.
func isParentPID(v abstract.Value) bool { return !v.Known() && strings.Contains(v.String(), "PPID") }

// meetsName compares a process name with the guard programs.
func (s *state) meetsName(v abstract.Value, ignore bool) reach {
	name := programName(strings.ReplaceAll(v.Text, `\`, "/"))
	if ignore {
		name = strings.ToLower(name)
	}
	switch {
	case v.Known() && guardProgram(name):
		return reaches
	case v.IsPattern && slices.ContainsFunc(guardPrograms(), func(g string) bool { return abstract.Match(name, g) }):
		return mayReach
	}
	return outOfReach
}

// meetsPattern matches a regular expression against the names, or with ByLine also the command lines, of the guard
// programs.
func (s *state) meetsPattern(v abstract.Value, by command.SignalBy, ignore bool) reach {
	text := v.Text
	if v.IsPattern {
		text = unpattern(v.Text)
		if strings.Contains(text, abstract.UnsetName) {
			return s.meetsName(v, ignore)
		}
	}
	for _, text := range []string{text, v.String()} {
		if by == command.ByExact {
			text = "^(?:" + text + ")$"
		}
		if ignore {
			text = "(?i)" + text
		}
		re, err := regexp.Compile(text)
		if err != nil {
			return mayReach // a pattern that Go cannot compile may be valid in POSIX
		}
		if slices.ContainsFunc(guardPrograms(), re.MatchString) || by == command.ByLine && slices.ContainsFunc(s.guardLines(), re.MatchString) {
			return reaches
		}
	}
	return outOfReach
}

// listsGuard reports whether the text lists processes and selects guard programs, or asks for a parent process. An
// unknown process ID may then be one of theirs.
func (s *state) listsGuard() bool {
	lists, chosen := false, false
	for i := range s.effects {
		e := &s.effects[i]
		switch {
		case e.Kind == effect.ReadFile || e.Kind == effect.ListDirectory:
			lists = lists || strings.HasPrefix(e.Path, "/proc/")
		case e.Kind != effect.Execute:
		case command.ProcessListers[e.Program]:
			lists = true
			by := command.ByPattern
			if slices.ContainsFunc(e.Args, matchesCommandLine) {
				by = command.ByLine
			}
			for _, a := range e.Args {
				switch v := abstract.Lit(a); {
				case strings.Contains(a, "ppid"):
					chosen = true
				case strings.HasPrefix(a, "-"):
				case e.Program == "pgrep":
					chosen = chosen || s.meetsPattern(v, by, false) != outOfReach
				case e.Program == "lsof" || e.Program == "fuser":
					chosen = chosen || s.meetsFile(v) != outOfReach
				default:
					chosen = chosen || guardProgram(programName(a))
				}
			}
		case command.TextFilters[e.Program]:
			for _, a := range e.Args {
				chosen = chosen || namesGuard(a)
			}
		}
	}
	return lists && chosen
}

// namesGuard reports whether a text contains the name of a guard program, also in the form [t]imeout, with which a
// search avoids matching itself.
func namesGuard(text string) bool {
	text = bracketed().ReplaceAllString(text, "$1")
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool {
		return !(c == '-' || c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9')
	}) {
		if guardProgram(word) || word == "ppid" || word == "PPid" {
			return true
		}
	}
	return false
}

var bracketed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[(\w)\]`) })

// guardProgram reports whether a name is that of shield, a program of its hook line or an agent host.
func guardProgram(name string) bool {
	return name == guardName || command.GuardLine[name] || command.GuardHosts[name]
}

// guardPrograms are the names of shield, the programs of its hook line and the agent hosts.
var guardPrograms = sync.OnceValue(func() []string {
	names := []string{guardName}
	for _, list := range [...]command.Words{command.GuardLine, command.GuardHosts} {
		for name := range list {
			names = append(names, name)
		}
	}
	sorted.Strings(names)
	return names
})

// guardLines returns command lines of the guard programs, as pkill -f matches them.
func (s *state) guardLines() []string {
	home := s.at.Home
	if home == "" {
		home = "/home/user"
	}
	return []string{
		"/bin/sh -c /usr/bin/timeout -s KILL 55s " + home + "/.local/bin/shield hook claude-code --alone --timeout 50s",
		home + "/go/bin/shield hook codex", "/usr/local/bin/shield hook gemini-cli",
	}
}

// codeSignals checks code of another language for signals to its parent process, to all processes, or to processes
// found by the name of a guard program.
func (s *state) codeSignals(language, text string, at effect.Span) {
	switch language {
	case "powershell":
		if stopsProcess().MatchString(text) && namesGuard(text) {
			s.stopsByCode(language, at)
		}
		return
	case "cmd", "encoded", "awk":
		return
	}
	if !strings.Contains(text, "kill") && !strings.Contains(text, "suspend") && !strings.Contains(text, "terminate") && !strings.Contains(text, "send_signal") {
		return
	}
	if signalsParent().MatchString(text) || signalsAll().MatchString(text) || signalsVariable(text) ||
		listsProcesses().MatchString(text) && (choosesGuard().MatchString(text) || freezes().MatchString(text) && !chooses().MatchString(text)) {
		s.stopsByCode(language, at)
	}
}

// signalsVariable reports whether code signals a process ID in a variable that was set to the parent's ID.
func signalsVariable(text string) bool {
	for _, m := range parentVariable().FindAllStringSubmatch(text, maxNames) {
		for _, call := range signalCall().FindAllStringSubmatch(text, maxNames) {
			if slices.Contains(strings.FieldsFunc(call[1], func(c rune) bool { return !wordRune(c) }), m[1]) {
				return true
			}
		}
	}
	return false
}

func wordRune(c rune) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func (s *state) stopsByCode(language string, at effect.Span) {
	s.emitOnce(effect.Effect{
		Kind: effect.ChangeGuard, Program: language, Sure: effect.If(s.onDisk == 0), From: at,
		Reason: language + " code can stop shield, the programs of its hook line or the agent's host",
	})
}

// Patterns for signals in code: getppid() in a kill call, or before one on the same line; process -1 or a range of
// IDs; processes selected by name; any listed process with a signal that suspends it.
var (
	signalsParent  = prefilter.Lazy(`kill\w*\b[^;\n]{0,80}ppid|ppid[^\n]{0,120}\b(?:kill|suspend|terminate|send_signal)|\bparent\(\)\.(?:kill|suspend|terminate|send_signal)\(`)
	signalsAll     = prefilter.Lazy(`\bkill(?:pg)?\s*\(\s*-\s*1\b|\bkill\b[^;\n]{0,40},\s*-\s*1\b|\bkill\b[^;\n]{0,60}\d\s*\.\.\s*\d`)
	parentVariable = prefilter.Lazy(`(\w+)\s*:?=\s*[\w.:$]*ppid\b`)
	signalCall     = prefilter.Lazy(`\b(?:kill|killpg|Process)\b([^;\n]{0,80})`)
	stopsProcess   = prefilter.Lazy(`(?i)\b(?:Stop-Process|spps|taskkill|Suspend-Process|Debug-Process)\b`)
	freezes        = prefilter.Lazy(`SIGSTOP|\bSTOP\b|suspend\(|\b19\b`)
	chooses        = prefilter.Lazy(`name|comm\b|exe\b|cmdline|environ|cwd|ppid|children`)
	listsProcesses = prefilter.Lazy(`psutil|process_iter|/proc\b|ps-list|find-process|\bpids\(`)
	choosesGuard   = sync.OnceValue(func() *regexp.Regexp {
		names := make([]string, len(guardPrograms()))
		for i, name := range guardPrograms() {
			names[i] = regexp.QuoteMeta(name)
		}
		quoted := `['"](?:` + strings.Join(names, "|") + `)['"]`
		return regexp.MustCompile(`(?:name|comm|exe|cmdline)\b[^\n]{0,40}` + quoted + `|` + quoted + `[^\n]{0,40}(?:name|comm|exe|cmdline)\b`)
	})
)
