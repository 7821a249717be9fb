// Package shell analyses a command line and returns the effects that it would have if it ran. It
// only parses the text: it runs nothing, expands no variables of the environment and fetches
// nothing. The entry points are [Analyze] (shell.go) and, for the content of a written file,
// [AnalyzeWrittenFile] (written.go).
//
// The package is an abstract machine: it walks the syntax tree in the order in which a shell would
// run it, with values that may be partly unknown, and records effects where a shell would act.
// Where the result is unknown, it records an effect of the certainty Unknown, which policies call
// dynamic; it never assumes that an unknown command is harmless.
//
// # Values
//
// Words, contents of variables and streams are an [abstract.Value]: a literal text, or a pattern
// that matches every possible text (see [effect.PatternsOverlap]), so "/tmp/$X.log" keeps its two ends.
// Taints say where a value comes from, and origins where its unknown parts come from. They follow
// the value through concatenation, pipes, substitutions and files. A value is at most 64 KiB; a
// longer one becomes unknown.
//
// # Known and unknown values
//
// Computed exactly: literal text, parameters and their usual expansions, literal arrays, arithmetic
// on literal numbers, "for" over known words, functions. All other values are unknown, with a
// cause: arithmetic on variables (a number), the results of read and mapfile, array members set one
// by one, attributes (declare -i, -u, -A, -n), word splitting with an IFS that is not the default,
// exit statuses, replacements by a pattern, the text of an alias, and the output of filters with
// regular expressions. An unknown value that the text computes has the origin
// OriginUnanalysedComputation: as an argument, code, the target of a change, a file to read or a
// variable's name, it is a Dynamic effect with the cause "unresolved", which no model can allow. A
// variable that an unknown assignment may have set has the origin OriginAssignmentToUnknownName: if it is
// used as a program's name, as code or as the target of a change, this is also a Dynamic effect
// with the cause "unresolved".
//
// # The state of a shell
//
// A state (state.go) is one analysis. It consists of three values:
//
//   - Shell (fork.go): the state of one shell at one point. Fork copies it, Join
//     merges copies; no other code copies or restores its fields. walkSubshell
//     walks a subshell, walkAlternativeBranches and walkCodeThatMayRun walk code that may or
//     may not run, walkLoop walks a loop until an iteration changes nothing
//     new, walkEachVariableValue walks a command once for each combination of values
//     that its variables may have, at most eight, and walkChildProcess walks the
//     commands that another program starts.
//   - stateSharedByAllShells (state.go): data that all shells of a text share, such as the
//     files that it wrote. It only grows; writes that may not happen are marked
//     as uncertain.
//   - nestedTextScope (state.go): the state of the nested part that is walked; walkInNestedTextScope
//     restores the outer one.
//
// break, continue, return and errors that end a line do not end the walk: the shell's state there
// is joined with the state at the end of the loop, function or line (addEarlyExit, joinEarlyExits).
//
// Conditions are not evaluated: both branches are walked. Traps are walked where they are set and
// where the shell ends, and the variables in them keep all earlier values. Functions are walked
// where they are called, at most 8 deep; those never called are walked at the end
// (walkTrapsAndUncalledFunctions).
//
// # Dialects
//
// A form that means the same in bash, POSIX shells and zsh is walked. A form that zsh reads
// differently is an entry of a table (dialects.go): if the shell is not known, the command is
// walked a second time, with the value of that form unknown. A form that only zsh has and that runs
// code is Dynamic, with the cause "dialect". Package dialect translates lines of fish to POSIX
// shell text.
//
// # From words to effects
//
//	walk.go call.go function.go                           statements, simple commands, functions
//	word.go param.go brace.go arith.go match.go subst.go  expansion of words
//	vars.go declare.go                                    variables
//	redirect.go files.go                                  descriptors, here-documents, /dev/tcp; files that the text wrote
//	builtin.go builtincode.go read.go fold.go             builtins; output that can be computed
//	program.go                                            a program: command.Interpret, then recordProgramEffects
//	packages.go unpack.go                                 packages by registry and name; members of archives
//	listing.go guess.go                                   lists of paths; commands that an unknown program may run
//	carrier.go                                            commands and code in a program's arguments or its input
//	environ.go windows.go                                 variables and registry keys that run code
//	language.go detect.go                                 analyzers of code in other languages
//	flow.go emit.go                                       sinks: effects are recorded here
//
// The transfer function of a program is not Go but an entry in command/programs/*.yaml: which
// operands are read, written, deleted, contacted or run, and what data the streams carry.
// command.Interpret returns a command.Interpretation, which recordProgramEffects turns into effects
// and an output value. A program without an entry is of class Unknown, and its arguments are
// checked for paths and URLs (recordPathOrURL).
//
// The sinks are emit for every effect, emitPathEffect for files, emitURLEffect and emitHostEffect for the network,
// recordUpload for secrets that are sent, recordSentValue for other local data that is sent
// (send.go), recordReadSecretEffect for credentials that are printed (show.go), walkExecutedText
// for a value that is run as code, and recordExecuteEffect for a command.
//
// # Budget
//
// An analysis visits at most 20,000 nodes, words and commands (spendSteps), nests commands 100 deep
// (enterNesting) and has at most 2,000 effects (limit.go). Length and nesting of the text are
// checked before the parser runs (internal/parse). Where a bound is reached, abortAnalysis ends the walk
// and leaves a Dynamic effect over the whole text. A panic does the same.
//
// # Other languages
//
// Analyzers of other languages are separate packages that do not use the type state: internal/pwsh
// (PowerShell), internal/cmdexe (cmd.exe) and internal/script (Python, JavaScript, Perl, Ruby, PHP,
// Lua, awk, AppleScript). They access the analysis through [abstract.AnalysisContext], which world.go
// implements; their own tests use internal/abstract/worldtest. internal/plain computes the output
// of filters, and internal/parse calls the parser of mvdan.cc/sh within bounds.
package shell
