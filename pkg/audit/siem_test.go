package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/verdict"
)

// hostileLog has entries whose texts try to be something else to who reads them.
func hostileLog() []byte {
	var log []byte
	var head ChainHead
	for i, text := range []string{"plain", "a|b\\c=d", "x\ny=1 act=Allowed\r\nCEF:0|evil", "\x1b[2J\u202e", "", `"}{"`} {
		e := entry(1)
		e.Rule, e.Reasoning, e.Session, e.Payload = text, text, text, map[string]any{"command": text}
		e.Decision = []verdict.Decision{verdict.Block, verdict.Allow, verdict.Escalate}[i%3]
		log, head = appendChained(log, head, e.encodeRedacted(clock(), nil))
	}
	e := Entry{Kind: EntryKindEvaluationBudgetWarning, Reasoning: "rising"}
	log, _ = appendChained(log, head, e.encodeRedacted(clock(), nil))
	return log
}

func TestExportOCSF(t *testing.T) {
	var out bytes.Buffer
	if skipped, err := Export(&out, bytes.NewReader(append(hostileLog(), "oops\n"...)), "ocsf", "v1"); skipped != 1 || err != nil {
		t.Fatal(skipped, err)
	}
	if strings.ContainsAny(out.String(), "\x1b\u202e") {
		t.Error("control characters")
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 7 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, line := range lines {
		var f struct {
			ocsfFinding
			Entry Entry `json:"unmapped"`
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if f.Class*100+f.Activity != f.Type || f.Category != f.Class/1000 || f.Entry.Seq != uint64(i+1) || f.FindingInfo.ID != fmt.Sprint(i+1) || f.Time != f.Entry.Time.UnixMilli() {
			t.Errorf("entry %d: %s", i+1, line)
		}
		want := []string{"Blocked", "Allowed", "Escalated", "Blocked", "Allowed", "Escalated", "Noted"}[i]
		if f.ActionName != want || f.Message != f.Entry.Reasoning {
			t.Errorf("entry %d: %s %q, want %s", i+1, f.ActionName, f.Message, want)
		}
	}
}

var label = regexp.MustCompile(`(\w+)Label=`)

func TestExportCEF(t *testing.T) {
	var out bytes.Buffer
	if _, err := Export(&out, bytes.NewReader(hostileLog()), "cef", "v|1"); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\u202e\r") {
		t.Error("control characters")
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 7 {
		t.Fatalf("%d lines:\n%s", len(lines), &out)
	}
	for i, line := range lines {
		rest, ok := strings.CutPrefix(line, `CEF:0|shield|shield|v\|1|`)
		bare := strings.NewReplacer(`\\`, "", `\|`, "").Replace(rest)
		if !ok || strings.Count(bare, "|") < 3 {
			t.Fatalf("header of %s", line)
		}
		_, fields, _ := strings.Cut(bare, "|")
		_, fields, _ = strings.Cut(fields, "|")
		_, fields, _ = strings.Cut(fields, "|")
		fields = strings.ReplaceAll(fields, `\=`, "")
		if n := strings.Count(fields, "act="); n != 1 || !strings.Contains(fields, "externalId="+fmt.Sprint(i+1)+" ") {
			t.Errorf("%d times act in %s", n, fields)
		}
		for _, m := range label.FindAllStringSubmatch(fields, -1) {
			if !strings.Contains(fields, " "+m[1]+"=") {
				t.Errorf("a label without its value: %s in %s", m[0], fields)
			}
		}
	}
}
