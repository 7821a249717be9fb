package effect

import (
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/knowledge"
)

// secretFiles are the path lists by which credential files are recognised.
type secretFiles struct {
	stores *Globs   // folders and files that hold credentials, whatever their names
	names  *Globs   // files that hold credentials by their name
	public *Globs   // exceptions from names: files without credentials
	given  *Globs   // files that are made to be published
	bases  []string // the literal last names in names, in lower case
}

// Lists of package knowledge with paths of credential files.
var (
	storeLists = []string{"credential_stores", "browser_data", "wallets", "system_secrets", "sensitive_folders"}
	nameLists  = []string{"secret_names", "sensitive_files", "browser_files"}
)

var knownSecrets = sync.OnceValues(func() (s secretFiles, err error) {
	for _, set := range []struct {
		to    **Globs
		lists []string
	}{
		{&s.stores, storeLists},
		{&s.names, nameLists},
		{&s.public, []string{"public_files"}},
		{&s.given, []string{"delivered_files"}},
	} {
		var globs []string
		for _, name := range set.lists {
			list, _ := knowledge.Paths(name)
			globs = append(globs, list...)
		}
		for _, glob := range globs {
			if set.to == &s.names {
				s.bases = appendBases(s.bases, glob)
			}
		}
		if *set.to, err = NewGlobs(globs, nil); err != nil {
			return s, err
		}
	}
	return s, nil
})

// SecretPath reports whether a canonical path is a credential file or a folder of such files; true if the lists
// cannot be read. Of a pattern only its literal folders and its last name count, see [Meant]: "src/*/main.go"
// could match a file in a folder of keys, but is not meant to.
func SecretPath(p string, pattern bool) bool {
	known, err := knownSecrets()
	if err != nil {
		return true
	}
	p = strings.ToLower(p)
	base := path.Base(p)
	if pattern {
		if strings.Trim(p, "*/.?") == "" {
			return false
		}
		p, pattern = Meant(p)
	}
	if _, ok := known.public.Touches(p, false, false); ok {
		return false
	}
	if _, ok := known.stores.Touches(p, pattern, false); ok {
		return true
	}
	if _, ok := known.names.Touches(p, pattern, false); !ok && !(pattern && known.mayBe(base)) {
		return false
	}
	for _, word := range knowledge.TemplateWords {
		if strings.Contains(base, word) {
			return false
		}
	}
	return true
}

// Delivered reports whether a file is made to be published.
func Delivered(p string, pattern bool) bool {
	known, err := knownSecrets()
	if err != nil {
		return false
	}
	_, ok := known.given.Touches(p, pattern, false)
	return ok && !SecretPath(p, pattern)
}

// appendBases appends the literal names of a glob of the form "**/NAME" or "**/{NAME,NAME}".
func appendBases(to []string, glob string) []string {
	name, anywhere := strings.CutPrefix(glob, "**/")
	if !anywhere || strings.ContainsAny(name, "/*?[") {
		return to
	}
	head, rest, braces := strings.Cut(strings.ToLower(name), "{")
	if !braces {
		return append(to, head)
	}
	list, tail, _ := strings.Cut(rest, "}")
	for part := range strings.SplitSeq(list, ",") {
		to = append(to, head+part+tail)
	}
	return to
}

// mayBe reports whether a pattern matches a literal name of a credential file: "*.json" matches
// credentials.json.
func (s *secretFiles) mayBe(base string) bool {
	return slices.ContainsFunc(s.bases, func(name string) bool { return Overlap(base, name, true) })
}
