package analysis

import (
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// HasOnlyHarmlessEffects reports whether the analysis shows that the case is harmless: every effect is known and listed as
// harmless in policies/dangers.yaml.
func (c *ActionCase) HasOnlyHarmlessEffects() bool {
	if c.UnexaminedReason != "" || !c.canActionTypeBeHarmless() {
		return false
	}
	for i := range c.Effects {
		if !c.isHarmlessEffect(&c.Effects[i]) {
			return false
		}
	}
	return true
}

// canActionTypeBeHarmless reports whether an action of this type can be harmless. A command can if it has effects:
// without effects it was not analysed.
func (c *ActionCase) canActionTypeBeHarmless() bool {
	switch name := c.Action.Type; {
	case name == "execute_command", strings.HasPrefix(name, "git_"):
		return len(c.Effects) > 0
	default:
		t, ok := lookupTool(name)
		return ok && t.readOnly
	}
}

// isHarmlessEffect reports whether an effect changes nothing and needs no approval.
func (c *ActionCase) isHarmlessEffect(e *effect.Effect) bool {
	return c.findDanger(e).level == dangerLevelHarmless
}

// HasOnlyOrdinaryEffects reports whether the analysis shows that the case is ordinary: every effect is known and
// listed as harmless or ordinary in policies/dangers.yaml. Which files must not be read is decided by rules.
func (c *ActionCase) HasOnlyOrdinaryEffects() bool {
	if c.UnexaminedReason != "" || len(c.Effects) == 0 && c.class == "" || !c.hasKnownActionType() {
		return false
	}
	for i := range c.Effects {
		if c.HasDoubtfulOrUnusualDangerLevel(&c.Effects[i]) {
			return false
		}
	}
	return true
}

// CanDecideByEffectsAlone reports whether the case is ordinary and can be decided by its effects alone: all are
// known, each program's changes and contacts are among them, and no part of the case is text for a model, a
// person or a service. A case that contacts another machine may read only the workspace.
func (c *ActionCase) CanDecideByEffectsAlone() bool {
	if !c.hasFileOrCommandActionType() || !c.HasOnlyOrdinaryEffects() || c.setsEnvironment() || c.writesTextAddressingModel() {
		return false
	}
	outside, leaves := false, false
	for i := range c.Effects {
		switch e := &c.Effects[i]; e.KindForPolicies() {
		case effect.Execute:
			local := e.Class == effect.ReadOnly || e.Class == effect.LocalWrite && (e.Program == "git" || e.Program == "kill" || len(command.CodeFileLoaders(e.Program, e.Args)) > 0)
			open := e.Class != effect.ReadOnly && e.Program != "kill" && slices.ContainsFunc(e.Args, func(arg string) bool { return strings.Contains(arg, "$") })
			if !local && !c.hasProgramEffectBesidesReading(e) || open || cmdletName().MatchString(e.Program) {
				return false
			}
		case effect.ReadFile, effect.ListDirectory:
			if !c.isHarmlessEffect(e) {
				outside = true
				if e.Kind == effect.ListDirectory && !e.PathIsPattern && !e.Recursive && (strings.HasPrefix(e.Path, "/") || len(e.Path) > 2 && e.Path[1:3] == ":/") {
					continue // a listing shows only names; rules judge listings of folders with credentials
				}
				_, open := nonSecretSystemFiles().FirstCoveringGlob(e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot, e.Recursive)
				_, rights := permissionDefiningFiles().FirstPossibleMatch(e.Path, e.PathIsPattern, e.Recursive)
				if rights || !open && !isTemporaryFile(e) && c.Action.Type != "read_file" && !c.affectsOnlyAgentScratchFiles(e) && !c.isCoveredByHomeGlobs(agentTranscriptGlobs(), e) {
					return false
				}
			}
		case effect.WriteFile:
			if shellScriptName().MatchString(e.Path) {
				return false // a script's effects are those of its content, and anyone may run it later
			}
		case effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile:
			if isTemporaryFile(e) && !hasLiteralNonHiddenTempName(e) {
				return false
			}
		case effect.HTTPRequest, effect.Connect, effect.SendData, effect.ChangeRemoteSystem:
			leaves = leaves || !effect.IsLoopbackHost(e.Host)
			if e.RemoteOperationVerb != "" && e.Kind == effect.HTTPRequest || e.Kind == effect.Connect && effect.IsLoopbackHost(e.Host) {
				return false // the effect depends on the message sent to the service
			}
		}
	}
	return !outside || !leaves
}

// writesTextAddressingModel reports whether a text that the case writes addresses a model that may read it.
func (c *ActionCase) writesTextAddressingModel() bool {
	if c.Action.Type != "execute_command" {
		return textAddressingModelPattern().MatchString(writtenText(c.Action.Payload))
	}
	return slices.ContainsFunc(c.filesWrittenByCommand, func(w effect.WrittenFileText) bool { return textAddressingModelPattern().MatchString(w.NewText) })
}

var textAddressingModelPattern = prefilter.LazyRegexp(`(?i)\b(?:note|message|instructions?|notice|attention|reminder)\s+(?:for|to)\s+(?:all\s+|any\s+|the\s+)?(?:(?:coding|ai|llm|automated)\s+)?(?:agents?|assistants?|ais?|bots?|llms?|language models?|chatbots?)\b` +
	`|\b(?:agents?|assistants?|ais?|bots?|llms?|language models?|chatbots?)\s+(?:that|who|which)\s+(?:reads?|process(?:es)?|summari[sz]es?|sees?|parses?)\b` +
	`|\bif you are an? (?:ai|llm|language model|assistant|coding agent|bot)\b`)

// hasFileOrCommandActionType reports whether the action is of a file tool, git, a request or a command.
func (c *ActionCase) hasFileOrCommandActionType() bool {
	name := c.Action.Type
	i, known := slices.BinarySearchFunc(knownTools[:], name, func(t tool, name string) int { return strings.Compare(t.name, name) })
	return known && (len(knownTools[i].fieldUses) > 0 || name == "apply_patch" || name == "execute_command") || strings.HasPrefix(name, "git_")
}

// cmdletName matches names of PowerShell cmdlets, whose arguments are not parsed like those of other shells.
var cmdletName = prefilter.LazyRegexp(`^(add|clear|convert\w*|copy|export|foreach|format|get|group|import|invoke|measure|move|new|out|remove|rename|resolve|select|set|sort|start|stop|test|where|write)-\w+$`)

// shellScriptName matches the file names of shell scripts for Unix and Windows.
var shellScriptName = prefilter.LazyRegexp(`(?i)\.(sh|bash|zsh|bat|cmd|ps1|psm1|vbs|wsf|sct|hta)$`)

// setsEnvironment reports whether a command sets an environment variable to more than a plain word: it is
// unknown which programs read the variable and how.
func (c *ActionCase) setsEnvironment() bool {
	for _, m := range shellAssignmentPattern().FindAllStringSubmatch(c.Action.Text("command"), -1) {
		if (m[3] != "" || strings.ToUpper(m[1]) == m[1]) && !plainShellVariableValuePattern().MatchString(m[2]) {
			return true
		}
	}
	return false
}

var (
	shellAssignmentPattern         = prefilter.LazyRegexp(`(?:^|[\s;&|(])([A-Za-z_]\w*)=('[^']*'|"[^"]*"|[^\s;&|)]*)([ \t]+[^\s;&|#)]|)`)
	plainShellVariableValuePattern = prefilter.LazyRegexp(`^['"]?(?:\w|[-%$!?])*['"]?$`)
)

// hasProgramEffectBesidesReading reports whether a program has an effect other than running programs and
// reading files. For a program that uses the network, only network effects count, such as a request
// to a host.
func (c *ActionCase) hasProgramEffectBesidesReading(program *effect.Effect) bool {
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Span.Start < program.Span.Start || e.Span.End > program.Span.End {
			continue
		}
		switch e.KindForPolicies() {
		case effect.Execute, effect.ReadFile, effect.ListDirectory:
		case effect.HTTPRequest, effect.Connect, effect.SendData, effect.ChangeRemoteSystem, effect.Listen:
			return true
		default:
			if program.Class != effect.Network {
				return true
			}
		}
	}
	return false
}

// stopsOtherUsersProcesses reports whether a program is told to stop processes of another user.
func (c *ActionCase) stopsOtherUsersProcesses(e *effect.Effect) bool {
	for i := range c.Effects {
		x := &c.Effects[i]
		if x.Kind != effect.Execute || x.Program != e.Program || x.Span.Start > e.Span.Start || x.Span.End < e.Span.End {
			continue
		}
		for k, arg := range x.Args {
			name, user, joined := strings.Cut(arg, "=")
			switch name {
			case "-u", "-U", "--user", "--euid", "--uid":
				if !joined && k+1 < len(x.Args) {
					user = x.Args[k+1]
				}
				if !strings.HasPrefix(user, "$") {
					return true
				}
			}
		}
	}
	return false
}

// nonSecretSystemFiles are files outside the workspace that are public; permissionDefiningFiles are those that define permissions.
var (
	nonSecretSystemFiles    = lazyKnowledgeListGlobs("open_files", "public_files", "library_files")
	permissionDefiningFiles = lazyKnowledgeListGlobs("rights_files")
)

// lazyKnowledgeListGlobs returns the globs of named lists of package knowledge, compiled on first use.
func lazyKnowledgeListGlobs(listNames ...string) func() *effect.Globs {
	return sync.OnceValue(func() *effect.Globs {
		var all []string
		for _, name := range listNames {
			paths, _ := knowledge.GlobsOfPathList(name)
			all = append(all, paths...)
		}
		globs, err := effect.NewGlobs(all, nil)
		if err != nil {
			panic(err) // unreachable: a test compiles the lists
		}
		return globs
	})
}

// hasLiteralNonHiddenTempName reports whether an effect is on an entry of a temporary folder whose name is known and not
// hidden.
func hasLiteralNonHiddenTempName(e *effect.Effect) bool {
	_, rest := effect.CutTemporaryFolder(e.Path)
	name, _, _ := strings.Cut(rest, "/")
	return name != "" && name[0] != '.' && !(e.PathIsPattern && strings.ContainsAny(name, `*?[\`))
}

// hasKnownActionType reports whether shield knows what an action of this type does, so that no
// effect of it is missing.
func (c *ActionCase) hasKnownActionType() bool {
	name := c.Action.Type
	_, known := lookupTool(name)
	return known || c.class != "" || name == "execute_command" || strings.HasPrefix(name, "git_")
}

// affectsOnlyAgentScratchFiles reports whether an effect is on files that the agent's host reserves for agents: plans, scratch
// files.
func (c *ActionCase) affectsOnlyAgentScratchFiles(e *effect.Effect) bool {
	return c.isCoveredByHomeGlobs(agentScratchFileGlobs(), e)
}

// ClearsCache reports whether an effect deletes only caches of the user's tools.
func (c *ActionCase) ClearsCache(e *effect.Effect) bool {
	return (e.Kind == effect.DeleteFile || e.Kind == effect.DeleteDirectory) && c.isCoveredByHomeGlobs(userToolCacheGlobs(), e)
}

// isCoveredByHomeGlobs reports whether all files of an effect are in the user's home folder and on a list.
func (c *ActionCase) isCoveredByHomeGlobs(globs *effect.Globs, e *effect.Effect) bool {
	rest, ok := strings.CutPrefix(e.Path, c.executionContext.Home+"/")
	if !ok || c.executionContext.Home == "" {
		return false
	}
	_, ok = globs.FirstCoveringGlob(anyUserHomePlaceholder+"/"+rest, e.PathIsPattern, e.DoubleStarExcludesDotDot, e.Recursive)
	return ok
}

// anyUserHomePlaceholder stands for the home folder of any user, in paths and in the path lists of package
// knowledge, so that these lists are compiled only once.
const anyUserHomePlaceholder = "/~"

var (
	userToolCacheGlobs    = sync.OnceValue(func() *effect.Globs { return knowledgeListHomeGlobs("own_caches") })
	agentScratchFileGlobs = sync.OnceValue(func() *effect.Globs { return knowledgeListHomeGlobs("agent_workings") })

	agentTranscriptGlobs = sync.OnceValue(func() *effect.Globs { return knowledgeListHomeGlobs("agent_transcripts") })
)

func knowledgeListHomeGlobs(listName string) *effect.Globs {
	list, _ := knowledge.GlobsOfPathList(listName)
	globs, err := effect.NewGlobs(list, map[string][]string{"HOME": {anyUserHomePlaceholder}})
	if err != nil {
		panic(err) // unreachable: a test compiles the lists
	}
	return globs
}

// isTemporaryFile reports whether an effect is on a file in a folder that the system clears.
func isTemporaryFile(e *effect.Effect) bool {
	folder, rest := effect.CutTemporaryFolder(e.Path)
	return folder != "" && (!e.PathIsPattern || e.DoubleStarExcludesDotDot || !strings.Contains(rest, "**"))
}

// isNullOrStdStream reports whether an effect is on the null device or a standard stream.
func isNullOrStdStream(e *effect.Effect) bool {
	if e.PathIsPattern {
		return false
	}
	switch e.Path {
	case "/dev/null", "/dev/fd/0", "/dev/fd/1", "/dev/fd/2":
		return true
	}
	return false
}

// HasDoubtfulOrUnusualDangerLevel reports whether an effect is neither harmless nor ordinary.
func (c *ActionCase) HasDoubtfulOrUnusualDangerLevel(e *effect.Effect) bool {
	level := c.findDanger(e).level
	return level != dangerLevelHarmless && level != dangerLevelOrdinary
}

// runsUnreadableScript reports whether an effect is a program that runs a script which could not be read. The
// script has an effect of its own, and the doubt is about that.
func (c *ActionCase) runsUnreadableScript(program *effect.Effect) bool {
	all := c.effectsListedAfter(program)
	for i := range all[:min(maxEffectsSearchedAfterExecute, len(all))] {
		e := &all[i]
		if e.Span.Start < program.Span.Start || e.Span.End > program.Span.End {
			break
		}
		if e.Certainty == effect.Unknown {
			return true
		}
	}
	return false
}

// maxEffectsSearchedAfterExecute is how many of the effects that follow a program's Execute effect are searched
// for effects of this program.
const maxEffectsSearchedAfterExecute = 16
