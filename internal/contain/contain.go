// Package contain starts a program that is restricted to a profile: the files that it can read and
// change, and whether it has a network. The kernel enforces it for the program and all its children
// until the last one has ended.
//
// On Linux, Landlock restricts files, seccomp blocks sockets and system calls that bypass it, and
// namespaces are added if the kernel permits them to this user. Other systems are not supported.
package contain

import (
	"fmt"

	"github.com/shieldcli/shield/internal/confine"
)

// A Profile lists what a program can access. Its paths are canonical: absolute, without symbolic
// links.
type Profile struct {
	HiddenPaths     []string `json:"hidden"`          // files and folders whose content cannot be read
	VisibleInTmp    []string `json:"shown,omitempty"` // paths in a temporary folder that stay readable although the program gets its own
	WritablePaths   []string `json:"write"`           // writable files, and folders with everything in them
	FoldersToCreate []string `json:"make,omitempty"`  // folders of WritablePaths that are created if missing
	ReadOnlyPaths   []string `json:"fixed,omitempty"` // read-only paths inside WritablePaths; needs namespaces
	AllowsNetwork   bool     `json:"network"`         // false: no network, except a loopback interface of the program's own if namespaces are used
}

// A Mechanism is a set of kernel features that contain a program.
type Mechanism uint8

// The mechanisms. Landlock and seccomp are always needed.
const (
	Landlock   Mechanism = 1 << iota // restricts files and signals and, together with seccomp, sockets and system calls
	Namespaces                       // read-only view of the file system, own processes, own network, own temporary folder
)

// A ContainmentUnavailableError says why programs cannot be contained on this machine.
type ContainmentUnavailableError struct{ Why string }

func (e *ContainmentUnavailableError) Error() string { return "containment is not available: " + e.Why }

// A KernelFeature is a kernel feature for containment, and whether it works.
type KernelFeature struct {
	Name        string `json:"name"`            // Landlock, seccomp, namespaces
	ProbeDetail string `json:"about,omitempty"` // what works, such as "ABI 7", or why it does not
	Works       bool   `json:"works"`
}

// A Refusal is a denied access of a contained program.
type Refusal struct {
	Access Access `json:"what"`
	Target string `json:"name,omitempty"` // a canonical path, or an address if known
}

// An Access is a kind of denied access.
type Access string

// Kinds of access.
const (
	Read    Access = "read"
	Write   Access = "write"
	Network Access = "network"
)

// String returns the denied access in words.
func (r Refusal) String() string {
	switch r.Access {
	case Read:
		return "reading " + r.Target
	case Write:
		return "changing " + r.Target
	}
	if r.Target == "" {
		return "the network"
	}
	return "connecting to " + r.Target
}

// Within reports whether a canonical path is one of the folders or inside one.
func Within(path string, folders []string) bool { return confine.Within(path, folders) }

// FolderHoldsAny reports whether a folder equals or contains one of the paths.
func FolderHoldsAny(folder string, paths []string) bool { return confine.FolderHoldsAny(folder, paths) }

// A containmentStageError is the error of a step of containment.
type containmentStageError struct{ failedStage, text string }

func (e *containmentStageError) Error() string {
	return fmt.Sprintf("containment: %s: %s", e.failedStage, e.text)
}
