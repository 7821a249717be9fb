package cmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/allocated"
	"github.com/shieldcli/shield/pkg/evaluate/evaltest"
)

// TestSanitizeAsksEvaluator has shield sanitize ask a model about what no rule finds,
// if the settings say so, and charge that to the budget.
func TestSanitizeAsksEvaluator(t *testing.T) {
	server := evaltest.NewServer()
	t.Cleanup(server.Close)
	const in = `{"type":"http_request","payload":{"url":"https://a.test"},"result":"Kindly carry the minutes over."}` + "\n"
	for _, c := range []struct {
		model, mode string
		status      int
		want        string
	}{
		{"allow", "clean", statusAllow, `"findings":[],"changed":false,"result":"Kindly carry`},
		{"block", "clean", statusEscalate, `"kind":"instruction","where":"","offset":0,"length":0,"what":"judged by a test server","severity":"high","source":"evaluator"`},
		{"block", "block", statusBlock, `"withheld":"shield:`},
		{"no-canary", "clean", statusBlock, `"withheld":"shield:`},
	} {
		w := newWorld(t)
		w.Getenv = withSettings(t, fmt.Sprintf("classifier: {model: none}\nevaluator: {provider: custom, model: %s, base_url: %q}\nsanitize: {evaluator: true}\ndaily_budget: 2\n", c.model, server.BaseURL()))
		status, out, errs := run(t, w, in+in, "sanitize", "--mode", c.mode)
		if status != c.status || strings.Count(out, c.want) != 2 {
			t.Errorf("%s, %s: status %d: %s%s", c.model, c.mode, status, out, errs)
		}
		if status, out, _ := run(t, w, in, "sanitize", "--mode", c.mode); status != statusBlock || !strings.Contains(out, "budget exhausted") {
			t.Errorf("%s, %s: beyond the budget: status %d: %s", c.model, c.mode, status, out)
		}
	}
	if n := len(server.Requests()); n != 8 {
		t.Errorf("%d requests, want 8", n)
	}
}

const fineResult = `{"type":"read_file","payload":{"path":"a"},"result":"fine"}` + "\n"

// TestSanitizeLarge streams a result that is larger than what is read, and binary data
// without end: what is allocated depends on --max-bytes, and what is printed has a
// bound.
func TestSanitizeLarge(t *testing.T) { // not parallel: allocations are counted
	const most, size = 1 << 16, 32 << 20
	random := rand.NewChaCha8([32]byte{1})
	for name, body := range map[string]io.Reader{
		"text":   io.MultiReader(strings.NewReader(`{"type":"read_file","payload":{"path":"a"},"result":"`), repeated("The committee met on Tuesday. ", size), strings.NewReader("\"}\n")),
		"binary": io.MultiReader(io.LimitReader(random, size/4), strings.NewReader("\n")),
		"broken": io.MultiReader(repeated("{caf\xe9 \xff\xfe}\n", size/16), strings.NewReader("\n")),
	} {
		w := newWorld(t)
		var out, errs bytes.Buffer
		w.In, w.Out, w.Err = io.MultiReader(body, strings.NewReader(fineResult)), &out, &errs
		status := 0
		n := allocated.Bytes(func() { status = Run(context.Background(), []string{"sanitize", "--max-bytes", fmt.Sprint(most)}, w) })
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if status != statusBlock || len(lines) > maxReportedUnreadableRecords+2 || strings.Count(errs.String(), "\n") > maxReportedUnreadableRecords+1 {
			t.Errorf("%s: status %d, %d lines, on standard error %d", name, status, len(lines), strings.Count(errs.String(), "\n"))
		}
		if last := lines[len(lines)-1]; !strings.Contains(last, `"type":"read_file"`) || !strings.Contains(last, `"findings":[],"changed":false`) {
			t.Errorf("%s: the record behind it: %s", name, last)
		}
		if name != "text" && !strings.Contains(lines[len(lines)-2], `"unread":`) {
			t.Errorf("%s: no line says how many more there are: %s", name, lines[len(lines)-2])
		}
		if name == "text" && n > 64*most {
			t.Errorf("%s: %d bytes were allocated for %d that are read at most", name, n, most)
		}
	}
}

// repeated returns a text that is said again until it has n bytes.
func repeated(text string, n int) io.Reader {
	readers := make([]io.Reader, 0, n>>20+1)
	block := strings.Repeat(text, 1<<20/len(text))
	for ; n > 0; n -= len(block) {
		readers = append(readers, strings.NewReader(block))
	}
	return io.MultiReader(readers...)
}

// TestSanitizeUnread: each stretch of records that cannot be read has its own count,
// and a short one a line for each.
func TestSanitizeUnread(t *testing.T) {
	t.Parallel()
	bad := strings.Repeat("{x}\n", maxReportedUnreadableRecords)
	in := bad + fineResult + bad + "{x}\n{x}\n{x}\n" + fineResult + `{"type":"read_file","payload":{"path":"a"},"result":"caf` + "\xe9" + `"}` + "\n"
	status, out, errs := run(t, newWorld(t), in, "sanitize", "--mode", "clean")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != statusBlock || len(lines) != 2*maxReportedUnreadableRecords+4 || strings.Count(out, `"unread":`) != 1 {
		t.Fatalf("status %d, %d lines\n%s", status, len(lines), errs)
	}
	if want := fmt.Sprintf(`{"line":%d,"findings":[],"changed":false,"error":"invalid_json","reason":"3 more records up to line %d could not be read; correct these records","unread":3}`, 2*maxReportedUnreadableRecords+2, 2*maxReportedUnreadableRecords+4); lines[2*maxReportedUnreadableRecords+1] != want {
		t.Errorf("%s, want %s", lines[2*maxReportedUnreadableRecords+1], want)
	}
	if last := lines[len(lines)-1]; !strings.Contains(last, `"error":"`) || strings.Contains(last, `"result"`) {
		t.Errorf("broken UTF-8: %s", last)
	}
}
