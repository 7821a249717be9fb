package pwsh

import (
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/effect"
)

// A cmdlet is a command of PowerShell: what its parameters name.
type cmdlet struct {
	name    string
	aliases string // separated by blanks
	class   effect.Class

	// params lists parameters in the order of their positions, each with what
	// its value is: r read, w written, d deleted, l listed, c created, m moved
	// away, p mode changed, u URL, h host, e PowerShell code, x program,
	// a arguments of x, n a nested script block, t text that is sent, - nothing,
	// ! a switch. A + marks parameters that have a position.
	params string
	effect effect.Kind // without an operand
}

// cmdlets are looked up by name or alias; see [findCmdlet].
var cmdlets = [...]cmdlet{
	{"get-content", "gc cat type", effect.ReadOnly, "path:r+ literalpath:r raw:! tail:- totalcount:- encoding:- wait:! delimiter:- head:- first:- asbytestream:!", ""},
	{"set-content", "sc", effect.LocalWrite, "path:w+ value:-+ literalpath:w encoding:- force:! nonewline:! stream:-", ""},
	{"add-content", "ac", effect.LocalWrite, "path:w+ value:-+ literalpath:w encoding:- force:! stream:-", ""},
	{"clear-content", "clc", effect.Destructive, "path:w+ literalpath:w force:!", ""},
	{"out-file", "", effect.LocalWrite, "filepath:w+ encoding:- append:! literalpath:w inputobject:- force:! noclobber:! width:-", ""},
	{"tee-object", "tee", effect.LocalWrite, "filepath:w+ variable:- append:!", ""},
	{"remove-item", "rm del erase rd ri rmdir", effect.Destructive, "path:d+ literalpath:d recurse:! force:! include:- exclude:- confirm:- erroraction:- filter:- whatif:! verbose:!", ""},
	{"copy-item", "cp copy cpi", effect.LocalWrite, "path:r+ destination:w+ literalpath:r recurse:! force:! container:! tosession:- fromsession:- include:- exclude:- filter:-", ""},
	{"move-item", "mv move mi", effect.LocalWrite, "path:m+ destination:w+ literalpath:m force:!", ""},
	{"rename-item", "ren rni", effect.LocalWrite, "path:m+ newname:-+ literalpath:m force:!", ""},
	{"new-item", "ni", effect.LocalWrite, "path:w+ itemtype:- name:- value:- force:! type:-", ""},
	{"mkdir", "md", effect.LocalWrite, "path:c+ name:- force:!", ""},
	{"get-childitem", "gci ls dir", effect.ReadOnly, "path:l+ filter:-+ literalpath:l recurse:! include:- exclude:- force:! file:! directory:! depth:- name:! hidden:! attributes:- erroraction:-", ""},
	{"get-item", "gi", effect.ReadOnly, "path:l+ literalpath:l force:! stream:-", ""},
	{"get-itemproperty", "gp", effect.ReadOnly, "path:l+ name:-+ literalpath:l", ""},
	{"get-itempropertyvalue", "gpv", effect.ReadOnly, "path:l+ name:-+", ""},
	{"set-itemproperty", "sp", effect.LocalWrite, "path:w+ name:-+ value:-+ literalpath:w type:- force:!", ""},
	{"new-itemproperty", "", effect.LocalWrite, "path:w+ name:-+ value:- literalpath:w propertytype:- force:!", ""},
	{"remove-itemproperty", "rp", effect.Destructive, "path:d+ name:-+ literalpath:d force:!", ""},
	{"set-item", "si", effect.LocalWrite, "path:w+ value:-+ force:!", ""},
	{"set-acl", "", effect.LocalWrite, "path:p+ aclobject:-+", ""},
	{"get-acl", "", effect.ReadOnly, "path:l+", ""},
	{"test-path", "", effect.ReadOnly, "path:l+ literalpath:l pathtype:-", ""},
	{"resolve-path", "rvpa", effect.ReadOnly, "path:-+", ""},
	{"get-filehash", "", effect.ReadOnly, "path:r+ literalpath:r algorithm:-", ""},
	{"select-string", "sls", effect.ReadOnly, "pattern:-+ path:r+ literalpath:r simplematch:! casesensitive:! context:- quiet:! allmatches:!", ""},
	{"import-csv", "ipcsv", effect.ReadOnly, "path:r+ delimiter:- literalpath:r", ""},
	{"export-csv", "epcsv", effect.LocalWrite, "path:w+ literalpath:w notypeinformation:! append:! delimiter:- inputobject:-", ""},
	{"import-clixml", "", effect.ReadOnly, "path:r+", ""},
	{"export-clixml", "", effect.LocalWrite, "path:w+ inputobject:-", ""},
	{"compress-archive", "", effect.LocalWrite, "path:r+ destinationpath:w+ literalpath:r update:! force:! compressionlevel:-", ""},
	{"expand-archive", "", effect.LocalWrite, "path:r+ destinationpath:w+ literalpath:r force:!", ""},
	{"invoke-webrequest", "iwr wget curl", effect.Network, "uri:u+ outfile:w method:- body:t infile:r headers:- usebasicparsing:! useragent:- contenttype:- credential:- proxy:u websession:- sessionvariable:- usedefaultcredentials:! timeoutsec:- maximumredirection:- form:t token:- authentication:- skipcertificatecheck:! erroraction:-", ""},
	{"invoke-restmethod", "irm", effect.Network, "uri:u+ outfile:w method:- body:t infile:r headers:- usebasicparsing:! contenttype:- credential:- useragent:- form:t token:- authentication:- erroraction:-", ""},
	{"start-bitstransfer", "", effect.Network, "source:u+ destination:w+ transfertype:- asynchronous:! priority:-", ""},
	{"invoke-expression", "iex", effect.Unknown, "command:e+", ""},
	{"invoke-command", "icm", effect.Network, "scriptblock:n+ computername:h session:- credential:- argumentlist:- filepath:-", ""},
	{"start-process", "saps start", effect.LocalWrite, "filepath:x+ argumentlist:a+ verb:- windowstyle:- wait:! passthru:! nonewwindow:! workingdirectory:- credential:- redirectstandardoutput:w redirectstandarderror:w redirectstandardinput:r", ""},
	{"start-job", "sajb", effect.LocalWrite, "scriptblock:n+ name:- filepath:- argumentlist:-", ""},
	{"invoke-item", "ii", effect.LocalWrite, "path:x+", ""},
	{"stop-process", "kill spps", effect.Destructive, "id:-+ name:- force:! inputobject:-", effect.StopProcess},
	{"stop-service", "spsv", effect.Privileged, "name:-+ force:!", effect.ChangeSystem},
	{"start-service", "sasv", effect.Privileged, "name:-+", effect.ChangeSystem},
	{"restart-service", "", effect.Privileged, "name:-+ force:!", effect.ChangeSystem},
	{"set-service", "", effect.Privileged, "name:-+ startuptype:- status:-", effect.ChangeSystem},
	{"new-service", "", effect.Privileged, "name:-+ binarypathname:x+ startuptype:- displayname:-", effect.Persist},
	{"remove-service", "", effect.Privileged, "name:-+", effect.ChangeSystem},
	{"register-scheduledtask", "", effect.Privileged, "taskname:-+ action:- trigger:- user:- force:! principal:- settings:-", effect.Persist},
	{"new-scheduledtaskaction", "", effect.LocalWrite, "execute:x+ argument:a+", ""},
	{"unregister-scheduledtask", "", effect.Privileged, "taskname:-+ confirm:-", effect.ChangeSystem},
	{"set-scheduledtask", "", effect.Privileged, "taskname:-+ action:-", effect.Persist},
	{"register-wmievent", "", effect.Privileged, "query:- action:n", effect.Persist},
	{"set-wmiinstance", "swmi", effect.Privileged, "class:-+ arguments:-", effect.Persist},
	{"invoke-wmimethod", "iwmi", effect.Privileged, "class:-+ name:-+ argumentlist:a computername:h path:-", effect.ChangeSystem},
	{"invoke-cimmethod", "icim", effect.Privileged, "classname:-+ methodname:-+ arguments:a computername:h", effect.ChangeSystem},
	{"get-wmiobject", "gwmi", effect.ReadOnly, "class:-+ query:- filter:- namespace:- computername:h property:-", ""},
	{"get-ciminstance", "gcim", effect.ReadOnly, "classname:-+ query:- filter:- namespace:- computername:h property:-", ""},
	{"set-executionpolicy", "", effect.Privileged, "executionpolicy:-+ scope:-+ force:!", effect.ChangeSystem},
	{"set-mppreference", "", effect.Privileged, "", effect.ChangeSystem},
	{"add-mppreference", "", effect.Privileged, "", effect.ChangeSystem},
	{"remove-mppreference", "", effect.Privileged, "", effect.ChangeSystem},
	{"uninstall-windowsfeature", "", effect.Privileged, "", effect.ChangeSystem},
	{"disable-windowsoptionalfeature", "", effect.Privileged, "", effect.ChangeSystem},
	{"new-localuser", "", effect.Privileged, "", effect.ChangeSystem},
	{"remove-localuser", "", effect.Privileged, "", effect.ChangeSystem},
	{"add-localgroupmember", "", effect.Privileged, "", effect.ChangeSystem},
	{"add-adgroupmember", "", effect.Privileged, "", effect.ChangeSystem},
	{"set-aduser", "", effect.Privileged, "", effect.ChangeSystem},
	{"set-netfirewallprofile", "", effect.Privileged, "", effect.ChangeSystem},
	{"new-netfirewallrule", "", effect.Privileged, "", effect.ChangeSystem},
	{"enable-psremoting", "", effect.Privileged, "", effect.ChangeSystem},
	{"enable-localuser", "", effect.Privileged, "", effect.ChangeSystem},
	{"restart-computer", "", effect.Privileged, "", effect.ChangeSystem},
	{"stop-computer", "", effect.Privileged, "", effect.ChangeSystem},
	{"checkpoint-computer", "", effect.Privileged, "", ""},
	{"clear-eventlog", "", effect.Destructive, "logname:-+", effect.Destroy},
	{"remove-eventlog", "", effect.Destructive, "logname:-+", effect.Destroy},
	{"clear-history", "clhy", effect.Destructive, "", effect.Destroy},
	{"clear-disk", "", effect.Destructive, "number:-+ removedata:!", effect.Destroy},
	{"format-volume", "", effect.Destructive, "", effect.Destroy},
	{"remove-partition", "", effect.Destructive, "", effect.Destroy},
	{"clear-recyclebin", "", effect.Destructive, "", effect.Destroy},
	{"get-clipboard", "gcb", effect.ReadOnly, "", effect.ReadClipboard},
	{"get-credential", "", effect.ReadOnly, "", effect.ReadSecret},
	{"send-mailmessage", "", effect.Network, "to:-+ subject:-+ body:t+ from:- smtpserver:h attachments:r", effect.SendMessage},
	{"enter-pssession", "etsn", effect.Network, "computername:h+ credential:-", ""},
	{"new-pssession", "nsn", effect.Network, "computername:h+ credential:-", ""},
	{"test-connection", "", effect.Network, "computername:h+ count:- quiet:!", ""},
	{"test-netconnection", "tnc", effect.Network, "computername:h+ port:-", ""},
	{"resolve-dnsname", "", effect.Network, "name:h+ type:-+ server:h", ""},
	{"import-module", "ipmo", effect.Unknown, "name:-+ force:! disablenamechecking:!", ""},
	{"install-module", "", effect.Network, "name:-+ force:! scope:- repository:- allowclobber:!", effect.ChangeSystem},
	{"install-package", "", effect.Network, "name:-+ force:!", effect.ChangeSystem},
	{"install-script", "", effect.Network, "name:-+ force:!", effect.ChangeSystem},
	{"add-type", "", effect.Unknown, "typedefinition:-+ assemblyname:- path:- memberdefinition:- name:- namespace:- passthru:!", effect.Dynamic},
	{"new-object", "", effect.Unknown, "typename:-+ argumentlist:-+ comobject:-", ""},
	{"foreach-object", "% foreach", effect.ReadOnly, "process:n+ membername:- begin:n end:n parallel:n", ""},
	{"where-object", "? where", effect.ReadOnly, "filterscript:n+ property:- value:- eq:! match:!", ""},
	{"set-location", "cd chdir sl", effect.ReadOnly, "path:-+ literalpath:-", ""},
	{"push-location", "pushd", effect.ReadOnly, "path:-+", ""},
	{"set-alias", "sal", effect.LocalWrite, "name:-+ value:-+ scope:- force:! option:-", ""},
	{"new-alias", "nal", effect.LocalWrite, "name:-+ value:-+", ""},
	{"set-variable", "sv set", effect.ReadOnly, "name:-+ value:-+", ""},
	{"get-variable", "gv", effect.ReadOnly, "name:-+ valueonly:!", ""},
	{"start-transcript", "", effect.LocalWrite, "path:w+", ""},
	{"write-output", "echo write", effect.ReadOnly, "inputobject:-+", ""},
	{"write-host", "", effect.ReadOnly, "object:-+", ""},
}

// readers are the cmdlets of PowerShell itself that only look or reshape. Those
// of other modules are named alike (Get-Keystrokes), so a verb says nothing.
const readers = " get-process get-service get-date get-location get-command get-help get-member get-module get-alias get-history get-host get-culture get-uiculture get-random get-unique get-variable" +
	" get-eventlog get-winevent get-computerinfo get-hotfix get-psdrive get-psprovider get-executionpolicy get-timezone get-verb get-typedata get-formatdata get-job get-runspace get-error get-uptime get-psreadlineoption" +
	" get-netadapter get-netipaddress get-netroute get-nettcpconnection get-disk get-volume get-partition get-counter get-package get-packageprovider get-installedmodule get-psrepository get-cimclass get-markdownoption get-psbreakpoint get-pscallstack get-event get-eventsubscriber" +
	" select-object sort-object group-object measure-object compare-object format-table format-list format-wide format-custom format-hex out-string out-null out-host out-default" +
	" convertto-json convertfrom-json convertto-csv convertfrom-csv convertto-html convertto-xml convertfrom-stringdata convertfrom-markdown convert-path join-path split-path join-string select-xml" +
	" write-error write-warning write-verbose write-debug write-information write-progress test-json test-modulemanifest new-timespan new-guid start-sleep measure-command " +
	" "

var cmdletIndex = sync.OnceValue(func() map[string]*cmdlet {
	m := make(map[string]*cmdlet, 4*len(cmdlets))
	for i := range cmdlets {
		c := &cmdlets[i]
		m[c.name] = c
		for a := range strings.FieldsSeq(c.aliases) {
			m[a] = c
		}
	}
	return m
})

// IsCmdlet reports whether a name or alias, in lower case, is a listed cmdlet.
func IsCmdlet(name string) bool { return findCmdlet(name) != nil }

// findCmdlet returns the cmdlet of a name in lower case, nil if none is listed.
func findCmdlet(name string) *cmdlet {
	return cmdletIndex()[strings.TrimPrefix(name, `microsoft.powershell.management\`)]
}

// param returns the full name and the use of a parameter that may be
// abbreviated; use is 0 if it is not listed.
func (c *cmdlet) param(name string) (full string, use byte) {
	var found string
	for p := range strings.FieldsSeq(c.params) {
		n, rest, _ := strings.Cut(p, ":")
		if n == name {
			return n, rest[0]
		}
		if found == "" && strings.HasPrefix(n, name) {
			found, use = n, rest[0]
		}
	}
	if found == "" {
		return name, 0
	}
	return found, use
}

// position returns the parameter that the i-th argument without a name fills.
func (c *cmdlet) position(i int) (full string, use byte) {
	last, lastUse := "", byte(0)
	for p := range strings.FieldsSeq(c.params) {
		n, rest, _ := strings.Cut(p, ":")
		if !strings.HasSuffix(rest, "+") {
			continue
		}
		last, lastUse = n, rest[0]
		if i == 0 {
			return n, rest[0]
		}
		i--
	}
	return last, lastUse
}
