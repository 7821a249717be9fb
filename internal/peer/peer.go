// Package peer is the protocol between shield processes and the service of the same user, over a Unix socket in
// the state folder. Both sides check the credentials of the other process with the kernel, and each message has
// a MAC. The key of the MAC is in a file next to the socket, and the MAC of an answer covers the whole question,
// so a process that replaces the socket or intercepts the connection can neither ask nor answer.
//
// A hook asks before most of shield is initialized, so this package imports little of the standard library and,
// except golang.org/x/sys/unix on macOS, nothing else.
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

// KeySize is the length, in bytes, of the secret key that seals the messages between shield processes and the
// service.
const KeySize = 32

// Names of files in the folder of the service.
const (
	SocketFileName  = "socket"
	SealKeyFileName = "seal.key"
)

// Limits of messages, in bytes, and of the lists in a question.
const (
	MaxQuestionBytes        = 6 << 20 // the largest event of a hook, arguments and environment
	MaxAnswerBytes          = 8 << 20
	maxArgsOrEnvironEntries = 1 << 16
)

// ErrWrongMAC is the error for a message with a wrong MAC.
var ErrWrongMAC = errors.New("the answer is not sealed with the key of this user's service; restart the service")

// A Question is a command line that the service runs for the asking process, with all data of the
// asking process that the command line can read.
type Question struct {
	AskingProgramPath        string   // absolute path of the asking process's program
	AskingProcessWorkingDir  string   // working folder of the asking process
	ParentPIDOfAskingProcess int      // process ID of the asking process's parent
	AskingProgramArgs        []string // without the program's name
	Environ                  []string // NAME=VALUE
	AskingProcessStdin       []byte   // standard input
}

// An Answer is the service's response.
type Answer struct {
	ServiceDecided bool   // false: the asking process must judge by itself
	CommandStdout  []byte // standard output of the command line
}

// ServiceFolder returns the folder of the service's socket and key for the state folder
// of a user.
func ServiceFolder(state string) string { return filepath.Join(state, "service") }

// StateFolder returns the user's state folder; "" if unknown. It repeats config.StateDir, since that
// package is initialized too late.
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
	protocolMagic = "shd1"
	nonceSize     = 32
)

// messageMAC returns the MAC of a message.
func messageMAC(key *[KeySize]byte, what string, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key[:])
	_, _ = mac.Write([]byte(what)) // a hash does not fail
	for _, p := range parts {
		_, _ = mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(p))))
		_, _ = mac.Write(p)
	}
	return mac.Sum(nil)
}

// A QuestionExchange is a question that was sent, to which the answer is bound.
type QuestionExchange struct {
	key          *[KeySize]byte
	nonce        []byte
	questionHash [sha256.Size]byte
}

// NewQuestion encodes q and seals it with key. It returns the message to send, and the QuestionExchange that
// reads the answer. It returns an error if the encoded question is longer than [MaxQuestionBytes].
func NewQuestion(key *[KeySize]byte, q *Question) (asked *QuestionExchange, message []byte, err error) {
	body := q.encode()
	if len(body) > MaxQuestionBytes {
		return nil, nil, fmt.Errorf("the request has %d bytes, more than the limit of %d; split it", len(body), MaxQuestionBytes)
	}
	nonce := make([]byte, nonceSize)
	rand.Read(nonce) // never fails
	message = append([]byte(protocolMagic), nonce...)
	message = binary.BigEndian.AppendUint32(message, uint32(len(body)))
	message = append(message, body...)
	return &QuestionExchange{key, nonce, sha256.Sum256(body)}, append(message, messageMAC(key, "question", nonce, body)...), nil
}

// ReadQuestion reads a question. It calls beforeLargeRead before it reads more than 64 KiB.
func ReadQuestion(r io.Reader, key *[KeySize]byte, beforeLargeRead func()) (*QuestionExchange, *Question, error) {
	head := make([]byte, len(protocolMagic)+nonceSize+4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, nil, err
	}
	size := binary.BigEndian.Uint32(head[len(protocolMagic)+nonceSize:])
	if string(head[:len(protocolMagic)]) != protocolMagic || size > MaxQuestionBytes {
		return nil, nil, errors.New("the request is in the format of another version of shield; restart the service to use the installed version")
	}
	if size > 64<<10 {
		beforeLargeRead()
	}
	rest := make([]byte, int(size)+sha256.Size)
	if _, err := io.ReadFull(r, rest); err != nil {
		return nil, nil, err
	}
	nonce, body := head[len(protocolMagic):len(protocolMagic)+nonceSize], rest[:size]
	if !hmac.Equal(rest[size:], messageMAC(key, "question", nonce, body)) {
		return nil, nil, ErrWrongMAC
	}
	q, err := decode(body)
	return &QuestionExchange{key, nonce, sha256.Sum256(body)}, q, err
}

// EncodeAnswer returns the message that answers the question: ans, and a MAC that binds it to this question.
func (a *QuestionExchange) EncodeAnswer(ans Answer) []byte {
	body := append([]byte{0}, ans.CommandStdout...)
	if ans.ServiceDecided {
		body[0] = 1
	}
	message := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	return append(append(message, body...), messageMAC(a.key, "answer", a.nonce, a.questionHash[:], body)...)
}

// ReadAnswer reads the answer to a question.
func (a *QuestionExchange) ReadAnswer(r io.Reader) (ans Answer, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return ans, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size == 0 || size > MaxAnswerBytes {
		return ans, fmt.Errorf("the answer of the service is too long (%d bytes); restart the service", size)
	}
	rest := make([]byte, int(size)+sha256.Size)
	if _, err := io.ReadFull(r, rest); err != nil {
		return ans, err
	}
	body := rest[:size]
	if !hmac.Equal(rest[size:], messageMAC(a.key, "answer", a.nonce, a.questionHash[:], body)) {
		return ans, ErrWrongMAC
	}
	return Answer{ServiceDecided: body[0] == 1, CommandStdout: body[1:]}, nil
}

// encode returns a question as bytes: texts with their lengths, lists with theirs.
func (q *Question) encode() []byte {
	var b []byte
	number := func(n int) { b = binary.BigEndian.AppendUint32(b, uint32(n)) }
	text := func(s string) { number(len(s)); b = append(b, s...) }
	text(q.AskingProgramPath)
	text(q.AskingProcessWorkingDir)
	number(q.ParentPIDOfAskingProcess)
	for _, list := range [][]string{q.AskingProgramArgs, q.Environ} {
		number(len(list))
		for _, s := range list {
			text(s)
		}
	}
	return append(b, q.AskingProcessStdin...)
}

var errTruncated = errors.New("the request is truncated; restart the service, then try again")

func decode(b []byte) (*Question, error) {
	var err error
	number := func() int {
		if len(b) < 4 {
			b, err = nil, errTruncated
			return 0
		}
		n := binary.BigEndian.Uint32(b)
		b = b[4:]
		return int(n)
	}
	text := func() string {
		n := number()
		if n < 0 || n > len(b) {
			b, err = nil, errTruncated
			return ""
		}
		s := string(b[:n])
		b = b[n:]
		return s
	}
	list := func() (out []string) {
		n := number()
		if n < 0 || n > maxArgsOrEnvironEntries {
			err = errTruncated
		}
		for i := 0; i < n && err == nil; i++ {
			out = append(out, text())
		}
		return out
	}
	q := &Question{AskingProgramPath: text(), AskingProcessWorkingDir: text(), ParentPIDOfAskingProcess: number(), AskingProgramArgs: list(), Environ: list()}
	q.AskingProcessStdin = b
	return q, err
}
