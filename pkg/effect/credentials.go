package effect

import (
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/knowledge"
)

// credentialGlobs are the path lists by which credential files are recognised.
type credentialGlobs struct {
	storePaths               *Globs   // folders and files that hold credentials, whatever their names
	fileNames                *Globs   // files that hold credentials by their name
	exceptions               *Globs   // exceptions from fileNames: files that contain no credentials
	filesMeantForPublication *Globs   // files that are made to be published
	literalFileNames         []string // the literal names in the globs of fileNames, in lower case
}

// Lists of package knowledge with paths of credential files.
var (
	credentialStoreListNames = []string{"credential_stores", "browser_data", "wallets", "system_secrets", "sensitive_folders"}
	credentialFileListNames  = []string{"secret_names", "sensitive_files", "browser_files"}
)

var loadCredentialGlobs = sync.OnceValues(func() (s credentialGlobs, err error) {
	for _, set := range []struct {
		to    **Globs
		lists []string
	}{
		{&s.storePaths, credentialStoreListNames},
		{&s.fileNames, credentialFileListNames},
		{&s.exceptions, []string{"public_files"}},
		{&s.filesMeantForPublication, []string{"delivered_files"}},
	} {
		var globs []string
		for _, name := range set.lists {
			list, _ := knowledge.GlobsOfPathList(name)
			globs = append(globs, list...)
		}
		for _, glob := range globs {
			if set.to == &s.fileNames {
				s.literalFileNames = appendLiteralNames(s.literalFileNames, glob)
			}
		}
		if *set.to, err = NewGlobs(globs, nil); err != nil {
			return s, err
		}
	}
	return s, nil
})

// IsSecretPath reports whether a canonical path is a credential file or a folder of such files; it is
// true if the lists of these files cannot be read. In a pattern, it considers only the literal
// folders and the last name, see [ExamplePathForPattern]: "src/*/main.go" could match a file in a folder of
// keys, but is not meant to.
func IsSecretPath(p string, isPattern bool) bool {
	known, err := loadCredentialGlobs()
	if err != nil {
		return true
	}
	p = strings.ToLower(p)
	base := path.Base(p)
	if isPattern {
		if strings.Trim(p, "*/.?") == "" {
			return false
		}
		p, isPattern = ExamplePathForPattern(p)
	}
	if _, ok := known.exceptions.FirstPossibleMatch(p, false, false); ok {
		return false
	}
	if _, ok := known.storePaths.FirstPossibleMatch(p, isPattern, false); ok {
		return true
	}
	if _, ok := known.fileNames.FirstPossibleMatch(p, isPattern, false); !ok && !(isPattern && known.mayMatchName(base)) {
		return false
	}
	for _, word := range knowledge.TemplateWords {
		if strings.Contains(base, word) {
			return false
		}
	}
	return true
}

// IsMeantForPublication reports whether a file is made to be published.
func IsMeantForPublication(filePath string, isPattern bool) bool {
	known, err := loadCredentialGlobs()
	if err != nil {
		return false
	}
	_, ok := known.filesMeantForPublication.FirstPossibleMatch(filePath, isPattern, false)
	return ok && !IsSecretPath(filePath, isPattern)
}

// appendLiteralNames appends the literal names of a glob of the form "**/NAME" or "**/{NAME,NAME}".
func appendLiteralNames(to []string, glob string) []string {
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

// mayMatchName reports whether a pattern matches a literal name of a credential file: "*.json" matches
// credentials.json.
func (s *credentialGlobs) mayMatchName(base string) bool {
	return slices.ContainsFunc(s.literalFileNames, func(name string) bool { return PatternsOverlap(base, name, true) })
}
