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
	case v.SecretDescription != "":
		return v.SecretDescription
	case v.Taint&TaintEnvironmentDump != 0:
		return "the environment"
	}
	return "credentials"
}

// MaxValueBytes is the maximum length of a value in bytes, so that repeated doubling of a variable stays cheap.
const MaxValueBytes = 64 << 10

// UnknownPlaceholderVariable is a variable name that no real text sets. In code, it marks the unknown parts.
const UnknownPlaceholderVariable = "__unknown"

// A Taint is a set of sources of a value.
type Taint uint16

const (
	TaintNetwork                     Taint = 1 << iota // received from the network
	TaintDecoded                                       // output of a decoder
	TaintReadCredentials                               // credentials from a file or a key store
	TaintCredentialVariable                            // a variable whose name says that it is a credential
	TaintEnvironmentDump                               // the whole environment
	TaintUnknownText                                   // unknown text from another part of the command
	TaintStdinInterpreterOutput                        // output of an interpreter that runs its standard input as code
	TaintSocket                                        // a network connection
	TaintClipboardOrScreen                             // clipboard, screen, keystrokes
	TaintLocalMachineData                              // data from a file or command of this machine, secret or not
	TaintUnprintedKeyStoreCredential                   // a credential from a key store or service that was not printed
	TaintUntrustedText                                 // from a clone or other text that anyone may have written
	TaintDatabaseRows                                  // rows of a database on this machine
)

// An Origin is a set of causes why parts of a value are unknown. An unknown value without an origin
// is a pattern that the command itself contains, such as a glob.
type Origin uint8

const (
	OriginUnsetVariable           Origin = 1 << iota // a variable or parameter that the command does not set
	OriginCommandOutput                              // output of a command, or result of an expression
	OriginStdin                                      // standard input
	OriginFileContent                                // content of a file
	OriginJobID                                      // ID of a background job of the shell
	OriginArithmetic                                 // a number computed by arithmetic
	OriginUnanalysedComputation                      // result of an operation in the command that shield does not compute
	OriginAssignmentToUnknownName                    // a variable that an unknown assignment may have set
)

// A Value is what is known about a word, a variable's content or the data of a stream.
type Value struct {
	Text                        string // literal; a pattern as in effect.PatternsOverlap if IsGlobPattern
	Display                     string // text that messages show instead of the pattern, such as "$NAME"; "" if IsGlobPattern is false
	IsGlobPattern               bool
	Taint                       Taint
	Origin                      Origin // origins of the unknown parts, combined as bit flags
	FirstPartOrigin             Origin // origin of the first part, if this part is unknown; else 0
	HasUnknownPartWithoutOrigin bool   // some unknown part has no origin
	FullyUnknown                bool   // completely unknown
	DoubleStarExcludesDotDot    bool   // ** in Text stands for folders that a program searched, so it cannot match ".."; see effect.Effect
	HasPathPerLine              bool   // the value is a list of paths, one per line, and Text is a pattern that matches each of them
	IsSingleWord                bool   // built from quoted parts, so it is one word
	ListedFileNamePatterns      string // for a list of paths: patterns of their file names, one per line; "" if any name is possible
	SourceSpan                  effect.CommandTextSpan
	SecretDescription           string // name of the secret, for messages
}

// Lit returns the value of literal text.
func Lit(s string) Value { return Value{Text: s} }

// Unknown returns a completely unknown value.
//
//go:noinline
func Unknown(displayText string, taint Taint) Value {
	return Value{Text: "**", Display: displayText, IsGlobPattern: true, FullyUnknown: true, Taint: taint}
}

// WithOrigin returns the value with origin o for all unknown parts.
func (v Value) WithOrigin(o Origin) Value {
	v.Origin, v.FirstPartOrigin = o, o
	return v
}

// UnsetVariableValue returns the value of a variable that the command does not set.
func UnsetVariableValue(name string, taint Taint) Value {
	return Unknown("$"+name, taint).WithOrigin(OriginUnsetVariable)
}

// UnknownOutput returns a completely unknown value that stands for what a command or code (producer) writes.
func UnknownOutput(producer string, taint Taint) Value {
	return Unknown("what "+producer+" writes", taint).WithOrigin(OriginCommandOutput)
}

// UnknownTextWithoutSlash returns an unknown value that contains no slash.
func UnknownTextWithoutSlash(displayText string, origin Origin) Value {
	return Value{Text: "*", Display: displayText, IsGlobPattern: true}.WithOrigin(origin)
}

// UnknownNumber returns an unknown number, as computed by arithmetic.
func UnknownNumber(displayText string) Value {
	return UnknownTextWithoutSlash(displayText, OriginCommandOutput|OriginArithmetic)
}

// IsNumber reports whether a value is an unknown number, as [UnknownNumber] returns.
func (v Value) IsNumber() bool {
	return v.IsGlobPattern && v.Text == "*" && !v.HasUnknownPartWithoutOrigin && v.Origin == OriginCommandOutput|OriginArithmetic && v.FirstPartOrigin == v.Origin
}

// IsJobID reports whether a value is only the ID of a background job of the shell.
func (v Value) IsJobID() bool {
	return v.IsGlobPattern && v.Text == "*" && !v.HasUnknownPartWithoutOrigin && v.Origin == OriginUnsetVariable|OriginJobID && v.FirstPartOrigin == v.Origin
}

// HasUnknownPartWithinFileName reports whether an unknown part lies between two letters of the file name, as in ba${x}sh: this is only
// written to hide a program's name.
func (v Value) HasUnknownPartWithinFileName() bool {
	name := v.Text[strings.LastIndexByte(v.Text, '/')+1:]
	first, last := strings.IndexByte(name, '*'), strings.LastIndexByte(name, '*')
	return v.IsGlobPattern && first > 0 && last+1 < len(name) && isLetter(name[first-1]) && isLetter(name[last+1])
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// CauseOfUnknownParts returns why a value is unknown.
func (v Value) CauseOfUnknownParts() effect.EffectCause {
	switch {
	case v.Taint&(TaintNetwork|TaintSocket) != 0:
		return effect.CauseDownload
	case v.Origin&OriginCommandOutput != 0:
		return effect.CauseCommandOutput
	case v.Origin&OriginFileContent != 0:
		return effect.CauseFileContents
	case v.Origin&OriginStdin != 0:
		return effect.CauseStandardInput
	case v.Origin&(OriginUnanalysedComputation|OriginAssignmentToUnknownName) != 0:
		return effect.CauseOtherUnresolvedCommandText
	case v.Origin&OriginUnsetVariable != 0:
		return effect.CauseVariableNotSetByCommand
	}
	return effect.CauseOtherUnresolvedCommandText
}

// CauseOfUnknownCode returns why a value that is run as code is unknown. If it consists only of variables, no part of the
// code can be analysed.
func (v Value) CauseOfUnknownCode() effect.EffectCause {
	cause := v.CauseOfUnknownParts()
	if cause == effect.CauseVariableNotSetByCommand && strings.Trim(v.Text, "* \t\n;\"'") == "" {
		return effect.CauseCodeIsVariableValue
	}
	return cause
}

// String returns the value as text for messages.
func (v Value) String() string {
	if v.IsGlobPattern {
		return v.Display
	}
	return v.Text
}

func (v Value) IsLiteral() bool { return !v.IsGlobPattern }

// HasUnanalysedComputation reports whether the text computes an unknown value in a way that is not analysed: it may hide any word.
func (v Value) HasUnanalysedComputation() bool {
	return v.IsGlobPattern && v.Origin&OriginUnanalysedComputation != 0
}

// HasOnlyTaintsHarmlessToRun reports whether a value is harmless to run as far as its taint tells: it has no
// taint other than TaintLocalMachineData and TaintUnprintedKeyStoreCredential, which matter only when data
// leaves the machine.
func (v Value) HasOnlyTaintsHarmlessToRun() bool {
	return v.Taint&^(TaintLocalMachineData|TaintUnprintedKeyStoreCredential) == 0
}

// AsPattern returns the text as a pattern, with literal text escaped.
func (v Value) AsPattern() string {
	if v.IsGlobPattern {
		return v.Text
	}
	return effect.QuoteGlobMeta(v.Text)
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
	Text                        strings.Builder // text, literal or pattern
	display                     strings.Builder
	isGlobPattern               bool
	fullyUnknown                bool // only unknown parts so far
	HasAddedPart                bool // a part, possibly an empty one, was added to the value
	Taint                       Taint
	origin                      Origin
	firstPartOrigin             Origin
	hasUnknownPartWithoutOrigin bool
	secretDescription           string
	hasPathPerLine              bool // only one part was added so far, and it is a list of paths, one per line
	doubleStarExcludesDotDot    bool // "**" in the first part cannot match ".." (see Value); later parts have only extended a file name
	hasDoubleStar               bool // the text itself contains "**", which matches folders
	mayContainDotDot            bool // a part besides the "**" of the text itself may contain "..", which leads out of the matched folders
}

func (b *Builder) AddLiteral(s string) {
	if s == "" {
		b.HasAddedPart = true
		return
	}
	if b.Text.Len()+len(s) > MaxValueBytes {
		b.becomeUnknown()
		return
	}
	b.HasAddedPart, b.fullyUnknown, b.hasPathPerLine = true, false, false
	b.doubleStarExcludesDotDot = b.doubleStarExcludesDotDot && !strings.Contains(s, "/") && strings.Trim(s, ".") != "" // text that only extends a file name stays in the same folder
	b.mayContainDotDot = b.mayContainDotDot || strings.Contains(s, "..")
	if b.isGlobPattern {
		b.Text.WriteString(effect.QuoteGlobMeta(s))
		if b.display.Len() < 4<<10 {
			b.display.WriteString(s)
		}
		return
	}
	b.Text.WriteString(s)
}

// addGlob adds the text of a pattern; show is the text that messages contain instead of it.
func (b *Builder) addGlob(pattern, show string) {
	b.Add(Value{Text: pattern, Display: show, IsGlobPattern: true})
}

func (b *Builder) Add(v Value) {
	b.Taint |= v.Taint
	if v.SecretDescription != "" {
		b.secretDescription = v.SecretDescription
	}
	if !v.IsGlobPattern {
		b.AddLiteral(v.Text)
		return
	}
	b.origin |= v.Origin
	b.hasUnknownPartWithoutOrigin = b.hasUnknownPartWithoutOrigin || v.HasUnknownPartWithoutOrigin || v.Origin == 0
	b.mayContainDotDot = b.mayContainDotDot || strings.Contains(v.Text, "**")
	alone := b.Text.Len() == 0
	b.hasPathPerLine, b.doubleStarExcludesDotDot = alone && v.HasPathPerLine, alone && v.DoubleStarExcludesDotDot
	if !b.isGlobPattern {
		b.isGlobPattern = true
		b.fullyUnknown = b.Text.Len() == 0
		if b.fullyUnknown {
			b.firstPartOrigin = v.FirstPartOrigin
		}
		plain := b.Text.String()
		b.display.WriteString(plain)
		b.Text.Reset()
		b.Text.WriteString(effect.QuoteGlobMeta(plain))
	}
	b.HasAddedPart = true
	b.fullyUnknown = b.fullyUnknown && v.FullyUnknown
	if b.Text.Len()+len(v.Text) > MaxValueBytes {
		b.becomeUnknown()
		return
	}
	if !strings.HasSuffix(b.Text.String(), "**") || v.Text != "**" {
		b.Text.WriteString(v.Text)
	}
	if b.display.Len() < 4<<10 {
		b.display.WriteString(v.Display)
	}
}

// becomeUnknown makes a value unknown that became too long.
func (b *Builder) becomeUnknown() {
	b.Text.Reset()
	b.display.Reset()
	b.Text.WriteString("**")
	b.display.WriteString("…")
	b.isGlobPattern, b.fullyUnknown, b.HasAddedPart, b.hasPathPerLine, b.doubleStarExcludesDotDot = true, true, true, false, false
	b.origin, b.firstPartOrigin = 0, 0
	b.Taint |= TaintUnknownText
}

func (b *Builder) Value() Value {
	if !b.isGlobPattern {
		return Value{Text: b.Text.String(), Taint: b.Taint, SecretDescription: b.secretDescription}
	}
	return Value{Text: b.Text.String(), Display: b.display.String(), IsGlobPattern: true, FullyUnknown: b.fullyUnknown, Taint: b.Taint, Origin: b.origin, FirstPartOrigin: b.firstPartOrigin, HasUnknownPartWithoutOrigin: b.hasUnknownPartWithoutOrigin, SecretDescription: b.secretDescription, HasPathPerLine: b.hasPathPerLine, DoubleStarExcludesDotDot: b.doubleStarExcludesDotDot || b.hasDoubleStar && !b.mayContainDotDot}
}

// AddUnquotedText adds unquoted text of the command, with escapes and globs.
func (b *Builder) AddUnquotedText(text string) {
	if !strings.ContainsAny(text, "\\*?[") {
		b.AddLiteral(text)
		return
	}
	start := 0
	flush := func(end int) {
		if end > start {
			b.AddLiteral(text[start:end])
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
			b.addStarRun(text[i:end], i == 0 || text[i-1] == '/', end == len(text) || text[end] == '/')
			i, start = end-1, end
		case '?':
			flush(i)
			b.addGlob("?", "?")
			start = i + 1
		case '[':
			end := bracketEnd(text[i:])
			if end < 0 { // no bracket expression, as in the command "["
				continue
			}
			flush(i)
			expr := text[i : i+end+1]
			b.addGlob(EffectPathPatternFromShellGlob(expr), expr)
			i += end
			start = i + 1
		}
	}
	flush(len(text))
}

// addStarRun adds a run of stars. Two stars that are a whole path element match folders below the folder at the start
// of the word.
func (b *Builder) addStarRun(stars string, startsPathElement, endsPathElement bool) {
	startsPathElement = startsPathElement && (b.Text.Len() == 0 || strings.HasSuffix(b.Text.String(), "/"))
	climbs := b.mayContainDotDot
	if len(stars) != 2 || !startsPathElement || !endsPathElement {
		b.addGlob(stars[:min(len(stars), 2)], stars)
		return
	}
	if b.Text.Len() == 0 {
		b.addGlob("./", "")
	}
	b.addGlob(stars, stars)
	b.hasDoubleStar, b.mayContainDotDot = true, climbs
}

// ClipForMessage shortens text for a message to 80 characters.
func ClipForMessage(s string) string { return brief.TruncateWithEllipsis(s, 80) }

// MaxExpandedWords is the maximum number of words to which one word may expand.
const MaxExpandedWords = 1024
