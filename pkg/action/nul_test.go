package action

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestNUL holds that no name of any type has a NUL in it, by whatever alias or however
// deep, and that texts may.
func TestNUL(t *testing.T) {
	t.Parallel()
	for _, typ := range append(CanonicalTypes(), "some_tool", "mcp__files__read") {
		for _, f := range []string{"path", "file_path", "source", "destination", "url", "uri", "command", "cmd", "pattern", "to", "cwd", "repo_path", "attachments", "target", "branch", "selector", "query", "filename"} {
			for _, value := range []string{`"a\u0000/../../.ssh/id_rsa"`, `["ok","a\u0000b"]`, `{"path":"a\u0000b"}`} {
				var others []string // so that nothing else is missing
				for _, more := range []string{"path", "source", "destination", "url", "command", "content", "to", "code", "patch"} {
					if CanonicalField(typ, f) != more && f != more {
						others = append(others, fmt.Sprintf(`%q:"x"`, more))
					}
				}
				raw := fmt.Sprintf(`{"type":%q,"payload":{%q:%s,%s}}`, typ, f, value, strings.Join(others, ","))
				_, err := Parse([]byte(raw))
				var e *Error
				if !errors.As(err, &e) || e.Code == "" {
					t.Errorf("%s: %v", raw, err)
				}
			}
		}
	}
	for _, raw := range []string{
		`{"type":"write_file","payload":{"path":"a","content":"x\u0000y"}}`,
		`{"type":"Write","payload":{"file_path":"a","content":"x\u0000y"}}`,
		`{"type":"Edit","payload":{"file_path":"a","old_string":"\u0000","new_string":"y"}}`,
		`{"type":"some_tool","payload":{"text":"\u0000"}}`,
		`{"type":"write_file","payload":{"path":"a\\u0000b","content":""}}`, // six characters
		`{"type":"http_request","payload":{"url":"https://a.test/","body":"\u0000"}}`,
	} {
		if _, err := Parse([]byte(raw)); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
