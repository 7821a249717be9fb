package knowledge

import (
	"slices"
	"strings"
)

// kept is what a program keeps outside the folder that it works in, see keeps.yaml.
type kept struct {
	program             string
	caches, credentials []string
	outside             string
}

// Keeps returns the folders in which a program keeps what makes it faster, and the files with
// the credentials of its own service: paths below ~/ or, of caches, $WORKSPACE/, with braces.
func Keeps(program string) (caches, credentials []string) {
	k := keepsOf(program)
	return k.caches, k.credentials
}

// Outside says why a program cannot be contained, behind its name; "" if it can.
func Outside(program string) string { return keepsOf(program).outside }

func keepsOf(program string) kept {
	i, found := slices.BinarySearchFunc(keeps[:], program, func(k kept, name string) int { return strings.Compare(k.program, name) })
	if !found {
		return kept{}
	}
	return keeps[i]
}
