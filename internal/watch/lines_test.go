package watch

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

// TestLines holds the form that the installed command line reads, whatever is written: an
// answer is one line, which nothing on standard error can pass for.
func TestLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		errs, out string
		status    int
		want      string
	}{
		{"", "{}\n", 0, "0{}\n"},
		{"shield: no\n", "{}\n", 2, "!shield: no\n2{}\n"},
		{"0{}\n0{}\n", "", 2, "!0{}\n!0{}\n2\n"},
		{"no line feed", "{}", 2, "!no line feed\n2{}\n"},
		{"", "", 2, "2\n"},
	} {
		var b bytes.Buffer
		l := NewHookScriptProtocolWriter(&b)
		for _, c := range tt.errs { // in pieces
			fmt.Fprintf(l.Stderr(), "%c", c)
		}
		_, _ = io.WriteString(l.Stdout(), tt.out)
		if err := l.WriteAnswerAndExitStatus(tt.status); err != nil || b.String() != tt.want {
			t.Errorf("%q, %q, %d: %q, %v; want %q", tt.errs, tt.out, tt.status, b.String(), err, tt.want)
		}
	}
}
