package command

import (
	"slices"
	"strings"
)

// An Installer is a program that installs programs into a folder of $PATH; see installers.yaml.
type Installer struct {
	ProgramNameLookupMethod  string   // how to find the names of the installed programs; "" if they are unknown
	DefaultBinFolders        []string // default folders: the first whose variables are set is used
	OperandsAreRegistryNames bool     // operands that do not look like paths are names in a registry

	requiredOperands, requiredOneOfOptions, binFolderOptions, installPrefixOptions, packageSourceOptions, programNameOptions, optionsWithIgnoredValue []string
}

// An Installation says what an installer, such as go install or pip, installs and into which folders.
type Installation struct {
	*Installer
	TargetFolders []Word // target folders; none for the default
	Sources       []Word // packages or paths that are installed
	ProgramNames  []Word // names of the installed programs
}

// FindInstallations returns the installations that an installer's arguments ask for.
func FindInstallations(args []Word) []Installation {
	var out []Installation
	for _, i := range installersOf(args[0].Text) {
		if in, ok := installers[i].parseArgs(args[1:]); ok {
			out = append(out, in)
		}
	}
	return out
}

func (l *Installer) parseArgs(args []Word) (in Installation, ok bool) {
	in.Installer = l
	needed, ended := len(l.requiredOneOfOptions) == 0, false
	var operands []Word
	for i := 0; i < len(args); i++ {
		w := args[i]
		name, value, attached := w.Text, Word{}, false
		if eq := strings.IndexByte(w.Text, '='); eq > 0 {
			name, value, attached = w.Text[:eq], skipBytes(w, eq+1), true
		} else if colon := strings.IndexByte(w.Text, ':'); colon > 0 && strings.HasPrefix(w.Text, "-") { // an option of Nim
			name, value, attached = w.Text[:colon], skipBytes(w, colon+1), true
		}
		if slices.Contains(l.requiredOneOfOptions, w.Text) || slices.Contains(l.requiredOneOfOptions, name) {
			needed = true
		}
		if attached && (slices.Contains(l.binFolderOptions, name+"=") || slices.Contains(l.installPrefixOptions, name+"=")) {
			in.addTargetFolder(value, slices.Contains(l.installPrefixOptions, name+"="))
			continue
		}
		if ended || !strings.HasPrefix(w.Text, "-") || w.Text == "-" {
			operands = append(operands, w)
			continue
		}
		if w.Text == "--" {
			ended = true
			continue
		}
		list := l.findValueOptionListTail(name)
		if list == nil && !attached && len(name) > 2 && name[1] != '-' { // a short option with its value: -t~/x
			if short := l.findValueOptionListTail(name[:2]); short != nil {
				list, value, attached = short, skipBytes(w, 2), true
			}
		}
		if list == nil {
			continue
		}
		if !attached {
			if i++; i == len(args) {
				break
			}
			value = args[i]
		}
		switch {
		case slices.Contains(l.binFolderOptions, list[0]):
			in.addTargetFolder(value, false)
		case slices.Contains(l.installPrefixOptions, list[0]):
			in.addTargetFolder(value, true)
		case slices.Contains(l.packageSourceOptions, list[0]):
			if name == "--path" && !value.IsGlobPattern && strings.IndexByte("./~", (value.Text + " ")[0]) < 0 {
				value.Text = "./" + value.Text
			}
			in.Sources = append(in.Sources, value)
		case slices.Contains(l.programNameOptions, list[0]):
			in.ProgramNames = append(in.ProgramNames, value)
		}
	}
	for _, word := range l.requiredOperands {
		i := slices.IndexFunc(operands, func(w Word) bool { return w.Text == word && !w.IsGlobPattern })
		if i < 0 {
			return in, false
		}
		operands = slices.Delete(operands, i, i+1)
	}
	if below := slices.Contains(l.installPrefixOptions, "@"); (below || slices.Contains(l.binFolderOptions, "@")) && len(operands) > 0 {
		in.addTargetFolder(operands[0], below)
		operands = operands[1:]
	}
	in.Sources = append(in.Sources, operands...)
	return in, needed
}

// findValueOptionListTail searches the installer's lists of options that take a value, such as
// binFolderOptions, for an option. It returns the list that contains the option, without the names before the
// option; nil if no list contains it.
func (l *Installer) findValueOptionListTail(optionName string) []string {
	for _, list := range [...][]string{l.binFolderOptions, l.installPrefixOptions, l.packageSourceOptions, l.programNameOptions, l.optionsWithIgnoredValue} {
		if i := slices.Index(list, optionName); i >= 0 {
			return list[i:]
		}
	}
	return nil
}

// addTargetFolder records w as the target folder or, if isInstallPrefix is true, its subfolder bin.
func (in *Installation) addTargetFolder(w Word, isInstallPrefix bool) {
	if isInstallPrefix {
		w.Text = strings.TrimSuffix(w.Text, "/") + "/bin"
	}
	in.TargetFolders = append(in.TargetFolders, w)
}
