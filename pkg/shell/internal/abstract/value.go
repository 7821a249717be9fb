// Package abstract holds what the analysis of a command knows of a text: a literal,
// or a pattern that every text it may be matches, and where it comes from.
package abstract

import (
	"strings"

	"github.com/shieldcli/shield/internal/brief"
	"github.com/shieldcli/shield/pkg/effect"
)

// SecretName says what secret a value holds, for messages.
func (v Value) SecretName() string {
	switch {
	case v.Secrets != "":
		return v.Secrets
	case v.Taint&Dump != 0:
		return "the environment"
	}
	return "credentials"
}

// MaxValue bounds the bytes of one value, so that doubling a variable again
// and again stays cheap.
const MaxValue = 64 << 10

// UnsetName is a variable that text cannot be expected to set. It is in code
// for the parts that are not known.
const UnsetName = "__unknown"

// A Taint says where a value comes from.
type Taint uint16

const (
	Network    Taint = 1 << iota // the network sent it
	Decoded                      // the result of a decoder
	Secret                       // holds credentials read from a file or a key store
	Credential                   // holds a variable whose name says that it is a credential
	Dump                         // holds the whole environment
	Foreign                      // text of another part of the command, not known
	ShellOut                     // output of an interpreter that reads its commands from elsewhere
	Socket                       // is a network connection
	Private                      // clipboard, screen, key strokes
	Local                        // holds what a file or a command of this machine says, secret or not
	Held                         // a key store or service handed it out, and nothing has shown it yet
	Untrusted                    // comes from a clone or another text that anybody may have written
	Rows                         // holds what a database of this machine does
)

// An Origin says where what is not known of a value comes from. No origin means
// text that is not worked out, such as what a glob matches.
type Origin uint8

const (
	FromVariable Origin = 1 << iota // a variable or parameter that nothing in the command sets
	FromCommand                     // what a command writes, or an expression yields
	FromInput                       // standard input
	FromFile                        // what a file holds
	FromJob                         // the number of a job that the shell itself started
	FromCount                       // a number that arithmetic yields
	FromText                        // the text itself, in a way that is not followed
	Forgotten                       // a variable that something unknown may have set
)

// A Value is a word, a variable's content or what a stream carries, as far as
// it is known.
type Value struct {
	Text      string // literal; a pattern as in effect.Overlap if pattern
	Show      string // how people read it if pattern, such as "$NAME"; else empty
	IsPattern bool
	Taint     Taint
	Origin    Origin // of all that is not known
	Lead      Origin // of what it starts with, where that is not known
	Loose     bool   // some part that is not known has no origin
	Bare      bool   // nothing at all is known
	Tree      bool   // the ** of a pattern is folders that were searched, see effect.Effect
	Lines     bool   // a list of paths, of which each line matches the pattern, too
	Written   bool   // text was put together from quoted parts, so it is not the name of an option
	Names     string // of such a list: which last names are in it, one a line; "" if it may be any
	From      effect.Span
	Secrets   string // which secret it holds, for messages
}

// Lit returns the value of literal text.
func Lit(s string) Value { return Value{Text: s} }

// Unknown is a value of which nothing is known.
func Unknown(show string, t Taint) Value {
	return Value{Text: "**", Show: show, IsPattern: true, Bare: true, Taint: t}
}

// Of returns the value with all that is not known of it from o.
func (v Value) Of(o Origin) Value {
	v.Origin, v.Lead = o, o
	return v
}

// Variable is the value of a variable that nothing in the command sets.
func Variable(name string, t Taint) Value { return Unknown("$"+name, t).Of(FromVariable) }

// Output is what a command or code writes of which nothing is known.
func Output(of string, t Taint) Value { return Unknown("what "+of+" writes", t).Of(FromCommand) }

// Short is a value of which no more is known than that it holds no slash.
func Short(show string, o Origin) Value {
	return Value{Text: "*", Show: show, IsPattern: true}.Of(o)
}

// Number is a number that arithmetic yields, of which no more is known.
func Number(show string) Value { return Short(show, FromCommand|FromCount) }

// IsNumber reports whether a value is such a number, and nothing else.
func (v Value) IsNumber() bool {
	return v.IsPattern && v.Text == "*" && !v.Loose && v.Origin == FromCommand|FromCount && v.Lead == v.Origin
}

// Job reports whether a value is the number of a job that the shell itself started,
// and nothing else.
func (v Value) Job() bool {
	return v.IsPattern && v.Text == "*" && !v.Loose && v.Origin == FromVariable|FromJob && v.Lead == v.Origin
}

// Hidden reports whether the last name of a path is not known between two letters,
// as in ba${x}sh: no one writes the name of a program so that it can vary there.
func (v Value) Hidden() bool {
	name := v.Text[strings.LastIndexByte(v.Text, '/')+1:]
	first, last := strings.IndexByte(name, '*'), strings.LastIndexByte(name, '*')
	return v.IsPattern && first > 0 && last+1 < len(name) && letter(name[first-1]) && letter(name[last+1])
}

func letter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// Cause returns why a value is not known.
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

// CodeCause returns why a value that is run as code is not known: where it is
// nothing but what variables hold, not even a part of it can be read.
func (v Value) CodeCause() effect.Cause {
	cause := v.Cause()
	if cause == effect.CauseVariable && strings.Trim(v.Text, "* \t\n;\"'") == "" {
		return effect.CauseHeld
	}
	return cause
}

// String returns the value as people read it.
func (v Value) String() string {
	if v.IsPattern {
		return v.Show
	}
	return v.Text
}

func (v Value) Known() bool { return !v.IsPattern }

// Computed reports whether the text computes a value from what it holds, in a way that is not followed: it
// may hide any word there.
func (v Value) Computed() bool { return v.IsPattern && v.Origin&FromText != 0 }

// Plain reports whether the origin of a value is harmless to run: it has no taint other than
// Local and Held, which count only when data leaves the machine.
func (v Value) Plain() bool { return v.Taint&^(Local|Held) == 0 }

// AsPattern returns the text in the pattern language.
func (v Value) AsPattern() string {
	if v.IsPattern {
		return v.Text
	}
	return effect.Quote(v.Text)
}

// Concat joins values into one.
func Concat(vs ...Value) Value {
	var b Builder
	for _, v := range vs {
		b.Add(v)
	}
	return b.Value()
}

// A Builder joins parts of a word. The zero builder is an empty value.
type Builder struct {
	Lit     strings.Builder // text, literal or pattern
	show    strings.Builder
	pattern bool
	bare    bool // only unknown parts so far
	Any     bool // something was added
	Taint   Taint
	origin  Origin
	lead    Origin
	loose   bool
	secrets string
	list    bool // the only part so far is a list
	tree    bool // and a tree
	star    bool // "**" of the text itself names folders
	climbs  bool // other parts can lead out of them
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
	b.tree = b.tree && !strings.Contains(s, "/") && strings.Trim(s, ".") != "" // the end of a name leads nowhere else
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

// glob adds pattern text that people read as it is.
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

// overflow forgets a value that became too long.
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

// Unescaped adds unquoted text of the command.
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
			if end < 0 { // no bracket expression, such as the command "["
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

// stars adds a run of stars. Two that are a segment of their own name folders, which lie below
// the folder that the word begins in.
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

// MaxFields is how many words one word may become.
const MaxFields = 1024
