package canonjson

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/allocated"
)

func TestAppend(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"whitespace", " { \"b\" : [ 1 , 2 ] ,\n\t\"a\" : null } ", `{"a":null,"b":[1,2]}`},
		{"literals", `[true,false,null]`, `[true,false,null]`},
		{"empty", `{"a":{},"b":[]}`, `{"a":{},"b":[]}`},
		{"escapes", `"\u0041\/\u00e9\u20ac\ud83d\ude00"`, `"A/é€😀"`},
		{"short escapes", `"\u0008\u000c\u000a\u000d\u0009\u001b\u0022\u005c"`, `"\b\f\n\r\t\u001b\"\\"`},
		{"html is left", `"<&>\u2028"`, "\"<&>\u2028\""},
		{"order by utf-16", `{"\ufb33":1,"\ud83d\ude00":2,"\u20ac":3,"1":4,"\r":5,"ö":6,"\u0080":7}`,
			"{\"\\r\":5,\"1\":4,\"\u0080\":7,\"ö\":6,\"€\":3,\"😀\":2,\"\ufb33\":1}"},
		{"a name and its prefix", `{"ab":1,"a":2,"":3}`, `{"":3,"a":2,"ab":1}`},
		{"more names than fit on the stack", `{"j":0,"i":0,"h":0,"g":0,"f":0,"e":0,"d":0,"c":0,"b":0,"a":0}`,
			`{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Append([]byte("x"), []byte(tt.in), 64)
			if err != nil || string(got) != "x"+tt.want {
				t.Errorf("Append(%s)\n got %s, %v\nwant %s", tt.in, got, err, tt.want)
			}
			v, err := ParseValue([]byte(tt.in), 64)
			if got := AppendValue(nil, v); err != nil || string(got) != tt.want {
				t.Errorf("AppendValue(%s)\n got %s, %v\nwant %s", tt.in, got, err, tt.want)
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	same := func(s string) [2]string { return [2]string{s, s} }
	for _, tt := range [][2]string{
		{"0", "0"}, {"-0", "0"}, {"0.0", "0"}, {"-0.000e9", "0"}, {"0e999999999999", "0"},
		{"1.0", "1"}, {"1e3", "1000"}, {"100E-2", "1"}, {"-12.50", "-12.5"}, {"0.1", "0.1"}, {"1e-7", "1e-7"},
		{"0.00001", "0.00001"}, {"4.50", "4.5"}, {"2e-3", "0.002"}, {"1E30", "1e+30"}, {"1e+0021", "1e+21"},
		{"100000000000000000000", "100000000000000000000"}, {"9007199254740992", "9007199254740992"}, {"999999999999999", "999999999999999"},
		{"9.007199254740992e15", "9007199254740992"}, {"5e-324", "5e-324"}, {"1.7976931348623157e308", "1.7976931348623157e+308"},
		{"1000000000000000000000000000000000000000", "1e+39"}, {"0.00000000000000000000000000000000001", "1e-35"},
		// Not held exactly: the literal stays.
		same("9007199254740993"), same("-9007199254740993"), same("1e400"), same("-1E400"), same("1e-400"),
		same("0.1000000000000000055511151231257827"), same("1e99999999999999999999"), same("1e-99999999999999999999"),
		same("18446744073709551615"), same("3e-324"), same("12345678901234567890"), same("0.30000000000000004000000001"),
		same("100000000000000000000000000001"),
		same("333333333.33333329"), // RFC 8785 writes 333333333.3333333 same("1.00000000000000000000000000000000000001"),
	} {
		got, err := Append(nil, []byte(tt[0]), 1)
		if err != nil || string(got) != tt[1] {
			t.Errorf("%s: got %s, %v, want %s", tt[0], got, err, tt[1])
		}
	}
}

// Where a double holds the number exactly the form is that of jsontext.
func TestNumbersAgreeWithJSONText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		f := math.Float64frombits(r.Uint64())
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		for _, format := range []byte("eEfg") {
			in := jsontext.Value(strconv.FormatFloat(f, format, -1, 64))
			want := in.Clone()
			if err := want.Canonicalize(); err != nil {
				t.Fatal(err)
			}
			got, err := Append(nil, in, 1)
			// 'f' pads integers beyond 2^53 with zeros: still the same number.
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: got %s, %v, want %s", in, got, err, want)
			}
		}
	}
}

func TestCompareUTF16(t *testing.T) {
	names := []string{"", "a", "ab", "é", "€", "\ud7ff", "\ue000", "\ufb33", "\uffff", "😀", "\U00010000", "\U0010ffff", "a😀", "a\uffff"}
	sort.Slice(names, func(i, j int) bool { return compareUTF16(names[i], names[j]) < 0 })
	for i := 1; i < len(names); i++ {
		a, b := utf16.Encode([]rune(names[i-1])), utf16.Encode([]rune(names[i]))
		less := len(a) < len(b)
		for k := range min(len(a), len(b)) {
			if a[k] != b[k] {
				less = a[k] < b[k]
				break
			}
		}
		if !less {
			t.Errorf("%q stands before %q", names[i-1], names[i])
		}
	}
}

func TestErrors(t *testing.T) {
	many := func(extra string) string {
		var b strings.Builder
		b.WriteByte('{')
		for i := range 20 {
			b.WriteString(`"k` + strconv.Itoa(i) + `":0,`)
		}
		return b.String() + extra + "}"
	}
	for _, tt := range []struct {
		name, in string
		kind     ErrorKind
		field    string
	}{
		{"empty", ``, ErrorKindSyntax, ""},
		{"cut", `{"a":`, ErrorKindSyntax, "a"},
		{"bare word", `{a:1}`, ErrorKindSyntax, ""},
		{"trailing comma", `{"a":1,}`, ErrorKindSyntax, ""},
		{"mismatch", `{"a":[}`, ErrorKindSyntax, "a"},
		{"two values", `{} {}`, ErrorKindSyntax, ""},
		{"NaN", `{"a":NaN}`, ErrorKindSyntax, "a"},
		{"leading zero", `{"a":01}`, ErrorKindSyntax, ""},
		{"raw newline", "{\"a\":\"\n\"}", ErrorKindSyntax, "a"},
		{"bad escape", `{"a":"\x"}`, ErrorKindSyntax, "a"},
		{"not utf-8", "{\"a\":\"\xff\"}", ErrorKindInvalidUTF8, ""},
		{"overlong", "{\"a\":\"\xc0\xaf\"}", ErrorKindInvalidUTF8, ""},
		{"raw surrogate", "{\"a\":\"\xed\xa0\x80\"}", ErrorKindInvalidUTF8, ""},
		{"high half", `{"a":{"b":"\ud800"}}`, ErrorKindUnpairedSurrogate, "a.b"},
		{"low half", `{"a":"\uDC00x"}`, ErrorKindUnpairedSurrogate, "a"},
		{"two high halves", `{"a":"x\ud800\ud800"}`, ErrorKindUnpairedSurrogate, "a"},
		{"half in a name", `{"\ud800":1}`, ErrorKindUnpairedSurrogate, ""},
		{"same key", `{"a":1,"a":2}`, ErrorKindDuplicateName, "a"},
		{"same key, escaped", `{"a":1,"\u0061":2}`, ErrorKindDuplicateName, "a"},
		{"case", `{"x":[{"Key":1,"kEY":2}]}`, ErrorKindDuplicateName, "x.kEY"},
		{"long s", `{"session":1,"ſession":2}`, ErrorKindDuplicateName, "ſession"},
		{"kelvin", `{"k":1,"\u212a":2}`, ErrorKindDuplicateName, "\u212a"},
		{"among many", many(`"K15":1`), ErrorKindDuplicateName, "K15"},
		{"array", `[1]`, ErrorKindNotObject, ""},
		{"string", `"a"`, ErrorKindNotObject, ""},
		{"null", `null`, ErrorKindNotObject, ""},
		{"deep", `{"a":[[[[1]]]]}`, ErrorKindTooDeep, "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseObjectMembers(nil, []byte(tt.in), 4)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("Object(%s): got %v, want an *Error", tt.in, err)
			}
			if e.Kind != tt.kind || e.Field != tt.field {
				t.Errorf("Object(%s): got kind %d, field %q (%v), want %d, %q", tt.in, e.Kind, e.Field, e, tt.kind, tt.field)
			}
		})
	}
}

func TestDepth(t *testing.T) {
	for _, unit := range [][2]string{{"[", "]"}, {`{"a":`, "}"}} {
		nest := func(n int) []byte {
			return []byte(strings.Repeat(unit[0], n) + "0" + strings.Repeat(unit[1], n))
		}
		if _, err := ParseValue(nest(64), 64); err != nil {
			t.Errorf("64 levels: %v", err)
		}
		if _, err := ParseValue(nest(65), 64); err == nil {
			t.Error("65 levels pass")
		}
		if _, err := ParseValue(nest(1<<20), 64); err == nil {
			t.Error("1,048,576 levels pass")
		}
	}
}

func TestObjectMembers(t *testing.T) {
	in := []byte(" { \"n\" : -1.50 , \"o\":\t{ \"x\":[1] } ,\"s\":\"\\u0061\",\"t\":true } ")
	members, err := ParseObjectMembers(nil, in, 64)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`n -1.50`, `o { "x":[1] }`, `s "\u0061"`, `t true`}
	for i, m := range members {
		if got := m.Name + " " + string(m.Raw); got != want[i] {
			t.Errorf("member %d: got %s, want %s", i, got, want[i])
		}
	}
	if len(members) != len(want) {
		t.Errorf("got %d members, want %d", len(members), len(want))
	}
	if got, want := string(AppendObject(nil, members)), `{"n":-1.5,"o":{"x":[1]},"s":"a","t":true}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"path":                   "path",
		"a b":                    "a b",
		"\x1b[2J":                "\uFFFD[2J",
		"a\u202eb\u200bc":        "a\uFFFDb\uFFFDc",
		strings.Repeat("é", 100): strings.Repeat("é", 80) + "…",
		"bad\xff":                "bad\uFFFD",
	} {
		if got := Quote(in); got != want {
			t.Errorf("Quote(%q) = %q, want %q", in, got, want)
		}
	}
}

// A megabyte of any shape is read with memory that grows with its length only.
func TestHostileShapesAreLinear(t *testing.T) {
	var keys strings.Builder
	for i := range 90_000 {
		keys.WriteString(`"` + strconv.Itoa(i) + `":0,`)
	}
	for name, in := range map[string]string{
		"distinct keys": "{" + keys.String() + `"x":0}`,
		"digits":        strings.Repeat("7", 1<<20),
		"fraction":      "0." + strings.Repeat("0", 1<<20) + "1",
		"exponent":      "1e" + strings.Repeat("9", 1<<20),
		"escapes":       `"` + strings.Repeat(`\u0041`, 1<<17) + `"`,
		"objects":       "[" + strings.Repeat("{},", 1<<18) + "{}]",
		"quotes":        "[" + strings.Repeat(`"",`, 1<<18) + `""]`,
	} {
		var err error
		if n := allocated.Bytes(func() { _, err = Append(nil, []byte(in), 64) }); err != nil || n > 256*uint64(len(in)) {
			t.Errorf("%s: %d bytes allocated for %d, %v", name, n, len(in), err)
		}
	}
}

func FuzzAppend(f *testing.F) {
	for _, s := range []string{`{"b":[1.50,"\u0041"],"a":{"c":1e400}}`, `[9007199254740993,-0]`, `"\ud83d\ude00"`, "{\"\xff\":1}", `{"a":1,"A":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		once, err := Append(nil, in, 64)
		if err != nil {
			return
		}
		if !jsontext.Value(in).IsValid() {
			t.Fatalf("%q is not valid JSON and was accepted", in)
		}
		v, err := ParseValue(in, 64)
		if other := AppendValue(nil, v); err != nil || !bytes.Equal(once, other) {
			t.Fatalf("two forms: %q, %q, %v", once, other, err)
		}
		twice, err := Append(nil, once, 64)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("not stable: %q, then %q, %v", once, twice, err)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	in := []byte(`{"type":"execute_command","payload":{"command":"rm -rf build && make -j4 all 2>&1 | tee log"},"cwd":"/home/me/app"}`)
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if dst, err = Append(dst[:0], in, 64); err != nil {
			b.Fatal(err)
		}
	}
}
