package command

import "github.com/shieldcli/shield/pkg/effect"

// A programOrOptionTableEntry is an entry of a generated table, which is sorted by name.
type programOrOptionTableEntry[T any] struct {
	name  string
	value *T
}

// A program is an entry of the table of programs, or of subcommands.
type program = programOrOptionTableEntry[syntax]

// A syntax describes how the arguments of a program or subcommand are parsed. Its tables are sorted by name, prefixes
// by length, so that no map has to be built at start-up.
type syntax struct {
	argStyle               argStyle
	effectsDescription     string  // text for messages after the program's name: describes the effects that have no operand
	language               string  // language of code on standard input
	remoteService          string  // remote service that the program changes; "" if it changes none: its arguments are then not searched for verbs such as delete
	packageRegistry        string  // registry in which package names are looked up, such as npm; "" for that of the parent command
	stdinRole              argRole // role of code that the program reads from standard input or from a script file
	options                []option
	optionsMatchedByPrefix []option  // options such as -W*, given by the start of the word
	keyValueOperands       []option  // operands of the form key=value
	argTextPatterns        []option  // parts of the joined arguments; * matches any text
	subcommands            []program // subcommands; a name ending in * is a prefix
	skippableCommandGroups []string  // words before a subcommand that can be skipped; one ending in * is a prefix
	operandRoles           operandRoles
	unconditionalAction    *optionOrCommandAction
}

// An argStyle is a set of conventions by which programs parse their arguments.
type argStyle uint16

const (
	argStyleGNUAbbreviations      argStyle = 1 << iota // long options may be abbreviated
	argStyleSingleDashLong                             // options have one dash and several letters; nothing is bundled
	argStylePlusOptions                                // options may start with a plus sign
	argStyleNumericOptions                             // -5 is an option
	argStyleOptionsEndAtOperand                        // options end at the first operand
	argStyleUnlistedDashIsOperand                      // "--" and words with a dash that are not options are operands
	argStyleDashlessFirstWord                          // the first word may be options without a dash
	argStyleDashlessOptions                            // words without a dash may be options, as in find
	argStyleAllowsUnlistedOptions                      // options that the entry does not list are accepted, but with them the program may do more than read
	argStyleExcludesParentOptions                      // options of the parent are not valid after the subcommand
	argStyleLeadingAssignments                         // operands NAME=VALUE in front are environment variables
	argStyleBundledLetters                             // one-letter options may be bundled: -rf, also if long options have one dash, and /q/c for Windows options
	argStyleWindowsSlashOptions                        // options begin with / or -, in any case, with the value after a colon or an equals sign
	argStyleTrailingHelpWord                           // the word "help" as the last argument asks for help
	argStyleBundledValueIsNextArg                      // the value of a bundled letter is the next argument, never the rest: bash -oc errexit TEXT
)

// An option is a name with its action: an option such as -o, the key of an operand KEY=VALUE, or a text that is
// searched for in the joined arguments.
type option = programOrOptionTableEntry[optionOrCommandAction]

// An optionOrCommandAction is the effect of an option, a subcommand or a program itself.
type optionOrCommandAction struct {
	valueRoles               []argRole // roles of the words after the option
	hasOptionalAttachedValue bool      // the value is optional, and must be in the same word
	programClassRank         programClassRank
	effects                  []effect.Kind
	streams                  stdioContentChanges
	operandRoles             *operandRoles             // replaces the syntax's roles of operands; nil keeps them
	argRoleOverrides         []argRoleOverrideByOption // changes of the roles of words: with tar -x, an archive is read
	workingFolderRole        argRole                   // role that the action gives to the working folder, such as the written folder of tar -x
	implicitOperandRole      argRole                   // role of the working folder if no operand has the role operandRoles.middleRole, as for ls without operands
	actionFlags              actionFlags
	remoteChangeVerb         string // verb of a remote change
	harm                     effect.Harm
	nonOperandDataLosses     effect.FileLossSet
}

// An argRoleOverrideByOption is a change of the role of words that an option causes.
type argRoleOverrideByOption struct{ oldRole, newRole argRole }

// actionFlags are properties of an [optionOrCommandAction].
type actionFlags uint32

const (
	actionFlagRecursive                   actionFlags = 1 << iota // operands are folders, handled recursively
	actionFlagEndsOptions                                         // all further words are operands
	actionFlagUnjudgeable                                         // an argument with unknown effects: with it, the command is not understood
	actionFlagCancelsWorkingFolderRole                            // cancels action.workingFolderRole
	actionFlagFindFiltersIneffective                              // find: tests no longer restrict the files found
	actionFlagDeletesFoundFiles                                   // find: the files found are deleted
	actionFlagDeletesExtraneousFiles                              // files that the source lacks are deleted in the destination
	actionFlagRemovesSourceFiles                                  // copied files are removed from the source
	actionFlagRunsPythonModule                                    // python -m
	actionFlagContactsURLsInArgs                                  // each URL in the arguments is contacted
	actionFlagRunsURLResponses                                    // each URL in the arguments is contacted, and its response is run
	actionFlagWritesDecoded                                       // written files contain decoded input
	actionFlagSendsArguments                                      // arguments are sent to another machine unchanged
	actionFlagVariableIsDatabaseURL                               // an argument that is only a variable is the address to connect to
	actionFlagDryRun                                              // dry run: files are only read, nothing is changed, sent or run
	actionFlagCancelsDryRun                                       // cancels a dry run that another option requests
	actionFlagColonPrefixNamesContainer                           // HOST:PATH names a container
	actionFlagReadsPcapFile                                       // the program reads a recording, as tcpdump -r does, and captures nothing itself
	actionFlagTargetIsRemote                                      // the command always works on another machine, even if no argument names one
	actionFlagImportsReposChartsManifests                         // the named repositories, charts and manifests become part of a project or a cluster
	actionFlagHTTPReadByDefault                                   // sends an HTTP request, which reads unless an option makes it change something
	actionFlagDestinationIsRemote                                 // the destination is another machine: local operands are sent there
)

// stdioContentChanges are the changes of standard input and output by an action.
type stdioContentChanges struct {
	stdin, stdout         StreamContentKind
	setsStdin, setsStdout bool
}

// An operandRoles value gives the roles of operands by position.
type operandRoles struct {
	firstRoles []argRole
	middleRole argRole // role of the operands between those of firstRoles and lastRoles; 0 if none are allowed
	lastRoles  []argRole
}

// A programClassRank is an [effect.ProgramClass] as a number that grows with the severity of the class.
type programClassRank uint8

const (
	readOnlyProgramClassRank programClassRank = iota
	localWriteProgramClassRank
	networkProgramClassRank
	destructiveProgramClassRank
	privilegedProgramClassRank
	unknownProgramClassRank // runs unknown code; the most severe class
)

func (r programClassRank) programClass() effect.ProgramClass {
	switch r {
	case readOnlyProgramClassRank:
		return effect.ReadOnly
	case localWriteProgramClassRank:
		return effect.LocalWrite
	case networkProgramClassRank:
		return effect.Network
	case destructiveProgramClassRank:
		return effect.Destructive
	case privilegedProgramClassRank:
		return effect.Privileged
	default:
		return effect.UnknownClass
	}
}

// findEntry returns the entry of a name in a sorted table, nil if there is none.
func findEntry[T any](table []programOrOptionTableEntry[T], name string) *T {
	if i := searchTable(table, name); i < len(table) && table[i].name == name {
		return table[i].value
	}
	return nil
}

// searchTable returns the index of a name in a sorted table, or where it would be inserted.
func searchTable[T any](table []programOrOptionTableEntry[T], name string) int {
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

// findOptionByAbbreviation returns the action of the only option that name abbreviates, nil if there are several or none.
func findOptionByAbbreviation(table []option, abbreviation string) *optionOrCommandAction {
	var found *optionOrCommandAction
	for i := searchTable(table, abbreviation); i < len(table) && hasPrefix(table[i].name, abbreviation); i++ {
		if found != nil && found != table[i].value {
			return nil
		}
		found = table[i].value
	}
	return found
}

// findLongestPrefix returns the syntax of the longest name ending in * whose prefix matches name
// and has at least minPrefixLen bytes; nil if there is none.
func findLongestPrefix(table []program, name string, minPrefixLen int) *syntax {
	var best *syntax
	length := minPrefixLen - 1
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
