package action

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/shieldcli/shield/internal/allocated"
)

// got tells what a reader made of its input: "LINE RAW" for a record,
// "LINE !CODE" for a broken one.
func got(t *testing.T, r *Reader) []string {
	t.Helper()
	var out []string
	for {
		rec, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			return append(out, err.Error())
		}
		s := strconv.Itoa(rec.StartLine) + " " + string(rec.Raw)
		if rec.Err != nil {
			var e *Error
			var line *LineError
			if !errors.As(rec.Err, &e) || !errors.As(rec.Err, &line) || line.Line != rec.StartLine {
				t.Fatalf("line %d: %v is no *LineError around an *Error", rec.StartLine, rec.Err)
			}
			s = strconv.Itoa(rec.StartLine) + " !" + string(e.Code)
		}
		if out = append(out, s); len(out) > 10_000 {
			t.Fatal("no end of records")
		}
	}
}

func TestReader(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"blank lines", "\n \r\n\t\n", nil},
		{"lines", "{\"a\":1}\n{\"b\":2}\n", []string{`1 {"a":1}`, `2 {"b":2}`}},
		{"no newline at the end", "{\"a\":1}\n{\"b\":2}", []string{`1 {"a":1}`, `2 {"b":2}`}},
		{"crlf and blank lines", "{}\r\n\r\n  {}  \r\n", []string{`1 {}`, `3 {}`}},
		{"carriage returns", "{}\r{}\r", []string{`1 {}`, `1 {}`}},
		{"concatenated", "{\"a\":{}}{\"b\":[{}]} {}\n{}", []string{`1 {"a":{}}`, `1 {"b":[{}]}`, `1 {}`, `2 {}`}},
		{"printed", "{\n  \"a\": [\n    {\n    },\n    {}\n  ]\n}\n\n{\n}\n", []string{"1 {\n  \"a\": [\n    {\n    },\n    {}\n  ]\n}", "9 {\n}"}},
		{"printed without indentation", "{\n\"a\":\n[\n{\n},\n{}\n]\n}\n{}", []string{"1 {\n\"a\":\n[\n{\n},\n{}\n]\n}", "9 {}"}},
		{"braces in strings", `{"a":"}{\"}{\\"}{"b":"\\\""}`, []string{`1 {"a":"}{\"}{\\"}`, `1 {"b":"\\\""}`}},
		{"byte order mark", "\uFEFF{}\n{}", []string{"1 {}", "2 {}"}},
		{"byte order mark later", "{}\n\uFEFF{}\n{}", []string{"1 {}", "2 !invalid_json", "3 {}"}},
		{"half a byte order mark", "\xef\xbb", []string{"1 !invalid_json"}},
		{"utf-16", "\xff\xfe{\x00}\x00", []string{"1 !invalid_json"}},
		{"garbage", "hello\n{}\n", []string{"1 !invalid_json", "2 {}"}},
		{"garbage of many lines", "hello\nworld\n  {}\n{}\n", []string{"1 !invalid_json", "4 {}"}},
		{"garbage after a record", "{} x\n{}", []string{"1 {}", "1 !invalid_json", "2 {}"}},
		{"array", "[{},{}]\n{}", []string{"1 !invalid_json", "2 {}"}},
		{"scalars", "1\n{}\n\"a\"\n{}\nnull", []string{"1 !invalid_json", "2 {}", "3 !invalid_json", "4 {}", "5 !invalid_json"}},
		{"NUL", "\x00\n{}", []string{"1 !invalid_json", "2 {}"}},
		{"closing first", "}\n{}", []string{"1 !invalid_json", "2 {}"}},
		{"wrong bracket", "{\"a\":]}\n{}", []string{"1 !invalid_json", "2 {}"}},
		{"wrong bracket inside", "{\"a\":[}]}{}\n{}", []string{"1 !invalid_json", "2 {}"}},
		{"cut in a string", "{\"a\":\"x\n{}\n", []string{"1 !invalid_json", "2 {}"}},
		{"cut after a backslash", "{\"a\":\"x\\\n{}\n", []string{"1 !invalid_json", "2 {}"}},
		{"cut in a key", "{\"a\n{}\n", []string{"1 !invalid_json", "2 {}"}},
		{"cut after a brace", "{\n{}\n{}", []string{"1 !invalid_json", "2 {}", "3 {}"}},
		{"cut after a value", "{\"a\":1\n{}\n{}", []string{"1 !invalid_json", "2 {}", "3 {}"}},
		{"cut after a comma", "{\"a\":1,\n{}\n{}", []string{"1 !invalid_json", "2 {}", "3 {}"}},
		{"cut after a colon", "{\"a\":\n{}\n{}\n{}", []string{"1 !invalid_json", "2 {}", "3 {}", "4 {}"}},
		{"cut in an array", "{\"a\":[\n{}\n{}\n{}", []string{"1 !invalid_json", "2 {}", "3 {}", "4 {}"}},
		{"cut after a comma in an array", "{\"a\":[1,\n{}\n{}", []string{"1 !invalid_json", "2 {}", "3 {}"}},
		{"all cut", "{\"a\":[\n{\"a\":[\n{\"a\":[\n", []string{"1 !invalid_json", "2 !invalid_json", "3 !invalid_json"}},
		{"cut at the end", "{}\n{\"a\":{", []string{"1 {}", "2 !invalid_json"}},
		{"printed and broken", "{\n  \"a\": \"x\n  \",\n  \"b\": {\n  }\n}\n{}", []string{"1 !invalid_json", "7 {}"}},
		{"deep", strings.Repeat(`{"a":`, 500) + "0" + strings.Repeat("}", 500) + "\n{}",
			[]string{"1 " + strings.Repeat(`{"a":`, 500) + "0" + strings.Repeat("}", 500), "2 {}"}},
		{"deep and cut", strings.Repeat("[", 5) + "{\"a\":" + strings.Repeat("[", 500) + "\n{}\n{}", []string{"1 !invalid_json", "2 {}", "3 {}"}},
		{"deep and cut, an object", "{\"a\":" + strings.Repeat("[", 500) + "\n{}\n{}", []string{"1 !too_deep", "2 {}", "3 {}"}},
		{"deep over lines", "{\"a\":[\n{\"a\":[\n{\"b\":" + strings.Repeat("[", 80) + "\n{}", []string{"1 !too_deep", "2 !too_deep", "3 !too_deep", "4 {}"}},
		{"too large", `{"a":"` + strings.Repeat("x", 5000) + "\"}\n{}", []string{"1 !too_large", "2 {}"}},
		{"too large and printed", "{\n" + strings.Repeat("  \"a\": 1,\n", 1000) + "}\n{}", []string{"1 !too_large", "1003 {}"}},
		{"too large garbage", strings.Repeat("x", 5000) + "\n{}", []string{"1 !too_large", "2 {}"}},
		{"too large at the end", `{"a":"` + strings.Repeat("x", 5000), []string{"1 !too_large"}},
		{"just not too large", `{"a":"` + strings.Repeat("x", 4096-8) + `"}`, []string{`1 {"a":"` + strings.Repeat("x", 4096-8) + `"}`}},
		{"just too large", `{"a":"` + strings.Repeat("x", 4096-7) + `"}`, []string{"1 !too_large"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			opts := ReaderOptions{InputName: "stdin", MaxRecordBytes: 4096}
			for how, src := range map[string]io.Reader{
				"at once":         strings.NewReader(tt.in),
				"byte by byte":    iotest.OneByteReader(strings.NewReader(tt.in)),
				"end with data":   iotest.DataErrReader(strings.NewReader(tt.in)),
				"halves of reads": iotest.HalfReader(strings.NewReader(tt.in)),
			} {
				g := got(t, NewReader(src, opts))
				if strings.Join(g, "|") != strings.Join(tt.want, "|") {
					t.Errorf("%s:\n got %.300q\nwant %.300q", how, g, tt.want)
				}
			}
		})
	}
}

func TestReaderErrors(t *testing.T) {
	failed := errors.New("device gone")
	src := io.MultiReader(strings.NewReader("{}\n{\"a\":"), iotest.ErrReader(failed))
	want := []string{"1 {}", "2 !invalid_json", "device gone"}
	if g := got(t, NewReader(src, ReaderOptions{})); strings.Join(g, "|") != strings.Join(want, "|") {
		t.Errorf("got %q, want %q", g, want)
	}
	if g := got(t, NewReader(idle{}, ReaderOptions{})); len(g) != 1 || g[0] != io.ErrNoProgress.Error() {
		t.Errorf("a source that gives nothing: got %q", g)
	}
	_, err := NewReader(strings.NewReader("x"), ReaderOptions{InputName: "stdin"}).Next()
	if err != nil {
		t.Errorf("broken input is not a failure to read: %v", err)
	}
	rec, _ := NewReader(strings.NewReader("\n\nx"), ReaderOptions{InputName: "stdin"}).Next()
	if want := `stdin:3: expected an object that starts with "{"`; rec.Err.Error() != want {
		t.Errorf("got %q, want %q", rec.Err, want)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// A person who types a record gets an answer to it before typing the next.
func TestReaderDoesNotWait(t *testing.T) {
	for _, in := range []string{"{\"a\":1}", "{\"a\":\n1}", "hello\n", "{\"a\":\"\n", "{\"a\":]\n", "{\"a\":1\n{"} {
		pr, pw := io.Pipe()
		go func() { _, _ = pw.Write([]byte(in)) }()
		done := make(chan RawActionRecord)
		go func() {
			rec, _ := NewReader(pr, ReaderOptions{}).Next()
			done <- rec
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Errorf("%q: the reader waits for more", in)
		}
		pw.Close()
	}
}

// endless gives n bytes of one pattern.
type endless struct {
	pattern string
	n       int64
	at      int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), e.n))
	for done := copy(p[:n], e.pattern[e.at:]+e.pattern[:e.at]); done < n; {
		done += copy(p[done:n], p[:done])
	}
	e.at = (e.at + n) % len(e.pattern)
	e.n -= int64(n)
	return n, nil
}

func TestReaderIsBounded(t *testing.T) {
	const size = 16 << 20
	for name, src := range map[string]io.Reader{
		"one string":     io.MultiReader(strings.NewReader(`{"a":"`), &endless{pattern: "x", n: size}),
		"garbage":        &endless{pattern: "x", n: size},
		"braces":         &endless{pattern: "{", n: size},
		"nested":         &endless{pattern: `{"a":`, n: size},
		"lines of space": io.MultiReader(strings.NewReader(`{`), &endless{pattern: " \n", n: size}),
		"spaces":         &endless{pattern: " ", n: size},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := NewReader(src, ReaderOptions{})
		n := 0
		for {
			if _, err := r.Next(); err != nil {
				break
			}
			n++
		}
		runtime.ReadMemStats(&after)
		if n > 1 {
			t.Errorf("%s: %d records, want at most one", name, n)
		}
		if grew := after.TotalAlloc - before.TotalAlloc; grew > 8<<20 {
			t.Errorf("%s: allocated %d MiB for %d MiB of input", name, grew>>20, size>>20)
		}
	}
}

// Lines that open what is never closed make the reader go back; what it reads
// again grows with the input, not with its square.
func TestReaderGoesBackWithinBounds(t *testing.T) {
	for name, in := range map[string]string{
		"open":            strings.Repeat("{\"a\":[\n", 25_000),
		"open a bit":      strings.Repeat(strings.Repeat("{\"a\":[\n", 30)+strings.Repeat("]}", 29)+strings.Repeat(" ", 2000)+"\n x\n", 100),
		"siblings":        "{\"a\":[\n" + strings.Repeat("{},\n", 50_000),
		"siblings cut":    strings.Repeat("{\"a\":[{},\n", 12_500),
		"open, then long": strings.Repeat("{\"a\":[\n", 60) + strings.Repeat("[", 900_000),
		"wide":            strings.Repeat("{\"a\":["+strings.Repeat("1,", 2000)+"\n", 50),
	} {
		n := allocated.Bytes(func() { _ = got2(NewReader(strings.NewReader(in), ReaderOptions{})) })
		if n > 64*uint64(len(in)) {
			t.Errorf("%s: %d bytes allocated for %d", name, n, len(in))
		}
	}
}

func got2(r *Reader) (n int) {
	for {
		if _, err := r.Next(); err != nil {
			return n
		}
		n++
	}
}

func FuzzReader(f *testing.F) {
	for _, s := range []string{"{\"a\":1}\n{\"b\":[{}]}", "hello\n{}\n{\"a\":[\n{}\n", "\uFEFF{}\r\n", "{\"a\":\"\\\"}\"}", "{\"type\":\n\n\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 512
		whole := got(t, NewReader(bytes.NewReader(in), ReaderOptions{MaxRecordBytes: limit}))
		bytewise := got(t, NewReader(iotest.OneByteReader(bytes.NewReader(in)), ReaderOptions{MaxRecordBytes: limit}))
		if strings.Join(whole, "|") != strings.Join(bytewise, "|") {
			t.Fatalf("how the input arrives matters:\n%q\n%q", whole, bytewise)
		}
		// What parses comes back as it was, however it is put together.
		var good [][]byte
		r := NewReader(bytes.NewReader(in), ReaderOptions{MaxRecordBytes: limit})
		for {
			rec, err := r.Next()
			if err != nil {
				break
			}
			if rec.Err == nil && len(rec.Raw) > limit {
				t.Fatalf("a record of %d bytes passes a limit of %d", len(rec.Raw), limit)
			}
			var e *Error
			if _, err := Parse(rec.Raw); rec.Err == nil && (err == nil || errors.As(err, &e) && e.Code == MissingField) {
				good = append(good, rec.Raw)
			}
		}
		for _, between := range []string{"", "\n", " \r\n\n"} {
			r := NewReader(bytes.NewReader(bytes.Join(good, []byte(between))), ReaderOptions{MaxRecordBytes: limit})
			for i, want := range good {
				rec, err := r.Next()
				if err != nil || rec.Err != nil || !bytes.Equal(rec.Raw, want) {
					t.Fatalf("object %d, joined by %q: got %q, %v, %v, want %q", i, between, rec.Raw, rec.Err, err, want)
				}
			}
			if _, err := r.Next(); err != io.EOF {
				t.Fatalf("got %v after the last object", err)
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	const line = `{"type":"execute_command","payload":{"command":"rm -rf build && make -j4 all"},"cwd":"/home/me/app"}` + "\n"
	r := NewReader(&endless{pattern: line, n: 1 << 60}, ReaderOptions{})
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Next(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadAndParse(b *testing.B) {
	const line = `{"type":"execute_command","payload":{"command":"rm -rf build && make -j4 all"},"cwd":"/home/me/app"}` + "\n"
	r := NewReader(&endless{pattern: line, n: 1 << 60}, ReaderOptions{})
	b.ReportAllocs()
	for b.Loop() {
		rec, err := r.Next()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Parse(rec.Raw); err != nil {
			b.Fatal(err)
		}
	}
}
