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

// Harmless reports whether the analysis shows that the case is harmless:
// every effect is known, and none changes anything; see danger.
func (c *Case) Harmless() bool {
	if c.Unexamined != "" || !c.readOnlyType() {
		return false
	}
	for i := range c.Effects {
		if !c.harmless(&c.Effects[i]) {
			return false
		}
	}
	return true
}

// readOnlyType reports whether the action's type can be harmless. A command can if
// it has effects, which shows that it was analysed.
func (c *Case) readOnlyType() bool {
	switch name := c.Action.Type; {
	case name == "execute_command", strings.HasPrefix(name, "git_"):
		return len(c.Effects) > 0
	default:
		t, ok := toolOf(name)
		return ok && t.readOnly
	}
}

// harmless reports whether an effect changes nothing, and no one has to allow it.
func (c *Case) harmless(e *effect.Effect) bool { return c.danger(e).level == harmless }

// Ordinary reports whether the case is ordinary by analysis: everything about it
// is known and surely so, each program is one whose arguments shield reads, and
// it changes nothing but files of the workspace and temporary ones. Whether it
// reads what it should not is for the rules to say.
func (c *Case) Ordinary() bool {
	if c.Unexamined != "" || len(c.Effects) == 0 && c.class == "" || !c.ordinaryType() {
		return false
	}
	for i := range c.Effects {
		if c.Notable(&c.Effects[i]) {
			return false
		}
	}
	return true
}

// Factual reports whether the case is ordinary and decided by its effects: all of them
// are known, certain and local, each program shows in them what it changes and
// contacts, and no part of the case is text for a model, a person or a service. What
// contacts another machine reads the workspace only.
func (c *Case) Factual() bool {
	if !c.factualType() || !c.Ordinary() || c.setsEnvironment() || c.addressesModel() {
		return false
	}
	outside, leaves := false, false
	for i := range c.Effects {
		switch e := &c.Effects[i]; e.Word() {
		case effect.Execute:
			local := e.Class == effect.ReadOnly || e.Class == effect.LocalWrite && (e.Program == "git" || e.Program == "kill" || len(command.Loaders(e.Program, e.Args)) > 0)
			open := e.Class != effect.ReadOnly && e.Program != "kill" && slices.ContainsFunc(e.Args, func(arg string) bool { return strings.Contains(arg, "$") })
			if !local && !c.hasOwnEffects(e) || open || cmdlet().MatchString(e.Program) {
				return false
			}
		case effect.ReadFile, effect.ListDirectory:
			if !c.harmless(e) {
				outside = true
				if e.Kind == effect.ListDirectory && !e.Pattern && !e.Recursive && (strings.HasPrefix(e.Path, "/") || len(e.Path) > 2 && e.Path[1:3] == ":/") {
					continue // names, and those of credentials are for the rules
				}
				_, open := openFiles().Covers(e.Path, e.Pattern, e.Tree, e.Recursive)
				_, rights := rightsFiles().Touches(e.Path, e.Pattern, e.Recursive)
				if rights || !open && !temporary(e) && c.Action.Type != "read_file" && !c.worksHere(e) && !c.inHome(agentTranscripts(), e) {
					return false
				}
			}
		case effect.WriteFile:
			if scripts().MatchString(e.Path) {
				return false // anyone who finds it may run it, and all that it takes is there
			}
		case effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile:
			if temporary(e) && !movedToTemp(e) {
				return false
			}
		case effect.HTTPRequest, effect.Connect, effect.SendData, effect.ChangeRemote:
			leaves = leaves || !effect.Loopback(e.Host)
			if e.Verb != "" && e.Kind == effect.HTTPRequest || e.Kind == effect.Connect && effect.Loopback(e.Host) {
				return false // what the service is told says what happens
			}
		}
	}
	return !outside || !leaves
}

// addressesModel reports whether a text that the case writes speaks to whatever model reads it.
func (c *Case) addressesModel() bool {
	if c.Action.Type != "execute_command" {
		return forModels().MatchString(writtenText(c.Action.Payload))
	}
	return slices.ContainsFunc(c.writes, func(w effect.Text) bool { return forModels().MatchString(w.Text) })
}

var forModels = prefilter.Lazy(`(?i)\b(?:note|message|instructions?|notice|attention|reminder)\s+(?:for|to)\s+(?:all\s+|any\s+|the\s+)?(?:(?:coding|ai|llm|automated)\s+)?(?:agents?|assistants?|ais?|bots?|llms?|language models?|chatbots?)\b` +
	`|\b(?:agents?|assistants?|ais?|bots?|llms?|language models?|chatbots?)\s+(?:that|who|which)\s+(?:reads?|process(?:es)?|summari[sz]es?|sees?|parses?)\b` +
	`|\bif you are an? (?:ai|llm|language model|assistant|coding agent|bot)\b`)

// factualType reports whether an action's type is a file tool, git, a request or a command.
func (c *Case) factualType() bool {
	name := c.Action.Type
	i, known := slices.BinarySearchFunc(tools[:], name, func(t tool, name string) int { return strings.Compare(t.name, name) })
	return known && (len(tools[i].uses) > 0 || name == "apply_patch" || name == "execute_command") || strings.HasPrefix(name, "git_")
}

// cmdlet finds the programs of PowerShell, whose text is not parsed as that of other shells is.
var cmdlet = prefilter.Lazy(`^(add|clear|convert\w*|copy|export|foreach|format|get|group|import|invoke|measure|move|new|out|remove|rename|resolve|select|set|sort|start|stop|test|where|write)-\w+$`)

// scripts finds files for the shells that every system has.
var scripts = prefilter.Lazy(`(?i)\.(sh|bash|zsh|bat|cmd|ps1|psm1|vbs|wsf|sct|hta)$`)

// setsEnvironment reports whether a command sets variables of the environment to more than a word:
// which programs read them, and what they then do, is not known.
func (c *Case) setsEnvironment() bool {
	for _, m := range assignment().FindAllStringSubmatch(c.Action.Text("command"), -1) {
		if (m[3] != "" || strings.ToUpper(m[1]) == m[1]) && !word().MatchString(m[2]) {
			return true
		}
	}
	return false
}

var (
	assignment = prefilter.Lazy(`(?:^|[\s;&|(])([A-Za-z_]\w*)=('[^']*'|"[^"]*"|[^\s;&|)]*)([ \t]+[^\s;&|#)]|)`)
	word       = prefilter.Lazy(`^['"]?(?:\w|[-%$!?])*['"]?$`)
)

// hasOwnEffects reports whether a program has an effect other than that it runs and reads; one
// that uses the network, whether it is known what it contacts.
func (c *Case) hasOwnEffects(program *effect.Effect) bool {
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.From.Start < program.From.Start || e.From.End > program.From.End {
			continue
		}
		switch e.Word() {
		case effect.Execute, effect.ReadFile, effect.ListDirectory:
		case effect.HTTPRequest, effect.Connect, effect.SendData, effect.ChangeRemote, effect.Listen:
			return true
		default:
			if program.Class != effect.Network {
				return true
			}
		}
	}
	return false
}

// stopsOthers reports whether a program is told to stop processes of another user.
func (c *Case) stopsOthers(e *effect.Effect) bool {
	for i := range c.Effects {
		x := &c.Effects[i]
		if x.Kind != effect.Execute || x.Program != e.Program || x.From.Start > e.From.Start || x.From.End < e.From.End {
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

// Files outside the workspace that everybody may read, and those among them that say
// who may do what.
var (
	openFiles   = known("open_files", "public_files", "library_files")
	rightsFiles = known("rights_files")
)

// known returns the globs of lists that shield knows.
func known(lists ...string) func() *effect.Globs {
	return sync.OnceValue(func() *effect.Globs {
		var all []string
		for _, name := range lists {
			paths, _ := knowledge.Paths(name)
			all = append(all, paths...)
		}
		globs, err := effect.NewGlobs(all, nil)
		if err != nil {
			panic(err) // a test reads them
		}
		return globs
	})
}

// movedToTemp reports whether the path of an effect has a known name, which is not hidden, below a
// folder for temporary files.
func movedToTemp(e *effect.Effect) bool {
	_, rest := effect.Temporary(e.Path)
	name, _, _ := strings.Cut(rest, "/")
	return name != "" && name[0] != '.' && !(e.Pattern && strings.ContainsAny(name, `*?[\`))
}

// ordinaryType reports whether an action's type is one whose effects say all
// that it does.
func (c *Case) ordinaryType() bool {
	name := c.Action.Type
	_, known := toolOf(name)
	return known || c.class != "" || name == "execute_command" || strings.HasPrefix(name, "git_")
}

// worksHere reports whether an effect is on what the agent's host lets it keep: plans, scratch files.
func (c *Case) worksHere(e *effect.Effect) bool { return c.inHome(agentWorkings(), e) }

// ClearsCache reports whether an effect deletes nothing but what tools of the user keep to be faster.
func (c *Case) ClearsCache(e *effect.Effect) bool {
	return (e.Kind == effect.DeleteFile || e.Kind == effect.DeleteDirectory) && c.inHome(ownCaches(), e)
}

// inHome reports whether all that an effect touches is in the user's home folder and on a list.
func (c *Case) inHome(list *effect.Globs, e *effect.Effect) bool {
	rest, ok := strings.CutPrefix(e.Path, c.place.Home+"/")
	if !ok || c.place.Home == "" {
		return false
	}
	_, ok = list.Covers(anyHome+"/"+rest, e.Pattern, e.Tree, e.Recursive)
	return ok
}

// anyHome stands for the home folder of anyone who it is, so that lists of what is in it are compiled once.
const anyHome = "/~"

var (
	ownCaches     = sync.OnceValue(func() *effect.Globs { return homeList("own_caches") })
	agentWorkings = sync.OnceValue(func() *effect.Globs { return homeList("agent_workings") })

	agentTranscripts = sync.OnceValue(func() *effect.Globs { return homeList("agent_transcripts") })
)

func homeList(name string) *effect.Globs {
	list, _ := knowledge.Paths(name)
	globs, err := effect.NewGlobs(list, map[string][]string{"HOME": {anyHome}})
	if err != nil {
		panic(err) // a test reads them
	}
	return globs
}

// temporary reports whether an effect is on a file that the system clears away.
func temporary(e *effect.Effect) bool {
	folder, rest := effect.Temporary(e.Path)
	return folder != "" && (!e.Pattern || e.Tree || !strings.Contains(rest, "**"))
}

// nowhere reports whether an effect is on the null device or a standard stream.
func nowhere(e *effect.Effect) bool {
	if e.Pattern {
		return false
	}
	switch e.Path {
	case "/dev/null", "/dev/fd/0", "/dev/fd/1", "/dev/fd/2":
		return true
	}
	return false
}

// Notable reports whether an effect is neither harmless nor ordinary.
func (c *Case) Notable(e *effect.Effect) bool {
	level := c.danger(e).level
	return level != harmless && level != ordinary
}

// runsUnreadScript reports whether an effect is a program whose doubt is
// that of the script which it would run, and which is an effect of its own.
func (c *Case) runsUnreadScript(program *effect.Effect) bool {
	all := c.sameCommandEffects(program)
	for i := range all[:min(maxParts, len(all))] {
		e := &all[i]
		if e.From.Start < program.From.Start || e.From.End > program.From.End {
			break
		}
		if e.Sure == effect.Unknown {
			return true
		}
	}
	return false
}

// maxParts is the maximum number of effects behind a program that are treated as
// its own.
const maxParts = 16
