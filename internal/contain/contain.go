// Package contain starts a program that reaches no more than a profile says: files
// that it may read and change, and whether there is a network. The kernel holds it and all
// that it starts to that, until the last of them has ended.
//
// On Linux, Landlock bounds files, seccomp takes away sockets and system calls that reach
// around it, and namespaces are added where the kernel lets this user have them. Other
// systems have no such means that shield uses.
package contain

import (
	"fmt"

	"github.com/shieldcli/shield/internal/confine"
)

// A Profile says what a program can reach. Its paths are canonical: absolute, and without
// symbolic links.
type Profile struct {
	Hidden  []string `json:"hidden"`          // files and folders whose contents cannot be read, wherever they lie
	Shown   []string `json:"shown,omitempty"` // in a temporary folder: can be read although the program gets one of its own
	Write   []string `json:"write"`           // files, and folders with all they hold, that can be changed
	Make    []string `json:"make,omitempty"`  // of Write: folders that are made if they are missing
	Fixed   []string `json:"fixed,omitempty"` // inside Write, and cannot be changed where there are namespaces
	Network bool     `json:"network"`         // without it only this machine is reached, where there are namespaces, or nothing
}

// A Mechanism is a set of means of the kernel by which a program is contained.
type Mechanism uint8

// The mechanisms. None of them is used without Landlock and seccomp.
const (
	Landlock   Mechanism = 1 << iota // files, signals, and with seccomp sockets and system calls
	Namespaces                       // a read-only view, own processes, own network, own temporary folder
)

// An UnavailableError says why a program cannot be contained here.
type UnavailableError struct{ Why string }

func (e *UnavailableError) Error() string { return "containment is not available: " + e.Why }

// A Means is something that containment is made of, and whether it is there.
type Means struct {
	Name  string `json:"name"`            // Landlock, seccomp, namespaces
	About string `json:"about,omitempty"` // what works, such as "ABI 7"; or why not
	Works bool   `json:"works"`
}

// A Refusal is something that a contained program was refused.
type Refusal struct {
	What Access `json:"what"`
	Name string `json:"name,omitempty"` // a canonical path; an address, if that is known
}

// An Access is a kind of what is refused.
type Access string

// The kinds.
const (
	Read    Access = "read"
	Write   Access = "write"
	Network Access = "network"
)

// String returns what was refused, in words.
func (r Refusal) String() string {
	switch r.What {
	case Read:
		return "reading " + r.Name
	case Write:
		return "changing " + r.Name
	}
	if r.Name == "" {
		return "the network"
	}
	return "the network, to " + r.Name
}

// Within reports whether a canonical path is one of the folders or lies in one.
func Within(path string, folders []string) bool { return confine.Within(path, folders) }

// Holds reports whether a folder is one of the paths or holds one.
func Holds(folder string, paths []string) bool { return confine.Holds(folder, paths) }

// A stageError says at which step a process could not be contained.
type stageError struct{ stage, text string }

func (e *stageError) Error() string { return fmt.Sprintf("containment: %s: %s", e.stage, e.text) }
