// Package form is what a file of folder hosts says about one agent program.
package form

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Host is one agent program. Texts called jq are jq programs, which may use
// the filters of hosts/shared.jq.
type Host struct {
	Title    string   // the name that people know
	Verified string   // the version that was tested with the real program; "" if only recorded events were tested
	Source   string   // where the forms of its events come from, if its program was not tested
	Programs []string // program names by which the host is found
	Folders  []string // folders below the home folder by which the host is found
	Marks    []string // environment variables that the host sets for its agent's commands
	Limits   []string // sentences about what no hook of this host can prevent

	Read     string          // jq: a hook's input → {event, tool, input, id, cwd, session}, null where it has none
	Borrows  string          // jq: a hook's input → whether it is surely this host's, whichever host's hook receives it; "" if this host runs no hooks of others
	Before   []string        // events that ask before a tool runs; another event with a tool is an error
	After    []string        // events that tell what a tool returned
	Kept     []string        // events in After whose results cannot be replaced
	End      []string        // events at which the agent stops; they have no tool
	Tools    map[string]Tool // tools, by the host's name
	Internal []string        // tools that change nothing outside the host, or whose own calls are judged one by one
	Asked    []string        // tools that are judged by their names and their input alone, as those that are not named here: no type of shield's says what they do

	Deny       string // jq: {reason, user} → what the host is told about a denial, whatever it asked: reason for the agent, and user for the person, "" where that is the same
	Allow      string // jq: {event, id, reason} → what skips the host's own permissions; "" if nothing does
	Ask        Ask    // how the host asks its user for a hook
	Headless   string // jq: {env, process} as those of Ask → whether a session has no user; "" if that cannot be told
	Neutral    string // jq: {event, id} → what leaves a call to the host's own permissions, and a result as it is; "" prints nothing
	Result     string // jq: the input of an event in After → {result, files, agent}: what the tool returned, which files the host says it changed, and in which sub-agent; null where it has none
	Replace    string // jq: {event, id, tool, result, text, withheld} → what has the agent read result instead; text is that as a text, and withheld says that it is why there is none. null if this result cannot be replaced; "" if none can
	Lost       string // jq: {reason} → what keeps the agent from reading any result that was not examined
	Said       string // jq: {event, text} → what has the host show its user a text at an event in End
	UserShell  bool   `yaml:"userShell"`  // the command line is run by the user's own shell, which need not be one of sh's kind
	ZeroStatus bool   `yaml:"zeroStatus"` // a denial ends with status 0: with another the host lets the call through, or shows no one the reason
	Silent     bool   // the host wants nothing on standard output: the installed command takes it away

	Permission Permission // the event before the host's permission prompt
	Prompt     Prompt     // the event that reports the user's prompt

	Off      []string // environment variables that disable the host's hooks
	Next     string   // what the user must do before the host runs the hook
	Unit     string   // unit of timeouts: s or ms
	Places   []Place  // the settings files
	Comments bool     // the JSON files can contain comments
	JSON5    bool     // its JSON files may be JSON5, of which shield reads JSON with comments and trailing commas
	Inspect  string   // jq: {scope, file, path, doc, user} → what the host makes of a settings file, as host.Inspection; "" for hosts without
	Sample   string   // jq: {cwd, event} → an event that must be denied; event is the first of Before, or that of Permission
}

// An Ask is a host's own question to its user, where its program was seen to wait for the
// answer. The zero value is for hosts in which it was not: some run what they are told to
// ask about.
type Ask struct {
	Answer    string   // jq: {event, id, reason} → the answer that makes the host ask
	Variables []string // environment variables that Seen reads
	Seen      string   // jq: {input, env, process} → {version, mode}, where a user attends; else null. process is {args, terminal, version} of the host, null if unknown
	Package   string   // npm package of the host's program; the version of process is that of the package
	Sources   []Place  // files from which the host takes its environment and hooks: they must not name Variables; only read
	Answered  string   // jq: {doc} → whether one of Sources has a hook of another program that can answer in the user's place. doc is a text if the file is neither JSON nor TOML; "" if the host has no such hooks
	From      string   // the first version that was seen to wait; later ones of the same major version count. "" if a plugin of shield's own asks
	Failed    []string // later versions that did not wait in tests
	Modes     []string // permission modes in which the host waited in tests
}

// A Permission is an event by which a host asks hooks before it asks a person. The
// zero value is for hosts that have none.
type Permission struct {
	Event   string   // name of the event
	Allow   string   // jq: {} → the answer that allows the call in the user's place
	Deny    string   // jq: {reason} → the answer that denies the call
	Project string   // environment variable with the project's folder
	Options []string // options of the host's command line that add permission rules
	Rules   []Place  // files that can contain permission rules; read only

	// jq: {tool, input, doc} → whether a file has a rule of the person's own by which
	// a person has to be asked, or the call refused, or that cannot be told from one.
	// doc is what the file says, a text if it is neither JSON nor TOML.
	Asked string
}

// A Prompt is an event by which a host tells what its user has written. The zero value is for
// hosts that have none, or of which it cannot be told who has written it.
type Prompt struct {
	Event string // name of the event
	Read  string // jq: the event → {text, id, session}; text is null where it is surely not the user's

	// Where the event comes for texts of the model and of other programs too, the host's
	// transcript says who has written it.
	Transcript string // jq: an event before a tool runs → the path of the transcript; "" if the event alone shows it
	Folder     string // folder of the transcripts, below the home folder
	Variable   string // environment variable with another folder in place of the first part of Folder
	Row        string // jq: {row, id}, a row of the transcript → {text, written}, null if it is not that of the prompt with the ID
}

// A Tool says what a call of a tool becomes: one action for each value that
// Payload gives.
type Tool struct {
	Type    string // type of the actions; "" if Payload gives {type, payload}
	Payload string // jq: the tool's input → payloads
	Folder  string // jq: the tool's input → the folder it runs in, null for the host's own
}

// A Place is a settings file. At most one of Entries, Text and Block is there;
// without any, the file is read and never changed.
type Place struct {
	Scope    string   // user, project, managed, or another name for what is only read
	Folder   string   // folder below the home folder, the project, or the root
	Variable string   // environment variable with another folder instead
	File     string   // name of the file in Folder; a pattern if the file is only read
	System   string   // only on this system, as in GOOS; "" for every one
	Below    bool     // File is in any folder below Folder, too; only read
	Entries  []Entry  // hook entries in lists of a JSON file
	Start    string   // content of a JSON file that is created for Entries
	Text     string   // a whole file of shield's own; what is between @[ and @] is missing in files of older versions
	Block    string   // lines at the end of a file, with the same marks
	Older    []string // lines that older versions installed in place of Block
	Program  bool     // the file is made executable
}

// An Entry is an element of a list in a JSON file.
type Entry struct {
	Path       []string // keys that lead to the list, from the outermost
	Value      string   // jq: {command, after, timeout} → the element; after is the command for events that tell what a tool returned
	Permission bool     // the entry is for the event of [Permission], installed only on request
	Prompt     bool     // the entry is for the event of [Prompt]
	Older      bool     // an entry of older versions, which is only removed
}

// Check returns what is wrong with a host's file.
func (h *Host) Check() error {
	for name, text := range map[string]string{"title": h.Title, "read": h.Read, "deny": h.Deny, "sample": h.Sample, "next": h.Next} {
		if strings.TrimSpace(text) == "" {
			return fmt.Errorf("%s is missing", name)
		}
	}
	switch {
	case (h.Verified == "") == (h.Source == ""):
		return errors.New("either verified or source says how the forms of its events are known")
	case len(h.Before) == 0:
		return errors.New("before is empty")
	case h.Unit != "s" && h.Unit != "ms":
		return fmt.Errorf("unit %q is neither s nor ms", h.Unit)
	case h.Replace != "" && (h.Result == "" || h.Lost == ""):
		return errors.New("results are replaced, and result or lost is missing")
	case (len(h.End) == 0) != (h.Said == ""):
		return errors.New("one of end and said is missing")
	case len(h.Programs)+len(h.Folders) == 0:
		return errors.New("neither programs nor folders say how the host is found")
	}
	for name, tool := range h.Tools {
		if strings.TrimSpace(tool.Payload) == "" {
			return fmt.Errorf("tool %s has no payload", name)
		}
		if slices.Contains(h.Internal, name) {
			return fmt.Errorf("tool %s is also internal", name)
		}
		if slices.Contains(h.Asked, name) {
			return fmt.Errorf("tool %s is also asked about", name)
		}
	}
	if a := h.Ask; a.Answer != "" && (a.Seen == "" || len(a.Modes) == 0 || len(a.Variables) > 0 && len(a.Sources) == 0) {
		return errors.New("ask does not say where the host was seen to wait for its user")
	}
	if p := h.Prompt; (p.Event == "") != (p.Read == "") || (p.Transcript == "") != (p.Row == "") || (p.Row == "") != (p.Folder == "") {
		return errors.New("prompt does not say how its event and its transcript are read")
	}
	if err := h.Permission.check(); err != nil {
		return fmt.Errorf("permission: %w", err)
	}
	installs := false
	for _, p := range h.Places {
		if err := p.check(); err != nil {
			return fmt.Errorf("place %s: %w", p.Scope, err)
		}
		installs = installs || p.Asks()
	}
	if !installs {
		return errors.New("no place can be edited")
	}
	return nil
}

func (p Permission) check() error {
	if p.Event == "" {
		return nil
	}
	for _, text := range []string{p.Allow, p.Deny, p.Asked} {
		if strings.TrimSpace(text) == "" {
			return errors.New("allow, deny or asked is missing")
		}
	}
	if len(p.Rules) == 0 {
		return errors.New("no files of rules")
	}
	return nil
}

func (p Place) check() error {
	kinds := 0
	for _, there := range []bool{len(p.Entries) > 0, p.Text != "", p.Block != ""} {
		if there {
			kinds++
		}
	}
	switch {
	case p.Scope == "" || p.File == "":
		return errors.New("scope or file is missing")
	case kinds > 1:
		return errors.New("more than one of entries, text and block")
	case p.Edited() && !slices.Contains([]string{"user", "project", "managed"}, p.Scope):
		return errors.New("a settings file that setup edits needs the scope user, project or managed")
	case p.Edited() && strings.Contains(p.File, "*"):
		return errors.New("a pattern of files is edited")
	}
	for _, e := range p.Entries {
		if len(e.Path) == 0 || e.Value == "" {
			return errors.New("an entry without path or value")
		}
	}
	for _, text := range append([]string{p.Text, p.Block}, p.Older...) {
		if lines := strings.Count(text, "@LINE@") + strings.Count(text, "@QUOTED@"); lines > 1 || strings.Count(text, "@AFTER") > 1 || strings.Count(text, "@[") != strings.Count(text, "@]") || text != "" && text != p.Text && lines == 0 {
			return errors.New("the text does not have the command line once")
		}
	}
	return nil
}

// Beside reports whether the file has no command line: the host needs it beside the
// one that has.
func (p Place) Beside() bool {
	return p.Text != "" && !strings.Contains(p.Text, "@LINE@") && !strings.Contains(p.Text, "@QUOTED@") && !p.Examines()
}

// Examines reports whether what is installed in the file has the host hand over what
// tools returned.
func (p Place) Examines() bool {
	return strings.Contains(p.Text+p.Block, "@AFTER") || slices.ContainsFunc(p.Entries, func(e Entry) bool { return strings.Contains(e.Value, ".after") })
}

// Optional reports whether a denial is enforced without the file: it is for what tools
// returned, and for nothing else.
func (p Place) Optional() bool { return p.Examines() && !p.Asks() }

// Asks reports whether what is installed in the file has the host ask before a tool
// runs.
func (p Place) Asks() bool {
	return len(p.Entries) > 0 || strings.Contains(p.Text+p.Block, "@LINE@") || strings.Contains(p.Text+p.Block, "@QUOTED@")
}

// Edited reports whether shield can be installed in the file.
func (p Place) Edited() bool { return len(p.Entries) > 0 || p.Text != "" || p.Block != "" }
