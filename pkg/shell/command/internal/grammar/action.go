package grammar

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// An OptionOrCommandAction is the compiled form of an action text in programs/*.yaml, such as "=write network ->
// read...": what an option or a command does. Roles, effects and flags are names of Go constants.
// programs/README.md describes action texts.
type OptionOrCommandAction struct {
	ValueRoles                                        []string
	HasOptionalAttachedValue                          bool
	Class                                             string
	Effects                                           []string
	StdinStreamConstantName, StdoutStreamConstantName string // names of the command package's Stream constants; "" if unchanged
	Operands                                          *OperandRoles
	ArgRoleOverrides                                  []ArgRoleOverride
	WorkingFolderRole                                 string
	ImplicitOperandRole                               string
	ActionFlagConstantNames                           []string
	RemoteChangeVerb                                  string // verb of a remote change
	Harm                                              string
	FileLossConstantNames                             []string
}

// An ArgRoleOverride changes the role of words.
type ArgRoleOverride struct{ OldRole, NewRole string }

// An OperandRoles gives the roles of operands by position.
type OperandRoles struct {
	First  []string
	Middle string
	Last   []string
}

// argStyleConstantByYAMLWord maps the words for styles to Go names.
var argStyleConstantByYAMLWord = map[string]string{
	"gnu": "argStyleGNUAbbreviations", "long": "argStyleSingleDashLong", "plus": "argStylePlusOptions", "numeric": "argStyleNumericOptions",
	"first": "argStyleOptionsEndAtOperand", "literal": "argStyleUnlistedDashIsOperand", "bare": "argStyleDashlessFirstWord", "expr": "argStyleDashlessOptions",
	"open": "argStyleAllowsUnlistedOptions", "own": "argStyleExcludesParentOptions", "settings": "argStyleLeadingAssignments", "bundled": "argStyleBundledLetters",
	"apart": "argStyleBundledValueIsNextArg", "slash": "argStyleWindowsSlashOptions", "helpful": "argStyleTrailingHelpWord",
}

// programClassConstantByYAMLWord maps the words for classes to Go names.
var programClassConstantByYAMLWord = map[string]string{
	"readonly": "readOnlyProgramClassRank", "local-write": "localWriteProgramClassRank", "network": "networkProgramClassRank", "destructive": "destructiveProgramClassRank", "privileged": "privilegedProgramClassRank", "unknown": "unknownProgramClassRank",
}

// classesBySeverity are the Go names of the classes, in ascending order.
var classesBySeverity = []string{"readOnlyProgramClassRank", "localWriteProgramClassRank", "networkProgramClassRank", "destructiveProgramClassRank", "privilegedProgramClassRank", "unknownProgramClassRank"}

// effectConstantByYAMLWord maps the words for effects without an operand to Go names.
var effectConstantByYAMLWord = map[string]string{
	"change_system": "ChangeSystem", "change_remote": "ChangeRemoteSystem", "change_privilege": "ChangePrivilege", "stop_process": "StopProcess", "change_guard": "TamperWithShield",
	"read_secret": "ReadSecret", "read_private": "ReadClipboard", "destroy": "DestroyData", "send_message": "SendMessage",
	"http_request": "HTTPRequest", "connect": "Connect", "listen": "Listen", "persist": "Persist", "execute": "Execute",
	"remote_shell": "RemoteShell", "run_download": "RunDownload", "dynamic": "UnknownEffect", "publish": "SendData",
}

// streamConstantByYAMLWord maps the words for streams to Go names.
var streamConstantByYAMLWord = map[string]string{
	"data": "StreamPlainData", "code": "StreamExecutedCode", "download": "StreamDownload", "upload": "StreamUpload", "decoded": "StreamDecodedStdin", "input": "StreamFilteredStdin", "secret": "StreamCredentials", "names": "StreamOperandList",
}

// actionFlagConstantByYAMLWord maps the words for flags to Go names.
var actionFlagConstantByYAMLWord = map[string]string{
	"recursive": "actionFlagRecursive", "stop": "actionFlagEndsOptions", "reject": "actionFlagUnjudgeable", "nohere": "actionFlagCancelsWorkingFolderRole", "widen": "actionFlagFindFiltersIneffective", "remove": "actionFlagDeletesFoundFiles", "mirrors": "actionFlagDeletesExtraneousFiles", "takes": "actionFlagRemovesSourceFiles",
	"urls": "actionFlagContactsURLsInArgs", "run-urls": "actionFlagRunsURLResponses", "decodes": "actionFlagWritesDecoded", "tells": "actionFlagSendsArguments", "near": "actionFlagColonPrefixNamesContainer", "dry": "actionFlagDryRun", "wet": "actionFlagCancelsDryRun", "database": "actionFlagVariableIsDatabaseURL", "recorded": "actionFlagReadsPcapFile", "adopts": "actionFlagImportsReposChartsManifests", "remote": "actionFlagTargetIsRemote", "asks": "actionFlagHTTPReadByDefault",
}

// remoteChangeVerbs are the words for the kinds of remote changes.
var remoteChangeVerbs = []string{"delete", "grant", "expose", "weaken", "redirect", "run", "change"}

// fileLossConstantByYAMLWord maps the words for data that a program deletes in addition to its operands, such as
// uncommitted changes, to the names of Go constants.
var fileLossConstantByYAMLWord = map[string]string{
	"dirty": "effect.FileLossModifiedTracked", "below": "effect.FileLossModifiedOverwritten", "untracked": "effect.FileLossUntracked", "refs": "effect.FileLossGitRefs",
	"database": "effect.FileLossDatabaseContent", "adds": "effect.FileLossNone", "later": "effect.FileLossAtUnknownTime",
}

// roleConstantByYAMLWord maps the words for roles to Go names.
var roleConstantByYAMLWord = map[string]string{
	"text": "argRoleInertText", "word": "argRoleTextOrSensitivePath", "read": "argRoleReadFile", "read-tree": "argRoleReadFolderTree", "send-file": "argRoleSendFile", "send-tree": "argRoleSendFolderTree", "write": "argRoleWriteFile", "write-tree": "argRoleWriteFolderTree", "output": "argRoleOutputFileOrPipe", "control": "argRoleControlSocket", "unset": "argRoleUnsetVariable", "recipes": "argRoleMakeRules", "read-input": "argRoleReadFileOrRunStdin", "names": "argRoleOperandListFile", "dry-run": "argRoleDryRunMode", "diff": "argRoleDiffText", "patch": "argRolePatchFile", "settings": "argRoleSettingsPath", "server": "argRoleProxyOrServer", "body": "argRoleRequestBody",
	"write-to": "argRoleCopyDestination", "into-dir": "argRoleCopyDestinationFolder", "edit": "argRoleEditFile", "edit-tree": "argRoleEditFolderTree", "bind": "argRoleBindMountFolder", "compress": "argRoleCompressFile", "beside": "argRoleReadFileWriteSuffixed", "store": "argRoleDatabaseFile", "named": "argRoleNameEqualsFile", "delete": "argRoleDeleteFile",
	"delete-tree": "argRoleDeleteFolderTree", "clean-tree": "argRoleDeleteCleanGitTree", "rmdir": "argRoleDeleteEmptyFolder", "format": "argRoleOverwriteDisk", "mend": "argRoleRepairDisk", "move": "argRoleMoveSource", "list": "argRoleListFolder", "list-tree": "argRoleListFolderTree",
	"mkdir": "argRoleCreateFolder", "chmod": "argRoleChangePermissions", "over": "argRoleMountPoint", "start": "argRoleFindStartFolder", "url": "argRoleURL", "source": "argRolePackageSourceURLs", "plugin": "argRolePluginSource", "image-source": "argRoleDeployedContainerImage", "fetch": "argRoleDownloadURL",
	"host": "argRoleHost", "listen": "argRoleListenAddress", "send": "argRoleMessageRecipient", "web-item": "argRoleHTTPieItem", "socket": "argRoleSocatAddress", "data": "argRoleRequestData", "form": "argRoleRequestFormField", "maybe-file": "argRoleTextOrFileReference", "maybe-path": "argRoleTextOrPath", "place": "argRoleTargetHostOrDatabase", "method": "argRoleHTTPMethod", "lines": "argRoleSubcommandLines", "texts": "argRoleTextToSearchForPatterns", "script-input": "argRoleQueryLanguageFile",
	"repo": "argRoleGitRemote", "push": "argRoleGitPushRemote", "remote-name": "argRoleGitRemoteName", "remote-url": "argRoleGitRemoteURL", "image": "argRolePushedImage", "clone": "argRoleGitCloneRemote", "remote-src": "argRoleRemoteCopySource", "remote-dst": "argRoleRemoteCopyDestination", "package": "argRolePackage", "npm-package": "argRoleNPMPackage", "from-package": "argRolePackageProvidingProgram", "creator": "argRoleNPMCreateTemplate", "template": "argRoleTemplateRepository", "module-path": "argRoleGoModulePath", "module-program": "argRoleGoProgram", "maybe-url": "argRoleURLOrFile", "object": "argRoleCloudObjectSource",
	"object-dst": "argRoleCloudObjectDestination", "volume": "argRoleDockerVolume", "mount": "argRoleDockerMount", "ssh-option": "argRoleSSHOption", "git-config": "argRoleGitConfigSetting",
	"git-key": "argRoleGitConfigKey", "git-value": "argRoleGitConfigValue", "sed": "argRoleSedScript", "sql": "argRoleSQLText", "transfer": "argRoleFTPCommands", "ex": "argRoleExEditorCommands", "date": "argRoleDateFormatOrTime", "suffix": "argRoleBackupSuffix",
	"secret-name": "argRolePrintedVariable", "secret-all": "argRolePrintsAllVariables", "setting": "argRoleEnvironmentAssignment", "module": "argRolePythonModuleArgv", "change": "argRoleWritesLocally", "system": "argRoleChangesOperatingSystem",
	"remote": "argRoleChangesRemoteResource", "destroy": "argRoleDestroyedResource", "process": "argRoleStoppedProcess", "core": "argRoleCoreDumpOrPID", "process-name": "argRoleProcessName", "process-pattern": "argRoleProcessNameRegexp", "process-line": "argRoleProcessCommandLineRegexp", "process-exact": "argRoleProcessWholeNameRegexp", "process-group": "argRoleProcessGroup", "process-parent": "argRoleProcessParent", "process-file": "argRoleProcessesUsingFile", "privilege": "argRoleSwitchUser", "reject": "argRoleUnjudgeable",
	"archive": "argRoleArchiveReadOrWritten", "folder": "argRoleWorkingFolder", "enter": "argRoleChdirForAllArgs", "step": "argRoleChdirForLaterOperands", "entry": "argRoleContainerEntryPoint", "shell": "argRoleShellCode", "python": "argRolePythonCode", "perl": "argRolePerlCode",
	"ruby": "argRoleRubyCode", "node": "argRoleNodeCode", "php": "argRolePHPCode", "awk": "argRoleAwkCode", "applescript": "argRoleAppleScriptCode", "lua": "argRoleLuaCode",
	"powershell": "argRolePowerShellCode", "encoded": "argRoleEncodedPowerShellCode", "key": "argRoleReadRegistryKey", "set-key": "argRoleChangeRegistryKey", "maybe-script": "argRoleTextOrScriptFile", "cmd": "argRoleCmdExeCode", "ipython": "argRoleIPythonCode", "code": "argRoleOtherLanguageCode", "script": "argRoleScriptFile", "script-shell": "argRoleShellScriptFile",
	"script-python": "argRolePythonScriptFile", "script-perl": "argRolePerlScriptFile", "script-ruby": "argRoleRubyScriptFile", "script-node": "argRoleNodeScriptFile",
	"script-php": "argRolePHPScriptFile", "script-awk": "argRoleAwkScriptFile", "script-applescript": "argRoleAppleScriptFile", "script-lua": "argRoleLuaScriptFile",
	"script-powershell": "argRolePowerShellScriptFile", "script-code": "argRoleOtherLanguageScriptFile", "argv-script": "argRoleArgvOrScriptFile", "argv-package": "argRoleArgvFromPackage", "argv-listed": "argRoleArgvIfProgramSyntaxKnown",
	"cmd-words": "argRoleCmdExeCodeWords", "powershell-words": "argRolePowerShellCodeWords", "argv": "argRoleArgv", "argv-remote": "argRoleArgvOnRemote", "argv-stdin": "argRoleArgvPlusStdinArgs",
	"argv-semicolon": "argRoleArgvUntilSemicolon", "words": "argRoleInertRemainingArgs", "keys": "argRoleKeystrokes", "shell-words": "argRoleShellCodeWords", "shell-args": "argRoleArgsPassedToShell", "shell-remote": "argRoleRemoteShellCodeWords",
}

// rolesTakingRemainingWords are the roles that cover all remaining words.
var rolesTakingRemainingWords = []string{"argv", "argv-remote", "argv-stdin", "argv-semicolon", "words", "keys", "shell-words", "shell-args", "shell-remote", "module", "argv-script", "argv-package", "argv-listed", "cmd-words", "powershell-words"}

func parseRole(s string) (string, error) {
	if r, ok := roleConstantByYAMLWord[s]; ok {
		return r, nil
	}
	return "", fmt.Errorf("unknown role %q", s)
}

func parseOperandRoles(text string) (s OperandRoles, err error) {
	for _, w := range strings.Fields(text) {
		name, many := strings.CutSuffix(w, "...")
		role, err := parseRole(name)
		if err != nil {
			return s, err
		}
		switch all := slices.Contains(rolesTakingRemainingWords, name); {
		case (many || all) && s.Middle != "":
			return s, fmt.Errorf("shape %q: only one role may be followed by three dots", text)
		case all && many:
			return s, fmt.Errorf("shape %q: %s already takes all words", text, name)
		case many || all:
			s.Middle = role
		case s.Middle != "":
			s.Last = append(s.Last, role)
		default:
			s.First = append(s.First, role)
		}
	}
	return s, nil
}

func parseAction(text string) (a OptionOrCommandAction, err error) {
	left, right, shaped := strings.Cut(text, "->")
	if shaped {
		s, err := parseOperandRoles(right)
		if err != nil {
			return a, err
		}
		a.Operands = &s
	}
	for _, w := range strings.Fields(left) {
		if err := a.parseWord(w); err != nil {
			return a, err
		}
	}
	return a, nil
}

func (a *OptionOrCommandAction) parseWord(w string) (err error) {
	if class, ok := programClassConstantByYAMLWord[w]; ok {
		if slices.Index(classesBySeverity, class) > slices.Index(classesBySeverity, a.Class) {
			a.Class = class
		}
		return nil
	}
	if e, ok := effectConstantByYAMLWord[w]; ok {
		a.Effects = append(a.Effects, e)
		return nil
	}
	if f, ok := actionFlagConstantByYAMLWord[w]; ok {
		a.ActionFlagConstantNames = append(a.ActionFlagConstantNames, f)
		return nil
	}
	if w == "secret" {
		a.Effects, a.StdoutStreamConstantName = append(a.Effects, effectConstantByYAMLWord["read_secret"]), streamConstantByYAMLWord["secret"]
		return nil
	}
	key, v, _ := strings.Cut(w, ":")
	switch key {
	case "in", "out":
		s, ok := streamConstantByYAMLWord[v]
		if !ok {
			return fmt.Errorf("unknown stream %q", v)
		}
		if key == "in" {
			a.StdinStreamConstantName = s
		} else {
			a.StdoutStreamConstantName = s
		}
	case "turn":
		from, to, _ := strings.Cut(v, "=")
		var t ArgRoleOverride
		if t.OldRole, err = parseRole(from); err == nil {
			t.NewRole, err = parseRole(to)
		}
		a.ArgRoleOverrides = append(a.ArgRoleOverrides, t)
	case "remote":
		if !slices.Contains(remoteChangeVerbs, v) {
			return fmt.Errorf("unknown verb %q", v)
		}
		a.Effects, a.RemoteChangeVerb = append(a.Effects, effectConstantByYAMLWord["change_remote"]), v
	case "harm":
		if !slices.Contains(effect.Harms(), effect.Harm(v)) {
			return fmt.Errorf("unknown harm %q", v)
		}
		if a.Harm != "" {
			return fmt.Errorf("harm %q beside %q", v, a.Harm)
		}
		a.Harm = v
	case "undo":
		l, ok := fileLossConstantByYAMLWord[v]
		if !ok {
			return fmt.Errorf("unknown loss %q", v)
		}
		a.FileLossConstantNames = append(a.FileLossConstantNames, l)
	case "here":
		a.WorkingFolderRole, err = parseRole(v)
	case "empty":
		a.ImplicitOperandRole, err = parseRole(v)
	default:
		return a.parseValueRoles(w)
	}
	return err
}

// parseValueRoles parses =ROLE,ROLE or [=ROLE].
func (a *OptionOrCommandAction) parseValueRoles(w string) error {
	list := w
	if strings.HasPrefix(w, "[") && strings.HasSuffix(w, "]") {
		a.HasOptionalAttachedValue, list = true, w[1:len(w)-1]
	}
	if !strings.HasPrefix(list, "=") {
		return fmt.Errorf("unknown word %q", w)
	}
	for name := range strings.SplitSeq(list[1:], ",") {
		r, err := parseRole(name)
		if err != nil {
			return err
		}
		a.ValueRoles = append(a.ValueRoles, r)
	}
	return nil
}
