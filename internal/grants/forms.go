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

// A form is an entry of [knowledge.GrantForms] with its expressions compiled.
type form struct {
	*knowledge.GrantForm
	at                 *regexp.Regexp
	mark               *prefilter.Finder // nil if the file's name says enough
	wanted, of, unless []condition
	asked              []condition // of and if
	with               []key
	names              [][]string // a file that has what is wanted holds one of each, in lower case
}

// A condition asks for a value behind one of some keys.
type condition struct {
	keys  []key
	value *regexp.Regexp
	loose bool // any text may match
}

// A key is a path of keys, with all below it if it is deep.
type key struct {
	folder string
	deep   bool
}

var compiled [len(knowledge.GrantForms)]struct {
	once sync.Once
	form
}

// formAt returns an entry, which is compiled when it is first asked for.
func formAt(i int) *form {
	f := &compiled[i]
	f.once.Do(func() {
		e := &knowledge.GrantForms[i]
		f.form = form{GrantForm: e, at: regexp.MustCompile(e.At), wanted: conditions(e.If), of: conditions(e.Of), unless: conditions(e.Unless), with: keysOf(e.With)}
		f.asked = slices.Concat(f.of, f.wanted)
		if at, err := prefilter.Required(e.At); err == nil && len(at) > 0 && !slices.ContainsFunc(at, func(name string) bool { return strings.Contains(name, "/") }) {
			f.names = append(f.names, at)
		}
		for _, c := range f.wanted {
			var last []string
			for _, k := range c.keys {
				last = append(last, strings.ToLower(path.Base(k.folder)))
			}
			f.names = append(f.names, last)
		}
		if e.Mark != "" {
			f.mark = prefilter.NewFinder(e.Mark)
		}
	})
	return &f.form
}

func conditions(texts []string) (out []condition) {
	for _, text := range texts {
		keys, value, _ := strings.Cut(text, " ")
		matches := regexp.MustCompile("(?is)^(?:" + value + ")$")
		out = append(out, condition{keysOf(keys), matches, matches.MatchString("") || matches.MatchString("x y")})
	}
	return out
}

func keysOf(text string) (out []key) {
	if text == "" {
		return nil
	}
	for k := range strings.SplitSeq(text, "|") {
		folder, deep := strings.CutSuffix(k, "/*")
		out = append(out, key{folder, deep})
	}
	return out
}
