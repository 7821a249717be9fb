package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// maxValue bounds the bytes of one value, so that doubling a variable again
// and again stays cheap.
const maxValue = 64 << 10

// A taint says where a value comes from.
type taint uint16

const (
	network    taint = 1 << iota // the network sent it
	decoded                      // the result of a decoder
	secret                       // holds credentials read from a file or a key store
	credential                   // holds a variable whose name says that it is a credential
	dump                         // holds the whole environment
	foreign                      // text of another part of the command, not known
	shellOut                     // output of an interpreter that reads its commands from elsewhere
	socket                       // is a network connection
	private                      // clipboard, screen, key strokes
)

// A value is a word, a variable's content or what a stream carries, as far as
// it is known.
type value struct {
	text    string // literal; a pattern as in effect.Overlap if pattern
	show    string // how people read it if pattern, such as "$NAME"; else empty
	pattern bool
	taint   taint
	bare    bool // nothing at all is known
	tree    bool // the ** of a pattern is folders that were searched, see effect.Effect
	from    effect.Span
	secrets string // which secret it holds, for messages
	written bool   // text was put together from quoted parts, so it is no option name
}

func lit(s string) value { return value{text: s} }

// unknown is a value of which nothing is known.
func unknown(show string, t taint) value {
	return value{text: "**", show: show, pattern: true, bare: true, taint: t}
}

// String returns the value as people read it.
func (v value) String() string {
	if v.pattern {
		return v.show
	}
	return v.text
}

func (v value) known() bool { return !v.pattern }

// asPattern returns the text in the pattern language.
func (v value) asPattern() string {
	if v.pattern {
		return v.text
	}
	return escapePattern(v.text)
}

const patternSpecial = `*?[\`

func escapePattern(s string) string {
	if !strings.ContainsAny(s, patternSpecial) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(patternSpecial, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// concat joins values into one.
func concat(vs ...value) value {
	var b builder
	for _, v := range vs {
		b.add(v)
	}
	return b.value()
}

// A builder joins parts of a word. The zero builder is an empty value.
type builder struct {
	lit     strings.Builder // text, literal or pattern
	show    strings.Builder
	pattern bool
	bare    bool // only unknown parts so far
	any     bool // something was added
	taint   taint
	secrets string
}

func (b *builder) literal(s string) {
	if s == "" {
		b.any = true
		return
	}
	if b.lit.Len()+len(s) > maxValue {
		b.overflow()
		return
	}
	b.any, b.bare = true, false
	if b.pattern {
		b.lit.WriteString(escapePattern(s))
		if b.show.Len() < 4<<10 {
			b.show.WriteString(s)
		}
		return
	}
	b.lit.WriteString(s)
}

// glob adds pattern text that people read as it is.
func (b *builder) glob(pattern, show string) {
	b.add(value{text: pattern, show: show, pattern: true})
}

func (b *builder) add(v value) {
	b.taint |= v.taint
	if v.secrets != "" {
		b.secrets = v.secrets
	}
	if !v.pattern {
		b.literal(v.text)
		return
	}
	if !b.pattern {
		b.pattern = true
		b.bare = b.lit.Len() == 0
		plain := b.lit.String()
		b.show.WriteString(plain)
		b.lit.Reset()
		b.lit.WriteString(escapePattern(plain))
	}
	b.any = true
	b.bare = b.bare && v.bare
	if b.lit.Len()+len(v.text) > maxValue {
		b.overflow()
		return
	}
	if !strings.HasSuffix(b.lit.String(), "**") || v.text != "**" {
		b.lit.WriteString(v.text)
	}
	if b.show.Len() < 4<<10 {
		b.show.WriteString(v.show)
	}
}

// overflow forgets a value that became too long.
func (b *builder) overflow() {
	b.lit.Reset()
	b.show.Reset()
	b.lit.WriteString("**")
	b.show.WriteString("…")
	b.pattern, b.bare, b.any = true, true, true
	b.taint |= foreign
}

func (b *builder) value() value {
	if !b.pattern {
		return value{text: b.lit.String(), taint: b.taint, secrets: b.secrets}
	}
	return value{text: b.lit.String(), show: b.show.String(), pattern: true, bare: b.bare, taint: b.taint, secrets: b.secrets}
}
