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
	name    string
	aliases []string
	class   effect.Class
	effect  effect.Kind // effect without an operand
	special specialEffect
	params  []param // in the order of their positions
}

// A param is a parameter of a cmdlet.
type param struct {
	name       string
	use        parameterUse
	positional bool // an argument without a parameter name can be its value
	piped      bool // each input object is its value if no argument is given
}

// A parameterUse is the effect of a parameter's value.
type parameterUse uint8

const (
	unlisted parameterUse = iota
	noted                 // no effect
	reads                 // a path is read
	writes
	deletes
	lists
	creates // a folder
	moves   // a path is moved away
	setsMode
	contactsURL
	contactsHost
	evaluates // PowerShell text
	starts    // a program
	passesOn  // the program's arguments
	runsBlock // a script block in braces, which is walked where it is written
	sends
	holds    // content of a written file
	switches // a switch without a value
	requests // HTTP method of a web request
	calls    // a method or property of each object
)

// A specialEffect is an effect of a cmdlet that its parameters cannot describe.
type specialEffect uint8

const (
	_        specialEffect = iota
	content                // outputs the content of files
	evaluate               // runs its input as PowerShell text
	output                 // outputs its arguments
	joins                  // outputs its arguments, joined to a path
	passes                 // outputs an unknown value
	items                  // outputs the files that it lists
	each                   // runs code on each input object; its output is unknown
	same                   // outputs some of the input objects
	object                 // creates a .NET object, which may connect
	folder                 // changes the working folder to its first argument
	alias                  // its arguments are an alias and a command
	variable               // its arguments are a variable and its value
	module                 // loads code from a path in its arguments
	remote                 // may run a program given in its arguments
	types                  // loads or compiles code
	asks                   // outputs a password that the user enters
	reveals                // may show a password as plain text
	unpacks                // unpacks an archive into a folder
	makes                  // creates a file, folder or link
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

// param returns the full name and the use of a parameter that may be abbreviated.
func (c *cmdlet) param(name string) (full string, u parameterUse) {
	full = name
	for _, p := range c.params {
		if p.name == name {
			return name, p.use
		}
		if u == unlisted && strings.HasPrefix(p.name, name) {
			full, u = p.name, p.use
		}
	}
	return full, u
}

// positionalParam returns the parameter for the i-th argument without a name; the last parameter takes all further
// arguments.
func (c *cmdlet) positionalParam(i int) (full string, u parameterUse) {
	for _, p := range c.params {
		if !p.positional {
			continue
		}
		full, u = p.name, p.use
		if i == 0 {
			break
		}
		i--
	}
	return full, u
}

// isVerbNoun reports whether a lower-case name has the form Verb-Noun of PowerShell commands.
func isVerbNoun(lower string) bool {
	verb, noun, ok := strings.Cut(lower, "-")
	return ok && len(verb) > 1 && noun != "" && !strings.ContainsAny(lower, "./\\:") && isVerb(verb)
}

// recordRemoteChange records the remote change of an unlisted command, by the verb and the start of the noun in its
// name.
func (p *analyzer) recordRemoteChange(argv []abstract.Value, lower string) {
	verb, noun, _ := strings.Cut(lower, "-")
	_, written, _ := strings.Cut(argv[0].Text, "-")
	if readsElsewhere(verb) || !isRemoteNoun(noun, written) {
		return
	}
	means := meaningOf(verb)
	if means == "" && (verb == "add" || verb == "grant" || verb == "new" || verb == "set") && grantNounPattern().MatchString(noun) {
		means = "grant"
	}
	if means == "" {
		means = "change"
	}
	p.w.Report(effect.Effect{Kind: effect.ChangeRemote, Program: lower, Verb: means, Harms: effect.ChangeHarms(means), Span: p.at})
}

// grantNounPattern matches nouns of commands that grant rights.
var grantNounPattern = prefilter.Lazy(granting)

// isRemoteNoun reports whether a noun begins with the name of a service. The next letter must be a capital, unless
// the name has no capitals.
func isRemoteNoun(noun, written string) bool {
	lower := len(written) != len(noun) || written == noun
	for i := 2; i <= len(noun) && i <= 24; i++ {
		if beginsElsewhere(noun[:i]) && (lower || i == len(noun) || written[i] >= 'A' && written[i] <= 'Z') {
			return true
		}
	}
	return false
}
