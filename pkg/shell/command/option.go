package command

import "strings"

// parseOption handles args[i] if it is an option, with the arguments that are its values, and returns the index of the
// next argument.
func (r *argParser) parseOption(i int) (next int, ok bool) {
	w := r.args[i].Text
	style := r.innermostSyntax.argStyle
	if style&argStyleWindowsSlashOptions != 0 {
		return r.parseSlashOption(i)
	}
	if style&argStyleDashlessOptions != 0 {
		if a := r.lookupOption(w); a != nil {
			return r.parseOptionValues(a, w, i+1), true
		}
	}
	if w == "-" {
		a := r.lookupOption(w)
		if a == nil {
			return i, false
		}
		r.applyAction(a)
		return i + 1, true
	}
	if len(w) > 1 && w[0] == '@' {
		return r.parseOptionMatchedByPrefix(i) // @FILE: a file with more arguments
	}
	if len(w) < 2 || w[0] != '-' && (w[0] != '+' || style&argStylePlusOptions == 0) {
		return i, false
	}
	if w == "--" && style&argStyleUnlistedDashIsOperand == 0 {
		r.optionsEnded = true
		return i + 1, true
	}
	if style&argStyleNumericOptions != 0 && isNumeric(w) {
		return i + 1, true
	}
	if hasPrefix(w, "--") || style&argStyleSingleDashLong != 0 {
		next, ok = r.parseLongOption(i)
		if ok || style&argStyleBundledLetters == 0 || hasPrefix(w, "--") {
			if !ok && style&argStyleUnlistedDashIsOperand != 0 {
				return i, false
			}
			if !ok {
				next = r.addUnknownOption(i)
			}
			return next, true
		}
	}
	if style&argStyleUnlistedDashIsOperand != 0 && r.lookupOption(w[:2]) == nil {
		return i, false
	}
	return r.parseBundledOptions(i, w[1:]), true
}

// lookupOption returns the action of an option by its full name.
func (r *argParser) lookupOption(name string) *optionOrCommandAction {
	for d := r.enteredSyntaxCount - 1; d >= 0; d-- {
		if a := findEntry(r.syntaxBySubcommandDepth[d].options, name); a != nil {
			return a
		}
		if r.levelExcludesParentOptions(d) {
			break
		}
	}
	return nil
}

// levelExcludesParentOptions reports whether the options of parent commands are invalid after the subcommand at
// level subcommandLevel; false for level 0, which is the program itself.
func (r *argParser) levelExcludesParentOptions(subcommandLevel int) bool {
	return subcommandLevel > 0 && r.syntaxBySubcommandDepth[subcommandLevel-1].argStyle&argStyleExcludesParentOptions != 0
}

// parseLongOption handles --name, --name=value, --name value, abbreviations of GNU options, and the same with one dash.
func (r *argParser) parseLongOption(i int) (next int, ok bool) {
	w := r.args[i]
	name, eq := w.Text, strings.IndexByte(w.Text, '=')
	if eq >= 0 {
		name = w.Text[:eq]
	}
	a := r.lookupOption(name)
	if a == nil && r.innermostSyntax.argStyle&argStyleSingleDashLong != 0 && hasPrefix(name, "--") {
		a = r.lookupOption(name[1:])
	}
	if a == nil && len(name) > 2 && hasPrefix(name, "--") {
		a = r.lookupOptionByAbbreviation(name)
	}
	if a == nil {
		return r.parseOptionMatchedByPrefix(i)
	}
	if eq < 0 {
		return r.parseOptionValues(a, name, i+1), true
	}
	r.applyOption(a, skipBytes(w, eq+1))
	if a.actionFlags&actionFlagUnjudgeable != 0 {
		r.setNotUnderstood("option %s cannot be judged", name)
	}
	if len(a.valueRoles) > 0 && a.valueRoles[0].coversRemainingArgs() {
		r.values = r.values[:len(r.values)-1]
		r.addNestedCommand(a.valueRoles[0], []Word{skipBytes(w, eq+1)})
	}
	return i + 1, true
}

// Actions of options that nearly every program has, and of negated options.
var (
	helpOption          = optionOrCommandAction{streams: stdioContentChanges{setsStdin: true}}
	negatedOptionAction = optionOrCommandAction{}
)

// lookupOptionByAbbreviation returns the action of an option that is abbreviated as GNU programs allow, negated with --no-, or
// common to nearly all programs.
func (r *argParser) lookupOptionByAbbreviation(abbreviation string) *optionOrCommandAction {
	for d := r.enteredSyntaxCount - 1; d >= 0; d-- {
		g := r.syntaxBySubcommandDepth[d]
		if g.argStyle&argStyleGNUAbbreviations != 0 {
			if a := findOptionByAbbreviation(g.options, abbreviation); a != nil {
				return a
			}
		}
		if r.levelExcludesParentOptions(d) {
			break
		}
	}
	if abbreviation == "--help" || abbreviation == "--version" {
		return &helpOption
	}
	if hasPrefix(abbreviation, "--no-") {
		if a := r.lookupOption("--" + abbreviation[len("--no-"):]); a != nil && a.actionFlags&actionFlagUnjudgeable == 0 {
			return &negatedOptionAction
		}
	}
	return nil
}

// parseOptionMatchedByPrefix handles a word that starts with the name of an option, as -Wall does with -W*.
func (r *argParser) parseOptionMatchedByPrefix(i int) (next int, ok bool) {
	w := r.args[i]
	for d := r.enteredSyntaxCount - 1; d >= 0; d-- {
		for k := range r.syntaxBySubcommandDepth[d].optionsMatchedByPrefix {
			o := &r.syntaxBySubcommandDepth[d].optionsMatchedByPrefix[k]
			if hasPrefix(w.Text, o.name) {
				r.applyOption(o.value, skipBytes(w, len(o.name)))
				if len(o.value.valueRoles) == 1 && o.value.valueRoles[0] == argRoleTextOrPath && !strings.Contains(w.Text, "=") {
					r.addPossibleOptionValue(i)
				}
				if o.value.actionFlags&actionFlagUnjudgeable != 0 {
					r.setNotUnderstood("option %s cannot be judged", w.Text)
				}
				return i + 1, true
			}
		}
		if r.levelExcludesParentOptions(d) {
			break
		}
	}
	return i, false
}

// parseBundledOptions handles bundled option letters, the last of which may have a value: -rf, -ofile, -o file.
func (r *argParser) parseBundledOptions(i int, letters string) int {
	w := r.args[i]
	start := len(w.Text) - len(letters)
	after := i + 1
	var name [2]byte
	name[0] = '-'
	if w.Text[0] == '+' {
		name[0] = '+'
	}
	for k := 0; k < len(letters); k++ {
		name[1] = letters[k]
		a := r.lookupOption(string(name[:]))
		if a == nil {
			if k == 0 {
				if next, ok := r.parseOptionMatchedByPrefix(i); ok {
					return next
				}
			}
			if r.innermostSyntax.argStyle&argStyleNumericOptions != 0 && letters[k] >= '0' && letters[k] <= '9' {
				continue
			}
			return r.addUnknownOption(i)
		}
		if (start == 0 || r.innermostSyntax.argStyle&argStyleBundledValueIsNextArg != 0) && len(a.valueRoles) > 0 {
			// Without a dash, as in tar cfz x.tar, the values are the next arguments.
			after = r.parseOptionValues(a, string(name[:]), after)
			continue
		}
		rest := skipBytes(w, start+k+1)
		if len(a.valueRoles) == 0 {
			r.applyAction(a)
			r.setNotUnderstoodIfUnjudgeable(a, name[:])
			continue
		}
		if a.hasOptionalAttachedValue {
			// An optional value is the rest of the word: sed -i.bak, sed -iE.
			r.applyAction(a)
			if rest.Text != "" {
				r.values = append(r.values, valueWithRole{a.valueRoles[0], rest, len(r.operandArgIndexes), a.valueRunsBeforeMainScript()})
			}
			return i + 1
		}
		if rest.Text != "" {
			r.setNotUnderstoodIfUnjudgeable(a, name[:])
			if a.valueRoles[0].coversRemainingArgs() {
				r.applyAction(a)
				r.addNestedCommand(a.valueRoles[0], []Word{rest})
				return i + 1
			}
			r.applyOption(a, rest)
			return i + 1
		}
		return r.parseOptionValues(a, string(name[:]), i+1)
	}
	return after
}

func (r *argParser) setNotUnderstoodIfUnjudgeable(a *optionOrCommandAction, name []byte) {
	if a.actionFlags&actionFlagUnjudgeable != 0 {
		r.setNotUnderstood("option %s cannot be judged", string(name))
	}
}

// parseOptionValues applies an option and reads its values from args[i] on.
func (r *argParser) parseOptionValues(a *optionOrCommandAction, name string, i int) int {
	r.applyAction(a)
	if a.actionFlags&actionFlagUnjudgeable != 0 {
		r.setNotUnderstood("option %s cannot be judged", name)
	}
	if a.hasOptionalAttachedValue {
		return i
	}
	for _, role := range a.valueRoles {
		if role.coversRemainingArgs() {
			end := len(r.args)
			if role == argRoleArgvUntilSemicolon {
				end = r.findSemicolon(i)
			}
			if i < end {
				r.addNestedCommand(role, r.args[i:end])
			}
			return min(end+1, len(r.args))
		}
		if i >= len(r.args) {
			r.setNotUnderstood("option %s has no value", name)
			return i
		}
		r.values = append(r.values, valueWithRole{role, r.args[i], len(r.operandArgIndexes), a.valueRunsBeforeMainScript()})
		i++
	}
	return i
}

// findSemicolon returns the index of the word that ends a nested command of find, or the number of words if none does.
func (r *argParser) findSemicolon(i int) int {
	for ; i < len(r.args); i++ {
		switch r.args[i].Text {
		case ";", `\;`:
			return i
		case "+":
			if r.args[i-1].Text == "{}" {
				return i
			}
		}
	}
	return i
}

// addUnknownOption handles an option that the entry of the program does not list. If the entry
// allows unlisted options, the option raises the class of the command to local write; otherwise the
// command is not understood. The next word can be the value of the option: it is recorded as
// unrecognized, and it is also parsed as an operand.
func (r *argParser) addUnknownOption(i int) int {
	w := r.args[i]
	r.addHarmsOfBundledOptions(w.Text)
	if !r.allowsUnlistedOptions() || w.IsGlobPattern {
		r.setNotUnderstood("unknown option %s", w.Text)
	} else {
		r.raiseProgramClass(localWriteProgramClassRank)
	}
	if eq := strings.IndexByte(w.Text, '='); eq >= 0 {
		r.values = append(r.values, valueWithRole{role: argRoleTextOrPath, word: skipBytes(w, eq+1)})
		return i + 1
	}
	r.addUnrecognizedWord(w, true)
	r.addPossibleOptionValue(i)
	return i + 1
}

// addPossibleOptionValue records the word after an unknown option, because it can be the value of
// the option. It does not record devices such as /dev/sda, because they are parsed as operands.
func (r *argParser) addPossibleOptionValue(optionIndex int) {
	if optionIndex+1 < len(r.args) && !hasPrefix(r.args[optionIndex+1].Text, "-") && !hasPrefix(r.args[optionIndex+1].Text, "/dev/") {
		r.addUnrecognizedWord(r.args[optionIndex+1], true)
	}
}

// addUnrecognizedWord records an argument whose effect the program's entry does not tell. maybeOptionValue is as
// in [UnrecognizedWord].
func (r *argParser) addUnrecognizedWord(w Word, maybeOptionValue bool) {
	r.result.Unrecognized = append(r.result.Unrecognized, UnrecognizedWord{w, maybeOptionValue})
}

// allowsUnlistedOptions reports whether the entry of the program or subcommand accepts options that it does not
// list (argStyleAllowsUnlistedOptions). With these options, the program may do more than read.
func (r *argParser) allowsUnlistedOptions() bool {
	for d := r.enteredSyntaxCount - 1; d >= 0; d-- {
		if r.syntaxBySubcommandDepth[d].argStyle&argStyleAllowsUnlistedOptions != 0 {
			return true
		}
		if r.levelExcludesParentOptions(d) {
			break
		}
	}
	return false
}

// isNumeric reports whether w is a signed number, as in head -5 or tail +3.
func isNumeric(w string) bool {
	for i := 1; i < len(w); i++ {
		if w[i] < '0' || w[i] > '9' {
			return false
		}
	}
	return true
}

// isEnvironmentAssignment reports whether w has the form NAME=VALUE. NAME may contain characters that shells do not allow, as in
// exported bash functions.
func isEnvironmentAssignment(w string) bool {
	name, _, ok := strings.Cut(w, "=")
	return ok && name != "" && !strings.ContainsAny(name, "/ \t\n") && (name[0] == '_' || name[0]|0x20 >= 'a' && name[0]|0x20 <= 'z')
}
