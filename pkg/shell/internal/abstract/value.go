// Package abstract represents what is known about a text: a literal, or a pattern that matches all possible texts,
// and where it comes from.
package abstract

import (
	"strings"

	"github.com/shieldcli/shield/internal/brief"
	"github.com/shieldcli/shield/pkg/effect"
)

// SecretName returns the name of the secret in a value, for messages.
func (v Value) SecretName() string {
	switch {
	case v.Secrets != "":
		return v.Secrets
	case v.Taint&Dump != 0:
		return "the environment"
	}
	return "credentials"
}

// MaxValue is the maximum length of a value in bytes, so that repeated doubling of a variable stays cheap.
const MaxValue = 64 << 10

// UnsetName is a variable name that no real text sets. In code, it marks the unknown parts.
const UnsetName = "__unknown"

// A Taint is a set of sources of a value.
type Taint uint16

const (
	Network    Taint = 1 << iota // received from the network
	Decoded                      // output of a decoder
	Secret                       // credentials from a file or a key store
	Credential                   // a variable whose name says that it is a credential
	Dump                         // the whole environment
	Foreign                      // unknown text from another part of the command
	ShellOut                     // output of an interpreter that reads its commands from another source
	Socket                       // a network connection
	Private                      // clipboard, screen, keystrokes
	Local                        // data from a file or command of this machine, secret or not
	Held                         // a credential from a key store or service that was not printed
	Untrusted                    // from a clone or other text that anyone may have written
	Rows                         // rows of a database on this machine
)

// An Origin is a set of causes of the unknown parts of a value. No origin means a pattern of the text itself, such
// as a glob.
type Origin uint8

const (
	FromVariable Origin = 1 << iota // a variable or parameter that the command does not set
	FromCommand                     // output of a command, or result of an expression
	FromInput                       // standard input
	FromFile                        // content of a file
	FromJob                         // ID of a background job of the shell
	FromCount                       // a number computed by arithmetic
	FromText                        // computed by the text in a way that is not analysed
	Forgotten                       // a variable that an unknown assignment may have set
)

// A Value is what is known about a word, a variable's content or the data of a stream.
type Value struct {
	Text      string // literal; a pattern as in effect.Overlap if pattern
	Show      string // text for messages if IsPattern, such as "$NAME"; else empty
	IsPattern bool
	Taint     Taint
	Origin    Origin // origin of all unknown parts
	Lead      Origin // origin of the first part, if that is unknown
	Loose     bool   // some unknown part has no origin
	Bare      bool   // completely unknown
	Tree      bool   // ** in the pattern represents folders that were searched, see effect.Effect
	Lines     bool   // a list of paths, one per line, each of which matches the pattern
	Written   bool   // built from quoted parts, so it is one word
	Names     string // for a list: the file names in it, one per line; "" if any
	From      effect.Span
	Secrets   string // name of the secret, for messages
}

// Lit returns the value of literal text.
func Lit(s string) Value { return Value{Text: s} }

// Unknown returns a completely unknown value.
//
//go:noinline
func Unknown(show string, t Taint) Value {
	return Value{Text: "**", Show: show, IsPattern: true, Bare: true, Taint: t}
}

// Of returns the value with origin o for all unknown parts.
func (v Value) Of(o Origin) Value {
	v.Origin, v.Lead = o, o
	return v
}

// Variable returns the value of a variable that the command does not set.
func Variable(name string, t Taint) Value { return Unknown("$"+name, t).Of(FromVariable) }

// Output returns the unknown output of a command or code.
func Output(of string, t Taint) Value { return Unknown("what "+of+" writes", t).Of(FromCommand) }

// Short returns an unknown value that contains no slash.
func Short(show string, o Origin) Value {
	return Value{Text: "*", Show: show, IsPattern: true}.Of(o)
}

// Number returns an unknown number, as computed by arithmetic.
func Number(show string) Value { return Short(show, FromCommand|FromCount) }

// IsNumber reports whether a value is an unknown number, as [Number] returns.
func (v Value) IsNumber() bool {
	return v.IsPattern && v.Text == "*" && !v.Loose && v.Origin == FromCommand|FromCount && v.Lead == v.Origin
}

// Job reports whether a value is only the ID of a background job of the shell.
func (v Value) Job() bool {
	return v.IsPattern && v.Text == "*" && !v.Loose && v.Origin == FromVariable|FromJob && v.Lead == v.Origin
}

// Hidden reports whether an unknown part lies between two letters of the file name, as in ba${x}sh: this is only
// written to hide a program's name.
func (v Value) Hidden() bool {
	name := v.Text[strings.LastIndexByte(v.Text, '/')+1:]
	first, last := strings.IndexByte(name, '*'), strings.LastIndexByte(name, '*')
	return v.IsPattern && first > 0 && last+1 < len(name) && letter(name[first-1]) && letter(name[last+1])
}

func letter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// Cause returns why a value is unknown.
func (v Value) Cause() effect.Cause {
	switch {
	case v.Taint&(Network|Socket) != 0:
		return effect.CauseDownload
	case v.Origin&FromCommand != 0:
		return effect.CauseOutput
	case v.Origin&FromFile != 0:
		return effect.CauseFile
	case v.Origin&FromInput != 0:
		return effect.CauseInput
	case v.Origin&(FromText|Forgotten) != 0:
		return effect.CauseUnresolved
	case v.Origin&FromVariable != 0:
		return effect.CauseVariable
	}
	return effect.CauseUnresolved
}

// CodeCause returns why a value that is run as code is unknown. If it consists only of variables, no part of the
// code can be analysed.
func (v Value) CodeCause() effect.Cause {
	cause := v.Cause()
	if cause == effect.CauseVariable && strings.Trim(v.Text, "* \t\n;\"'") == "" {
		return effect.CauseHeld
	}
	return cause
}

// String returns the value as text for messages.
func (v Value) String() string {
	if v.IsPattern {
		return v.Show
	}
	return v.Text
}

func (v Value) Known() bool { return !v.IsPattern }

// Computed reports whether the text computes an unknown value in a way that is not analysed: it may hide any word.
func (v Value) Computed() bool { return v.IsPattern && v.Origin&FromText != 0 }

// Plain reports whether the origin of a value is harmless to run: it has no taint other than
// Local and Held, which count only when data leaves the machine.
func (v Value) Plain() bool { return v.Taint&^(Local|Held) == 0 }

// AsPattern returns the text as a pattern, with literal text escaped.
func (v Value) AsPattern() string {
	if v.IsPattern {
		return v.Text
	}
	return effect.Quote(v.Text)
}

// Concat concatenates values.
func Concat(vs ...Value) Value {
	var b Builder
	for _, v := range vs {
		b.Add(v)
	}
	return b.Value()
}

// A Builder concatenates parts of a word. The zero Builder is an empty value.
type Builder struct {
	Lit     strings.Builder // text, literal or pattern
	show    strings.Builder
	pattern bool
	bare    bool // only unknown parts so far
	Any     bool // a part was added
	Taint   Taint
	origin  Origin
	lead    Origin
	loose   bool
	secrets string
	list    bool // the only part so far is a list
	tree    bool // the only part so far is a tree
	star    bool // the text itself contains "**", which matches folders
	climbs  bool // other parts may lead out of these folders
}

func (b *Builder) Literal(s string) {
	if s == "" {
		b.Any = true
		return
	}
	if b.Lit.Len()+len(s) > MaxValue {
		b.overflow()
		return
	}
	b.Any, b.bare, b.list = true, false, false
	b.tree = b.tree && !strings.Contains(s, "/") && strings.Trim(s, ".") != "" // the end of a name does not lead to another folder
	b.climbs = b.climbs || strings.Contains(s, "..")
	if b.pattern {
		b.Lit.WriteString(effect.Quote(s))
		if b.show.Len() < 4<<10 {
			b.show.WriteString(s)
		}
		return
	}
	b.Lit.WriteString(s)
}

// glob adds pattern text that is shown unchanged.
func (b *Builder) glob(pattern, show string) {
	b.Add(Value{Text: pattern, Show: show, IsPattern: true})
}

func (b *Builder) Add(v Value) {
	b.Taint |= v.Taint
	if v.Secrets != "" {
		b.secrets = v.Secrets
	}
	if !v.IsPattern {
		b.Literal(v.Text)
		return
	}
	b.origin |= v.Origin
	b.loose = b.loose || v.Loose || v.Origin == 0
	b.climbs = b.climbs || strings.Contains(v.Text, "**")
	alone := b.Lit.Len() == 0
	b.list, b.tree = alone && v.Lines, alone && v.Tree
	if !b.pattern {
		b.pattern = true
		b.bare = b.Lit.Len() == 0
		if b.bare {
			b.lead = v.Lead
		}
		plain := b.Lit.String()
		b.show.WriteString(plain)
		b.Lit.Reset()
		b.Lit.WriteString(effect.Quote(plain))
	}
	b.Any = true
	b.bare = b.bare && v.Bare
	if b.Lit.Len()+len(v.Text) > MaxValue {
		b.overflow()
		return
	}
	if !strings.HasSuffix(b.Lit.String(), "**") || v.Text != "**" {
		b.Lit.WriteString(v.Text)
	}
	if b.show.Len() < 4<<10 {
		b.show.WriteString(v.Show)
	}
}

// overflow makes a value unknown that became too long.
func (b *Builder) overflow() {
	b.Lit.Reset()
	b.show.Reset()
	b.Lit.WriteString("**")
	b.show.WriteString("…")
	b.pattern, b.bare, b.Any, b.list, b.tree = true, true, true, false, false
	b.origin, b.lead = 0, 0
	b.Taint |= Foreign
}

func (b *Builder) Value() Value {
	if !b.pattern {
		return Value{Text: b.Lit.String(), Taint: b.Taint, Secrets: b.secrets}
	}
	return Value{Text: b.Lit.String(), Show: b.show.String(), IsPattern: true, Bare: b.bare, Taint: b.Taint, Origin: b.origin, Lead: b.lead, Loose: b.loose, Secrets: b.secrets, Lines: b.list, Tree: b.tree || b.star && !b.climbs}
}

// Unescaped adds unquoted text of the command, with escapes and globs.
func (b *Builder) Unescaped(text string) {
	if !strings.ContainsAny(text, "\\*?[") {
		b.Literal(text)
		return
	}
	start := 0
	flush := func(end int) {
		if end > start {
			b.Literal(text[start:end])
		}
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			flush(i)
			i++
			start = i
			if i < len(text) && text[i] == '\n' {
				start = i + 1
			}
		case '*':
			flush(i)
			end := i
			for end < len(text) && text[end] == '*' {
				end++
			}
			b.stars(text[i:end], i == 0 || text[i-1] == '/', end == len(text) || text[end] == '/')
			i, start = end-1, end
		case '?':
			flush(i)
			b.glob("?", "?")
			start = i + 1
		case '[':
			end := setEnd(text[i:])
			if end < 0 { // no bracket expression, as in the command "["
				continue
			}
			flush(i)
			expr := text[i : i+end+1]
			b.glob(GlobPattern(expr), expr)
			i += end
			start = i + 1
		}
	}
	flush(len(text))
}

// stars adds a run of stars. Two stars that are a whole path element match folders below the folder at the start
// of the word.
func (b *Builder) stars(run string, begins, ends bool) {
	begins = begins && (b.Lit.Len() == 0 || strings.HasSuffix(b.Lit.String(), "/"))
	climbs := b.climbs
	if len(run) != 2 || !begins || !ends {
		b.glob(run[:min(len(run), 2)], run)
		return
	}
	if b.Lit.Len() == 0 {
		b.glob("./", "")
	}
	b.glob(run, run)
	b.star, b.climbs = true, climbs
}

// Clip shortens text for a message to 80 characters.
func Clip(s string) string { return brief.Text(s, 80) }

// MaxFields is the maximum number of words to which one word may expand.
const MaxFields = 1024
