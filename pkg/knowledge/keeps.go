package knowledge

import (
	"slices"
	"strings"
)

// kept lists the files that a program keeps outside its working folder, see keeps.yaml.
type kept struct {
	program             string
	caches, credentials []string
	outside             string
}

// Keeps returns the cache folders of a program and the files with the credentials of its own service: paths
// below ~/ or, for caches, $WORKSPACE/, with braces.
func Keeps(program string) (caches, credentials []string) {
	k := keptFilesOf(program)
	return k.caches, k.credentials
}

// WhyNotSandboxed returns why a program cannot run in a sandbox, as text to follow its name; "" if it can.
func WhyNotSandboxed(program string) string { return keptFilesOf(program).outside }

func keptFilesOf(program string) kept {
	i, found := slices.BinarySearchFunc(keeps[:], program, func(k kept, name string) int { return strings.Compare(k.program, name) })
	if !found {
		return kept{}
	}
	return keeps[i]
}
