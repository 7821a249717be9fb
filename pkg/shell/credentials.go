package shell

import (
	"path"
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// A secretFiles says which files hold credentials.
type secretFiles struct {
	stores *effect.Globs // what lies there does, whatever its name is
	names  *effect.Globs // files that hold credentials by their name
	public *effect.Globs // files of the others that do not
}

var knownSecrets = sync.OnceValues(func() (s secretFiles, err error) {
	for _, set := range []struct {
		to    **effect.Globs
		lists []string
	}{
		{&s.stores, []string{"credential_stores", "browser_data", "wallets", "system_secrets", "sensitive_folders"}},
		{&s.names, []string{"secret_names", "sensitive_files"}},
		{&s.public, []string{"public_files"}},
	} {
		var globs []string
		for _, name := range set.lists {
			list, _ := knowledge.Paths(name)
			globs = append(globs, list...)
		}
		if *set.to, err = effect.NewGlobs(globs, nil); err != nil {
			return s, err
		}
	}
	return s, nil
})

// secretPath reports whether a path is, or as a folder holds, credentials. Of a
// pattern its last name counts, and the folders before it as far as they are
// written out: "src/*/main.go" may reach a folder of keys, and does not mean it.
func secretPath(p string, pattern, recursive bool) bool {
	known, err := knownSecrets()
	if err != nil {
		return true
	}
	p = strings.ToLower(p)
	base := path.Base(p)
	if pattern {
		folder, wild := path.Dir(p), strings.ContainsAny(base, "*?[")
		if strings.Trim(p, "*/.?") == "" {
			return false
		}
		p = strings.NewReplacer("*", "x", "?", "x", "[", "x", "]", "x").Replace(folder) + "/" + base
		if wild && strings.Trim(base, "*?") == "" {
			p, pattern = p[:len(p)-len(base)]+"x", false
		} else {
			pattern = wild
		}
	}
	if _, ok := known.public.Touches(p, false, false); ok {
		return false
	}
	if _, ok := known.stores.Touches(p, pattern, false); ok {
		return true
	}
	if _, ok := known.names.Touches(p, pattern, false); !ok {
		return false
	}
	for _, word := range knowledge.TemplateWords {
		if strings.Contains(base, word) {
			return false
		}
	}
	return true
}
