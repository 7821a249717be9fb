// Package shell reads a command line and says what running it would do. It
// parses, it never runs, expands from the environment, or fetches anything.
// [Analyze] is the only way in (shell.go).
//
// The package is an abstract machine: it walks the syntax tree in the order in
// which a shell would run it, with values that may be partly unknown, and
// writes down effects where a shell would act. What it does not know it says
// (effect Dynamic); it never guesses that something is harmless.
//
// # Values
//
// A word, a variable's content and what a stream carries are an
// [abstract.Value]: a literal text, or a pattern that every text it may be
// matches (see [effect.Overlap]), so "/tmp/$X.log" keeps its two ends. Taints
// say where a value comes from: Network, Decoded, Secret, Credential, Dump,
// Foreign, Socket, Private, ShellOut, Local, Held. They follow the value through
// concatenation, pipes, substitutions and files. A value is at most 64 KiB;
// a longer one becomes unknown.
//
// # State
//
// A state (walk.go) is one analysis: variables, functions, aliases, files,
// links, descriptors, the working folder, positional parameters, and the
// effects so far.
//
// Variables are a log of bindings that is read backwards (vars.go). Leaving a
// subshell cuts the log. The working folder and the positional parameters are
// bindings, too, under names that no variable has. A value is known only where
// bash, dash and busybox agree, in the walk for zsh where that does; e2e/soundness
// compares with them.
//
//   - Joins: what a branch, the right side of &&, or a side of a pipe assigned
//     is weakened: the binding counts beside the older ones, not instead of them.
//   - Disjunction: a variable with several weak bindings has up to 8 values.
//     A simple command is walked once for each combination (inRounds in vars.go);
//     beyond 8, and outside of commands, the variable is unknown. Effects that repeat
//     are dropped.
//   - zsh: a text that does not say of which shell it is, and of which zsh reads some part
//     in another way, is walked a second time as zsh reads it, and what either walk shows
//     counts (asZsh in zsh.go).
//   - Conditions: what is known of the status of a command decides which branch
//     runs (exit.go). One that does not is walked for its effects, but for what
//     is unknown in it, and nothing of it lasts (unreached).
//   - Loops: "for" over words is walked once for each word. "while", "until" and
//     "for ((…))" are walked turn by turn while their condition is decided, at most
//     16 times. From there on they are walked a second time if they assign, with what
//     they assigned unknown; all they assign is weak afterwards (loop.go).
//   - Output of what may not run is unknown (maybe in branch.go), and so is what stands
//     behind break, return or exit, or is left of an input that was read.
//   - Other shells: what a program starts sees only what is exported (child).
//   - Functions are walked where they are called, at most 8 deep; those never
//     called are walked at the end (finish), since later text may call them.
//   - Files: what the text writes to a path is kept (files.go), so that reading
//     or running the path later uses it. Every version counts, since the branch
//     that wrote the newest may not have run. link.go follows links that the
//     text makes.
//
// # From words to effects
//
//	word.go param.go brace.go arith.go match.go subst.go   expansion of words
//	redirect.go                                           descriptors, here-documents, /dev/tcp
//	call.go                                               a simple command: alias, function, builtin, program
//	builtin.go declare.go fold.go                         what the shell does itself; printf and text that can be computed
//	program.go                                            a program: command.Interpret, then apply
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
// runText looks at the taint first (the network sent it, a decoder made it), then
// walks the text if it is known.
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
// use internal/abstract/worldtest. internal/plain computes what filters write,
// internal/parse calls the parser of mvdan.cc/sh within bounds, and package
// dialect turns lines of zsh and fish into text of this family.
package shell
