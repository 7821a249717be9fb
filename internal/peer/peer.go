// Package peer is the line between processes of shield and the service of the same
// user, a Unix socket in the state folder. A process that has taken the socket's
// place, or is in between, cannot ask and cannot answer: both sides are looked
// at by the kernel's word, and each message bears a code that needs the key beside
// the socket and binds the answer to the whole question.
//
// A hook asks before most of shield is there, so this package needs little of the
// standard library and nothing else.
package peer

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// KeySize is the length of the key, in bytes.
const KeySize = 32

// Names of files in the folder of the service.
const (
	SocketName = "socket"
	KeyName    = "seal.key"
)

// Bounds of messages, in bytes, and of the lists in a question.
const (
	MaxQuestion = 6 << 20 // the largest event of a hook, arguments and environment
	MaxAnswer   = 8 << 20
	maxTexts    = 1 << 16
)

// ErrNotOurs is the error for a message whose code is not that of the key.
var ErrNotOurs = errors.New("the answer is not sealed with the key of this user's service; restart the service")

// A Question is a command line for the service to run in the place of the process
// that asks, with everything outside itself that it may use.
type Question struct {
	Program string   // the file of the process that asks, absolute
	Dir     string   // its folder
	Parent  int      // the process that has started it
	Args    []string // without the program's name
	Environ []string // NAME=VALUE
	Input   []byte   // standard input
}

// An Answer is what the service says.
type Answer struct {
	Decided bool   // else the process that asks has to judge for itself
	Output  []byte // standard output of the command line
}

// Folder returns the folder of the service's socket and key for the state folder
// of a user.
func Folder(state string) string { return filepath.Join(state, "service") }

// StateFolder returns the user's state folder, or "" if it is not known. It is
// config.StateDir for a process that cannot wait for that package.
func StateFolder(getenv func(string) string) string {
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "shield")
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "shield")
	}
	return ""
}

const (
	magic     = "shd1"
	nonceSize = 32
)

// code returns the code of a message.
func code(key *[KeySize]byte, what string, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key[:])
	_, _ = mac.Write([]byte(what)) // a hash does not fail
	for _, p := range parts {
		_, _ = mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(p))))
		_, _ = mac.Write(p)
	}
	return mac.Sum(nil)
}

// An Asked is a question on its way: what its answer is bound to.
type Asked struct {
	key   *[KeySize]byte
	nonce []byte
	body  [sha256.Size]byte
}

// NewQuestion returns a question as it is sent.
func NewQuestion(key *[KeySize]byte, q *Question) (asked *Asked, message []byte, err error) {
	body := q.encode()
	if len(body) > MaxQuestion {
		return nil, nil, fmt.Errorf("the request has %d bytes, more than the limit of %d; split it", len(body), MaxQuestion)
	}
	nonce := make([]byte, nonceSize)
	rand.Read(nonce) // never fails
	message = append([]byte(magic), nonce...)
	message = binary.BigEndian.AppendUint32(message, uint32(len(body)))
	message = append(message, body...)
	return &Asked{key, nonce, sha256.Sum256(body)}, append(message, code(key, "question", nonce, body)...), nil
}

// ReadQuestion reads what [NewQuestion] has made. large is called before more than
// 64 KiB are read.
func ReadQuestion(r io.Reader, key *[KeySize]byte, large func()) (*Asked, *Question, error) {
	head := make([]byte, len(magic)+nonceSize+4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, nil, err
	}
	size := binary.BigEndian.Uint32(head[len(magic)+nonceSize:])
	if string(head[:len(magic)]) != magic || size > MaxQuestion {
		return nil, nil, errors.New("the request has a form that this service does not know; restart the service after an update")
	}
	if size > 64<<10 {
		large()
	}
	rest := make([]byte, int(size)+sha256.Size)
	if _, err := io.ReadFull(r, rest); err != nil {
		return nil, nil, err
	}
	nonce, body := head[len(magic):len(magic)+nonceSize], rest[:size]
	if !hmac.Equal(rest[size:], code(key, "question", nonce, body)) {
		return nil, nil, ErrNotOurs
	}
	q, err := decode(body)
	return &Asked{key, nonce, sha256.Sum256(body)}, q, err
}

// Answer returns the answer as it is sent.
func (a *Asked) Answer(ans Answer) []byte {
	body := append([]byte{0}, ans.Output...)
	if ans.Decided {
		body[0] = 1
	}
	message := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	return append(append(message, body...), code(a.key, "answer", a.nonce, a.body[:], body)...)
}

// ReadAnswer reads the answer to a question.
func (a *Asked) ReadAnswer(r io.Reader) (ans Answer, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return ans, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size == 0 || size > MaxAnswer {
		return ans, fmt.Errorf("the answer of the service is too long (%d bytes); restart the service", size)
	}
	rest := make([]byte, int(size)+sha256.Size)
	if _, err := io.ReadFull(r, rest); err != nil {
		return ans, err
	}
	body := rest[:size]
	if !hmac.Equal(rest[size:], code(a.key, "answer", a.nonce, a.body[:], body)) {
		return ans, ErrNotOurs
	}
	return Answer{Decided: body[0] == 1, Output: body[1:]}, nil
}

// encode returns a question as bytes: texts with their lengths, lists with theirs.
func (q *Question) encode() []byte {
	var b []byte
	number := func(n int) { b = binary.BigEndian.AppendUint32(b, uint32(n)) }
	text := func(s string) { number(len(s)); b = append(b, s...) }
	text(q.Program)
	text(q.Dir)
	number(q.Parent)
	for _, list := range [][]string{q.Args, q.Environ} {
		number(len(list))
		for _, s := range list {
			text(s)
		}
	}
	return append(b, q.Input...)
}

var errCut = errors.New("the request is truncated; restart the service after an update")

func decode(b []byte) (*Question, error) {
	var err error
	number := func() int {
		if len(b) < 4 {
			b, err = nil, errCut
			return 0
		}
		n := binary.BigEndian.Uint32(b)
		b = b[4:]
		return int(n)
	}
	text := func() string {
		n := number()
		if n < 0 || n > len(b) {
			b, err = nil, errCut
			return ""
		}
		s := string(b[:n])
		b = b[n:]
		return s
	}
	list := func() (out []string) {
		n := number()
		if n < 0 || n > maxTexts {
			err = errCut
		}
		for i := 0; i < n && err == nil; i++ {
			out = append(out, text())
		}
		return out
	}
	q := &Question{Program: text(), Dir: text(), Parent: number(), Args: list(), Environ: list()}
	q.Input = b
	return q, err
}
