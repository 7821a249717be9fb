package grounding

import (
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
)

var nameCandidate = prefilter.LazyRegexp(`[A-Za-z0-9~./_@][A-Za-z0-9~./_@:+=-]{1,199}`)

// minNameBytes is the minimum length in bytes of a name that is compared.
const minNameBytes = 3

// NamesInText returns the names in a text, including the parts that an action can use alone: of a
// URL the host, the host with its first folders, and these folders. isComplete is false if the text
// has more than maxNames names.
func NamesInText(text string, maxNames int) (names []string, isComplete bool) {
	seen := map[string]bool{}
	isComplete = true
	add := func(name string) {
		name = CanonicalObjectName(strings.Trim(name, ".,:;="))
		switch {
		case len(name) < minNameBytes || seen[name]:
		case len(seen) == maxNames:
			isComplete = false
		default:
			seen[name] = true
			names = append(names, name)
		}
	}
	for rest := text; isComplete; {
		at := nameCandidate().FindStringIndex(rest)
		if at == nil {
			break
		}
		w := rest[at[0]:at[1]]
		rest = rest[at[1]:]
		add(w)
		if _, place, ok := strings.Cut(w, "://"); ok {
			w = place
			add(w)
		}
		if scp, path, ok := strings.Cut(w, ":"); ok && !strings.HasPrefix(path, "/") { // git@github.com:a/b
			w = scp[strings.LastIndexByte(scp, '@')+1:] + "/" + path
		}
		w = strings.TrimSuffix(w, ".git")
		for i, n := 0, 0; i < len(w) && n < maxFolderNamesPerPath; i++ {
			if w[i] == '/' && i > 0 {
				add(w[:i])
				n++
			}
		}
		add(w)
		if host, path, ok := strings.Cut(w, "/"); ok && strings.Contains(host, ".") {
			folders := strings.SplitN(path, "/", 3)
			add(strings.Join(folders[:min(len(folders), 2)], "/"))
		}
		for part := range strings.FieldsFuncSeq(w, func(r rune) bool { return strings.ContainsRune("/@:=+", r) }) {
			add(part)
		}
	}
	return names, isComplete
}

// maxFolderNamesPerPath is the maximum number of leading parts of a path, such as a and a/b of a/b/c, that
// [NamesInText] returns as names.
const maxFolderNamesPerPath = 3
