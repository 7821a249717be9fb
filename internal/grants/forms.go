package grants

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// A compiledForm is an entry of [knowledge.GrantForms] with its expressions compiled.
type compiledForm struct {
	*knowledge.GrantForm
	objectPathPattern                                   *regexp.Regexp
	fileMarkFinder                                      *prefilter.Finder // finds text by which a file of this form is recognized; nil if the file's name is enough
	matchConditions, objectConditions, exceptConditions []condition
	allConditions                                       []condition // objectConditions and matchConditions together
	scopeKeys                                           []keyPath
	requiredNames                                       [][]string // lists of names in lower case: a file in which the form can match contains a name of each list
}

// A condition requires that one of some keys has a value that matches a pattern.
type condition struct {
	keyPaths       []keyPath
	valuePattern   *regexp.Regexp
	matchesAnyText bool // any text may match
}

// A keyPath is a path of keys in an object. If includesBelow is set, it also stands for all paths
// below it.
type keyPath struct {
	path          string
	includesBelow bool
}

var compiledForms [len(knowledge.GrantForms)]struct {
	once sync.Once
	compiledForm
}

// formAt returns an entry, which is compiled when it is first asked for.
func formAt(i int) *compiledForm {
	f := &compiledForms[i]
	f.once.Do(func() {
		e := &knowledge.GrantForms[i]
		f.compiledForm = compiledForm{GrantForm: e, objectPathPattern: regexp.MustCompile(e.At), matchConditions: compileConditions(e.If), objectConditions: compileConditions(e.Of), exceptConditions: compileConditions(e.Unless), scopeKeys: parseKeyPaths(e.With)}
		f.allConditions = slices.Concat(f.objectConditions, f.matchConditions)
		if at, err := prefilter.Required(e.At); err == nil && len(at) > 0 && !slices.ContainsFunc(at, func(name string) bool { return strings.Contains(name, "/") }) {
			f.requiredNames = append(f.requiredNames, at)
		}
		for _, c := range f.matchConditions {
			var last []string
			for _, k := range c.keyPaths {
				last = append(last, strings.ToLower(path.Base(k.path)))
			}
			f.requiredNames = append(f.requiredNames, last)
		}
		if e.Mark != "" {
			f.fileMarkFinder = prefilter.NewFinder(e.Mark)
		}
	})
	return &f.compiledForm
}

func compileConditions(texts []string) (out []condition) {
	for _, text := range texts {
		keys, value, _ := strings.Cut(text, " ")
		matches := regexp.MustCompile("(?is)^(?:" + value + ")$")
		out = append(out, condition{parseKeyPaths(keys), matches, matches.MatchString("") || matches.MatchString("x y")})
	}
	return out
}

func parseKeyPaths(text string) (out []keyPath) {
	if text == "" {
		return nil
	}
	for k := range strings.SplitSeq(text, "|") {
		folder, deep := strings.CutSuffix(k, "/*")
		out = append(out, keyPath{folder, deep})
	}
	return out
}
