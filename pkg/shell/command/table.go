package command

import "github.com/shieldcli/shield/pkg/effect"

// A tableRow is an entry of a generated table, which is sorted by name.
type tableRow[T any] struct {
	name  string
	value *T
}

// A program is an entry of the table of programs, or of subcommands.
type program = tableRow[syntax]

// A syntax describes how the arguments of a program or subcommand are parsed. Its tables are sorted by name, prefixes
// by length, so that no map has to be built at start-up.
type syntax struct {
	style    style
	why      string // description of the effects without an operand, after the program's name
	language string // language of code on standard input
	service  string // remote service that the program changes; "" if none, and its arguments are not searched for verbs
	registry string // registry of its package names, "" to use the parent's
	input    role   // role of code that the program reads from standard input or from a script file
	options  []option
	prefixes []option  // options such as -W*, given by the start of the word
	keys     []option  // operands of the form key=value
	texts    []option  // parts of the joined arguments; * matches any text
	subs     []program // subcommands; a name ending in * is a prefix
	groups   []string  // words before a subcommand that can be skipped; one ending in * is a prefix
	operands shape
	base     *action
}

// A style is a set of conventions by which programs parse their arguments.
type style uint16

const (
	gnu      style = 1 << iota // long options may be abbreviated
	long                       // options have one dash and several letters; nothing is bundled
	plus                       // options may start with a plus sign
	numeric                    // -5 is an option
	first                      // options end at the first operand
	literal                    // "--" and words with a dash that are not options are operands
	bare                       // the first word may be options without a dash
	expr                       // words without a dash may be options, as in find
	open                       // options that the entry does not list are accepted, but with them the program may do more than read
	own                        // options of the parent are not valid after the subcommand
	settings                   // operands NAME=VALUE in front are environment variables
	bundled                    // one-letter options may be bundled, even with style long; with style slash, as in /q/c
	slash                      // options begin with / or -, in any case, with the value after a colon or an equals sign
	helpful                    // the last word help asks for help
	apart                      // the value of a bundled letter is the next argument, never the rest: bash -oc errexit TEXT
)

// An option is a named argument: an option of a syntax, or the key of an operand.
type option = tableRow[action]

// An action is the effect of an option, a subcommand or a program itself.
type action struct {
	values   []role // roles of the words after the option
	attached bool   // the value is optional, and must be in the same word
	class    classRank
	effects  []effect.Kind
	streams  streams
	operands *shape // replaces the syntax's operands
	turns    []turn // changes of roles
	here     role   // role of the working folder
	empty    role   // role of the working folder if the command has no operand in the place of shape.rest
	flags    flags
	verb     string // verb of a remote change
	harm     effect.Harm
	undo     effect.Loss
}

// A turn changes the role of words.
type turn struct{ oldRole, newRole role }

// flags are properties of an [action].
type flags uint32

const (
	recursive         flags = 1 << iota // operands are folders, handled recursively
	stop                                // all further words are operands
	reject                              // an operand with which the command is not understood
	notHere                             // cancels action.here
	widen                               // find: tests no longer restrict the files found
	remove                              // find: the files found are deleted
	mirrors                             // files that the source lacks are deleted in the destination
	takes                               // copied files are removed from the source
	module                              // python -m
	urls                                // each URL in the arguments is contacted
	runURLs                             // each URL in the arguments is contacted, and its response is run
	decodes                             // written files contain decoded input
	tells                               // arguments are sent to another machine unchanged
	database                            // an argument that is only a variable is the address to connect to
	dry                                 // dry run: files are only read, nothing is changed, sent or run
	wet                                 // cancels dry
	near                                // HOST:PATH names a container
	recorded                            // the program reads a recording, as tcpdump -r does, and captures nothing itself
	remote                              // the command always works on another machine, even if no argument names one
	adopts                              // the named repositories, charts and manifests become part of a project or a cluster
	asks                                // sends an HTTP request, which reads unless an option makes it change something
	remoteDestination                   // the destination is another machine: local operands are sent there
)

// streams are the changes of standard input and output by an action.
type streams struct {
	in, out       Stream
	setIn, setOut bool
}

// A shape gives the roles of operands by position.
type shape struct {
	head []role
	rest role // role of the operands between head and tail; 0 if none are allowed
	tail []role
}

// A classRank is the severity of a class.
type classRank uint8

const (
	readOnly classRank = iota
	localWrite
	network
	destructive
	privileged
	anything // runs unknown code
)

func (r classRank) class() effect.Class {
	switch r {
	case readOnly:
		return effect.ReadOnly
	case localWrite:
		return effect.LocalWrite
	case network:
		return effect.Network
	case destructive:
		return effect.Destructive
	case privileged:
		return effect.Privileged
	default:
		return effect.UnknownClass
	}
}

// findEntry returns the entry of a name in a sorted table, nil if there is none.
func findEntry[T any](table []tableRow[T], name string) *T {
	if i := searchTable(table, name); i < len(table) && table[i].name == name {
		return table[i].value
	}
	return nil
}

// searchTable returns the index of a name in a sorted table, or where it would be inserted.
func searchTable[T any](table []tableRow[T], name string) int {
	lo, hi := 0, len(table)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if table[mid].name < name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// findAbbreviated returns the action of the only option that name abbreviates, nil if there are several or none.
func findAbbreviated(table []option, name string) *action {
	var found *action
	for i := searchTable(table, name); i < len(table) && hasPrefix(table[i].name, name); i++ {
		if found != nil && found != table[i].value {
			return nil
		}
		found = table[i].value
	}
	return found
}

// findLongestPrefix returns the syntax of the longest name ending in * whose prefix matches name and has at least least
// bytes; nil if there is none.
func findLongestPrefix(table []program, name string, least int) *syntax {
	var best *syntax
	length := least - 1
	for i := range table {
		n := len(table[i].name) - 1
		if n > length && table[i].name[n] == '*' && hasPrefix(name, table[i].name[:n]) {
			best, length = table[i].value, n
		}
	}
	return best
}

func hasPrefix(s, prefix string) bool {
	return len(s) >= len(prefix) && s[:len(prefix)] == prefix
}
