package knowledge

import (
	"slices"
	"strings"
)

// filesKeptByProgram lists the files that a program keeps outside its working folder, see keeps.yaml.
type filesKeptByProgram struct {
	programName         string
	caches, credentials []string
	notSandboxedReason  string
}

// CachesAndCredentialFiles returns the cache folders of a program and the files with the credentials of its own service: paths
// below ~/ or, for caches, $WORKSPACE/, with braces.
func CachesAndCredentialFiles(program string) (caches, credentials []string) {
	k := lookUpProgramKeptFiles(program)
	return k.caches, k.credentials
}

// WhyNotSandboxed returns why a program cannot run in a sandbox, as text to follow its name; "" if it can.
func WhyNotSandboxed(program string) string {
	return lookUpProgramKeptFiles(program).notSandboxedReason
}

func lookUpProgramKeptFiles(programName string) filesKeptByProgram {
	i, found := slices.BinarySearchFunc(keeps[:], programName, func(k filesKeptByProgram, name string) int { return strings.Compare(k.programName, name) })
	if !found {
		return filesKeptByProgram{}
	}
	return keeps[i]
}
