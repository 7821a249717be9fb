package audit

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/itchyny/gojq"
)

func TestTail(t *testing.T) {
	lines, _ := chained(2000) // more than one block
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	write(t, path, []byte(strings.Join(lines, "")+`{"seq":`))
	for _, n := range []int{0, 1, 7, 1500, 2000, 5000} {
		var out bytes.Buffer
		if err := Tail(t.Context(), &out, path, n, false, 0); err != nil {
			t.Fatal(err)
		}
		if want := strings.Join(lines[max(0, len(lines)-n):], ""); out.String() != want {
			t.Errorf("%d lines: got %d bytes, want %d", n, out.Len(), len(want))
		}
	}
	if err := Tail(t.Context(), io.Discard, path+"x", 1, false, 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// A line that another program wrote does not get to the terminal as it is.
func TestTailShowsControls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	write(t, path, []byte("\x1b[2Jgone\x9b\u202e\n"))
	var out bytes.Buffer
	if err := Tail(t.Context(), &out, path, 1, false, 0); err != nil || out.String() != `\u001b[2Jgone\ufffd\u202e`+"\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestTailFollows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	heads := new(memory)
	l := open(t, path, heads)
	appendAll(t, l, 2)
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		err := Tail(ctx, w, path, 1, true, time.Millisecond)
		w.Close()
		done <- err
	}()
	got := newLineReader(r)
	want := func(part string) {
		t.Helper()
		line, err := got.nextLine()
		if err != nil || !bytes.Contains(line, []byte(part)) {
			t.Fatalf("got %q, %v; want %s", line, err, part)
		}
	}
	want(`"seq":2,`)
	appendAll(t, l, 1)
	want(`"seq":3,`)
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	lines, _ := chained(1)
	write(t, path, []byte(lines[0]))
	want(`"seq":1,`)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestQuery(t *testing.T) {
	lines, _ := chained(3)
	log := lines[0] + "oops\n" + lines[1] + strings.Repeat("x", 2*maxLineBytes) + "\n" + lines[2] + `{"seq":`
	tests := []struct{ program, want string }{
		{`select(.line >= 2) | {id, d: .decision}`, `{"d":"BLOCK","id":"a2"} {"d":"BLOCK","id":"a3"}`},
		{`.payload.command, .seq`, `"echo 1" 1 "echo 2" 2 "echo 3" 3`},
		{`empty`, ``},
		{`env | length`, `0 0 0`},
		{`halt`, ``},
		{`try error("x") catch .`, `"x" "x" "x"`},
		{`"\u001b[2J"`, `"\u001b[2J" "\u001b[2J" "\u001b[2J"`},
	}
	for _, tt := range tests {
		var got []string
		skipped, err := Query(t.Context(), strings.NewReader(log), tt.program, func(b []byte) error {
			got = append(got, string(b))
			return nil
		})
		if err != nil || strings.Join(got, " ") != tt.want || skipped != 2 {
			t.Errorf("%s: %q, skipped %d, %v; want %q", tt.program, got, skipped, err, tt.want)
		}
	}
	for _, program := range []string{`.[`, `nosuch`, `input`, `import "a" as a; 1`, strings.Repeat("1+", maxJQProgramBytes) + "1"} {
		var bad *QueryError
		if _, err := Query(t.Context(), strings.NewReader(log), program, func([]byte) error { return nil }); !errors.As(err, &bad) {
			if program == `input` && err != nil {
				continue
			}
			t.Errorf("%.20s: %v", program, err)
		}
	}
	var parse *gojq.ParseError
	if _, err := Query(t.Context(), strings.NewReader(log), `.[`, nil); !errors.As(err, &parse) {
		t.Errorf("no parse error in %v", err)
	}
	if _, err := Query(t.Context(), strings.NewReader(log), `error("no")`, nil); err == nil || !strings.Contains(err.Error(), "entry 1") {
		t.Errorf("error %v", err)
	}
	if _, err := Query(t.Context(), strings.NewReader(log), `range(1e9)`, func([]byte) error { return nil }); err == nil {
		t.Error("no bound on results")
	}
	began := time.Now()
	if _, err := Query(t.Context(), strings.NewReader(log), `def f: f; f`, nil); err == nil || time.Since(began) > time.Minute {
		t.Errorf("endless program: %v after %v", err, time.Since(began))
	}
	stop := errors.New("stop")
	if _, err := Query(t.Context(), strings.NewReader(log), `.`, func([]byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
}

func TestExportCSV(t *testing.T) {
	var log []byte
	var head ChainHead
	texts := []string{"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "|calc", "%x", "plain", "a,\"b\"\nc", "=cmd|' /C calc'!A0"}
	for _, s := range texts {
		e := entry(1)
		e.ActionID, e.Reasoning, e.Payload = s, s, map[string]any{"command": s}
		log, head = appendChained(log, head, e.encodeRedacted(clock(), nil))
	}
	var out bytes.Buffer
	skipped, err := Export(&out, bytes.NewReader(append(log, "oops\n"...)), "csv", "")
	if err != nil || skipped != 1 {
		t.Fatal(skipped, err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != len(texts)+1 {
		t.Fatal(len(rows), err)
	}
	for i, row := range rows[1:] {
		if len(row) != len(csvColumns) {
			t.Errorf("%d cells", len(row))
		}
		for _, cell := range row {
			if trimmed := strings.TrimLeft(cell, " "); trimmed != "" && strings.ContainsAny(trimmed[:1], "=+-@\t\r\n|%") {
				t.Errorf("%q: cell %q", texts[i], cell)
			}
		}
	}
	if got := rows[10][3]; got != "plain" {
		t.Errorf("plain text became %q", got)
	}
	if got := rows[1][3]; got != "'=1+1" {
		t.Errorf("formula became %q", got)
	}
}

func TestExportJSONL(t *testing.T) {
	lines, head := chained(5)
	all := strings.Join(lines, "")
	var out bytes.Buffer
	if skipped, err := Export(&out, strings.NewReader(all+"oops\n"), "jsonl", ""); skipped != 1 || err != nil || out.String() != all {
		t.Errorf("skipped %d, %v", skipped, err)
	}
	if r, err := Verify(&out, &head); err != nil || !r.OK() {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Export(io.Discard, strings.NewReader(all), "xml", ""); err == nil || !strings.Contains(err.Error(), strings.Join(ExportFormats(), ", ")) {
		t.Errorf("error %v", err)
	}
}
