package knowledge

import (
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A CodeLoadingVariableGroup is a group of environment variables that make programs run or load
// something other than what their command line says.
type CodeLoadingVariableGroup struct {
	ProgramEffectDescription string   // what programs do with the variables, as in: less runs these to open and close a file
	Names                    []string // "*" matches any text
	CodeLanguage             string   // language of the value if it is code, such as "shell"; "file" if it names a file of code
	NonCodeValueMeaning      string   // meaning of the value, if not code: "place", "tools", "home", "output", "source", "server", "options", "build" or "check", see running.yaml; if this and CodeLanguage are "", the setting is not judged
	FileLanguage             string   // language of the file that the value names
	Prefix                   string   // characters that are cut from the start of a value; the rest is the code
	CodeRunningValuePattern  string   // RE2; a value without a match runs nothing
	HarmlessValuePattern     string   // RE2; a value that matches as a whole runs nothing
	HarmlessValueCheckName   string   // "pager": a value that names a common pager or editor, such as less or vim, runs nothing; "" for no check
}

// CodeLoadingGroupsOfVariable returns the groups that contain a variable, in the order of running.yaml.
func CodeLoadingGroupsOfVariable(variableName string) []*CodeLoadingVariableGroup {
	var out []*CodeLoadingVariableGroup
	for p := range judgedVariablePatterns().candidates(variableName) {
		if matchName(p.name, variableName) && (len(out) == 0 || out[len(out)-1] != p.group) {
			out = append(out, p.group)
		}
	}
	return out
}

// VariableLoadsCode reports whether a variable makes some program run or load other code. Variables
// for package sources, servers, disabled checks, build folders, shared tool folders and the home
// folder do not count. Case is ignored, as npm and Windows do.
func VariableLoadsCode(name string) bool {
	name = strings.ToUpper(name)
	for p := range codeLoadingVariables().candidates(name) {
		if matchName(p.name, name) {
			return true
		}
	}
	return false
}

// HoldsCodeFolders reports whether the group's values are folders in which programs look for code; most such folders
// are the user's own.
func (r *CodeLoadingVariableGroup) HoldsCodeFolders() bool {
	return r.CodeLanguage == "file" && r.FileLanguage == "" && r.CodeRunningValuePattern != ""
}

// IsCodeRunningValue reports whether, by CodeRunningValuePattern and HarmlessValuePattern, a value of the
// group's variables may run code.
func (r *CodeLoadingVariableGroup) IsCodeRunningValue(value string) bool {
	if r.CodeRunningValuePattern != "" && !cachedRegexp(r.CodeRunningValuePattern).MatchString(value) {
		return false
	}
	return r.HarmlessValuePattern == "" || !cachedRegexp(`^(?:`+r.HarmlessValuePattern+`)$`).MatchString(value)
}

// regexpCache caches the compiled expressions of running.yaml.
var regexpCache struct {
	sync.Mutex
	compiled map[string]*regexp.Regexp
}

func cachedRegexp(text string) *regexp.Regexp {
	regexpCache.Lock()
	defer regexpCache.Unlock()
	re := regexpCache.compiled[text]
	if re == nil {
		if regexpCache.compiled == nil {
			regexpCache.compiled = map[string]*regexp.Regexp{}
		}
		re = regexp.MustCompile(text) // the generator has checked that it compiles
		regexpCache.compiled[text] = re
	}
	return re
}

// A codeLoadingVariablePattern is a name of an environment variable from the Names of a group; "*" in it matches
// any text.
type codeLoadingVariablePattern struct {
	name  string
	group *CodeLoadingVariableGroup
}

// variablePatternsByFirstByte holds patterns of names by their first byte, "*" included.
type variablePatternsByFirstByte map[byte][]codeLoadingVariablePattern

var judgedVariablePatterns = sync.OnceValue(func() variablePatternsByFirstByte {
	return indexNames(func(r *CodeLoadingVariableGroup) bool {
		return r.CodeLanguage != "" || r.NonCodeValueMeaning != ""
	}, func(s string) string { return s })
})

var codeLoadingVariables = sync.OnceValue(func() variablePatternsByFirstByte {
	return indexNames(func(r *CodeLoadingVariableGroup) bool {
		return !slices.Contains([]string{"source", "server", "check", "build", "tools", "home"}, r.NonCodeValueMeaning)
	}, strings.ToUpper)
})

func indexNames(take func(*CodeLoadingVariableGroup) bool, fold func(string) string) variablePatternsByFirstByte {
	ix := variablePatternsByFirstByte{}
	for i := range RunningGroups {
		r := &RunningGroups[i]
		if !take(r) {
			continue
		}
		for _, name := range r.Names {
			name = fold(name)
			ix[name[0]] = append(ix[name[0]], codeLoadingVariablePattern{name, r})
		}
	}
	return ix
}

// candidates yields the patterns that a name may match, first those with the same first letter.
func (ix variablePatternsByFirstByte) candidates(name string) iter.Seq[codeLoadingVariablePattern] {
	return func(yield func(codeLoadingVariablePattern) bool) {
		if name == "" {
			return
		}
		for _, list := range [...][]codeLoadingVariablePattern{ix[name[0]], ix['*']} {
			for _, p := range list {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// matchName reports whether a name matches a pattern with any number of "*".
func matchName(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return name == pattern
	}
	name, ok := strings.CutPrefix(name, head)
	for ok && rest != "" {
		var next string
		next, rest, star = strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(name, next)
		}
		_, name, ok = strings.Cut(name, next)
	}
	return ok
}
