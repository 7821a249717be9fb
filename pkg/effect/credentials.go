package effect

import (
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/knowledge"
)

// A secretFiles says which files hold credentials.
type secretFiles struct {
	stores *Globs   // all files there do, whatever their names
	names  *Globs   // files that hold credentials by their name
	public *Globs   // files of the others that do not
	given  *Globs   // files that are made to be delivered
	bases  []string // the names of names that are written out, in lower case
}

// Lists of pkg/knowledge with files that hold credentials.
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

// SecretPath reports whether a canonical path is, or as a folder holds,
// credentials. Of a pattern its last name counts, and the folders before it as far
// as they are written out: "src/*/main.go" may reach a folder of keys, and does
// not mean it.
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

// Delivered reports whether a file is made to be delivered.
func Delivered(p string, pattern bool) bool {
	known, err := knownSecrets()
	if err != nil {
		return false
	}
	_, ok := known.given.Touches(p, pattern, false)
	return ok && !SecretPath(p, pattern)
}

// appendBases adds the names that "**/NAME" and "**/{NAME,NAME}" write out.
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

// mayBe reports whether a pattern of a name matches one that is written out:
// "*.json" may be credentials.json.
func (s *secretFiles) mayBe(base string) bool {
	return slices.ContainsFunc(s.bases, func(name string) bool { return Overlap(base, name, true) })
}
