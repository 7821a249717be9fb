package yamlfile

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/internal/brief"
	"github.com/shieldcli/shield/internal/sorted"
)

// A Pos is a place in a file. Both numbers are counted from 1; 0 is unknown.
type Pos struct{ Line, Column int }

// Errorf returns an error at a place. The file's name is the caller's to add.
func (p Pos) Errorf(format string, args ...any) *Error {
	return &Error{Pos: p, Msg: fmt.Sprintf(format, args...)}
}

// An Error says what is wrong with a file, and where.
type Error struct {
	FileKind string // kind of the file, as in "policy"
	FileName string // name of the file
	Pos
	Msg string
}

// Error returns "KIND NAME:LINE:COLUMN: what is wrong", as far as that is known.
func (e *Error) Error() string {
	where := strings.TrimSpace(e.FileKind + " " + e.FileName)
	if e.Line > 0 {
		where += fmt.Sprintf(":%d:%d", e.Line, e.Column)
	}
	return where + ": " + e.Msg
}

// Errors are all that is wrong with a file, at least one thing, in the file's
// order.
type Errors []*Error

// Error returns the first of the errors, and how many there are beside it:
// where a message has room for one line, that is what a person fixes first.
func (e Errors) Error() string {
	if len(e) == 1 {
		return e[0].Error()
	}
	return fmt.Sprintf("%v (and %d more)", e[0], len(e)-1)
}

// Unwrap returns each of the errors.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i := range e {
		out[i] = e[i]
	}
	return out
}

// maxErrors is how many errors of one file are reported. A file with more errors is probably not a
// file of the expected kind.
const maxErrors = 50

// Add adds an error, or all that err consists of, unless it is nil.
func (e *Errors) Add(err error) {
	var many Errors
	var one *Error
	switch {
	case err == nil || len(*e) >= maxErrors:
	case errors.As(err, &many):
		*e = append(*e, many[:min(len(many), maxErrors-len(*e))]...)
	case errors.As(err, &one):
		*e = append(*e, one)
	default:
		*e = append(*e, &Error{Msg: err.Error()})
	}
}

// Err returns the errors in the order of each file, nil if there are none.
func (e Errors) Err() error {
	if len(e) == 0 {
		return nil
	}
	rank := map[string]int{}
	for _, one := range e {
		if _, ok := rank[one.FileName]; !ok {
			rank[one.FileName] = len(rank)
		}
	}
	sorted.SortStableBy(e, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(rank[a.FileName], rank[b.FileName]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return e
}

// AnnotateErrorsWithFile sets the file kind and file name in every error that err contains, and returns the
// result.
func AnnotateErrorsWithFile(fileKind, fileName string, err error) error {
	var e Errors
	e.Add(err)
	for _, one := range e {
		one.FileKind, one.FileName = fileKind, fileName
	}
	return e.Err()
}

// QuoteForMessage returns text from a file as it may be shown: quoted, without control
// characters, at most 80 runes.
func QuoteForMessage(s string) string {
	return strconv.QuoteToGraphic(brief.TruncateWithEllipsis(s, 80))
}

// printableMessage returns a message of the YAML parser on one line, short, and
// without the control characters that it may quote.
func printableMessage(s string) string {
	return brief.TruncateWithEllipsis(strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, s), 200)
}
