package knowledge

import "strings"

// maxVariableNameBytes is the maximum length of a variable's name that is checked, in bytes.
const maxVariableNameBytes = 255

// SecretVariableNameParts are parts of names of environment variables that hold credentials, in upper case.
type SecretVariableNameParts struct {
	Words              []string // parts that can be anywhere in a name
	Endings            []string // ends of a name
	WholeNames         []string `yaml:"whole"`  // names
	NonSecretNameParts []string `yaml:"public"` // parts of names, such as PUBLIC: a variable with such a part holds no credential, even if another list matches its name
}

// IsSecretVariableName reports whether an environment variable with that name probably holds a credential. It
// returns true for names longer than 255 bytes.
func IsSecretVariableName(name string) bool {
	if len(name) > maxVariableNameBytes {
		return true
	}
	name = strings.ToUpper(name)
	return !anyNamePartMatches(SecretVariables.NonSecretNameParts, name, strings.Contains) && HasSecretNamePart(name)
}

// HasSecretNamePart reports whether a word that a program is asked to print is probably the name of a
// credential. Unlike IsSecretVariableName, it makes no exception for names with a part such as "public".
func HasSecretNamePart(name string) bool {
	if len(name) > maxVariableNameBytes {
		return true
	}
	name = strings.ToUpper(name)
	n := &SecretVariables
	return anyNamePartMatches(n.Words, name, strings.Contains) || anyNamePartMatches(n.Endings, name, strings.HasSuffix) ||
		anyNamePartMatches(n.WholeNames, name, func(name, whole string) bool { return name == whole })
}

func anyNamePartMatches(parts []string, name string, has func(name, part string) bool) bool {
	for _, part := range parts {
		if has(name, part) {
			return true
		}
	}
	return false
}

// GlobsOfPathList returns the globs of a named list of files, such as "credential_stores" in credentials.yaml. Braces
// are not expanded.
func GlobsOfPathList(listName string) (globs []string, ok bool) {
	for i := range PathLists {
		if PathLists[i].Name == listName {
			return PathLists[i].Globs, true
		}
	}
	return nil, false
}

// PathListNames returns the names of the lists of files.
func PathListNames() []string {
	names := make([]string, len(PathLists))
	for i := range PathLists {
		names[i] = PathLists[i].Name
	}
	return names
}

// Hosts returns the hosts of a named list in services.yaml. Each entry includes its subdomains.
func Hosts(listName string) (hosts []string, ok bool) {
	for i := range HostLists {
		if HostLists[i].Name == listName {
			return HostLists[i].Hosts, true
		}
	}
	return nil, false
}

// HostListNames returns the names of the lists of hosts.
func HostListNames() []string {
	names := make([]string, len(HostLists))
	for i := range HostLists {
		names[i] = HostLists[i].Name
	}
	return names
}

// A LaterExecutedFileClass is a class of files that run code later, such as shell startup files and hooks.
type LaterExecutedFileClass struct {
	ClassName      string
	IsOftenWritten bool     // files of this class are written in everyday work
	Globs          []string // in the syntax of effect.Globs
}

// A HostList is a named list of names and addresses of hosts.
type HostList struct {
	Name  string
	Hosts []string
}

// A PathList is a named list of globs in the syntax of effect.Globs.
type PathList struct {
	Name  string
	Globs []string
}
