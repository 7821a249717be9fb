// Package shell reads a command line and says what running it would do. It
// parses, it never runs, expands from the environment, or fetches anything.
// [Analyze] is the only way in (shell.go).
//
// The package is an abstract machine: it walks the syntax tree in the order in
// which a shell would run it, with values that may be partly unknown, and
// writes down effects where a shell would act. What it does not know it says (an
// effect of the certainty Unknown, which policies call dynamic); it never guesses
// that something is harmless.
//
// # Values
//
// A word, a variable's content and what a stream carries are an
// [abstract.Value]: a literal text, or a pattern that every text it may be
// matches (see [effect.Overlap]), so "/tmp/$X.log" keeps its two ends. Taints
// say where a value comes from, and origins where what is not known of it comes
// from. They follow the value through concatenation, pipes, substitutions and
// files. A value is at most 64 KiB; a longer one becomes unknown.
//
// # Unknown is the floor
//
// What is exact: text, parameters and their usual expansions, arrays that are
// written out, arithmetic on numbers that are written out, "for" over words that
// are known, functions. All else is unknown, with a cause: arithmetic on
// variables (a number), what read and mapfile get, members that are set one by
// one, attributes (declare -i, -u, -A, -n), words that are split at other
// characters than blanks, statuses of commands, replacements by a pattern, what an
// alias stands for, and what filters write by regular expressions. An unknown value
// that the text computes has the origin FromText: as a word of a program, as code, as
// what a command changes, as a file that is read or as the name of a variable, it is a
// Dynamic effect of the cause "unresolved", which no model clears. A variable that
// something unknown may have set is Forgotten: it counts so as the name of a program,
// as code and as what a command changes.
//
// # One value for what a shell knows
//
// A state (state.go) is one analysis. It holds three values:
//
//   - Shell (fork.go): what one shell knows at one point. Fork copies it, Join
//     merges two of them; nothing else copies or restores what it holds. apart
//     walks a subshell, either and may walk alternatives, loop walks something any
//     number of times until another time shows nothing new, each walks a command
//     once for each text that its variables may hold, at most eight, child walks
//     what another program starts.
//   - machine: what all shells of a text share, such as the files that it wrote.
//     It only grows; what a part adds that may not run is marked (doubt).
//   - scope: what holds for the part that is walked; within ends it.
//
// break, continue, return and errors that end a line do not end the walk: what
// the shell knows there is joined with what it knows at the end of the loop, the
// function or the line (mayLeave, comesTo).
//
// Conditions are not decided: both branches are walked. Traps are walked where
// they are set and where the shell ends, and what they name keeps all that it
// held. Functions are walked where they are called, at most 8 deep; those never
// called are walked at the end (finish).
//
// # Dialects
//
// A form that means the same in bash, POSIX shells and zsh is walked. A form that
// zsh reads in another way is an entry of a table (dialects.go): where nothing
// says about which shell the text is, the command is walked a second time, with that
// form unknown. What zsh alone has and that runs code is Dynamic, of the cause
// "dialect". Package dialect turns lines of fish into text of this family.
//
// # From words to effects
//
//	walk.go call.go function.go                           statements, simple commands, functions
//	word.go param.go brace.go arith.go match.go subst.go  expansion of words
//	vars.go declare.go                                    variables
//	redirect.go files.go                                  descriptors, here-documents, /dev/tcp; what the text wrote
//	builtin.go builtincode.go read.go fold.go             what the shell does itself; text that can be computed
//	program.go                                            a program: command.Interpret, then apply
//	packages.go unpack.go                                 packages by registry and name; members of archives
//	listing.go guess.go                                   lists of paths; commands that an unknown program may run
//	carrier.go                                            commands and code in a program's arguments or its input
//	environ.go windows.go                                 variables and registry keys that run code
//	language.go detect.go                                 which reader walks code of which language
//	flow.go emit.go                                       sinks: effects are written down here
//
// The transfer function of a program is not Go but an entry in
// command/programs/*.yaml: which operands are read, written, deleted, contacted
// or run, and what the streams carry. command.Interpret returns a command.Use,
// which apply turns into effects and an output value. A program without an entry
// is of class Unknown, and its words are looked at for paths and addresses
// (suspect).
//
// The sinks are emit for every effect, path for one on a file, url and host for
// the network, upload for secrets that leave, leaves for all else that a file or a
// command of this machine says (send.go), show for credentials that nothing takes
// (show.go), runText for a value that is run as code, and execute for a command.
//
// # Budget
//
// An analysis visits at most 20,000 nodes, words and commands (step), nests
// commands 100 deep (enter) and has at most 2,000 effects (limit.go). Length and
// nesting of the text are checked before the parser runs (internal/parse). Where
// a bound is met, giveUp ends the walk and leaves a Dynamic effect over the
// whole text. A panic does the same.
//
// # Leaves
//
// Readers of other languages are packages of their own and know nothing of a
// state: internal/pwsh (PowerShell), internal/cmdexe (cmd.exe) and
// internal/script (Python, JavaScript, Perl, Ruby, PHP, Lua, awk, AppleScript). They ask and
// report through [abstract.World], which world.go implements; their own tests
// use internal/abstract/worldtest. internal/plain computes what filters write, and
// internal/parse calls the parser of mvdan.cc/sh within bounds.
package shell
