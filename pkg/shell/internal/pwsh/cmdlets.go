package pwsh

import (
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

//go:generate go run ./gen

// A cmdlet is an entry for a PowerShell command: the meaning of its parameters. The table is compiled from
// cmdlets.yaml.
type cmdlet struct {
	name     string
	aliases  []string
	class    effect.ProgramClass
	effect   effect.Kind // effect of every call, besides the effects of the parameters; "" if there is none
	behavior cmdletBehavior
	params   []param // in the order of their positions
}

// A param is a parameter of a cmdlet.
type param struct {
	name              string
	valueUse          parameterUse
	positional        bool // an argument without a parameter name can be the value of this parameter
	acceptsPipedInput bool // if no argument sets this parameter, each input object is its value
}

// A parameterUse is the effect of a parameter's value.
type parameterUse uint8

const (
	paramUseUnlisted parameterUse = iota
	paramUseNoEffect              // no effect
	paramUseReadPath              // a path is read
	paramUseWritePath
	paramUseDeletePath
	paramUseListPath
	paramUseCreateFolder // a folder
	paramUseMovePathAway // a path is moved away
	paramUseSetPermissions
	paramUseContactURL
	paramUseContactHost
	paramUsePowerShellCode // PowerShell text
	paramUseProgram        // a program
	paramUseProgramArgs    // the program's arguments
	paramUseScriptBlock    // a script block in braces, which is walked where it is written
	paramUseSentData
	paramUseWrittenContent // content of a written file
	paramUseSwitch         // a switch without a value
	paramUseHTTPMethod     // HTTP method of a web request
	paramUseCalledMember   // a method or property of each object
)

// A cmdletBehavior is an effect of a cmdlet that its parameters cannot describe.
type cmdletBehavior uint8

const (
	_                                  cmdletBehavior = iota
	cmdletBehaviorOutputsFileContent                  // outputs the content of files
	cmdletBehaviorRunsInputCode                       // runs its input as PowerShell text
	cmdletBehaviorOutputsArgs                         // outputs its arguments
	cmdletBehaviorOutputsJoinedPath                   // outputs its arguments, joined to a path
	cmdletBehaviorOutputsUnknownValue                 // outputs an unknown value
	cmdletBehaviorOutputsFileList                     // outputs the files that it lists
	cmdletBehaviorRunsCodePerInput                    // runs code on each input object; its output is unknown
	cmdletBehaviorOutputsInputSubset                  // outputs some of the input objects
	cmdletBehaviorCreatesDotNetObject                 // creates a .NET object; a TCP client or a socket connects to a host
	cmdletBehaviorChangesWorkingFolder                // changes the working folder to its first argument
	cmdletBehaviorSetsAlias                           // its arguments are an alias and a command
	cmdletBehaviorSetsVariable                        // sets the variable that its first argument names to its second argument
	cmdletBehaviorLoadsModulePath                     // loads code from a path in its arguments
	cmdletBehaviorMayRunProgram                       // may run a program given in its arguments
	cmdletBehaviorLoadsTypes                          // loads or compiles code
	cmdletBehaviorAsksUserPassword                    // outputs a password that the user enters
	cmdletBehaviorRevealsPassword                     // may show a password as plain text
	cmdletBehaviorUnpacksArchive                      // unpacks an archive into a folder
	cmdletBehaviorCreatesItem                         // creates a file, folder or link
)

var cmdletIndex = sync.OnceValue(func() map[string]*cmdlet {
	m := make(map[string]*cmdlet, 4*len(cmdlets))
	for i := range cmdlets {
		c := &cmdlets[i]
		m[c.name] = c
		for _, a := range c.aliases {
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

// findParamUse returns the full name and the use of a parameter that may be abbreviated.
func (c *cmdlet) findParamUse(name string) (fullName string, use parameterUse) {
	fullName = name
	for _, p := range c.params {
		if p.name == name {
			return name, p.valueUse
		}
		if use == paramUseUnlisted && strings.HasPrefix(p.name, name) {
			fullName, use = p.name, p.valueUse
		}
	}
	return fullName, use
}

// positionalParamNameAndUse returns the parameter for the i-th argument without a name; the last parameter takes all further
// arguments.
func (c *cmdlet) positionalParamNameAndUse(i int) (fullName string, use parameterUse) {
	for _, p := range c.params {
		if !p.positional {
			continue
		}
		fullName, use = p.name, p.valueUse
		if i == 0 {
			break
		}
		i--
	}
	return fullName, use
}

// isVerbNounCmdletName reports whether a lower-case name has the form Verb-Noun of PowerShell commands.
func isVerbNounCmdletName(lowerName string) bool {
	verb, noun, ok := strings.Cut(lowerName, "-")
	return ok && len(verb) > 1 && noun != "" && !strings.ContainsAny(lowerName, "./\\:") && isVerb(verb)
}

// recordRemoteChange records the remote change of an unlisted command, by the verb and the start of the noun in its
// name.
func (p *analyzer) recordRemoteChange(argv []abstract.Value, lowerCommandName string) {
	verb, noun, _ := strings.Cut(lowerCommandName, "-")
	_, written, _ := strings.Cut(argv[0].Text, "-")
	if readsElsewhere(verb) || !startsWithRemoteServiceName(noun, written) {
		return
	}
	means := meaningOf(verb)
	if means == "" && (verb == "add" || verb == "grant" || verb == "new" || verb == "set") && permissionGrantingNounPattern().MatchString(noun) {
		means = "grant"
	}
	if means == "" {
		means = "change"
	}
	p.analysisContext.RecordEffect(effect.Effect{Kind: effect.ChangeRemoteSystem, Program: lowerCommandName, RemoteOperationVerb: means, Harms: effect.HarmsOfRemoteOperation(means), Span: p.textSpanInCommand})
}

// permissionGrantingNounPattern matches nouns of commands that grant rights.
var permissionGrantingNounPattern = prefilter.LazyRegexp(granting)

// startsWithRemoteServiceName reports whether a noun begins with the name of a service. The next letter must be a capital, unless
// the name has no capitals.
func startsWithRemoteServiceName(lowerNoun, originalNoun string) bool {
	lower := len(originalNoun) != len(lowerNoun) || originalNoun == lowerNoun
	for i := 2; i <= len(lowerNoun) && i <= 24; i++ {
		if beginsElsewhere(lowerNoun[:i]) && (lower || i == len(lowerNoun) || originalNoun[i] >= 'A' && originalNoun[i] <= 'Z') {
			return true
		}
	}
	return false
}
