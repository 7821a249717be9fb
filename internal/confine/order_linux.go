//go:build amd64 || arm64

package confine

import (
	"errors"
	"strconv"
)

// ContainmentInstructions are the instructions for the containing process. Its texts contain no zero byte.
type ContainmentInstructions struct {
	HiddenPaths, VisibleTmpPaths, WritablePaths, ReadOnlyPaths []string // paths: content hidden, still visible despite a private /tmp, writable, read-only
	ProgramPath, WorkingFolder                                 string   // the program and its working folder
	Argv, Env                                                  []string
	TmpFolder                                                  string        // the program's temporary folder; its subfolder "own" is the program's TMPDIR
	SeccompFilterHex                                           string        // the seccomp filter program, in hexadecimal
	PathSyscallsReportedToWatcher                              []PathSyscall // the system calls that the seccomp filter reports to the containing process
	ReadablePathLandlockRights, WritablePathLandlockRights     uint64        // Landlock rights for readable files and writable folders
	AllowsNetwork, UsesNamespaces                              bool
	MustKillProgramAfterSIGTERM                                bool // kill the program soon after SIGTERM, since the parent soon kills the containing process
	OnlyTestsContainment                                       bool // only test containment; start nothing
}

// A PathSyscall describes a system call that takes a path, by the indexes of its arguments. A
// FolderArg of -1 means that relative paths start in the current folder; a FlagsArg of -1 means
// that the call always changes something. NoFollow means that the call affects a symbolic link
// itself, not its target.
type PathSyscall struct {
	SyscallNumber                uintptr
	FolderArg, PathArg, FlagsArg int
	NoFollow                     bool
}

// HasPrivateTmp reports whether the program gets its own /tmp.
func (o *ContainmentInstructions) HasPrivateTmp() bool {
	return o.UsesNamespaces && !Within(tmp, o.WritablePaths)
}

// encodedFields returns pointers to the fields that [ContainmentInstructions.Encode] writes, in a
// fixed sequence.
func (o *ContainmentInstructions) encodedFields() (texts []*string, lists []*[]string, flags []*bool) {
	return []*string{&o.ProgramPath, &o.WorkingFolder, &o.TmpFolder, &o.SeccompFilterHex}, []*[]string{&o.HiddenPaths, &o.VisibleTmpPaths, &o.WritablePaths, &o.ReadOnlyPaths, &o.Argv, &o.Env}, []*bool{&o.AllowsNetwork, &o.UsesNamespaces, &o.MustKillProgramAfterSIGTERM, &o.OnlyTestsContainment}
}

// Encode returns the instructions as bytes for the containing process.
func (o *ContainmentInstructions) Encode() []byte {
	b := strconv.AppendUint(nil, o.ReadablePathLandlockRights, 10)
	put := func(s string) { b = append(append(b, 0), s...) }
	put(strconv.FormatUint(o.WritablePathLandlockRights, 10))
	put(strconv.Itoa(len(o.PathSyscallsReportedToWatcher)))
	for _, w := range o.PathSyscallsReportedToWatcher {
		for _, n := range []int{int(w.SyscallNumber), w.FolderArg, w.PathArg, w.FlagsArg} {
			put(strconv.Itoa(n))
		}
		put(strconv.FormatBool(w.NoFollow))
	}
	texts, lists, flags := o.encodedFields()
	for _, s := range texts {
		put(*s)
	}
	for _, f := range flags {
		put(strconv.FormatBool(*f))
	}
	for _, list := range lists {
		put(strconv.Itoa(len(*list)))
		for _, s := range *list {
			put(s)
		}
	}
	return b
}

// decode parses the output of Encode.
func (o *ContainmentInstructions) decode(b []byte) error {
	words := splitAtByte(string(b), 0)
	next := func() (s string) {
		if len(words) > 0 {
			s, words = words[0], words[1:]
		}
		return s
	}
	bad := errors.New("internal error: the containment order is incomplete; please report this")
	var err error
	number := func() (n int) {
		n, e := strconv.Atoi(next())
		if e != nil {
			err = bad
		}
		return n
	}
	truth := func() (b bool) {
		b, e := strconv.ParseBool(next())
		if e != nil {
			err = bad
		}
		return b
	}
	o.ReadablePathLandlockRights, o.WritablePathLandlockRights = uint64(number()), uint64(number())
	for n := number(); n > 0 && err == nil; n-- {
		o.PathSyscallsReportedToWatcher = append(o.PathSyscallsReportedToWatcher, PathSyscall{uintptr(number()), number(), number(), number(), truth()})
	}
	texts, lists, flags := o.encodedFields()
	for _, s := range texts {
		*s = next()
	}
	for _, f := range flags {
		*f = truth()
	}
	for _, list := range lists {
		n := number()
		if n < 0 || n > len(words) {
			return bad
		}
		*list, words = words[:n:n], words[n:]
	}
	if len(words) != 0 {
		return bad
	}
	return err
}

// Messages from the containing process, a shield process that starts and restricts a program, to its parent, by
// their first byte.
const (
	ChildMessageProgramRuns       = '+' // the program runs
	ChildMessageExecFailed        = 'x' // the program could not be started; the errno follows
	ChildMessageContainmentFailed = '-' // the program could not be contained; the name of the failed step follows, a zero byte, and the error
	ChildMessageReadDenied        = 'r' // a read was denied; the path follows
	ChildMessageFileChangeDenied  = 'w' // a change was denied; the path follows
	ChildMessageConnectionDenied  = 'n' // a connection was denied; the address follows (4 or 16 bytes, and 2 for the port), or nothing if unknown
)

// FailedStageNamespaceSetup is the name of the containment step that fails if the machine does not permit
// namespaces.
const FailedStageNamespaceSetup = "namespaces"

// MaxChildMessageBytes is the maximum length of a message, in bytes.
const MaxChildMessageBytes = 1 << 14

// Messages from the parent to the containing process. If the parent closes the connection, the containing
// process kills the contained program.
const (
	ParentMessageRulesetComplete = 'g' // the rules are complete
	ParentMessageEndProgram      = 't' // end the program
)
