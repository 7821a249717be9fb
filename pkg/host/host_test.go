package host

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shieldcli/shield/pkg/host/internal/form"
)

func named(t testing.TB, name string) *Host {
	t.Helper()
	h, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestEveryToolHasAPayload checks that each tool which a host's file names is
// tried with a payload.
func TestEveryToolHasAPayload(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		f := named(t, name).description
		for _, tool := range slices.Concat(slices.Collect(maps.Keys(f.Tools)), f.InternalTools, f.ToolsWithoutActionType) {
			if _, err := os.Stat("../../testdata/hosts/" + name + "/" + tool + ".json"); err != nil {
				t.Errorf("%s: %s: %v", name, tool, err)
			}
		}
	}
}

// TestEveryEventIsRecorded checks that each event which a host's file names is tried with
// what the host sends, and that this is read.
func TestEveryEventIsRecorded(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		h := named(t, name)
		readers, events := []*Host{h}, h.HandledEventNames()
		if asks, err := h.ForPermissionPromptEvents(); err == nil {
			readers, events = append(readers, asks), append(events, asks.HandledEventNames()...)
		}
		files, err := filepath.Glob("../../testdata/hosts/" + name + "/*.json")
		if err != nil {
			t.Fatal(err)
		}
		recorded := map[string]bool{}
		for _, file := range files {
			in, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, reader := range readers {
				if e, err := reader.Event(t.Context(), in); err == nil {
					recorded[e.Name] = true
				}
			}
		}
		for _, event := range events {
			if !recorded[event] {
				t.Errorf("%s: event %s has no recorded payload in testdata/hosts/%s", name, event, name)
			}
		}
	}
}

func TestClaudeCodeAnswers(t *testing.T) {
	t.Parallel()
	h := named(t, "claude-code")
	e, err := h.Event(t.Context(), []byte(`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for delegate, want := range map[bool]string{
		false: `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"why \"not\""}}`,
		true:  "{}",
	} {
		got, err := h.ResponseToAllowedEvent(t.Context(), e, delegate, `why "not"`)
		if err != nil || string(got) != want {
			t.Errorf("delegate %t: %s, %v\nwant %s", delegate, got, err, want)
		}
	}
}

// TestEveryHostDenies checks that the denial of each host is one that the host
// enforces, and that none goes without a reason.
func TestEveryHostDenies(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		h := named(t, name)
		if got, err := h.DenialResponse(t.Context(), "", ""); err == nil {
			t.Errorf("%s: %s, without a reason", name, got)
		}
		s, err := h.HookSettings(t.Context(), HookCommands{BeforeTool: "x", AfterTool: "y"}, 60, "/w", "linux")
		if err != nil {
			t.Fatal(err)
		}
		for _, reason := range []string{"why", "\"quoted\"\n\x00", strings.Repeat("long ", 1000)} {
			answer, err := h.DenialResponse(t.Context(), reason, "")
			if err != nil {
				t.Fatal(err)
			}
			if got, err := s.DenialReason(t.Context(), answer); err != nil || got != reason {
				t.Errorf("%s: the reason of %s is %q, %v", name, answer, got, err)
			}
		}
	}
}

func TestHostileInputIsAnError(t *testing.T) {
	t.Parallel()
	h := named(t, "claude-code")
	for name, in := range map[string]string{
		"nothing":           "",
		"not JSON":          "rm -rf /",
		"a list":            `[]`,
		"null":              `null`,
		"another event":     `{"hook_event_name":"Stop"}`,
		"no tool":           `{"hook_event_name":"PreToolUse","tool_input":{}}`,
		"tool is a number":  `{"hook_event_name":"PreToolUse","tool_name":7,"tool_input":{}}`,
		"input is text":     `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":"rm -rf /"}`,
		"input is missing":  `{"hook_event_name":"PreToolUse","tool_name":"Bash"}`,
		"duplicate keys":    `{"hook_event_name":"PreToolUse","tool_name":"TodoWrite","tool_name":"Bash","tool_input":{"command":"x"}}`,
		"two texts":         `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}} {}`,
		"invalid UTF-8":     "{\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"\xff\",\"tool_input\":{}}",
		"UTF-16":            "\xff\xfe{\x00\"\x00h\x00o\x00o\x00k\x00\"\x00:\x001\x00}\x00",
		"two marks":         "\ufeff\ufeff" + bashEvent,
		"a mark inside":     strings.Replace(bashEvent, ",", ",\ufeff", 1),
		"a mark behind":     bashEvent + "\ufeff",
		"a mark alone":      "\ufeff",
		"half pairs twice":  `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls","\ud800":1,"\ud801":2}}`,
		"a half and U+FFFD": `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"\ud800":"ls","\ufffd":"rm"}}`,
		"too deep":          strings.Repeat("[", 100_000),
		"too large":         `{"x":"` + strings.Repeat("x", MaxHookInputBytes) + `"}`,
		"edits no list":     `{"hook_event_name":"PreToolUse","tool_name":"MultiEdit","tool_input":{"file_path":"a","edits":7}}`,
	} {
		if e, err := h.Event(t.Context(), []byte(in)); err == nil {
			t.Errorf("%s: %+v, want an error", name, e)
		} else if len(err.Error()) > 200 {
			t.Errorf("%s: the error is %d bytes long", name, len(err.Error()))
		}
	}
}

const bashEvent = `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`

// TestWhatHostsReallyWrite holds that every host's event is read with a byte order mark, and
// with half a surrogate pair, which is judged as U+FFFD, wherever a text is.
func TestWhatHostsReallyWrite(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		h := named(t, name)
		s, err := h.HookSettings(t.Context(), HookCommands{BeforeTool: "x", AfterTool: "y"}, 60, "/w", "linux")
		if err != nil {
			t.Fatal(err)
		}
		for what, in := range map[string]string{
			"a mark":               "\ufeff" + string(s.SampleDeniedEvent),
			"half a pair":          strings.Replace(string(s.SampleDeniedEvent), "rm -rf", `rm \ud83d -rf`, 1),
			"the second half":      strings.Replace(string(s.SampleDeniedEvent), "rm -rf", `rm \udc00 -rf`, 1),
			"halves the wrong way": strings.Replace(string(s.SampleDeniedEvent), "rm -rf", `rm \udc00\ud800 -rf`, 1),
		} {
			e, err := h.Event(t.Context(), []byte(in))
			if err != nil || len(e.Actions) != 1 || strings.Contains(what, "hal") != strings.Contains(string(e.Actions[0]), "\ufffd") {
				t.Errorf("%s: %s: %+v, %v", name, what, e, err)
			}
		}
	}
}

// TestHostThatRunsHooksOfOthers holds that an event of Cursor is Cursor's at the hook of every
// host, that nothing in a tool's input makes an event one of Cursor's, and that the hook
// for a host's own question to its person takes none.
func TestHostThatRunsHooksOfOthers(t *testing.T) {
	t.Parallel()
	const event = `{"hook_event_name":"preToolUse","conversation_id":"c","cursor_version":"2026.09.02","workspace_roots":["/w"],"cwd":"","tool_name":"Shell","tool_input":{"command":"ls"}}`
	for _, name := range Names() {
		e, err := named(t, name).Event(t.Context(), []byte(event))
		if err != nil || e.Host.Name != "cursor" || len(e.Actions) != 1 || !strings.Contains(string(e.Actions[0]), `"cwd":"/w"`) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
		if e, err := named(t, name).Event(t.Context(), []byte(strings.Replace(event, "preToolUse", "stop", 1))); err == nil || e.Host.Name != "cursor" {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
		if name == "cursor" {
			continue
		}
		for _, other := range Names() {
			s, err := named(t, other).HookSettings(t.Context(), HookCommands{BeforeTool: "x"}, 60, "/w", "linux")
			if err != nil {
				t.Fatal(err)
			}
			e, err := named(t, name).Event(t.Context(), s.SampleDeniedEvent)
			if want := map[bool]string{true: "cursor", false: name}[other == "cursor"]; e.Host.Name != want {
				t.Errorf("an event of %s at the hook of %s: %+v, %v", other, name, e, err)
			}
		}
	}
	forged := strings.Replace(bashEvent, `"command"`, `"cursor_version":"1","workspace_roots":["/"],"command"`, 1)
	if e, err := named(t, "claude-code").Event(t.Context(), []byte(forged)); err != nil || e.Host.Name != "claude-code" {
		t.Errorf("%s: %+v, %v", forged, e, err)
	}
	asks, err := named(t, "claude-code").ForPermissionPromptEvents()
	if err != nil {
		t.Fatal(err)
	}
	if e, err := asks.Event(t.Context(), []byte(event)); err == nil {
		t.Errorf("taken for a question of Claude Code: %+v", e)
	}
}

// TestKeysThatDifferInCase checks that no host's tool is judged by one of two keys that
// some programs take for one, at any depth, and that what a tool has returned may have
// such keys.
func TestKeysThatDifferInCase(t *testing.T) {
	t.Parallel()
	for input, passes := range map[string]bool{
		`{"command":"ls","Command":"rm -rf ~"}`:                                            false,
		`{"command":"ls","\u212a":1,"k":2}`:                                                false, // the sign for Kelvin
		`{"file_path":"a","edits":[{"old_string":"a","new_string":"b","New_String":"c"}]}`: false,
		`{"command":"ls","a":"A"}`:                                                         true,
	} {
		tool := "bash"
		if strings.Contains(input, "edits") {
			tool = "multiedit"
		}
		_, err := named(t, "crush").Event(t.Context(), []byte(`{"event":"PreToolUse","session_id":"s","cwd":"/w","tool_name":"`+tool+`","tool_input":`+input+`}`))
		if (err == nil) != passes {
			t.Errorf("%s: %v", input, err)
		}
	}
	after := `{"session_id":"s","cwd":"/w","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_response":{"a":1,"A":2}}`
	if _, err := named(t, "claude-code").Event(t.Context(), []byte(after)); err != nil {
		t.Error(err)
	}
}

func TestUnknownHost(t *testing.T) {
	t.Parallel()
	if _, err := Named("../host"); err == nil {
		t.Error("a host that is not in the table was opened")
	}
	for _, name := range Names() {
		if _, err := Named(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// strict returns a text without what strict JSON does not have.
func strict(doc []byte) []byte {
	text, _ := toStrictJSON(doc)
	return text
}

// userPlace returns the place of the user's settings file.
func (s *HookSettings) userPlace() *HostSettingsFile { return &s.SettingsFiles[0] }

func settings(t *testing.T) *HookSettings {
	t.Helper()
	s, err := named(t, "claude-code").HookSettings(t.Context(), HookCommands{BeforeTool: "/usr/local/bin/shield hook claude-code --timeout 50s", AfterTool: "/usr/local/bin/shield hook claude-code --timeout 50s # after"}, 60, "/w", "linux")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const entry = `{
        "hooks": [
          {
            "command": "/usr/local/bin/shield hook claude-code --timeout 50s",
            "timeout": 60,
            "type": "command"
          }
        ],
        "matcher": "*"
      }`

// both is what is in the settings: entry in one list, and in the next ones those for
// results and for the end.
var both = entry + inNext("PostToolUse") + inNext("PostToolUseFailure") + strings.Replace(inNext("Stop"), ",\n        \"matcher\": \"*\"", "", 1)

func inNext(event string) string {
	return "\n    ],\n    \"" + event + "\": [\n      " + strings.Replace(entry, "50s", "50s # after", 1)
}

func TestInstallKeepsEverythingElse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, before, after string }{
		{"no file", "", "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      " + both + "\n    ]\n  }\n}\n"},
		{"empty object", "{}", "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      " + both + "\n    ]\n  }\n}"},
		{"other settings", "{\n  \"model\": \"opus\",\n  \"z\":   [1,2]\n}\n", "{\n  \"model\": \"opus\",\n  \"z\":   [1,2],\n  \"hooks\": {\n    \"PreToolUse\": [\n      " + both + "\n    ]\n  }\n}\n"},
		{"other hooks", "{\n  \"hooks\": {\n    \"Start\": [ ],\n    \"PreToolUse\": [\n      {\"matcher\": \"Bash\"}\n    ]\n  },\n  \"b\": 1\n}\n",
			"{\n  \"hooks\": {\n    \"Start\": [ ],\n    \"PreToolUse\": [\n      {\"matcher\": \"Bash\"},\n      " + both + "\n    ]\n  },\n  \"b\": 1\n}\n"},
	} {
		s := settings(t).userPlace()
		got, err := s.Install(t.Context(), []byte(c.before))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.after, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		again, err := s.Install(t.Context(), got)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s: a second install changes the file: %v\n%s", c.name, err, again)
		}
		back, err := s.Uninstall(t.Context(), got, []byte(c.before))
		if err != nil || string(back) != c.before {
			t.Errorf("%s: uninstall gives %q, %v; want %q", c.name, back, err, c.before)
		}
		if !s.ContainsShieldHook(t.Context(), got) {
			t.Errorf("%s: not installed", c.name)
		}
	}
}

// TestInstallKeepsHowTheFileIsWritten checks that marks, line ends, comments and
// the end of the file stay, and come back byte for byte.
func TestInstallKeepsHowTheFileIsWritten(t *testing.T) {
	t.Parallel()
	s := settings(t).userPlace()
	for _, before := range []string{
		"\ufeff{\"model\": \"opus\"}\n",
		"{\r\n\t\"model\": \"opus\"\r\n}\r\n",
		"{\"model\": \"opus\"}",
		"{\n  // which one\n  \"model\": \"opus\" // the large one\n}\n\n\n",
		"/* head */ {\"model\": /* , ] } */ \"o//p/*us\", /* tail */ } // end",
		"{\n  \"hooks\": {\n    // ours\n    \"PreToolUse\": [\n      {\"matcher\": \"Bash\"}, // last\n    ],\n  },\n}\n",
		"{ /* nothing yet */ }\n",
		"{\"hooks\": {\"PreToolUse\": [ // none\n]}}",
		"{}\r\n",
	} {
		after, err := s.Install(t.Context(), []byte(before))
		if err != nil {
			t.Errorf("%q: %v", before, err)
			continue
		}
		if !s.ContainsShieldHook(t.Context(), after) {
			t.Errorf("%q became %q, which has no hook", before, after)
		}
		if strings.Contains(before, "\r\n") && strings.Count(string(after), "\n") != strings.Count(string(after), "\r\n") {
			t.Errorf("%q became %q, with two kinds of line ends", before, after)
		}
		for _, kept := range []string{"\ufeff", "// which one\n", "// the large one\n", "/* , ] } */", "// end", "// last\n", "/* nothing yet */", "// none\n"} {
			if strings.Contains(before, kept) && !strings.Contains(string(after), kept) {
				t.Errorf("%q became %q, without %q", before, after, kept)
			}
		}
		back, err := s.Uninstall(t.Context(), after, []byte(before))
		if err != nil || string(back) != before {
			t.Errorf("%q came back as %q, %v", before, back, err)
		}
		if rest, err := s.Uninstall(t.Context(), append(after, '\n'), []byte(before)); err != nil || !json.Valid(strict(rest)) || len(rest) < len(before) {
			t.Errorf("%q, edited since, came back as %q, %v", before, rest, err)
		}
	}
}

func TestDeniedIsTheHostsOwnForm(t *testing.T) {
	t.Parallel()
	s := settings(t)
	const deny = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"why"}}`
	if reason, err := s.DenialReason(t.Context(), []byte(deny+"\n")); err != nil || reason != "why" {
		t.Errorf("%s: %q, %v", deny, reason, err)
	}
	for _, out := range []string{
		"", "deny", `"deny"`, `["deny"]`, `null`, `{"permissionDecision":"deny"}`, `{"hookSpecificOutput":"deny"}`, `{"hookSpecificOutput":["deny"]}`,
		strings.Replace(deny, `"deny"`, `"allow","note":"deny"`, 1), strings.Replace(deny, "Pre", "Post", 1),
		strings.Replace(deny, "why", "", 1), strings.Replace(deny, `"why"`, "7", 1),
		`log line "deny"` + "\n" + deny, deny + deny, strings.Replace(deny, `"deny"`, `"allow","permissionDecision":"deny"`, 1),
	} {
		if _, err := s.DenialReason(t.Context(), []byte(out)); err == nil {
			t.Errorf("%s is taken for a denial", out)
		}
	}
}

// squeezed returns a text without white space.
func squeezed(text string) string { return strings.Join(strings.Fields(text), "") }

func TestUninstallKeepsLaterEdits(t *testing.T) {
	t.Parallel()
	s := settings(t).userPlace()
	doc, err := s.Install(t.Context(), []byte(`{"hooks":{"PreToolUse":[{"matcher":"Bash"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	doc = []byte(strings.Replace(string(doc), `"Bash"`, `"Read"`, 1))
	got, err := s.Uninstall(t.Context(), doc, []byte(`{"hooks":{"PreToolUse":[{"matcher":"Bash"}]}}`))
	if want := `{"hooks":{"PreToolUse":[{"matcher":"Read"}]}}`; err != nil || squeezed(string(got)) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if _, err := s.Uninstall(t.Context(), got, nil); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("uninstall twice: %v", err)
	}
}

// TestUninstallLeavesNothingEmpty holds that a list that the installation made goes
// with its last element, and one that was there stays, whatever was written since.
func TestUninstallLeavesNothingEmpty(t *testing.T) {
	t.Parallel()
	s := settings(t).userPlace()
	for before, want := range map[string]string{
		"":                             `{"edited":1}`,
		"{}":                           `{"edited":1}`,
		"{ /* mine */ }":               `{"edited":1/*mine*/}`,
		`{"a": 1}`:                     `{"edited":1,"a":1}`,
		`{"hooks": {}}`:                `{"edited":1,"hooks":{}}`,
		`{"hooks": {"Stop": [1]}}`:     `{"edited":1,"hooks":{"Stop":[1]}}`,
		`{"hooks": {"PreToolUse":[]}}`: `{"edited":1,"hooks":{"PreToolUse":[]}}`,
		`{"hooks": {"PostToolUse":[ // mine
]}}`: `{"edited":1,"hooks":{"PostToolUse":[//mine]}}`,
	} {
		doc, err := s.Install(t.Context(), []byte(before))
		if err != nil {
			t.Fatal(err)
		}
		doc = []byte(strings.Replace(string(doc), "{", `{"edited": 1,`, 1))
		got, err := s.Uninstall(t.Context(), doc, []byte(before))
		if err != nil || squeezed(string(got)) != want || !json.Valid(strict(got)) {
			t.Errorf("%q: %s, %v; want %s", before, got, err, want)
		}
	}
}

func TestInstallRefusesWhatItDoesNotUnderstand(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{"[]", "/* a comment\n{}", "{} // a comment\n{}", "{,}", `{"a":1,,}`, `{"a":/1}`, "\ufeff", "// nothing", "{", `{"hooks":[]}`, `{"hooks":{"PreToolUse":{}}}`, `{"hooks":null}`, `{"a":1,"a":2}`, strings.Repeat("[", 1000)} {
		if got, err := settings(t).userPlace().Install(t.Context(), []byte(doc)); err == nil {
			t.Errorf("%.40q became %.80q", doc, got)
		}
	}
}

// FuzzEvent gives every host every input: what is not an error proposes actions,
// comes after the tool, tells what the user has written, or is of a tool that the host's file calls internal.
func FuzzEvent(f *testing.F) {
	names, _ := filepath.Glob("../../testdata/hosts/*/*-*.json") // what is unusual in the events of a host
	for _, name := range names {
		if in, err := os.ReadFile(name); err == nil {
			f.Add(in)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, name := range Names() {
			h := named(t, name)
			e, err := h.Event(context.Background(), in)
			if err != nil || len(e.Actions) > 0 || slices.Contains(h.description.AfterToolEvents, e.Name) || e.Prompt != nil && e.Name == h.description.Prompt.Event {
				continue
			}
			if read, err := h.runJQForOneResult(context.Background(), h.description.ReadEventJQ, mustDecode(in)); err != nil || !slices.Contains(h.description.InternalTools, read.(map[string]any)["tool"].(string)) {
				t.Errorf("%s: %q proposes nothing", name, in)
			}
		}
	})
}

func mustDecode(in []byte) any {
	v, err := decodeStrictJSON(in)
	if err != nil {
		panic(err)
	}
	return v
}

func FuzzInstall(f *testing.F) {
	f.Add([]byte(`{"hooks":{"PreToolUse":[{"matcher":"Bash"}]}}`))
	f.Add([]byte("{\n\t\"a\": [1, {}],\n\t\"hooks\": {}\n}\n"))
	f.Add([]byte("\ufeff{ // c\r\n \"hooks\": {\"PreToolUse\": [1, /* , */ ],},\r\n}"))
	all, err := named(f, "claude-code").HookSettings(context.Background(), HookCommands{BeforeTool: "shield hook claude-code", AfterTool: "shield hook claude-code # after"}, 60, "/w", "linux")
	if err != nil {
		f.Fatal(err)
	}
	s := all.userPlace()
	f.Fuzz(func(t *testing.T, before []byte) {
		ctx := context.Background()
		after, err := s.Install(ctx, before)
		if err != nil {
			return
		}
		if _, err := decodeStrictJSON(strict(after)); err != nil {
			t.Fatalf("%q became %q, which is not JSON", before, after)
		}
		if s.ContainsShieldHook(ctx, before) {
			return // was installed before
		}
		back, err := s.Uninstall(ctx, after, before)
		if err != nil || string(back) != string(before) {
			t.Errorf("%q came back as %q, %v", before, back, err)
		}
	})
}

func BenchmarkEvent(b *testing.B) {
	h := named(b, "claude-code")
	in, err := os.ReadFile("../../testdata/hosts/claude-code/Read.json")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Event(context.Background(), in); err != nil {
			b.Fatal(err)
		}
	}
}

func TestNeeded(t *testing.T) {
	t.Parallel()
	const text = "# a comment\ndef one: 1;\n\ndef two($x):\n  def in: one;\n  in;\ndef three: 3;\n"
	for filter, want := range map[string]string{
		"one":   "# a comment\ndef one: 1;\n",
		"two":   "# a comment\ndef one: 1;\n\ndef two($x):\n  def in: one;\n  in;",
		"three": "# a comment\ndef three: 3;\n",
		".":     "# a comment",
	} {
		if got := neededJQFunctionsSource(text, filter); got != want {
			t.Errorf("needed(%q) = %q, want %q", filter, got, want)
		}
	}
}

// TestConstantsOfPrograms holds that what one call adds to an action is not in the next
// one, also where the host's file says the action as it is.
func TestConstantsOfPrograms(t *testing.T) {
	t.Parallel()
	f := *named(t, "claude-code").description
	f.Tools = map[string]form.ToolActionMapping{"Constant": {ActionPayloadsJQ: `{type: "read_file", payload: {path: "a"}}`}}
	h := &Host{Name: "claude-code", description: &f}
	for _, session := range []string{"one", "two"} {
		e, err := h.Event(t.Context(), []byte(`{"hook_event_name":"PreToolUse","session_id":"`+session+`","cwd":"/`+session+`","tool_name":"Constant","tool_input":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(e.Actions[0]); !strings.Contains(got, `"session":"`+session+`"`) || !strings.Contains(got, `"cwd":"/`+session+`"`) {
			t.Errorf("%s: %s", session, got)
		}
	}
}
