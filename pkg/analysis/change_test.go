package analysis

import (
	"strings"
	"testing"
)

func TestChange(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct {
		name, typ string
		payload   obj
		want      string
	}{
		{"an edit", "edit_file", obj{"path": "a", "old_string": "if ok(x) {\n\treturn\n}\n", "new_string": "return\n"}, "-if ok(x) {\n-}\n"},
		{"other names", "write_file", obj{"path": "a", "old_str": "a", "content": "b"}, "-a\n+b\n"},
		{"edits", "edit_file", obj{"path": "a", "edits": []any{obj{"oldText": "check()\nx", "newText": "x"}, obj{"old_string": "y", "new_string": "check()"}, "z"}}, "-y\n+z\n"},
		{"blocks", "write_file", obj{"path": "a", "content": "------- SEARCH\nb\nc\n=======\nb\nd\n+++++++ REPLACE\n\n<<<<<<< SEARCH\ne\n=====\n>>>>>>> REPLACE\n"}, "-c\n-e\n+d\n"},
		{"a diff as content", "write_file", obj{"path": "a", "content": "@@ -1,2 +1 @@\n-b\n c\n+d\n"}, "-b\n+d\n"},
		{"comments and imports", "edit_file", obj{"path": "a", "old_string": "import a\n#[b]\n# c\n// d\n", "new_string": "from e\n#!f\n-- g\nh"}, "-#[b]\n+h\n"},
		{"nothing replaced", "write_file", obj{"path": "a", "content": "b"}, ""},
		{"a patch", "apply_patch", obj{"patch": "*** Begin Patch\n*** Update File: a\n@@\n-b\n-c\n d\n+e\n*** Update File: f\n+c\n*** Delete File: g\n*** End Patch"}, "-b\n+e\n"},
		{"a diff", "apply_patch", obj{"patch": "--- a/b\n+++ b/b\n@@ -1,2 +1 @@\n-c\n d\n"}, "-c\n"},
		{"a patch for a program", "execute_command", obj{"command": "git apply <<'E'\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-c\n+d\nE"}, "-c\n+d\n"},
		{"sed", "execute_command", obj{"command": "sed -i 's/c/d/' b"}, "-c\n+d\n"},
		{"sed that removes lines", "execute_command", obj{"command": "sed -i '/check(x)/d' b"}, "-check(x)\n"},
		{"sed that removes", "execute_command", obj{"command": "sed -i 's/check(x)//' b"}, "-check(x)\n"},
	} {
		var got strings.Builder
		read := func(one *ActionCase) {
			for _, v := range one.FieldTextVariants("change") {
				got.WriteString(v.Text)
			}
		}
		whole := testAnalyzer.AnalyzeAction(act(c.typ, c.payload))
		read(whole)
		whole.EachFileWriteCase(read)
		if got.String() != c.want {
			t.Errorf("%s: read %q, want %q", c.name, got.String(), c.want)
		}
	}
}

// TestEdited holds what a file holds after an edit, and that fields of other types are no edits.
func TestEdited(t *testing.T) {
	t.Parallel()
	const old = "a\nb\na\n"
	for _, c := range [...]struct {
		payload obj
		want    string
		known   bool
	}{
		{obj{"content": "x"}, "x", true},
		{obj{"old_string": "a", "content": "x"}, "x\nb\na\n", true},
		{obj{"old_string": "a", "content": "x", "replace_all": true}, "x\nb\nx\n", true},
		{obj{"edits": obj{"oldText": "b", "newText": "c"}}, "a\nc\na\n", true},
		{obj{"edits": []any{obj{"old_str": "a", "new_str": ""}, obj{"search": "b", "replace": "c"}}}, "\nc\na\n", true},
		{obj{"edits": []any{obj{"old_str": "a", "new_str": ""}, 7}}, "", false},
		{obj{"old_string": "z", "content": "x"}, "", false},
		{obj{"edits": []any{obj{"new_string": "x"}}}, "", false},
		{obj{"old_string": []any{"a"}, "content": "x"}, "x", true},
		{obj{"content": "@@ -1 +1 @@\n-a\n+x\n"}, "", false},
	} {
		if got, known := contentAfterEdits(c.payload, old); got != c.want || known != c.known {
			t.Errorf("%v: %q, %t; want %q, %t", c.payload, got, known, c.want, c.known)
		}
	}
}
