package action

import (
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

type namesTable struct {
	Types      map[string][]string            `yaml:"types"`
	Fields     map[string][]string            `yaml:"fields"`
	TypeFields map[string]map[string][]string `yaml:"type_fields"`
	Required   map[string][]string            `yaml:"required"`
	Loose      []string                       `yaml:"loose_commands"`
	Plain      []string                       `yaml:"plain_fields"`
}

func loadNames(t *testing.T) (names namesTable) {
	t.Helper()
	text, err := os.ReadFile("names.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalWithOptions(text, &names, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	return names
}

// names_gen.go says what names.yaml says.
func TestNamesAreGenerated(t *testing.T) {
	names := loadNames(t)
	n := 0
	for typ, aliases := range names.Types {
		for _, alias := range append(aliases, typ) {
			if got := CanonicalType(alias); got != typ {
				t.Errorf("type %s: got %q, want %q; run go generate", alias, got, typ)
			}
			n++
		}
	}
	if n < 300 {
		t.Errorf("%d names of types", n)
	}
	for field, aliases := range names.Fields {
		for _, alias := range append(aliases, field) {
			if got := CanonicalField("", alias); got != field {
				t.Errorf("field %s: got %q, want %q; run go generate", alias, got, field)
			}
		}
	}
	for typ, fields := range names.TypeFields {
		for field, aliases := range fields {
			for _, alias := range append(aliases, field) {
				if got := CanonicalField(typ, alias); got != field {
					t.Errorf("field %s of %s: got %q, want %q; run go generate", alias, typ, got, field)
				}
			}
		}
	}
	for typ, fields := range names.Required {
		if got, touches := requiredFields(typ); !touches || strings.Join(got, " ") != strings.Join(fields, " ") {
			t.Errorf("%s needs %v, want %v; run go generate", typ, got, fields)
		}
	}
}

func TestCanonicalType(t *testing.T) {
	for in, want := range map[string]string{
		"Bash": "execute_command", "readFile": "read_file", "READ-FILE": "read_file", "Read File": "read_file",
		"shell_exec": "execute_command", "mcp__ide__executeCode": "execute_code", "python": "execute_code", "execute": "", "mcp__filesystem__read_text_file": "read_file", "requests.get": "http_request",
		"": "", "read_files_and_more": "", "mcp__evil__read_file": "", "read_file\u200b": "", "ｒead_file": "", "read_file\x00": "",
		"search": "", strings.Repeat("_", 60) + "bash": "execute_command", strings.Repeat("_", 61) + "bash": "",
	} {
		if got := CanonicalType(in); got != want {
			t.Errorf("CanonicalType(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestLooseCommands says which names that other tools have as well stand for a command.
func TestLooseCommands(t *testing.T) {
	names := loadNames(t)
	record := func(name, payload string) string { return `{"type":"` + name + `","payload":{` + payload + `}}` }
	for _, name := range append(names.Loose, "Run", "mcp__shell__execute", "mcp__shell__run_command") {
		for _, payload := range append([]string{`"command":"ls"`, `"cmd":"ls","cwd":"/x"`}, `"command":"ls","`+strings.Join(names.Plain, `":1,"`)+`":1`) {
			a, err := Parse([]byte(record(name, payload)))
			if err != nil || a.Type != "execute_command" || a.OriginalTypeSharedByOtherTools != name || a.Text("command") != "ls" {
				t.Errorf("%s %s: %+v, %v", name, payload, a, err)
			}
		}
		for _, payload := range []string{`"command":" "`, `"command":["ls"]`, `"command":"ls","host":"h"`, `"command":"ls","cmd":"id"`, `"command":"ls","args":["x"]`, `"query":"x"`, `"path":"a"`, ""} {
			if a, err := Parse([]byte(record(name, payload))); err != nil || a.Type != name || a.OriginalTypeSharedByOtherTools != "" {
				t.Errorf("%s %s: %+v, %v; want the type as it is", name, payload, a, err)
			}
		}
	}
}

// No other name of what deletes, runs, sends or moves is treated as something
// that looks harmless.
func TestAliasesLoseNoScrutiny(t *testing.T) {
	strict := map[string][]string{
		"delet": {"delete_file", "delete_directory", "memory_delete", "delete_event", "delete_schedule", "canvas_delete", "email_delete"},
		"remov": {"delete_file", "delete_directory", "delete_event", "delete_schedule"},
		"unlin": {"delete_file"},
		"exec":  {"execute_command", "execute_code", "browser_evaluate"},
		"shell": {"execute_command"},
		"bash":  {"execute_command"},
		"write": {"write_file", "memory_write", "execute_command", "agent_message"},
		"edit":  {"write_file", "update_event", "update_schedule"},
		"move":  {"move_file", "move_directory", "email_move", "delete_file", "delete_directory", "delete_event", "delete_schedule"},
		"send":  {"send_email", "send_message", "execute_command"},
		"push":  {"git_push"},
	}
	for typ, aliases := range loadNames(t).Types {
		for _, alias := range aliases {
			for part, allowed := range strict {
				if !strings.Contains(alias, part) || strings.HasPrefix(alias, "mcp__") || strings.HasSuffix(alias, "_output") { // that is read
					continue
				}
				ok := false
				for _, a := range allowed {
					ok = ok || a == typ
				}
				if !ok {
					t.Errorf("%s is taken for %s", alias, typ)
				}
			}
		}
	}
}

func TestLookUpsDoNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		_ = CanonicalType("run_in_terminal")
		_ = CanonicalField("move_file", "oldPath")
		_ = CanonicalField("x", "file_path")
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
