// Package form defines the structure of a file in folder hosts, which describes one agent program.
package form

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Host describes one agent program. A field whose comment begins with "jq:" contains a jq
// program, which can use the functions in hosts/shared.jq.
type Host struct {
	Title    string   // the name that people know
	Verified string   // the version that was tested with the real program; "" if only recorded events were tested
	Source   string   // where the event formats are documented, if the program itself was not tested
	Programs []string // program names by which the host is found
	Folders  []string // folders below the home folder by which the host is found
	Marks    []string // environment variables that the host sets for its agent's commands
	Limits   []string // sentences about what no hook of this host can prevent

	Read     string          // jq: a hook's input → {event, tool, input, id, cwd, session}; a field is null if the input has none
	Borrows  string          // jq: a hook's input → whether this host certainly sent it, even if another host's hook received it; "" if this host runs no hooks of other hosts
	Before   []string        // events before a tool runs; an event that names a tool and is not listed is an error
	After    []string        // events after a tool has run
	Kept     []string        // events in After whose results cannot be replaced
	End      []string        // events at which the agent stops; they have no tool
	Tools    map[string]Tool // tools, by the host's name
	Internal []string        // tools that change nothing outside the host, or whose own calls are judged one by one
	Asked    []string        // tools that no action type describes: judged by name and input alone, like tools that are not listed

	Deny       string // jq: {reason, user} → the response for a denial, for any event: reason is for the agent, user for the person, "" if the same
	Allow      string // jq: {event, id, reason} → the response that skips the host's own permissions; "" if there is none
	Ask        Ask    // how a hook makes the host ask its user
	Headless   string // jq: {env, process}, the hook's environment variables and the host's process → whether a session has no user; "" if unknown
	Neutral    string // jq: {event, id} → the response that leaves a call to the host's own permissions, or a result unchanged; "" prints nothing
	Result     string // jq: the input of an event in After → {result, files, agent}: the tool's result, the changed files, and the sub-agent; null if absent
	Replace    string // jq: {event, id, tool, result, text, withheld} → the response that replaces a result for the agent; text is result as a string, withheld is the reason if the result is withheld. null if this result cannot be replaced; "" if none can
	Lost       string // jq: {reason} → the response that keeps the agent from reading a result that could not be examined
	Said       string // jq: {event, text} → the response that shows the user a text at an event in End
	UserShell  bool   `yaml:"userShell"`  // the host runs the command line in the user's own shell, which can be incompatible with sh
	ZeroStatus bool   `yaml:"zeroStatus"` // a denial exits with status 0: on others the host allows the call, or does not show the reason
	Silent     bool   // the hook must print nothing on standard output: the installed command discards it

	Permission Permission // the event before the host's permission prompt
	Prompt     Prompt     // the event that reports the user's prompt

	Off      []string // environment variables that disable the host's hooks
	Next     string   // what the user must do before the host runs the hook
	Unit     string   // unit of timeouts: s or ms
	Places   []Place  // the settings files
	Comments bool     // the JSON files can contain comments
	JSON5    bool     // its JSON files can be JSON5; shield accepts only comments and trailing commas of that format
	Inspect  string   // jq: {scope, file, path, doc, user} → how the host reads a settings file, as host.Inspection; "" if settings are not inspected
	Sample   string   // jq: {cwd, event} → an event that must be denied; event is the first of Before, or that of Permission
}

// An Ask describes how a hook makes the host ask its user, for hosts that waited for the answer in
// tests. The zero value is for hosts that did not wait: some run a call that a hook answers with
// "ask".
type Ask struct {
	Answer    string   // jq: {event, id, reason} → the answer that makes the host ask
	Variables []string // environment variables that Seen reads
	Seen      string   // jq: {input, env, process} → {version, mode}, null if the session has no user. process is {args, terminal, version} of the host, null if unknown
	Package   string   // npm package of the host's program; its version is process.version in the field Seen
	Sources   []Place  // files that can set the host's environment and hooks; shield only reads them, and they must not set any of Variables
	Answered  string   // jq: {doc} → whether one of Sources has a hook of another program that can answer in the user's place. doc is a text if the file is neither JSON nor TOML; "" if the host has no such hooks
	From      string   // the first version that waited in tests; later ones of the same major version count. "" if shield's own plugin asks
	Failed    []string // later versions that did not wait in tests
	Modes     []string // permission modes in which the host waited in tests
}

// A Permission is an event for hooks before the host shows its permission prompt. The zero value is
// for hosts that have none.
type Permission struct {
	Event   string   // name of the event
	Allow   string   // jq: {} → the response that allows the call without asking the user
	Deny    string   // jq: {reason} → the response that denies the call
	Project string   // environment variable with the project's folder
	Options []string // options of the host's command line that add permission rules
	Rules   []Place  // files that can contain permission rules; read only

	// jq: {tool, input, doc} → whether a file has a rule of the user by which the host must ask or
	// deny, or a rule that could be one. doc is the parsed file, or its text if it is neither JSON nor
	// TOML.
	Asked string
}

// A Prompt is an event that reports the user's prompt. The zero value is for hosts that have none, or
// whose event does not show who wrote the prompt.
type Prompt struct {
	Event string // name of the event
	Read  string // jq: the event → {text, id, session}; text is null if the user certainly did not write it

	// If the event also reports texts of the model and of other programs, the host's transcript shows
	// who wrote the text.
	Transcript string // jq: an event before a tool runs → the path of the transcript; "" if the event alone shows the author
	Folder     string // folder of the transcripts, below the home folder
	Variable   string // environment variable with another folder in place of the first part of Folder
	Row        string // jq: {row, id}, a row of the transcript → {text, written}, null if it is not that of the prompt with the ID
}

// A Tool maps a tool call to actions: one action for each output of Payload.
type Tool struct {
	Type    string // type of the actions; "" if Payload gives {type, payload}
	Payload string // jq: the tool's input → payloads
	Folder  string // jq: the tool's input → the folder it runs in, null for the host's own
}

// A Place is a settings file. At most one of Entries, Text and Block is set; without them the file is
// only read.
type Place struct {
	Scope    string   // user, project, managed, or another name for files that are only read
	Folder   string   // folder below the home folder, the project, or the root
	Variable string   // environment variable that can name another folder
	File     string   // name of the file in Folder; a pattern if the file is only read
	System   string   // only on this system, as in GOOS; "" for every one
	Below    bool     // File is searched in all folders below Folder, too; only read
	Entries  []Entry  // hook entries in lists of a JSON file
	Start    string   // content of a JSON file that is created for Entries
	Text     string   // content of a file that shield owns; the part between @[ and @] is missing in files of older versions
	Block    string   // lines at the end of a file; the part between @[ and @] is missing in files of older versions
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

// Check returns an error for an invalid host file.
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
		installs = installs || p.HasToolHook()
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
	case p.IsInstallable() && !slices.Contains([]string{"user", "project", "managed"}, p.Scope):
		return errors.New("a settings file that setup edits needs the scope user, project or managed")
	case p.IsInstallable() && strings.Contains(p.File, "*"):
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

// IsCompanionFile reports whether the file contains no command line: the host needs it in addition to the file
// that does.
func (p Place) IsCompanionFile() bool {
	return p.Text != "" && !strings.Contains(p.Text, "@LINE@") && !strings.Contains(p.Text, "@QUOTED@") && !p.HasResultHook()
}

// HasResultHook reports whether the hook in the file sends tool results to shield.
func (p Place) HasResultHook() bool {
	return strings.Contains(p.Text+p.Block, "@AFTER") || slices.ContainsFunc(p.Entries, func(e Entry) bool { return strings.Contains(e.Value, ".after") })
}

// OnlyHandlesResults reports whether denials work without the file, since it is only for tool results.
func (p Place) OnlyHandlesResults() bool { return p.HasResultHook() && !p.HasToolHook() }

// HasToolHook reports whether the hook in the file runs before a tool runs.
func (p Place) HasToolHook() bool {
	return len(p.Entries) > 0 || strings.Contains(p.Text+p.Block, "@LINE@") || strings.Contains(p.Text+p.Block, "@QUOTED@")
}

// IsInstallable reports whether shield can install its hook in the file.
func (p Place) IsInstallable() bool { return len(p.Entries) > 0 || p.Text != "" || p.Block != "" }
