package pwsh

import (
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

//go:generate go run ./gen

// A cmdlet is a command of PowerShell: what its parameters name. The table of
// them is compiled from cmdlets.yaml.
type cmdlet struct {
	name    string
	aliases []string
	class   effect.Class
	effect  effect.Kind // without an operand
	special special
	params  []param // in the order of their positions
}

// A param is a parameter of a cmdlet.
type param struct {
	name       string
	use        use
	positional bool // an argument without a name may be its value
	piped      bool // each object of the input is its value if no argument is
}

// A use is what happens to a parameter's value.
type use uint8

const (
	unlisted use = iota
	noted        // nothing
	reads        // a path is read
	writes
	deletes
	lists
	creates // a folder
	moves   // a path goes away
	setsMode
	contactsURL
	contactsHost
	evaluates // PowerShell text
	starts    // a program
	passesOn  // the program's arguments
	runsBlock // PowerShell in braces, which is walked where it stands
	sends
	holds    // what a written file holds from then on
	switches // it has no value
	requests // the method of a web request
	calls    // a method or a property of each object
)

// A special is what cannot be said by a cmdlet's parameters.
type special uint8

const (
	_        special = iota
	content          // its output is what the file holds
	evaluate         // it runs its input as PowerShell text
	output           // its output is its arguments
	joins            // its output is its arguments as a path
	passes           // its output says nothing of its input
	items            // its output are the files that it lists
	each             // it runs code on each object of its input, and its output says nothing of that
	same             // its output are objects of its input
	object           // a .NET object: it may connect
	folder           // its first argument is the working folder from then on
	alias            // its arguments are a name and what that stands for
	variable         // its arguments are a name and its value
	module           // a path among its arguments is code
	remote           // it may run a program by its arguments
	types            // it loads code, or compiles it
	asks             // its output is a password that the user is asked for
	reveals          // it may show such a password as text
	unpacks          // it puts what an archive holds into a folder
	makes            // it makes a file or a folder, or a link to one
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

// param returns the full name and the use of a parameter that may be
// abbreviated.
func (c *cmdlet) param(name string) (full string, u use) {
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

// position returns the parameter that the i-th argument without a name fills;
// all beyond the last fill that.
func (c *cmdlet) position(i int) (full string, u use) {
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

// verbNoun reports whether a name in lower case is written as PowerShell's
// commands are.
func verbNoun(lower string) bool {
	verb, noun, ok := strings.Cut(lower, "-")
	return ok && len(verb) > 1 && noun != "" && !strings.ContainsAny(lower, "./\\:") && isVerb(verb)
}

// changesElsewhere reports what a command that is not listed changes on another
// service, by the verb of its name and the beginning of its noun.
func (p *pwsh) changesElsewhere(argv []abstract.Value, lower string) {
	verb, noun, _ := strings.Cut(lower, "-")
	_, written, _ := strings.Cut(argv[0].Text, "-")
	if readsElsewhere(verb) || !isElsewhere(noun, written) {
		return
	}
	means := meaningOf(verb)
	if means == "" && (verb == "add" || verb == "grant" || verb == "new" || verb == "set") && grants().MatchString(noun) {
		means = "grant"
	}
	if means == "" {
		means = "change"
	}
	p.w.Report(effect.Effect{Kind: effect.ChangeRemote, Program: lower, Verb: means, Harms: effect.ChangeHarms(means), From: p.at})
}

// grants matches nouns of what gives someone more rights.
var grants = prefilter.Lazy(granting)

// isElsewhere reports whether a noun begins with a name of a service, behind which
// the noun goes on with a capital, unless it is written without any.
func isElsewhere(noun, written string) bool {
	lower := len(written) != len(noun) || written == noun
	for i := 2; i <= len(noun) && i <= 24; i++ {
		if beginsElsewhere(noun[:i]) && (lower || i == len(noun) || written[i] >= 'A' && written[i] <= 'Z') {
			return true
		}
	}
	return false
}
