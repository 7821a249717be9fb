package main

import (
	"strings"
	"testing"
)

// TestRun holds that a row keeps its labels, that its action becomes the text which a
// model reads, and that one which is no action is left out.
func TestRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := run(strings.NewReader(`{"id":"1","source":"s","label":"good","text":"A  <B>\n"}
{"id":"2","source":"s","category":"c","split":"train","label":"bad","type":"forged","text":"forged","action":{"type":"Bash","payload":{"command":"ls  -LA"}}}
{"id":"3","source":"s","label":"good","action":{"type":"Bash"}}
{"id":"4","source":"s","label":"good","action":{"type":"Bash","payload":{"command":"ls","cmd":"rm"}}}
`), &out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d rows: %q", len(lines), lines)
	}
	if want := `{"id":"1","source":"s","label":"good","type":"text","text":"a <b>"}`; lines[0] != want {
		t.Errorf("got %s, want %s", lines[0], want)
	}
	if l := lines[1]; !strings.HasPrefix(l, `{"id":"2","source":"s","category":"c","split":"train","label":"bad","type":"execute_command","text":"`) || !strings.Contains(l, "ls -la") || strings.Contains(l, "forged") || strings.Contains(l, `"action"`) {
		t.Errorf("row of an action: %s", l)
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"no JSON": "x\n", "an array": "[]\n", "too long": `{"text":"` + strings.Repeat("x", maxRow) + `"}`} {
		var out strings.Builder
		if err := run(strings.NewReader(`{"text":"a"}`+"\n"+text), &out); err == nil {
			t.Errorf("%s: no error, wrote %.80s", name, out.String())
		}
	}
}
