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

// A signalToShieldCertainty says whether a signal reaches shield, sh or timeout (which run shield as a hook),
// or the agent's host.
type signalToShieldCertainty uint8

const (
	signalMissesShield signalToShieldCertainty = iota
	signalMayReachShield
	signalReachesShield
)

// recordSignalsToShieldOrHost records that a signal or a process limit can stop shield, the agent's host, or
// sh or timeout, which run shield as a hook. If timeout is stopped, the host waits in vain, and
// hosts then run the action without a verdict.
func (s *analysisState) recordSignalsToShieldOrHost(base string, argv []abstract.Value, use command.Interpretation) {
	if last := argv[len(argv)-1]; base == "kill" && last.Text == "-1" && len(argv) > 2 { // kill reads -1 as an option, not as a process
		use.ProcessSignals = append(use.ProcessSignals, command.ProcessSignal{SelectedBy: command.ProcessSelectionByID, ProcessSelector: commandWords(argv[len(argv)-1:])[0]})
	}
	if len(use.ProcessSignals) == 0 || s.remoteOrContainerDepth > 0 && !slices.ContainsFunc(s.effects, func(e effect.Effect) bool { return e.Host != "" && effect.IsLoopbackHost(e.Host) }) {
		return
	}
	signal := signalNameInArguments(argv)
	if signal == "0" || signal == "CONT" {
		return // signal 0 and SIGCONT stop no process
	}
	stopping := signal == "STOP" || signal == "TSTP" || signal == "TTIN" || signal == "TTOU"
	most := signalMissesShield
	for _, g := range use.ProcessSignals {
		most = max(most, s.signalCertainty(g, wordValue(g.ProcessSelector, argv), argv, stopping))
	}
	if slices.ContainsFunc(argv, func(a abstract.Value) bool { return len(a.Text) > 4 && strings.HasPrefix("--inverse", a.Text) }) {
		most = signalReachesShield // --inverse: the signal goes to all processes except the named ones
	}
	// pkill and killall without a name mean all processes of a user.
	if group := slices.ContainsFunc(use.ProcessSignals, func(g command.ProcessSignal) bool { return g.SelectedBy == command.ProcessSelectionByUserOrSession }); group && !slices.ContainsFunc(use.ProcessSignals, signalSelectsProcessByName) {
		most = signalReachesShield
	}
	if most == signalMissesShield {
		return
	}
	s.emitOnce(effect.Effect{
		Kind: effect.TamperWithShield, Program: base, Certainty: effect.CertainOrPossible(most != signalMayReachShield), Span: wordsSpan(argv),
		Reason: base + " can stop shield, a program in shield's hook command or the agent's host",
	})
}

// signalSelectsProcessByName reports whether a signal goes only to processes with a given name or command line.
func signalSelectsProcessByName(g command.ProcessSignal) bool {
	return (g.SelectedBy == command.ProcessSelectionByName || g.SelectedBy == command.ProcessSelectionByNamePattern || g.SelectedBy == command.ProcessSelectionByCommandLine || g.SelectedBy == command.ProcessSelectionByWholeName) && !strings.HasPrefix(g.ProcessSelector.Text, "-") // a word that begins with - is the signal
}

// signalNameInArguments returns the name, without SIG, of the signal in the arguments of kill and the like; "" if there is
// none.
func signalNameInArguments(argv []abstract.Value) string {
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
		if name, ok := signalNameByNameOrNumber[text]; ok {
			return name
		}
	}
	return ""
}

// signalNameByNameOrNumber maps names and numbers of the relevant signals to their names.
var signalNameByNameOrNumber = map[string]string{
	"0": "0", "CONT": "CONT", "18": "CONT", "STOP": "STOP", "17": "STOP", "19": "STOP", "TSTP": "TSTP", "20": "TSTP",
	"TTIN": "TTIN", "21": "TTIN", "TTOU": "TTOU", "22": "TTOU", "HUP": "HUP", "TERM": "TERM", "KILL": "KILL", "INT": "INT", "1": "HUP", "2": "INT", "9": "KILL", "15": "TERM",
}

// signalCertainty returns whether a signal reaches shield, a program of its hook command or the host
// of the agent: certainly, possibly or not at all. The word v names the processes that get the signal, as
// g.SelectedBy says.
func (s *analysisState) signalCertainty(g command.ProcessSignal, v abstract.Value, argv []abstract.Value, isStopSignal bool) signalToShieldCertainty {
	switch g.SelectedBy {
	case command.ProcessSelectionByID:
		return s.signalCertaintyByPID(v, argv, isStopSignal)
	case command.ProcessSelectionByParent:
		if isParentPID(v) {
			return signalReachesShield
		}
		return signalMissesShield
	case command.ProcessSelectionByUserOrSession:
		if isStopSignal {
			return signalMayReachShield
		}
		return signalMissesShield
	case command.ProcessSelectionByOpenFile:
		return s.signalCertaintyByOpenFile(v)
	case command.ProcessSelectionByName, command.ProcessSelectionByNamePattern, command.ProcessSelectionByCommandLine, command.ProcessSelectionByWholeName:
	}
	ignore := slices.ContainsFunc(argv, func(a abstract.Value) bool { return a.Text == "-i" || a.Text == "-I" || a.Text == "--ignore-case" })
	switch {
	case v.FullyUnknown:
		if isStopSignal {
			return signalMayReachShield
		}
		return signalMissesShield
	case g.SelectedBy == command.ProcessSelectionByName:
		return s.signalCertaintyByProcessName(v, ignore)
	}
	by := g.SelectedBy
	if by != command.ProcessSelectionByName && slices.ContainsFunc(argv, func(a abstract.Value) bool { return isPgrepFullMatchOption(a.Text) }) { // bundled options
		by = command.ProcessSelectionByCommandLine
	}
	return s.signalCertaintyByProcessPattern(v, by, ignore)
}

// isPgrepFullMatchOption reports whether an option of pgrep and pkill makes them match full command lines.
func isPgrepFullMatchOption(option string) bool {
	letters, short := strings.CutPrefix(option, "-")
	return option == "--full" || short && strings.Contains(letters, "f") && strings.Trim(letters, "abcdefghijklmnopqrstuvwxyz") == ""
}

// signalCertaintyByOpenFile returns whether a signal to all processes that use a file reaches shield or
// the agent's host. It does if the file is their program or a program of shield's hook command, or
// if the file is the folder in which they run or a parent of it.
func (s *analysisState) signalCertaintyByOpenFile(file abstract.Value) signalToShieldCertainty {
	if isShieldOrHostProgram(path.Base(file.Text)) {
		return signalReachesShield
	}
	if p, pattern := s.workingFolderContext().CanonicalPath(file.Text, file.IsGlobPattern); !pattern && file.IsLiteral() && p != "" && liesIn(s.initialPathContext.CWD, p) {
		return signalReachesShield
	}
	return signalMissesShield
}

// liesIn reports whether a path is a folder or lies in it.
func liesIn(p, folder string) bool {
	return p == folder || strings.HasPrefix(p, strings.TrimSuffix(folder, "/")+"/")
}

// signalCertaintyByPID handles a signal to a process ID; kill also accepts a process name.
func (s *analysisState) signalCertaintyByPID(v abstract.Value, argv []abstract.Value, stopping bool) signalToShieldCertainty {
	number := strings.TrimLeft(v.Text, "0123456789") == "" && v.Text != ""
	switch {
	case isParentPID(v), v.Text == "-1":
		return signalReachesShield
	case v.IsLiteral() && number && v.Text != "0", strings.HasPrefix(v.Text, "-") && v.IsLiteral():
		return signalMissesShield
	case v.IsLiteral() && v.Text == "0", v.IsJobID():
		if stopping && !v.IsJobID() {
			return signalMayReachShield // the host may be in the same process group
		}
		return signalMissesShield
	case v.IsLiteral():
		return s.signalCertaintyByProcessName(v, false)
	case s.searchesForShieldProcess():
		return signalReachesShield
	case stopping && v.Origin&^abstract.OriginUnsetVariable != 0:
		return signalMayReachShield
	}
	return signalMissesShield
}

// isParentPID reports whether a word is the ID of the shell's parent process.
func isParentPID(v abstract.Value) bool {
	return !v.IsLiteral() && strings.Contains(v.String(), "PPID")
}

// signalCertaintyByProcessName compares a process name with the names of shield, the programs of its
// hook command, and the agent hosts.
func (s *analysisState) signalCertaintyByProcessName(v abstract.Value, ignoreCase bool) signalToShieldCertainty {
	name := programName(strings.ReplaceAll(v.Text, `\`, "/"))
	if ignoreCase {
		name = strings.ToLower(name)
	}
	switch {
	case v.IsLiteral() && isShieldOrHostProgram(name):
		return signalReachesShield
	case v.IsGlobPattern && slices.ContainsFunc(shieldAndHostPrograms(), func(g string) bool { return abstract.Match(name, g) }):
		return signalMayReachShield
	}
	return signalMissesShield
}

// signalCertaintyByProcessPattern matches a regular expression against the names of the guard programs (shield, its
// hook programs and the agent hosts), and for ProcessSelectionByCommandLine also against their command
// lines.
func (s *analysisState) signalCertaintyByProcessPattern(v abstract.Value, by command.ProcessSelection, ignore bool) signalToShieldCertainty {
	text := v.Text
	if v.IsGlobPattern {
		text = patternAsShellText(v.Text)
		if strings.Contains(text, abstract.UnknownPlaceholderVariable) {
			return s.signalCertaintyByProcessName(v, ignore)
		}
	}
	for _, text := range []string{text, v.String()} {
		if by == command.ProcessSelectionByWholeName {
			text = "^(?:" + text + ")$"
		}
		if ignore {
			text = "(?i)" + text
		}
		re, err := regexp.Compile(text)
		if err != nil {
			return signalMayReachShield // a pattern that Go cannot compile may be valid in POSIX
		}
		if slices.ContainsFunc(shieldAndHostPrograms(), re.MatchString) || by == command.ProcessSelectionByCommandLine && slices.ContainsFunc(s.shieldAndHostCommandLines(), re.MatchString) {
			return signalReachesShield
		}
	}
	return signalMissesShield
}

// searchesForShieldProcess reports whether the text lists processes and selects shield, its hook's
// programs or agent hosts, or asks for a parent process. An unknown process ID can then be the ID
// of such a process.
func (s *analysisState) searchesForShieldProcess() bool {
	lists, chosen := false, false
	for i := range s.effects {
		e := &s.effects[i]
		switch {
		case e.Kind == effect.ReadFile || e.Kind == effect.ListDirectory:
			lists = lists || strings.HasPrefix(e.Path, "/proc/")
		case e.Kind != effect.Execute:
		case command.ProcessListers[e.Program]:
			lists = true
			by := command.ProcessSelectionByNamePattern
			if slices.ContainsFunc(e.Args, isPgrepFullMatchOption) {
				by = command.ProcessSelectionByCommandLine
			}
			for _, a := range e.Args {
				switch v := abstract.Lit(a); {
				case strings.Contains(a, "ppid"):
					chosen = true
				case strings.HasPrefix(a, "-"):
				case e.Program == "pgrep":
					chosen = chosen || s.signalCertaintyByProcessPattern(v, by, false) != signalMissesShield
				case e.Program == "lsof" || e.Program == "fuser":
					chosen = chosen || s.signalCertaintyByOpenFile(v) != signalMissesShield
				default:
					chosen = chosen || isShieldOrHostProgram(programName(a))
				}
			}
		case command.TextFilters[e.Program]:
			for _, a := range e.Args {
				chosen = chosen || mentionsShieldOrHostProgram(a)
			}
		}
	}
	return lists && chosen
}

// mentionsShieldOrHostProgram reports whether a text contains the name of shield, a program of its
// hook command or an agent host, or "ppid". It also finds names in the form [t]imeout, with which a
// process search avoids matching itself.
func mentionsShieldOrHostProgram(text string) bool {
	text = bracketedLetterPattern().ReplaceAllString(text, "$1")
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool {
		return !(c == '-' || c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9')
	}) {
		if isShieldOrHostProgram(word) || word == "ppid" || word == "PPid" {
			return true
		}
	}
	return false
}

var bracketedLetterPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[(\w)\]`) })

// isShieldOrHostProgram reports whether a name is that of shield, of sh or timeout (which run shield as a
// hook), or of an agent host.
func isShieldOrHostProgram(name string) bool {
	return name == shieldProgramName || command.GuardLine[name] || command.GuardHosts[name]
}

// shieldAndHostPrograms are the names of shield, the programs of its hook command and the agent hosts.
var shieldAndHostPrograms = sync.OnceValue(func() []string {
	names := []string{shieldProgramName}
	for _, list := range [...]command.Words{command.GuardLine, command.GuardHosts} {
		for name := range list {
			names = append(names, name)
		}
	}
	sorted.SortStrings(names)
	return names
})

// shieldAndHostCommandLines returns examples of the command line with which agent hosts run
// shield's hook. Patterns of pkill -f are matched against them.
func (s *analysisState) shieldAndHostCommandLines() []string {
	home := s.initialPathContext.Home
	if home == "" {
		home = "/home/user"
	}
	return []string{
		"/bin/sh -c /usr/bin/timeout -s KILL 55s " + home + "/.local/bin/shield hook claude-code --alone --timeout 50s",
		home + "/go/bin/shield hook codex", "/usr/local/bin/shield hook gemini-cli",
	}
}

// recordShieldStopSignalsInCode checks code in languages other than shell for signals to its parent process, to
// all processes, or to processes selected by the name of shield, a program of its hook command, or an agent
// host, and for a suspend signal to any process of a process list.
func (s *analysisState) recordShieldStopSignalsInCode(language, text string, at effect.CommandTextSpan) {
	switch language {
	case "powershell":
		if stopProcessPattern().MatchString(text) && mentionsShieldOrHostProgram(text) {
			s.recordStopShieldEffectOfCode(language, at)
		}
		return
	case "cmd", "encoded", "awk":
		return
	}
	if !strings.Contains(text, "kill") && !strings.Contains(text, "suspend") && !strings.Contains(text, "terminate") && !strings.Contains(text, "send_signal") {
		return
	}
	if signalParentPattern().MatchString(text) || signalAllProcessesPattern().MatchString(text) || signalsStoredParentPID(text) ||
		processListPattern().MatchString(text) && (shieldOrHostProcessSelectionPattern().MatchString(text) || suspendSignalPattern().MatchString(text) && !processFieldPattern().MatchString(text)) {
		s.recordStopShieldEffectOfCode(language, at)
	}
}

// signalsStoredParentPID reports whether code signals a process ID in a variable that was set to the parent's ID.
func signalsStoredParentPID(code string) bool {
	for _, m := range parentPIDVariablePattern().FindAllStringSubmatch(code, maxItemsPerAnalyzedList) {
		for _, call := range signalCallPattern().FindAllStringSubmatch(code, maxItemsPerAnalyzedList) {
			if slices.Contains(strings.FieldsFunc(call[1], func(c rune) bool { return !isWordRune(c) }), m[1]) {
				return true
			}
		}
	}
	return false
}

func isWordRune(c rune) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func (s *analysisState) recordStopShieldEffectOfCode(language string, at effect.CommandTextSpan) {
	s.emitOnce(effect.Effect{
		Kind: effect.TamperWithShield, Program: language, Certainty: effect.CertainOrPossible(s.scriptFileNestingDepth == 0), Span: at,
		Reason: language + " code can stop shield, a program in shield's hook command or the agent's host",
	})
}

// Patterns for code that sends signals: to the parent process (ppid in or before a kill call), to
// process ID -1 or a range of IDs, to processes selected by name, and a suspend signal to any
// process of a process list.
var (
	signalParentPattern                 = prefilter.LazyRegexp(`kill\w*\b[^;\n]{0,80}ppid|ppid[^\n]{0,120}\b(?:kill|suspend|terminate|send_signal)|\bparent\(\)\.(?:kill|suspend|terminate|send_signal)\(`)
	signalAllProcessesPattern           = prefilter.LazyRegexp(`\bkill(?:pg)?\s*\(\s*-\s*1\b|\bkill\b[^;\n]{0,40},\s*-\s*1\b|\bkill\b[^;\n]{0,60}\d\s*\.\.\s*\d`)
	parentPIDVariablePattern            = prefilter.LazyRegexp(`(\w+)\s*:?=\s*[\w.:$]*ppid\b`)
	signalCallPattern                   = prefilter.LazyRegexp(`\b(?:kill|killpg|Process)\b([^;\n]{0,80})`)
	stopProcessPattern                  = prefilter.LazyRegexp(`(?i)\b(?:Stop-Process|spps|taskkill|Suspend-Process|Debug-Process)\b`)
	suspendSignalPattern                = prefilter.LazyRegexp(`SIGSTOP|\bSTOP\b|suspend\(|\b19\b`)
	processFieldPattern                 = prefilter.LazyRegexp(`name|comm\b|exe\b|cmdline|environ|cwd|ppid|children`)
	processListPattern                  = prefilter.LazyRegexp(`psutil|process_iter|/proc\b|ps-list|find-process|\bpids\(`)
	shieldOrHostProcessSelectionPattern = sync.OnceValue(func() *regexp.Regexp {
		names := make([]string, len(shieldAndHostPrograms()))
		for i, name := range shieldAndHostPrograms() {
			names[i] = regexp.QuoteMeta(name)
		}
		quoted := `['"](?:` + strings.Join(names, "|") + `)['"]`
		return regexp.MustCompile(`(?:name|comm|exe|cmdline)\b[^\n]{0,40}` + quoted + `|` + quoted + `[^\n]{0,40}(?:name|comm|exe|cmdline)\b`)
	})
)
