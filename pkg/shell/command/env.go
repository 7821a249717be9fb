package command

import (
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// CodeRunByEnvVariable returns the command or code that programs run because an environment variable is set,
// such as PAGER, LD_PRELOAD or GIT_SSH_COMMAND. setting has the form NAME=VALUE. Besides code languages,
// Language can be a kind of value that is not code: "place" (files or folders, separated by ":", from which
// programs load settings or code), "tools" (like place, but only shared folders count), "home" (the folder of
// all settings), "output" (a file that they write), "source" (URLs of package sources), "server" (the machine
// that clients work with), "options" (options that a program adds to its own), "build" (a file or folder in
// which builds put their results) and "check" (a setting that disables a check).
func CodeRunByEnvVariable(setting Word) (n NestedCommandOrCode, ok bool) {
	i := strings.IndexByte(setting.Text, '=')
	if i <= 0 || i == len(setting.Text)-1 {
		return NestedCommandOrCode{}, false
	}
	value := skipBytes(setting, i+1)
	for _, r := range knowledge.CodeLoadingGroupsOfVariable(setting.Text[:i]) {
		if !value.IsGlobPattern && (!r.IsCodeRunningValue(value.Text) || r.HarmlessValueCheckName == "pager" && isPager(value)) {
			continue
		}
		if r.Prefix != "" {
			value.Text = strings.TrimLeft(value.Text, r.Prefix)
		}
		language := r.CodeLanguage
		if language == "" {
			language = r.NonCodeValueMeaning
		}
		return NestedCommandOrCode{Language: language, ScriptFileLanguage: r.FileLanguage, VariableHoldingCode: setting.Text[:i], Words: []Word{value}}, true
	}
	return NestedCommandOrCode{}, false
}

// IsPublicHost reports whether an address is that of a public machine: neither this machine nor in a private
// network.
func IsPublicHost(address string) bool {
	_, ok := CodeRunByEnvVariable(Word{Text: "ALL_PROXY=http://" + address})
	return ok
}

// EnvVariablesAddingOptions returns the variables whose values a program adds to its options.
func EnvVariablesAddingOptions(program string) []string {
	entry := lookupProgram(program)
	if entry == nil {
		return nil
	}
	return optionEnvVariablesByProgram()[entry]
}

var optionEnvVariablesByProgram = sync.OnceValue(func() map[*syntax][]string {
	out := map[*syntax][]string{}
	for _, g := range knowledge.RunningGroups {
		if g.NonCodeValueMeaning != "options" {
			continue
		}
		program, _, _ := strings.Cut(g.FileLanguage, " ")
		for _, name := range g.Names {
			if !strings.Contains(name, "*") {
				out[lookupProgram(program)] = append(out[lookupProgram(program)], name)
			}
		}
	}
	return out
})

// VariableMayRunCode reports whether an unknown value of a variable may be code, a program or a code file to the programs
// that read it. Variables for folders and other places do not count.
func VariableMayRunCode(name string) bool {
	for _, r := range knowledge.CodeLoadingGroupsOfVariable(name) {
		if r.CodeLanguage != "" && !r.HoldsCodeFolders() {
			return true
		}
	}
	return false
}

// addCodeRunByEnvVariable records the code that NAME=VALUE makes programs run.
func (r *argParser) addCodeRunByEnvVariable(envSetting Word) {
	if n, ok := CodeRunByEnvVariable(envSetting); ok {
		r.result.NestedCommandsAndCode = append(r.result.NestedCommandsAndCode, n)
	}
}

// addEnvSetting records NAME=VALUE for the nested command.
func (r *argParser) addEnvSetting(w Word) {
	r.result.NestedCommandEnvAssignments = append(r.result.NestedCommandEnvAssignments, w)
	if hasPrefix(w.Text, "SHIELD_") {
		r.addEffect(effect.TamperWithShield)
	}
}
