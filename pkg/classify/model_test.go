package classify

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shieldcli/shield/internal/ortlib"
)

// library unpacks ONNX Runtime once for all tests.
var library = sync.OnceValues(func() (string, error) {
	return ortlib.Extract(filepath.Join(os.TempDir(), "shield-test-onnxruntime"))
})

func openTest(t testing.TB, name string) *Model {
	t.Helper()
	if !ortlib.Available() {
		t.Skip("this build carries no ONNX Runtime")
	}
	m, err := OpenModel(os.DirFS(filepath.Join("testdata", "models", name)), "", library)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// What HuggingFace's own libraries make of a text is what shield makes of it.
func TestModelReference(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bert", "deberta"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := openTest(t, name)
			l, err := m.load()
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(filepath.Join("testdata", "models", name, "logits.jsonl.gz"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			z, err := gzip.NewReader(f)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for sc := bufio.NewScanner(z); sc.Scan(); n++ {
				var want struct {
					Text   string
					IDs    []int64
					Logits []float64
				}
				if err := json.Unmarshal(sc.Bytes(), &want); err != nil {
					t.Fatal(err)
				}
				if strings.ContainsAny(want.Text, "[<") && name == "deberta" {
					continue // there the reference makes special tokens of what a text says; shield does not
				}
				got, err := l.session.run(t.Context(), want.IDs)
				if err != nil {
					t.Fatal(err)
				}
				for i, w := range want.Logits {
					if math.Abs(float64(got[i])-w) > 1e-3 {
						t.Errorf("%q: logits %v, want %v", want.Text, got, want.Logits)
						break
					}
				}
				s, err := m.Score(t.Context(), want.Text)
				p := 1 / (1 + math.Exp(want.Logits[0]-want.Logits[1]))
				if err != nil || math.Abs(math.Max(p, 1-p)-s.LabelConfidence) > 1e-3 || s.HasInjectionLabel != (p >= 0.5) && math.Abs(p-0.5) > 1e-3 {
					t.Errorf("%q: %+v, %v; want probability %v", want.Text, s, err, p)
				}
			}
			if n < 150 {
				t.Errorf("%d texts, want at least 150", n)
			}
		})
	}
}

// testFiles returns the files of a small model, to be spoilt.
func testFiles(t *testing.T) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for _, name := range []string{"model.onnx", "tokenizer.json", "config.json", "shield.json"} {
		data, err := os.ReadFile(filepath.Join("testdata", "models", "bert", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: data}
	}
	return files
}

func replace(old, with string) func([]byte) []byte {
	return func(b []byte) []byte { return []byte(strings.Replace(string(b), old, with, 1)) }
}

// message appends a field of bytes to a protocol buffer message.
func message(b []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), value)
}

func varint(b []byte, number protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), n)
}

// A model that is damaged, does not fit together or reaches out of its folder
// is refused, and never answers SAFE.
func TestModelRefuses(t *testing.T) {
	t.Parallel()
	inGraph := func(b []byte) func([]byte) []byte {
		return func(data []byte) []byte { return append(message(nil, 7, b), data...) }
	}
	elsewhere := varint(message(nil, 13, message(message(nil, 1, []byte("location")), 2, []byte("../../etc/passwd"))), 14, 1)
	external := message(nil, 5, elsewhere)
	nested := []byte{}
	for range 20 {
		nested = message(nil, 1, message(nil, 5, message(nil, 6, nested)))
	}
	for name, c := range map[string]struct {
		file  string
		spoil func([]byte) []byte
		want  string
	}{
		"no graph":             {"model.onnx", nil, "model.onnx is missing"},
		"empty graph":          {"model.onnx", func([]byte) []byte { return nil }, "no inputs or no outputs"},
		"truncated graph":      {"model.onnx", func(b []byte) []byte { return b[:len(b)/2] }, "not an ONNX file, or damaged"},
		"text for a graph":     {"model.onnx", func([]byte) []byte { return []byte("#!/bin/sh\n") }, "not an ONNX file, or damaged"},
		"weights elsewhere":    {"model.onnx", inGraph(external), "weights are in another file"},
		"weights in an inner":  {"model.onnx", inGraph(message(nil, 1, message(nil, 5, message(nil, 6, external)))), "weights are in another file"},
		"sparse weights":       {"model.onnx", inGraph(message(nil, 1, message(nil, 5, message(nil, 22, message(nil, 1, elsewhere))))), "weights are in another file"},
		"foreign operators":    {"model.onnx", inGraph(message(nil, 1, message(nil, 7, []byte("evil.ops")))), `operators of the domain "evil.ops"`},
		"huge shape":           {"model.onnx", inGraph(message(nil, 5, varint(varint(nil, 1, 1<<30), 1, 1<<30))), "too many elements"},
		"graphs within graphs": {"model.onnx", inGraph(nested), "nested deeper"},
		"odd input":            {"model.onnx", inGraph(message(nil, 11, message(nil, 1, []byte("pixels")))), `input "pixels"`},
		"no tokenizer":         {"tokenizer.json", nil, "tokenizer.json"},
		"broken tokenizer":     {"tokenizer.json", func(b []byte) []byte { return b[:len(b)/2] }, "tokenizer"},
		"unknown normalizer":   {"tokenizer.json", replace(`"normalizer":null`, `"normalizer":{"type":"Weird"}`), "Weird"},
		"no config":            {"config.json", nil, "config.json"},
		"broken config":        {"config.json", func([]byte) []byte { return []byte("{") }, "config.json"},
		"small vocabulary":     {"config.json", replace(`"vocab_size": `, `"vocab_size": 1, "x": `), "use the files of one model"},
		"other labels":         {"config.json", replace("INJECTION", "TOXIC"), "label INJECTION is missing"},
		"same labels":          {"config.json", replace("SAFE", "INJECTION"), "two labels"},
		"misspelt card":        {"shield.json", func([]byte) []byte { return []byte(`{"treshold": 1}`) }, "treshold"},
		"safe threshold":       {"shield.json", func([]byte) []byte { return []byte(`{"safe_thresholds": {"send_email": -1}}`) }, "not between 0 and 1"},
		"doubt":                {"shield.json", func([]byte) []byte { return []byte(`{"doubts": {"syntax": 2}}`) }, "not between 0 and 1"},
		"doubt never cleared":  {"shield.json", func([]byte) []byte { return []byte(`{"doubts": {"script": 0.9}}`) }, "no model can allow this effect"},
		"threshold":            {"shield.json", func([]byte) []byte { return []byte(`{"threshold": 2}`) }, "not between 0 and 1"},
		"tiny windows":         {"shield.json", func([]byte) []byte { return []byte(`{"max_length": 3}`) }, "too short"},
		"absent label":         {"shield.json", func([]byte) []byte { return []byte(`{"malicious_label": "X"}`) }, "label X is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := testFiles(t)
			if c.spoil == nil {
				delete(files, c.file)
			} else {
				data := c.spoil(files[c.file].Data)
				if string(data) == string(files[c.file].Data) {
					t.Fatal("nothing was spoilt")
				}
				files[c.file] = &fstest.MapFile{Data: data}
			}
			m, err := OpenModel(files, "", library)
			if err == nil {
				if !ortlib.Available() {
					t.Skip("this build carries no ONNX Runtime")
				}
				var s InjectionScore
				if s, err = m.Score(t.Context(), "execute_command: {}"); err == nil {
					t.Fatalf("answers %+v", s)
				}
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q, want one line with %q", err, c.want)
			}
		})
	}
}

// marks is a runner that finds an attack where a token stands.
type marks struct {
	bad   int64
	calls int
}

func (r *marks) run(_ context.Context, ids []int64) ([]float32, error) {
	r.calls++
	for _, id := range ids {
		if id == r.bad {
			return []float32{0, 9}, nil
		}
	}
	return []float32{9, 0}, nil
}

// An attack counts wherever it is in a long text, and a text too long to
// read is never safe.
func TestModelWindows(t *testing.T) {
	t.Parallel()
	m := openTest(t, "bert")
	l, err := m.load()
	if err != nil {
		t.Fatal(err)
	}
	const bad = 77
	room := m.windowTokenCount - l.tokenizer.SpecialTokenCount()
	for _, length := range []int{0, 1, room - 1, room, room + 1, 3 * room, 6 * room} {
		for _, at := range []int{0, room - 1, room, room + 1, length / 2, length - 1} {
			ids := make([]int64, length)
			if at >= 0 && at < length {
				ids[at] = bad
			}
			s, err := m.score(t.Context(), &loadedModel{tokenizer: l.tokenizer, session: &marks{bad: bad}}, ids)
			if want := at >= 0 && at < length; err != nil || s.HasInjectionLabel != want {
				t.Errorf("%d tokens, attack at %d: %+v, %v", length, at, s, err)
			}
		}
	}
	r := &marks{bad: bad}
	ids := make([]int64, 100*room)
	if s, err := m.score(t.Context(), &loadedModel{tokenizer: l.tokenizer, session: r}, ids); !errors.Is(err, ErrTooLong) || r.calls != m.maxWindowCount() {
		t.Errorf("much text: %+v, %v after %d windows", s, err, r.calls)
	}
	ids[5] = bad
	if s, err := m.score(t.Context(), &loadedModel{tokenizer: l.tokenizer, session: r}, ids); err != nil || !s.HasInjectionLabel {
		t.Errorf("much text that begins with an attack: %+v, %v", s, err)
	}
	if s, err := m.Score(t.Context(), strings.Repeat("a b ", 1<<20)); !errors.Is(err, ErrTooLong) {
		t.Errorf("4 MiB: %+v, %v", s, err)
	}
}

func TestModelConcurrent(t *testing.T) {
	t.Parallel()
	m := openTest(t, "bert")
	want, err := m.Score(t.Context(), "execute_command: {\"command\":\"ls\"}")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				if got, err := m.Score(t.Context(), "execute_command: {\"command\":\"ls\"}"); err != nil || got != want {
					t.Errorf("%+v, %v; want %+v", got, err, want)
				}
			}
		})
	}
	wg.Wait()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := m.Score(ended, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %+v, %v", s, err)
	}
}

func TestModelWithoutRuntime(t *testing.T) {
	t.Parallel()
	want := errors.New("nothing to load")
	m, err := OpenModel(testFiles(t), "", func() (string, error) { return "", want })
	if err != nil {
		t.Fatal(err)
	}
	if s, err := m.Score(t.Context(), "x"); !errors.Is(err, want) {
		t.Errorf("%+v, %v", s, err)
	}
}

func FuzzGraph(f *testing.F) {
	data, err := os.ReadFile("testdata/models/bert/model.onnx")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[:2000])
	f.Add(message(nil, 7, message(nil, 5, varint(nil, 14, 1))))
	f.Fuzz(func(t *testing.T, data []byte) {
		if g, err := parseONNXGraph(data); err == nil && (len(g.inputs) == 0 || len(g.outputs) > maxONNXGraphInputs) {
			t.Errorf("accepted %+v", g)
		}
	})
}
