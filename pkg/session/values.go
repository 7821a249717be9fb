package session

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

// A Value is a credential that a session has read: hashes under a key of this
// installation, and never the credential.
type Value struct {
	Length  int      `json:"n"` // bytes
	Sum     []byte   `json:"sum"`
	Pieces  []byte   `json:"pieces,omitempty"`  // of each run of pieceSize bytes in it, hashSize bytes each
	Service []string `json:"service,omitempty"` // words of the name that it had, which the service's host may hold
	Uniform bool     `json:"uniform,omitempty"` // it has digits alone, or letters of one kind
	Private bool     `json:"private,omitempty"` // it is no credential: a word of a private file that is hardly in another text
}

// The bounds of values.
const (
	leastValue  = 8   // bytes; shorter ones occur anywhere
	wholeValue  = 16  // bytes from which on a value cannot be there by chance
	maxValue    = 512 // bytes of which pieces are kept
	pieceSize   = 8   // bytes
	hashSize    = 8
	maxValues   = 512     // of a session
	maxFound    = 64      // of a file or result
	maxPrivate  = 1 << 16 // bytes of a private text that are read
	maxHashed   = 1 << 15 // runs of bytes that are compared in one action
	leastBits   = 3.0     // entropy of what looks random, in bits a byte
	valuePrefix = "value:"
)

// A flow says how much of a value that the session has read an action carries.
type flow uint8

const (
	flowsNot flow = iota
	flowsPart
	flowsWhole
)

// A hasher makes the hashes of values. It belongs to one goroutine.
type hasher struct {
	mac hash.Hash
	sum [sha256.Size]byte
}

func newHasher(key [32]byte) *hasher { return &hasher{mac: hmac.New(sha256.New, key[:])} }

// of returns the hash of a text. It is good until the next call.
func (h *hasher) of(text string) []byte {
	h.mac.Reset()
	_, _ = h.mac.Write([]byte(text)) // a hash does not fail
	return h.mac.Sum(h.sum[:0])
}

// value returns what is kept of a credential.
func (h *hasher) value(text, name string) Value {
	v := Value{Length: len(text), Sum: slices.Clone(h.of(text)[:16]), Service: services(name, text)}
	v.Uniform = kinds(text) == 1 && len(text) >= wholeValue
	for i := 0; len(text) >= wholeValue && !keyID().MatchString(text) && i+pieceSize <= min(len(text), maxValue); i++ {
		if piece := text[i : i+pieceSize]; kinds(piece) > 1 || kinds(text) == 1 { // the beginnings of all keys of a service are words
			v.Pieces = append(v.Pieces, h.of(piece)[:hashSize]...)
		}
	}
	return v
}

// words are what may be a number, an address or a name in a private file.
var words = prefilter.Lazy(`[A-Za-z0-9@._:/%+-]{8,}`)

// private returns the words of a private text that are hardly in another: those
// with a digit and something else, and addresses of mail.
func (h *hasher) private(text string) (out []Value) {
	for _, word := range words().FindAllString(text[:min(len(text), maxPrivate)], maxFound) {
		if word = strings.Trim(word, ".:/-"); len(word) >= leastValue && (kinds(word) > 1 && strings.ContainsAny(word, "0123456789") || strings.Contains(word[1:], "@")) {
			out = append(out, Value{Length: len(word), Sum: slices.Clone(h.of(word)[:16]), Private: true})
		}
	}
	return out
}

// kinds returns how many of digits, small and capital letters a text has.
func kinds(s string) (n int) {
	for _, set := range [...]string{"0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"} {
		if strings.ContainsAny(s, set) {
			n++
		}
	}
	return n
}

// assignment is a line of a file of settings.
var assignment = prefilter.Lazy(`(?m)^\s*(?:export\s+)?["']?([A-Za-z_][A-Za-z0-9_.-]*)["']?\s*[=:]\s*["']?([^\s"',;]+)`)

// uniform reports whether a text has digits, small or capital letters alone, as words
// do; other characters do not count.
func uniform(s string) bool {
	var have [3]bool
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			have[0] = true
		case 'a' <= c && c <= 'z':
			have[1] = true
		case 'A' <= c && c <= 'Z':
			have[2] = true
		}
	}
	return !(have[0] && have[1] || have[0] && have[2] || have[1] && have[2])
}

// values returns what is kept of the credentials in a text. all says that it is a
// store of credentials: what looks random there is one. from is the host that sent
// the text, at which its credentials are good; "" if that is not known.
func (h *hasher) values(text string, all bool, from string) (out []Value) {
	var seen []string
	signIn := signIns(text)
	add := func(value, name string) {
		value = strings.Trim(value, " \t\r\n\"'")
		if len(value) >= leastValue && len(out) < maxFound && !slices.Contains(seen, value) && !weak(value) {
			seen = append(seen, value)
			v := h.value(value, name)
			for _, host := range [...]string{from, signIn[value]} {
				if host != "" {
					v.Service = append(v.Service, host)
				}
			}
			out = append(out, v)
		}
	}
	found := redact.Find(text)
	for _, m := range assignment().FindAllStringSubmatch(text, 4*maxFound) {
		if slices.Contains(found, m[2]) || redact.IsSecretName(m[1]) && !strings.Contains(m[2], "://") && looksRandom(m[2]) || all && len(m[2]) >= wholeValue && looksRandom(m[2]) {
			add(m[2], m[1])
		}
	}
	for _, value := range found {
		for line := range strings.Lines(value) { // a key has several
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
				add(line, "")
			}
		}
	}
	for _, word := range bare().FindAllString(text, 4*maxFound) {
		within := func(value string) bool { return strings.Contains(value, word) }
		if all && looksBare(word) && !slices.ContainsFunc(seen, within) {
			add(word, "")
		}
	}
	return out
}

// bare are words of a store of credentials that may be one without a name.
var bare = prefilter.Lazy(`[A-Za-z0-9+/_!%~-]{16,}={0,2}`)

// looksBare reports whether a word is a credential by its look alone.
func looksBare(word string) bool {
	if len(word) >= 2*wholeValue && strings.Trim(word, "0123456789abcdef") == "" {
		return true
	}
	return kinds(word) == 3 && looksRandom(word)
}

// looksRandom reports whether a text has the entropy of a credential, and is not a
// path, an address or a word.
func looksRandom(s string) bool {
	if len(s) < leastValue || strings.ContainsAny(s, " ${}<>()") || strings.HasPrefix(s, "/") && (len(s) < 32 || kinds(s) < 3 || strings.Contains(s, ".")) || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "~") || strings.Contains(s, "://") {
		return false
	}
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	bits := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return kinds(s) > 1 && bits >= min(leastBits, math.Log2(float64(len(s)))-0.5)
}

// flows returns how much of some values a case carries out.
func flows(h *hasher, values []Value, c *analysis.Case) flow {
	o := c.Outgoing()
	if o == nil {
		return flowsNot
	}
	m := newMatcher(h, values)
	worst := flowsNot
	for _, text := range o.Said {
		for _, f := range m.find(text) {
			worst = max(worst, f)
		}
	}
	for _, text := range o.Signing {
		for i := range m.find(text) {
			if !values[i].belongs(o.Hosts) && !trusted(c) {
				worst = max(worst, flowsPart)
			}
		}
	}
	if (m.left < 0 || o.Cut) && !o.Perhaps {
		worst = max(worst, flowsPart)
	}
	if o.Perhaps {
		worst = min(worst, flowsPart)
	}
	return worst
}

// trusted reports whether all places that a case contacts are trusted.
func trusted(c *analysis.Case) bool {
	found := false
	for i := range c.Effects {
		switch e := &c.Effects[i]; e.Kind {
		case effect.SendData, effect.SendMessage, effect.HTTPRequest, effect.Connect:
			if found = true; !e.Trusted {
				return false
			}
		}
	}
	return found
}

// A matcher finds values in texts.
type matcher struct {
	h       *hasher
	values  []Value
	pieces  map[uint64][]int // indices of values, by the hash of a piece
	lengths map[int][]int    // indices of values that have no pieces, by length
	private map[string]int   // indices of private words, by hash
	uniform bool             // a value has pieces of one kind of character alone
	left    int              // runs that may still be compared
}

// holds reports whether a text has a part of a value.
func (m *matcher) holds(text string) bool { return len(m.find(text)) > 0 }

func newMatcher(h *hasher, values []Value) *matcher {
	m := &matcher{h: h, values: values, pieces: map[uint64][]int{}, lengths: map[int][]int{}, private: map[string]int{}, left: maxHashed}
	for i := range values {
		v := &values[i]
		switch {
		case v.Private:
			m.private[string(v.Sum)] = i
		case v.Uniform:
			m.uniform = true
		case len(v.Pieces) == 0:
			m.lengths[v.Length] = append(m.lengths[v.Length], i)
		}
		for at := 0; at+hashSize <= len(v.Pieces); at += hashSize {
			key := binary.BigEndian.Uint64(v.Pieces[at:])
			if !slices.Contains(m.pieces[key], i) {
				m.pieces[key] = append(m.pieces[key], i)
			}
		}
	}
	return m
}

// betweenWords reports whether a character stands between two words of an address.
func betweenWords(r rune) bool { return strings.ContainsRune("+/:%", r) }

// find returns the values that a text holds, by index, and how much of each.
func (m *matcher) find(text string) map[int]flow {
	found := map[int]flow{}
	met := map[int]map[uint64]bool{}
	if len(m.private) > 0 {
		for _, word := range words().FindAllString(text, maxFound) {
			for _, part := range append(strings.FieldsFunc(word, betweenWords), word) {
				if v, ok := m.private[string(m.h.of(strings.Trim(part, ".:/-"))[:16])]; ok {
					found[v] = flowsPart
				}
			}
		}
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r <= ' ' }) {
		for i := 0; len(m.pieces) > 0 && i+pieceSize <= len(word); i++ {
			if !m.uniform && uniform(word[i:i+pieceSize]) {
				continue
			}
			if m.left--; m.left < 0 {
				return found
			}
			key := binary.BigEndian.Uint64(m.h.of(word[i : i+pieceSize]))
			for _, v := range m.pieces[key] {
				if met[v] == nil {
					met[v] = map[uint64]bool{}
				}
				met[v][key] = true
			}
		}
		for length, list := range m.lengths {
			for i := 0; i+length <= len(word); i++ {
				if m.left--; m.left < 0 {
					return found
				}
				sum := m.h.of(word[i : i+length])[:16]
				for _, v := range list {
					if hmac.Equal(sum, m.values[v].Sum) {
						found[v] = flowsPart
					}
				}
			}
		}
	}
	for v, keys := range met {
		if found[v] = flowsPart; len(keys) >= m.values[v].distinct() {
			found[v] = flowsWhole
		}
	}
	return found
}

// distinct returns how many different pieces a value has.
func (v *Value) distinct() int {
	seen := map[uint64]bool{}
	for at := 0; at+hashSize <= len(v.Pieces); at += hashSize {
		seen[binary.BigEndian.Uint64(v.Pieces[at:])] = true
	}
	return len(seen)
}

// read returns the values in the credential files that a case reads.
func (h *hasher) read(c *analysis.Case) (out []Value) {
	place := c.At()
	if place.Script == nil {
		return nil
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Kind != effect.ReadFile || e.Pattern || e.Possible || !effect.SecretPath(e.Path, false) || len(out) >= maxFound {
			continue
		}
		if text, err := place.Script(e.Path); err == nil {
			out = append(out, h.values(string(text), path.Ext(e.Path) != ".md", "")...)
		}
	}
	return out[:min(len(out), maxFound)]
}

// loadValues returns the values of groups.
func loadValues(sh shelf, groups [][]byte) (out []Value, err error) {
	for _, group := range groups {
		err = sh.Each(group, func(key, data []byte) error {
			if !strings.HasPrefix(string(key), valuePrefix) {
				return nil
			}
			var v Value
			if json.Unmarshal(data, &v) != nil || len(v.Sum) != 16 || v.Length < leastValue {
				return ErrDamaged
			}
			out = append(out, v)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// holdsValues reports whether a group has values.
func holdsValues(sh shelf, group []byte) (holds bool, err error) {
	err = sh.Each(group, func(key, _ []byte) error {
		holds = holds || bytes.HasPrefix(key, []byte(valuePrefix))
		return nil
	})
	return holds, err
}

func (v *Value) key() []byte { return append([]byte(valuePrefix), v.Sum...) }

// addValues keeps values of a session, as far as there is room, and reports
// whether any is new.
func addValues(sh shelf, group []byte, values []Value) (changed bool, err error) {
	if len(values) == 0 {
		return false, nil
	}
	have, err := loadValues(sh, [][]byte{group})
	if err != nil {
		return false, err
	}
	room := maxValues - len(have)
	for i := range values {
		if sh.Get(group, values[i].key()) != nil {
			continue
		}
		if room--; room < 0 {
			return changed, nil
		}
		data, err := json.Marshal(&values[i])
		if err != nil {
			return changed, err
		}
		if err := sh.Put(group, values[i].key(), data); err != nil {
			return changed, err
		}
		changed = true
	}
	return changed, nil
}
