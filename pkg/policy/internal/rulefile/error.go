package rulefile

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/suggest"
)

// An Error says what is wrong with a policy, and where.
type Error struct {
	Name string // of the file
	Pos
	Msg string
}

// Error returns "policy NAME:LINE:COLUMN: what is wrong".
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("policy %s: %s", e.Name, e.Msg)
	}
	return fmt.Sprintf("policy %s:%d:%d: %s", e.Name, e.Line, e.Column, e.Msg)
}

func (p Pos) errorf(format string, args ...any) *Error {
	return &Error{Pos: p, Msg: fmt.Sprintf(format, args...)}
}

// Quote returns text from a file as it may be shown: quoted, without control
// characters, at most 80 runes.
func Quote(s string) string {
	const most = 80
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "…"
	}
	return strconv.QuoteToGraphic(s)
}

// printable returns a message of the YAML parser on one line, short, and
// without the control characters that it may quote.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// Suggest returns a question that names the known word nearest to one that is
// unknown, or "" if none is near.
func Suggest(word string, known []string) string {
	best := suggest.Nearest(word, known)
	if best == "" {
		return ""
	}
	return "; did you mean " + strconv.Quote(best) + "?"
}
