package cmd

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"
)

// A screen is a terminal: the content written to it is kept, what is typed is read.
type screen struct {
	bytes.Buffer
	tty *os.File
}

func (s *screen) Fd() uintptr { return s.tty.Fd() }

func newScreen(t *testing.T, typed string) *screen {
	t.Helper()
	tty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { tty.Close() })
	s := &screen{tty: tty}
	s.WriteString(typed)
	return s
}

const readOne = `{"type":"read_file","payload":{"path":"a"}}` + "\n"

func TestSaysThatInputIsAwaited(t *testing.T) {
	const event = `{"hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"file_path":"a"},"cwd":"/tmp"}`
	for name, tt := range map[string]struct {
		args []string
		in   string
		want string
	}{
		"run":              {[]string{"run", "--until", "classify"}, readOne, "shield: reading actions from the terminal, one JSON object a line; ^D ends\n"},
		"policy":           {[]string{"policy"}, readOne, "shield: reading actions from the terminal"},
		"classify":         {[]string{"classify"}, readOne, "shield: reading actions from the terminal"},
		"evaluate":         {[]string{"evaluate"}, readOne, "shield: reading actions from the terminal"},
		"approve":          {[]string{"approve"}, readOne, "shield: reading actions from the terminal"},
		"run that refuses": {[]string{"run", "--policy", "/nonexistent"}, readOne, "shield: reading actions from the terminal"},
		"score":            {[]string{"score", "-"}, `{"label":"benign","action":` + strings.TrimSpace(readOne) + "}\n", "shield: reading labelled rows from the terminal"},
		"hook":             {[]string{"hook", "claude-code"}, event, "shield: reading one event of the host from the terminal"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, typed := range []bool{true, false} {
				w, errs := newWorld(t), new(bytes.Buffer)
				w.In, w.Err = io.Reader(strings.NewReader(tt.in)), errs
				if typed {
					w.In = newScreen(t, tt.in)
				}
				Run(context.Background(), tt.args, w)
				if said := strings.HasPrefix(errs.String(), tt.want); said != typed || !typed && strings.Contains(errs.String(), "shield: reading") {
					t.Errorf("typed %v: %q", typed, errs)
				}
			}
		})
	}
}

func TestProgress(t *testing.T) {
	const line = "\x1b[Kshield: 1000 actions judged\r" + "\x1b[Kshield: 2000 actions judged\r" + "\x1b[K"
	for name, tt := range map[string]struct {
		n        int
		out, err bool // are terminals
		want     string
	}{
		"long":                     {2001, false, true, line},
		"short":                    {999, false, true, ""},
		"no terminal":              {1001, false, false, ""},
		"verdicts on the terminal": {1001, true, true, ""},
	} {
		w, out, errs := newWorld(t), newScreen(t, ""), newScreen(t, "")
		w.In, w.Out, w.Err = strings.NewReader(strings.Repeat(readOne, tt.n)), &out.Buffer, &errs.Buffer
		if tt.out {
			w.Out = out
		}
		if tt.err {
			w.Err = errs
		}
		if status := Run(context.Background(), []string{"policy", "--policy", "permissive"}, w); status != statusAllow {
			t.Errorf("%s: status %d", name, status)
		}
		if errs.String() != tt.want || strings.Count(out.String(), "\n") != tt.n {
			t.Errorf("%s: %q, %d verdicts", name, errs, strings.Count(out.String(), "\n"))
		}
	}
	w, errs := newWorld(t), newScreen(t, "")
	w.In, w.Err = strings.NewReader(strings.Repeat(readOne, 1000)+"junk\n"), errs
	Run(context.Background(), []string{"policy", "--policy", "permissive"}, w)
	if _, said, _ := strings.Cut(errs.String(), "\r"); !strings.HasPrefix(said, "\x1b[Kshield: stdin") {
		t.Errorf("a message over the line: %q", errs)
	}
}

// TestStartPage checks that a bare shield leads to setup on a terminal, on one screen, and
// prints its help elsewhere.
func TestStartPage(t *testing.T) {
	w, out := newWorld(t), newScreen(t, "")
	if err := os.Mkdir(w.Home+"/.claude", 0o700); err != nil {
		t.Fatal(err)
	}
	w.Out = out
	status := Run(context.Background(), nil, w)
	if text := out.String(); status != 0 || !strings.Contains(text, "\n  shield setup ") || !strings.Contains(text, "Not protected: Claude Code.") || strings.Count(text, "\n") > 20 {
		t.Errorf("status %d, %s", status, text)
	}
	if status, help, _ := run(t, w, ""); status != 0 || !strings.Contains(help, "PROTECT AN AGENT:") {
		t.Errorf("status %d, %s", status, help)
	}
}
