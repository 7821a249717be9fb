package session

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/state"
)

const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// drawn returns a random credential of n bytes.
func drawn(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

// TestMatcher puts parts of credentials into texts: what is said about each must be what
// a comparison byte by byte says.
func TestMatcher(t *testing.T) { // not parallel: allocations are counted
	r := rand.New(rand.NewPCG(1, 2))
	key := [32]byte{7}
	h := newHasher(key)
	var values []HashedSensitiveValue
	var texts []string
	for i := range 300 {
		text := drawn(r, minSensitiveValueBytes+r.IntN(40))
		switch {
		case i%10 == 0:
			text = fmt.Sprint(r.Uint64N(1<<60) + 1<<60) // digits alone
		case i%10 == 1:
			text = "AKIA" + strings.ToUpper(drawn(r, 16))
		case i%10 == 2 && i > 10:
			text = texts[i-10][:12] + text // two values may begin alike
		}
		values, texts = append(values, h.hashSensitiveValue(text, "")), append(texts, text)
	}
	m := newValueMatcher(values)
	for i, text := range texts {
		for n := minSensitiveValueBytes; n <= len(text); n++ {
			at := r.IntN(len(text) - n + 1)
			said := drawn(r, r.IntN(50)) + " x=" + text[at:at+n] + "&" + drawn(r, r.IntN(50))
			got := m.newSensitiveValueSearch(key).find(said)[i]
			want := sentValueExtentNone
			switch {
			case len(values[i].NGramHashes) == 0:
				if strings.Contains(said, text) {
					want = sentValueExtentPart
				}
			default:
				want = values[i].flowOf(h, said)
			}
			if got != want {
				t.Fatalf("%q of %q: %d, want %d", text[at:at+n], text, got, want)
			}
		}
	}
	none := m.newSensitiveValueSearch(key)
	text := strings.Repeat("No credential stands here, 3 words and 12 numbers: 20261124. ", 170)
	if n := testing.AllocsPerRun(10, func() { none.find(text) }); n > 0 {
		t.Errorf("%v allocations for a text that holds nothing", n)
	}
	if none.remainingNGramBudget < maxHashedNGrams-12*len(text)/10 { // 11 looks, of which one in ten may be taken for a piece
		t.Errorf("%d of %d runs were compared", maxHashedNGrams-none.remainingNGramBudget, 11*len(text))
	}
}

// flowOf returns how much of a value a text holds, looked for piece by piece.
func (v *HashedSensitiveValue) flowOf(h *hasher, text string) sentValueExtent {
	sums := map[uint64]bool{}
	for i := 0; i+ngramBytes <= len(text); i++ {
		sums[h.ngramHash(littleEndianUint64At(text, i))] = true
	}
	some, all := false, true
	v.eachNGramHashes(func(_ uint32, sum uint64) { some, all = some || sums[sum], all && sums[sum] })
	switch {
	case all:
		return sentValueExtentWhole
	case some:
		return sentValueExtentPart
	}
	return sentValueExtentNone
}

// TestPrivateWords: a word of a private file is found between others, however many
// are before it, and not within a longer one.
func TestPrivateWords(t *testing.T) {
	t.Parallel()
	key := [32]byte{1}
	h := newHasher(key)
	m := newValueMatcher(h.privateValues("Invoice A-20771-B for anna.k7@example.net, account DE89370400"))
	many := strings.Repeat("word12345 ", 200)
	for text, want := range map[string]bool{
		"A-20771-B": true, "see A-20771-B.": true, many + "A-20771-B": true, "no=A-20771-B&x": true, "https://x.test/A-20771-B/a": true,
		"mailto:anna.k7@example.net": true, "<anna.k7@example.net>": true, "(DE89370400)": true,
		"A-20771-BC": false, "XA-20771-B": false, "v-A-20771-B": false, "A-20771-B.5": false, "joanna.k7@example.net": false, "DE893704001": false, many: false,
	} {
		if got := len(m.newSensitiveValueSearch(key).find(text)) > 0; got != want {
			t.Errorf("%.40q: %v, want %v", text, got, want)
		}
	}
}

// TestMatchersAreKept: what finds the values of a session is made again when these
// change, and never found to be another's.
func TestMatchersAreKept(t *testing.T) {
	t.Parallel()
	clock := func() time.Time { return time.Unix(1_800_000_000, 0) }
	file, err := state.Open(t.TempDir(), state.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	s := NewStore(file, Options{Clock: clock, SessionRetention: time.Hour, MaxFileRecordsPerUser: 10, MaxDenials: 10, IsolateSessionsFromEachOther: true})
	r, key := rand.New(rand.NewPCG(3, 4)), Key{AgentHostName: "h", ID: "s"}
	add := func(k Key, d RecordDelta) {
		t.Helper()
		if err := s.Add(t.Context(), s.Load(t.Context(), k, Lineage{}, ""), &d); err != nil {
			t.Fatal(err)
		}
	}
	of := func(k Key) *valueMatcher {
		t.Helper()
		m, err := s.loadValueMatcher(t.Context(), s.Load(t.Context(), k, Lineage{}, ""))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	value := func(text string) RecordDelta {
		return RecordDelta{SensitiveValues: []HashedSensitiveValue{newHasher(s.opts.CredentialHashKey).hashSensitiveValue(text, "")}}
	}
	finds := func(m *valueMatcher, text string) bool {
		return len(m.newSensitiveValueSearch(s.opts.CredentialHashKey).find(text)) > 0
	}
	first, second := drawn(r, 24), drawn(r, 24)
	add(key, value(first))
	m := of(key)
	add(key, RecordDelta{LabelledFiles: []effect.LabelledFile{{Path: "/a", Labels: []effect.TaintLabel{effect.LabelFromNetwork}}}})
	if of(key) != m {
		t.Error("made again, though no value is new")
	}
	add(key, value(second))
	if m = of(key); !finds(m, first) || !finds(m, second) {
		t.Error("a new value is not found")
	}
	stale := s.Load(t.Context(), key, Lineage{}, "")
	if _, err := s.Clear(t.Context(), func(*Record) bool { return true }); err != nil {
		t.Fatal(err)
	}
	s.matchers.matcherByValueHashXOR = nil
	if _, err := s.loadValueMatcher(t.Context(), stale); err != nil { // an action that began before
		t.Fatal(err)
	}
	add(key, value(first))
	add(key, value(second))
	if m = of(key); !finds(m, first) || !finds(m, second) {
		t.Error("values that were read again are not found")
	}
	for i := range 3 * maxCachedValueMatchers {
		k := Key{AgentHostName: "h", ID: fmt.Sprint(i)}
		text := drawn(r, 24)
		add(k, value(text))
		if m := of(k); !finds(m, text) || finds(m, first) {
			t.Error("another session's values")
		}
	}
	if n := len(s.matchers.matcherByValueHashXOR); n > maxCachedValueMatchers {
		t.Errorf("%d are kept", n)
	}
	// A value that is gone is not taken for one that was never there.
	err = file.UpdateNamespace(t.Context(), stateNamespace, func(sh *state.NamespaceTx) error {
		v := value(first).SensitiveValues[0]
		return sh.Put(s.sharedRecordKey(key).groupName(), v.key(), nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	s.matchers.matcherByValueHashXOR = nil
	if _, err := s.loadValueMatcher(t.Context(), s.Load(t.Context(), key, Lineage{}, "")); err == nil {
		t.Error("a value that is gone is no damage")
	}
}

// BenchmarkFirst is what the first action of a process pays for 512 credentials, of
// which nothing is sent.
func BenchmarkFirst(b *testing.B) {
	dir, r := b.TempDir(), rand.New(rand.NewPCG(5, 6))
	clock := func() time.Time { return time.Unix(1_800_000_000, 0) }
	file, err := state.Open(dir, state.Options{Clock: clock})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	opts := Options{Clock: clock, SessionRetention: time.Hour, MaxFileRecordsPerUser: 10000, MaxDenials: 10}
	s := NewStore(file, opts)
	var d RecordDelta
	for range maxSensitiveValuesPerGroup {
		d.SensitiveValues = append(d.SensitiveValues, newHasher(opts.CredentialHashKey).hashSensitiveValue(drawn(r, 24), ""))
	}
	if err := s.Add(b.Context(), s.Load(b.Context(), Key{}, Lineage{}, ""), &d); err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("export const total = (orders) => orders.map((o) => o.priceInCents * o.count)\n", 133)
	b.ReportAllocs()
	for b.Loop() {
		s := NewStore(file, opts)
		m, err := s.loadValueMatcher(b.Context(), s.Load(b.Context(), Key{}, Lineage{}, ""))
		if err != nil || len(m.newSensitiveValueSearch(opts.CredentialHashKey).find(text)) > 0 {
			b.Fatal(err)
		}
	}
}
