//go:build amd64 || arm64

package confine

import (
	"errors"
	"strconv"
)

// An Order is what the process is to do. No text of it holds a zero byte.
type Order struct {
	Hidden, Shown, Write, Fixed []string // of the profile: see contain.Profile
	Path, Dir                   string   // the program, and its folder
	Argv, Env                   []string
	Tmp                         string  // the program's own temporary folder; it has a folder "own"
	Filter                      string  // system calls, as the kernel takes it, in hexadecimal digits
	Watches                     []Watch // what the filter asks the process about
	ReadRights, WriteRights     uint64  // of Landlock, for files that can be read, and folders that can be changed
	Network, Namespaces         bool
	Hurry                       bool // who started it ends it soon after it was told to end
	Probe                       bool // nothing is started
}

// A Watch says where a system call has a path: the arguments of folder and path, -1 for the
// current folder; and of the flags of opening, -1 if it changes something. Name is whether it
// concerns the name itself, and not what a link leads to.
type Watch struct {
	Call             uintptr
	Dir, Path, Flags int
	Name             bool
}

// Private reports whether the program's /tmp is its own.
func (o *Order) Private() bool { return o.Namespaces && !Within(tmp, o.Write) }

// parts returns what is written of an order, in a fixed sequence.
func (o *Order) parts() (texts []*string, lists []*[]string, flags []*bool) {
	return []*string{&o.Path, &o.Dir, &o.Tmp, &o.Filter}, []*[]string{&o.Hidden, &o.Shown, &o.Write, &o.Fixed, &o.Argv, &o.Env}, []*bool{&o.Network, &o.Namespaces, &o.Hurry, &o.Probe}
}

// Encode returns an order as bytes.
func (o *Order) Encode() []byte {
	b := strconv.AppendUint(nil, o.ReadRights, 10)
	put := func(s string) { b = append(append(b, 0), s...) }
	put(strconv.FormatUint(o.WriteRights, 10))
	put(strconv.Itoa(len(o.Watches)))
	for _, w := range o.Watches {
		for _, n := range []int{int(w.Call), w.Dir, w.Path, w.Flags} {
			put(strconv.Itoa(n))
		}
		put(strconv.FormatBool(w.Name))
	}
	texts, lists, flags := o.parts()
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

// decode reads what Encode has written.
func (o *Order) decode(b []byte) error {
	words := fields(string(b), 0)
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
	o.ReadRights, o.WriteRights = uint64(number()), uint64(number())
	for n := number(); n > 0 && err == nil; n-- {
		o.Watches = append(o.Watches, Watch{uintptr(number()), number(), number(), number(), truth()})
	}
	texts, lists, flags := o.parts()
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

// What the process tells, as the first byte of a message.
const (
	Ready    = '+' // the program runs
	NoExec   = 'x' // the program could not be started: the number of the error follows
	Failed   = '-' // it could not be contained: the stage follows, a zero byte, and why
	Reading  = 'r' // it was refused to read the path that follows
	Changing = 'w' // it was refused to change the path that follows
	Reaching = 'n' // it was refused to reach the address that follows, of 4 or 16 bytes and two of a port, or an unknown one
)

// Unavailable is the stage at which a process has failed that gets no namespaces on this machine.
const Unavailable = "namespaces"

// MaxMessage is how long a message is at most, in bytes.
const MaxMessage = 1 << 14

// What the process is told. That there is nobody who could tell it ends the program.
const (
	Go   = 'g' // the rules are complete
	Term = 't' // end the program
)
