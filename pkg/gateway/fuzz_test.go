package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// FuzzFrames holds that any stream is cut into frames within bounds, that what
// is read as a message says the same to the scan for its id, and that what is put
// together again is read as the same message.
func FuzzFrames(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "\n\r\n", `{"id":"a","jsonrpc":"2.0","result":{"id":2,"a":["\"id\":3,{"]}}`,
		`{"jsonrpc":"2.0","id":1.0e2,"error":{"code":1,"message":"\ud83d\ude00"}}`, `[1]`, `{"a":{"id":1},"id"`, `{"id":{"id":1},"x":"}","id":2}`,
	} {
		f.Add([]byte(s + "\n" + s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 300
		r := newFrameReader(bytes.NewReader(in), limit)
		for n := 0; ; n++ {
			fr, err := r.next()
			if err != nil && !errors.Is(err, errFrameTooLong) {
				if err != io.EOF {
					t.Fatal(err)
				}
				return
			}
			if n > len(in) || len(fr.raw) > limit || bytes.IndexByte(fr.raw, '\n') >= 0 {
				t.Fatalf("frame %d: %q", n, fr.raw)
			}
			m, err := parseMessage(fr.raw)
			if err != nil {
				continue
			}
			if !bytes.Equal(m.id, fr.id) {
				t.Errorf("%q: id %q, by the scan %q", fr.raw, m.id, fr.id)
			}
			if result, ok := m.result.(object); ok {
				again, err := parseMessage(replaceMember(m, "result", result))
				if err != nil || !bytes.Equal(again.id, m.id) || len(again.members) != len(m.members) {
					t.Errorf("%q becomes another message: %v", fr.raw, err)
				}
			}
		}
	})
}

// TestLongFrames holds that a stream goes on behind a line that is too long, in
// bounded memory.
func TestLongFrames(t *testing.T) {
	t.Parallel()
	long := `{"jsonrpc":"2.0","id":%d,"x":"` + strings.Repeat("x", 5000) + `"}`
	in := fmt.Sprintf(long, 1) + "\n" + `{"id":2}` + "\n" + strings.Repeat("y", 5000) + "\n" + `{"id":3}` + "\n" + `{"x":"` + strings.Repeat("z", 1500) + `","id":4}` + "\n" + "cut off"
	r := newFrameReader(strings.NewReader(in), 1000)
	var got []string
	for {
		f, err := r.next()
		if err == io.EOF {
			break
		}
		got = append(got, fmt.Sprintf("%s %v", f.id, err))
	}
	want := fmt.Sprintf("1 %v;2 <nil>; %v;3 <nil>;4 %v", errFrameTooLong, errFrameTooLong, errFrameTooLong)
	if strings.Join(got, ";") != want {
		t.Errorf("%q, not %q", strings.Join(got, ";"), want)
	}
}

// BenchmarkCall is what the gateway itself adds to an allowed call, both ways.
func BenchmarkCall(b *testing.B) {
	g := New(Options{Server: Server{Name: "s"}})
	call := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"path":"a.txt"}}}`)
	answer := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat("a line of a file\\n", 60) + `"}]}}`)
	t, err := g.newTool([]byte(echoTool))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		m, err := parseMessage(call)
		if err != nil {
			b.Fatal(err)
		}
		p := &proposedAction{}
		if err := g.fillActionFromToolCall(p, t, "", objectMember(m.params, "arguments")); err != nil {
			b.Fatal(err)
		}
		p.actionRecord(m.id, "s")
		r, err := parseMessage(answer)
		if err != nil {
			b.Fatal(err)
		}
		if _, found, _ := g.examineTexts(r.result.(object), nil); len(found) > 0 {
			b.Fatal(found)
		}
	}
}
