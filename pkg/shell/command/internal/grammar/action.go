package grammar

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// An Action is a compiled action text such as "=write network -> read...". Roles, effects and flags have the names
// of the command package's Go code.
type Action struct {
	Values            []string
	Attached          bool
	Class             string
	Effects           []string
	Stdin, Stdout     string // names of the command package's Stream constants; "" if unchanged
	Operands          *OperandRoles
	RoleChanges       []RoleChange
	WorkingFolderRole string
	NoOperandsRole    string
	Flags             []string
	Verb              string // verb of a remote change
	Harm              string
	Losses            []string
}

// A RoleChange changes the role of words.
type RoleChange struct{ OldRole, NewRole string }

// An OperandRoles gives the roles of operands by position.
type OperandRoles struct {
	First  []string
	Middle string
	Last   []string
}

var styles = []string{"gnu", "long", "plus", "numeric", "first", "literal", "bare", "expr", "open", "own", "settings", "bundled", "apart", "slash", "helpful"}

// classes maps the words for classes to Go names.
var classes = map[string]string{
	"readonly": "readOnly", "local-write": "localWrite", "network": "network", "destructive": "destructive", "privileged": "privileged", "unknown": "anything",
}

// classesBySeverity are the Go names of the classes, in ascending order.
var classesBySeverity = []string{"readOnly", "localWrite", "network", "destructive", "privileged", "anything"}

// effects maps the words for effects without an operand to Go names.
var effects = map[string]string{
	"change_system": "ChangeSystem", "change_remote": "ChangeRemote", "change_privilege": "ChangePrivilege", "stop_process": "StopProcess", "change_guard": "ChangeGuard",
	"read_secret": "ReadSecret", "read_private": "ReadClipboard", "destroy": "Destroy", "send_message": "SendMessage",
	"http_request": "HTTPRequest", "connect": "Connect", "listen": "Listen", "persist": "Persist", "execute": "Execute",
	"remote_shell": "RemoteShell", "run_download": "RunDownload", "dynamic": "Dynamic", "publish": "SendData",
}

var streams = map[string]string{
	"data": "Data", "code": "Code", "download": "Download", "upload": "Upload", "decoded": "Decoded", "input": "Input", "secret": "Secret", "names": "Listed",
}

var flags = map[string]string{
	"recursive": "recursive", "stop": "stop", "reject": "reject", "nohere": "notHere", "widen": "widen", "remove": "remove", "mirrors": "mirrors", "takes": "takes",
	"urls": "urls", "run-urls": "runURLs", "decodes": "decodes", "tells": "tells", "near": "near", "dry": "dry", "wet": "wet", "database": "database", "recorded": "recorded", "adopts": "adopts", "remote": "remote", "asks": "asks",
}

// verbs are the words for the kinds of remote changes.
var verbs = []string{"delete", "grant", "expose", "weaken", "redirect", "run", "change"}

// losses maps the words for data that a program deletes in addition to its operands, such as
// uncommitted changes, to the names of Go constants.
var losses = map[string]string{
	"dirty": "effect.LosesDirty", "below": "effect.LosesBelow", "untracked": "effect.LosesUntracked", "refs": "effect.LosesRefs",
	"database": "effect.LosesDatabase", "adds": "effect.LosesNothing", "later": "effect.LosesLater",
}

// roles maps the words for roles to Go names.
var roles = map[string]string{
	"text": "roleText", "word": "roleWord", "read": "roleRead", "read-tree": "roleReadTree", "send-file": "roleSendFile", "send-tree": "roleSendTree", "write": "roleWrite", "write-tree": "roleWriteTree", "output": "roleOutput", "control": "roleControl", "unset": "roleUnset", "recipes": "roleRecipes", "read-input": "roleReadInput", "names": "roleNames", "dry-run": "roleDryRun", "diff": "roleDiff", "patch": "rolePatch", "settings": "roleSettings", "server": "roleServer", "body": "roleBody",
	"write-to": "roleWriteTo", "into-dir": "roleIntoDir", "edit": "roleEdit", "edit-tree": "roleEditTree", "bind": "roleBind", "compress": "roleCompress", "beside": "roleBeside", "store": "roleStore", "named": "roleNamed", "delete": "roleDelete",
	"delete-tree": "roleDeleteTree", "clean-tree": "roleCleanTree", "rmdir": "roleRmdir", "format": "roleFormat", "mend": "roleMend", "move": "roleMove", "list": "roleList", "list-tree": "roleListTree",
	"mkdir": "roleMkdir", "chmod": "roleChmod", "over": "roleOver", "start": "roleStart", "url": "roleURL", "source": "roleSource", "plugin": "rolePlugin", "image-source": "roleImageSource", "fetch": "roleFetch",
	"host": "roleHost", "listen": "roleListen", "send": "roleSend", "web-item": "roleWebItem", "socket": "roleSocket", "data": "roleData", "form": "roleForm", "maybe-file": "roleMaybeFile", "maybe-path": "roleMaybePath", "place": "rolePlace", "method": "roleMethod", "lines": "roleLines", "texts": "roleTexts", "script-input": "roleScriptInput",
	"repo": "roleRepo", "push": "rolePush", "remote-name": "roleRemoteName", "remote-url": "roleRemoteURL", "image": "roleImage", "clone": "roleClone", "remote-src": "roleRemoteSrc", "remote-dst": "roleRemoteDst", "package": "rolePackage", "npm-package": "roleNPMPackage", "from-package": "roleFromPackage", "creator": "roleCreator", "template": "roleTemplate", "module-path": "roleModulePath", "module-program": "roleModuleProgram", "maybe-url": "roleMaybeURL", "object": "roleObject",
	"object-dst": "roleObjectDst", "volume": "roleVolume", "mount": "roleMount", "ssh-option": "roleSSHOption", "git-config": "roleGitConfig",
	"git-key": "roleGitKey", "git-value": "roleGitValue", "sed": "roleSed", "sql": "roleSQL", "transfer": "roleTransfer", "ex": "roleEx", "date": "roleDate", "suffix": "roleSuffix",
	"secret-name": "roleSecret", "secret-all": "roleSecretAll", "setting": "roleSetting", "module": "roleModule", "change": "roleChange", "system": "roleSystem",
	"remote": "roleRemote", "destroy": "roleDestroy", "process": "roleProcess", "core": "roleCore", "process-name": "roleProcessName", "process-pattern": "roleProcessPattern", "process-line": "roleProcessLine", "process-exact": "roleProcessExact", "process-group": "roleProcessGroup", "process-parent": "roleProcessParent", "process-file": "roleProcessFile", "privilege": "rolePrivilege", "reject": "roleReject",
	"archive": "roleArchive", "folder": "roleFolder", "enter": "roleEnter", "step": "roleStep", "entry": "roleEntry", "shell": "roleShell", "python": "rolePython", "perl": "rolePerl",
	"ruby": "roleRuby", "node": "roleNode", "php": "rolePHP", "awk": "roleAwk", "applescript": "roleAppleScript", "lua": "roleLua",
	"powershell": "rolePowerShell", "encoded": "roleEncoded", "key": "roleKey", "set-key": "roleSetKey", "maybe-script": "roleMaybeScript", "cmd": "roleCmd", "ipython": "roleIPython", "code": "roleCode", "script": "roleScript", "script-shell": "roleScriptShell",
	"script-python": "roleScriptPython", "script-perl": "roleScriptPerl", "script-ruby": "roleScriptRuby", "script-node": "roleScriptNode",
	"script-php": "roleScriptPHP", "script-awk": "roleScriptAwk", "script-applescript": "roleScriptAppleScript", "script-lua": "roleScriptLua",
	"script-powershell": "roleScriptPowerShell", "script-code": "roleScriptCode", "argv-script": "roleArgvScript", "argv-package": "roleArgvPackage", "argv-listed": "roleArgvListed",
	"cmd-words": "roleCmdWords", "powershell-words": "rolePowerShellWords", "argv": "roleArgv", "argv-remote": "roleArgvRemote", "argv-stdin": "roleArgvStdin",
	"argv-semicolon": "roleArgvSemi", "words": "roleWords", "keys": "roleKeys", "shell-words": "roleShellWords", "shell-args": "roleShellArgs", "shell-remote": "roleShellRemote",
}

// restRoles are the roles that cover all remaining words.
var restRoles = []string{"argv", "argv-remote", "argv-stdin", "argv-semicolon", "words", "keys", "shell-words", "shell-args", "shell-remote", "module", "argv-script", "argv-package", "argv-listed", "cmd-words", "powershell-words"}

func parseRole(s string) (string, error) {
	if r, ok := roles[s]; ok {
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
		switch all := slices.Contains(restRoles, name); {
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

func parseAction(text string) (a Action, err error) {
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

func (a *Action) parseWord(w string) (err error) {
	if class, ok := classes[w]; ok {
		if slices.Index(classesBySeverity, class) > slices.Index(classesBySeverity, a.Class) {
			a.Class = class
		}
		return nil
	}
	if e, ok := effects[w]; ok {
		a.Effects = append(a.Effects, e)
		return nil
	}
	if f, ok := flags[w]; ok {
		a.Flags = append(a.Flags, f)
		return nil
	}
	if w == "secret" {
		a.Effects, a.Stdout = append(a.Effects, "ReadSecret"), "Secret"
		return nil
	}
	key, v, _ := strings.Cut(w, ":")
	switch key {
	case "in", "out":
		s, ok := streams[v]
		if !ok {
			return fmt.Errorf("unknown stream %q", v)
		}
		if key == "in" {
			a.Stdin = s
		} else {
			a.Stdout = s
		}
	case "turn":
		from, to, _ := strings.Cut(v, "=")
		var t RoleChange
		if t.OldRole, err = parseRole(from); err == nil {
			t.NewRole, err = parseRole(to)
		}
		a.RoleChanges = append(a.RoleChanges, t)
	case "remote":
		if !slices.Contains(verbs, v) {
			return fmt.Errorf("unknown verb %q", v)
		}
		a.Effects, a.Verb = append(a.Effects, "ChangeRemote"), v
	case "harm":
		if !slices.Contains(effect.Harms(), effect.Harm(v)) {
			return fmt.Errorf("unknown harm %q", v)
		}
		if a.Harm != "" {
			return fmt.Errorf("harm %q beside %q", v, a.Harm)
		}
		a.Harm = v
	case "undo":
		l, ok := losses[v]
		if !ok {
			return fmt.Errorf("unknown loss %q", v)
		}
		a.Losses = append(a.Losses, l)
	case "here":
		a.WorkingFolderRole, err = parseRole(v)
	case "empty":
		a.NoOperandsRole, err = parseRole(v)
	default:
		return a.parseValues(w)
	}
	return err
}

// parseValues parses =ROLE,ROLE or [=ROLE].
func (a *Action) parseValues(w string) error {
	list := w
	if strings.HasPrefix(w, "[") && strings.HasSuffix(w, "]") {
		a.Attached, list = true, w[1:len(w)-1]
	}
	if !strings.HasPrefix(list, "=") {
		return fmt.Errorf("unknown word %q", w)
	}
	for name := range strings.SplitSeq(list[1:], ",") {
		r, err := parseRole(name)
		if err != nil {
			return err
		}
		a.Values = append(a.Values, r)
	}
	return nil
}
