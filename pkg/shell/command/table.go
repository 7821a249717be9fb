package command

import "github.com/shieldcli/shield/pkg/effect"

// A row is an entry of a generated table, which is sorted by name.
type row[T any] struct {
	name string
	does *T
}

// A program is an entry of the table of programs, or of subcommands.
type program = row[syntax]

// A syntax says how the arguments of a program or of one of its subcommands
// are read. Its tables are sorted by name, so that nothing has to be built at
// start-up.
type syntax struct {
	style    style
	why      string // what its effects without an operand mean, behind its name, for people
	language string // of code on standard input
	service  string // what it changes elsewhere, "" if its words are not read as verbs
	registry string // that its words of the roles of packages are names in, "" if its parent says so
	input    role   // of a text on standard input, and in a file that it runs
	options  []option
	prefixes []option  // options such as -W*, whose name is the start of a word
	keys     []option  // operands of the form key=value
	texts    []option  // parts of the arguments, joined with blanks; a * stands for any text
	subs     []program // subcommands; a name ending in * is a prefix
	groups   []string  // words that are before a subcommand and may be passed over; one ending in * is a prefix
	operands shape
	base     *action
}

// A style is a set of habits in which programs read their arguments.
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
	open                       // options that are not listed are understood, but not as reading
	own                        // options of the parent are not valid after the subcommand
	settings                   // operands NAME=VALUE in front are environment variables
	bundled                    // letters may be bundled although style is long; options may share a word if it is slash
	slash                      // options begin with / or -, in any case, and have their value behind a colon; those not listed are of no note
	helpful                    // the update of the message help asks for help
	apart                      // the value of a bundled letter is the next word, never the rest: bash -oc errexit TEXT
)

// An option is a named argument: an option of a grammar, or the key of an
// operand.
type option = row[action]

// An action is what an option, a subcommand or a program does by itself.
type action struct {
	values   []role // of the words that follow the option
	attached bool   // the value is optional, and only the rest of the word can be it
	class    rank
	effects  []effect.Kind
	streams  streams
	operands *shape // replaces the grammar's
	turns    []turn // values and operands with one role have another
	here     role   // what happens to the working folder
	empty    role   // what happens to the working folder if no operand is in rest
	flags    flags
	verb     string // what a change elsewhere means
	harm     effect.Harm
	undo     effect.Loss
}

// A turn gives the words of one role another.
type turn struct{ from, to role }

// flags are properties of an [action].
type flags uint32

const (
	recursive   flags = 1 << iota // operands are folders with all they hold
	stop                          // what follows are operands
	reject                        // cannot be judged
	notHere                       // withdraws action.here
	widen                         // find: tests no longer narrow what is found
	remove                        // find: what is found is deleted
	mirrors                       // the destination keeps nothing that the source lacks
	takes                         // what is copied does not stay where it was
	module                        // python -m
	urls                          // each URL in the arguments is contacted
	runURLs                       // and what it sends is run
	decodes                       // files that are written hold what is read, decoded
	tells                         // words reach another machine as they are
	database                      // a word that is nothing but a variable is the address that is contacted
	dry                           // nothing is changed or sent, and no code runs: files are only read
	wet                           // withdraws dry
	near                          // what they name as HOST:PATH is a container
	recorded                      // what is looked at was recorded before, so that nothing private is read
	remote                        // what is worked on is on another machine, whatever its name
	adopts                        // repositories, charts and manifests that are named become part of a project or a cluster
	asks                          // a request of which options say the method: it reads unless one of them changes something
	elsewhereTo                   // something is written on another machine: local operands are sent there
)

// streams are the changes an action makes to standard input and output.
type streams struct {
	in, out       Stream
	setIn, setOut bool
}

// A shape says what operands are, by position.
type shape struct {
	head []role
	rest role // of any number of operands between head and tail; 0 if there can be none
	tail []role
}

// A rank orders classes.
type rank uint8

const (
	readOnly rank = iota
	localWrite
	network
	destructive
	privileged
	anything // code that is not known runs
)

func (r rank) class() effect.Class {
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

// find returns what stands for a name in a sorted table, nil if nothing does.
func find[T any](table []row[T], name string) *T {
	if i := search(table, name); i < len(table) && table[i].name == name {
		return table[i].does
	}
	return nil
}

// search returns where a name is in a sorted table, or would stand.
func search[T any](table []row[T], name string) int {
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

// findPrefix returns the action of the only option that name abbreviates.
func findPrefix(table []option, name string) *action {
	var found *action
	for i := search(table, name); i < len(table) && hasPrefix(table[i].name, name); i++ {
		if found != nil && found != table[i].does {
			return nil
		}
		found = table[i].does
	}
	return found
}

// findPrefixed returns the grammar of the longest name ending in * that name
// starts with, if it has at least so many bytes.
func findPrefixed(table []program, name string, least int) *syntax {
	var best *syntax
	length := least - 1
	for i := range table {
		n := len(table[i].name) - 1
		if n > length && table[i].name[n] == '*' && hasPrefix(name, table[i].name[:n]) {
			best, length = table[i].does, n
		}
	}
	return best
}

func hasPrefix(s, prefix string) bool {
	return len(s) >= len(prefix) && s[:len(prefix)] == prefix
}
