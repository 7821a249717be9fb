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
	Title                   string   // the name that people know
	VerifiedVersion         string   `yaml:"verified"` // the version that was tested with the real program; "" if only recorded events were tested
	EventFormatCitationText string   `yaml:"source"`   // where the event formats are documented, if the program itself was not tested
	ProgramNames            []string `yaml:"programs"` // program names by which the host is found
	DetectionFolders        []string `yaml:"folders"`  // folders below the home folder by which the host is found
	AgentEnvVariables       []string `yaml:"marks"`    // environment variables that the host sets for its agent's commands
	HookLimitationTexts     []string `yaml:"limits"`   // sentences about what no hook of this host can prevent

	ReadEventJQ            string                       `yaml:"read"`    // jq: a hook's input → {event, tool, input, id, cwd, session}; a field is null if the input has none
	SentByThisHostJQ       string                       `yaml:"borrows"` // jq: a hook's input → whether this host certainly sent it; "" if the host runs only hooks installed for itself
	BeforeToolEvents       []string                     `yaml:"before"`  // events before a tool runs; an event that names a tool and is not listed is an error
	AfterToolEvents        []string                     `yaml:"after"`   // events after a tool has run
	ReadOnlyResultEvents   []string                     `yaml:"kept"`    // events after a tool has run whose results cannot be replaced
	AgentStopEvents        []string                     `yaml:"end"`     // events at which the agent stops; they have no tool
	Tools                  map[string]ToolActionMapping // how calls of a tool are mapped to actions, by the host's name for the tool
	InternalTools          []string                     `yaml:"internal"` // tools that change nothing outside the host, or whose own calls are judged one by one
	ToolsWithoutActionType []string                     `yaml:"asked"`    // tools that no action type describes: judged by name and input alone, like tools that are not listed

	DenyResponseJQ             string      `yaml:"deny"`  // jq: {reason, user} → the response for a denial, for any event: reason is for the agent, user for the person, "" if the same
	AllowResponseJQ            string      `yaml:"allow"` // jq: {event, id, reason} → the response that skips the host's own permissions; "" if there is none
	Ask                        AskUserHook // how a hook makes the host ask its user
	SessionHasNoUserJQ         string      `yaml:"headless"`   // jq: {env, process}, the hook's environment variables and the host's process → whether a session has no user; "" if unknown
	NeutralResponseJQ          string      `yaml:"neutral"`    // jq: {event, id} → the response that leaves a call to the host's own permissions, or a result unchanged; "" prints nothing
	ReadToolResultJQ           string      `yaml:"result"`     // jq: the input of an event after a tool has run → {result, files, agent}: the tool's result, the changed files, and the sub-agent; null if absent
	ReplaceResultResponseJQ    string      `yaml:"replace"`    // jq: {event, id, tool, result, text, withheld} → the response that replaces a result for the agent; withheld says whether the result is withheld; text is then the reason, and otherwise result as a string. null if this result cannot be replaced; "" if none can
	UnexaminedResultResponseJQ string      `yaml:"lost"`       // jq: {reason} → the response that keeps the agent from reading a result that could not be examined
	ShowTextResponseJQ         string      `yaml:"said"`       // jq: {event, text} → the response that shows the user a text at an event at which the agent stops
	RunsHooksInUserShell       bool        `yaml:"userShell"`  // the host runs the command line in the user's own shell, which can be incompatible with sh
	DenialMustExitZero         bool        `yaml:"zeroStatus"` // a denial exits with status 0: on others the host allows the call, or does not show the reason
	RequiresEmptyHookStdout    bool        `yaml:"silent"`     // the hook must print nothing on standard output: the installed command discards it

	Permission PermissionPromptHook // the event before the host's permission prompt
	Prompt     UserPromptHook       // the event that reports the user's prompt

	HookDisablingEnvVariables []string       `yaml:"off"`      // environment variables that disable the host's hooks
	NextUserStep              string         `yaml:"next"`     // what the user must do before the host runs the hook
	TimeoutUnit               string         `yaml:"unit"`     // unit of timeouts: s or ms
	SettingsFiles             []SettingsFile `yaml:"places"`   // the settings files
	AllowsJSONComments        bool           `yaml:"comments"` // the JSON files can contain comments
	AllowsJSON5SettingsFiles  bool           `yaml:"json5"`    // the host's settings files can be JSON5; shield accepts only comments and trailing commas of that format
	InspectSettingsFileJQ     string         `yaml:"inspect"`  // jq: {scope, file, path, doc, user} → how the host reads a settings file, as host.SettingsFileInspection; the field is "" if settings are not inspected
	SampleDeniedEventJQ       string         `yaml:"sample"`   // jq: {cwd, event} → an event that must be denied; event is the first of BeforeToolEvents, or the permission event
}

// An AskUserHook describes how a hook makes the host ask its user, for hosts that waited for the
// answer in tests. The zero value is for hosts that did not wait: some run a call that a hook
// answers with "ask".
type AskUserHook struct {
	AskResponseJQ                     string         `yaml:"answer"`    // jq: {event, id, reason} → the answer that makes the host ask
	VersionAndModeEnvVariables        []string       `yaml:"variables"` // environment variables that VersionAndModeJQ reads
	VersionAndModeJQ                  string         `yaml:"seen"`      // jq: {input, env, process} → {version, mode}, null if the session has no user. process is {args, terminal, version} of the host, null if unknown
	NPMPackageName                    string         `yaml:"package"`   // npm package of the host's program; VersionAndModeJQ gets its version as process.version
	EnvAndHookFiles                   []SettingsFile `yaml:"sources"`   // files that can set the host's environment and hooks; shield only reads them, and they must not set any of VersionAndModeEnvVariables
	HasAnsweringHookJQ                string         `yaml:"answered"`  // jq: {doc} → whether a file of EnvAndHookFiles has a hook of another program that can answer in the user's place. doc is a text if the file is neither JSON nor TOML. The field is "" if the host has no such hooks
	FirstVersionAwaitingUserAnswer    string         `yaml:"from"`      // first tested version that awaited the user; later ones of its major version count; "" if shield's plugin asks
	VersionsNotAwaitingUserAnswer     []string       `yaml:"failed"`    // versions after FirstVersionAwaitingUserAnswer that did not wait for the user's answer in tests
	PermissionModesAwaitingUserAnswer []string       `yaml:"modes"`     // permission modes in which the host waited in tests
}

// A PermissionPromptHook is a hook event before the host shows its permission prompt. The zero
// value is for hosts that have no such event.
type PermissionPromptHook struct {
	Event               string         // name of the event
	AllowResponseJQ     string         `yaml:"allow"`   // jq: {} → the response that allows the call without asking the user
	DenyResponseJQ      string         `yaml:"deny"`    // jq: {reason} → the response that denies the call
	ProjectDirVariable  string         `yaml:"project"` // environment variable with the project's folder
	RuleAddingOptions   []string       `yaml:"options"` // options of the host's command line that add permission rules
	PermissionRuleFiles []SettingsFile `yaml:"rules"`   // files that can contain permission rules; read only

	// jq: {tool, input, doc} → whether a file has a rule of the user by which the host must ask or
	// deny, or a rule that could be one. doc is the parsed file, or its text if it is neither JSON nor
	// TOML.
	HasAskOrDenyRuleJQ string `yaml:"asked"`
}

// A UserPromptHook is an event that reports the user's prompt. The zero value is for hosts that
// have none, or whose event does not show who wrote the prompt.
type UserPromptHook struct {
	Event        string // name of the event
	ReadPromptJQ string `yaml:"read"` // jq: the event → {text, id, session}; text is null if the user certainly did not write it

	// If the event also reports texts of the model and of other programs, the host's transcript shows
	// who wrote the text.
	TranscriptPathJQ          string `yaml:"transcript"` // jq: an event before a tool runs → the transcript's path; "" if the prompt event alone shows who wrote the text
	TranscriptFolderBelowHome string `yaml:"folder"`     // folder of the transcripts, below the home folder
	TranscriptFolderVariable  string `yaml:"variable"`   // environment variable whose folder replaces the first part of TranscriptFolderBelowHome
	ReadTranscriptRowJQ       string `yaml:"row"`        // jq: {row, id}, a row of the transcript and a prompt's ID → {text, written}; null if the row is not about that prompt
}

// A ToolActionMapping maps a tool call to actions: one action for each output of ActionPayloadsJQ.
type ToolActionMapping struct {
	ActionType       string `yaml:"type"`    // type of the actions; "" if ActionPayloadsJQ gives {type, payload}
	ActionPayloadsJQ string `yaml:"payload"` // jq: the tool's input → payloads
	WorkingDirJQ     string `yaml:"folder"`  // jq: the tool's input → the folder it runs in, null for the host's own
}

// A SettingsFile is a settings file of the host. At most one of ListEntries,
// ShieldOwnedFileTemplate and AppendedLines is set; without them the file is only read.
type SettingsFile struct {
	Scope                   string              // user, project, managed, or another name for files that are only read
	Folder                  string              // folder below the home folder, the project, or the root
	FolderVariable          string              `yaml:"variable"` // environment variable whose value replaces Folder; a path below can follow its name: XDG_CONFIG_HOME/amp
	File                    string              // name of the file in Folder; a pattern if the file is only read
	OnlyOnGOOS              string              `yaml:"system"`  // only on this system, as in GOOS; "" for every one
	SearchesSubfolders      bool                `yaml:"below"`   // File is also searched for in all folders below Folder; only for files that shield does not change
	ListEntries             []SettingsListEntry `yaml:"entries"` // hook entries in lists of a JSON file
	InitialJSON             string              `yaml:"start"`   // content of a JSON file that is created to hold ListEntries
	ShieldOwnedFileTemplate string              `yaml:"text"`    // content of a file that shield owns; the part between @[ and @] is missing in files of older versions
	AppendedLines           string              `yaml:"block"`   // lines at the end of a file; the part between @[ and @] is missing in files of older versions
	ObsoleteLines           []string            `yaml:"older"`   // lines that older versions installed in place of AppendedLines
	IsExecutable            bool                `yaml:"program"` // the file is made executable
}

// A SettingsListEntry is an element of a list in a JSON file.
type SettingsListEntry struct {
	ListKeyPath          []string `yaml:"path"` // keys that lead to the list in the JSON file, from the outermost
	Value                string   // jq: {command, after, timeout} → the element to install; after is the command for events after a tool has run
	IsForPermissionEvent bool     `yaml:"permission"` // the entry is for the event of a [PermissionPromptHook], installed only on request
	IsForPromptEvent     bool     `yaml:"prompt"`     // the entry is for the event of a [UserPromptHook]
	IsObsolete           bool     `yaml:"older"`      // an entry of older versions, which is only removed
}

// Check returns an error for an invalid host file.
func (h *Host) Check() error {
	for name, text := range map[string]string{"title": h.Title, "read": h.ReadEventJQ, "deny": h.DenyResponseJQ, "sample": h.SampleDeniedEventJQ, "next": h.NextUserStep} {
		if strings.TrimSpace(text) == "" {
			return fmt.Errorf("%s is missing", name)
		}
	}
	switch {
	case (h.VerifiedVersion == "") == (h.EventFormatCitationText == ""):
		return errors.New("either verified or source says how the forms of its events are known")
	case len(h.BeforeToolEvents) == 0:
		return errors.New("before is empty")
	case h.TimeoutUnit != "s" && h.TimeoutUnit != "ms":
		return fmt.Errorf("unit %q is neither s nor ms", h.TimeoutUnit)
	case h.ReplaceResultResponseJQ != "" && (h.ReadToolResultJQ == "" || h.UnexaminedResultResponseJQ == ""):
		return errors.New("results are replaced, and result or lost is missing")
	case (len(h.AgentStopEvents) == 0) != (h.ShowTextResponseJQ == ""):
		return errors.New("one of end and said is missing")
	case len(h.ProgramNames)+len(h.DetectionFolders) == 0:
		return errors.New("neither programs nor folders say how the host is found")
	}
	for name, tool := range h.Tools {
		if strings.TrimSpace(tool.ActionPayloadsJQ) == "" {
			return fmt.Errorf("tool %s has no payload", name)
		}
		if slices.Contains(h.InternalTools, name) {
			return fmt.Errorf("tool %s is also internal", name)
		}
		if slices.Contains(h.ToolsWithoutActionType, name) {
			return fmt.Errorf("tool %s is also asked about", name)
		}
	}
	if a := h.Ask; a.AskResponseJQ != "" && (a.VersionAndModeJQ == "" || len(a.PermissionModesAwaitingUserAnswer) == 0 || len(a.VersionAndModeEnvVariables) > 0 && len(a.EnvAndHookFiles) == 0) {
		return errors.New("ask does not say where the host was seen to wait for its user")
	}
	if p := h.Prompt; (p.Event == "") != (p.ReadPromptJQ == "") || (p.TranscriptPathJQ == "") != (p.ReadTranscriptRowJQ == "") || (p.ReadTranscriptRowJQ == "") != (p.TranscriptFolderBelowHome == "") {
		return errors.New("prompt does not say how its event and its transcript are read")
	}
	if err := h.Permission.check(); err != nil {
		return fmt.Errorf("permission: %w", err)
	}
	installs := false
	for _, p := range h.SettingsFiles {
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

func (p PermissionPromptHook) check() error {
	if p.Event == "" {
		return nil
	}
	for _, text := range []string{p.AllowResponseJQ, p.DenyResponseJQ, p.HasAskOrDenyRuleJQ} {
		if strings.TrimSpace(text) == "" {
			return errors.New("allow, deny or asked is missing")
		}
	}
	if len(p.PermissionRuleFiles) == 0 {
		return errors.New("no files of rules")
	}
	return nil
}

func (p SettingsFile) check() error {
	kinds := 0
	for _, there := range []bool{len(p.ListEntries) > 0, p.ShieldOwnedFileTemplate != "", p.AppendedLines != ""} {
		if there {
			kinds++
		}
	}
	switch {
	case p.Scope == "" || p.File == "":
		return errors.New("scope or file is missing")
	case kinds > 1:
		return errors.New("more than one of entries, text and block")
	case p.CanHaveShieldHookInstalled() && !slices.Contains([]string{"user", "project", "managed"}, p.Scope):
		return errors.New("a settings file that setup edits needs the scope user, project or managed")
	case p.CanHaveShieldHookInstalled() && strings.Contains(p.File, "*"):
		return errors.New("a pattern of files is edited")
	}
	for _, e := range p.ListEntries {
		if len(e.ListKeyPath) == 0 || e.Value == "" {
			return errors.New("an entry without path or value")
		}
	}
	for _, text := range append([]string{p.ShieldOwnedFileTemplate, p.AppendedLines}, p.ObsoleteLines...) {
		if lines := strings.Count(text, "@LINE@") + strings.Count(text, "@QUOTED@"); lines > 1 || strings.Count(text, "@AFTER") > 1 || strings.Count(text, "@[") != strings.Count(text, "@]") || text != "" && text != p.ShieldOwnedFileTemplate && lines == 0 {
			return errors.New("the text does not have the command line once")
		}
	}
	return nil
}

// IsFileWithoutHookCommand reports whether the file does not contain the command line of shield's
// hook. The host needs such a file together with the file that contains the command line.
func (p SettingsFile) IsFileWithoutHookCommand() bool {
	return p.ShieldOwnedFileTemplate != "" && !strings.Contains(p.ShieldOwnedFileTemplate, "@LINE@") && !strings.Contains(p.ShieldOwnedFileTemplate, "@QUOTED@") && !p.HasResultHook()
}

// HasResultHook reports whether the hook in the file sends tool results to shield.
func (p SettingsFile) HasResultHook() bool {
	return strings.Contains(p.ShieldOwnedFileTemplate+p.AppendedLines, "@AFTER") || slices.ContainsFunc(p.ListEntries, func(e SettingsListEntry) bool { return strings.Contains(e.Value, ".after") })
}

// HasOnlyResultHook reports whether denials work without the file, since it is only for tool results.
func (p SettingsFile) HasOnlyResultHook() bool { return p.HasResultHook() && !p.HasToolHook() }

// HasToolHook reports whether the hook in the file runs before a tool runs.
func (p SettingsFile) HasToolHook() bool {
	return len(p.ListEntries) > 0 || strings.Contains(p.ShieldOwnedFileTemplate+p.AppendedLines, "@LINE@") || strings.Contains(p.ShieldOwnedFileTemplate+p.AppendedLines, "@QUOTED@")
}

// CanHaveShieldHookInstalled reports whether shield can install its hook in the file.
func (p SettingsFile) CanHaveShieldHookInstalled() bool {
	return len(p.ListEntries) > 0 || p.ShieldOwnedFileTemplate != "" || p.AppendedLines != ""
}
