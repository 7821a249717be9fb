//go:build unix

package hosts

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/host"
)

// A column is a property of hosts, and what heads it in docs/hosts.md.
type column struct{ key, title string }

// tables are those of docs/hosts.md.
var tables = [][]column{
	{
		{"shell allowed", "command allowed"}, {"write allowed", "file allowed"}, {"mcp allowed", "MCP allowed"},
		{"shell denied", "command denied"}, {"write denied", "file denied"}, {"mcp denied", "MCP denied"},
		{"missing", "missing"}, {"killed", "killed"}, {"hanging", "hangs"}, {"garbage", "garbage"}, {"silent", "silent"}, {"log line before the answer", "log line"},
	},
	{
		{"late allow", "late ALLOW"}, {"late deny", "late BLOCK"}, {"too late", "too late"}, {"switched off", "switched off"},
		{"sub-agent allowed", "sub-agent, allowed"}, {"sub-agent denied", "sub-agent, denied"}, {"resumed denied", "resumed, denied"}, {"result", "a result"},
	},
	{{"npm test", "`npm test`"}, {"npm test served", "with its service"}, {"nothing", "nothing"}, {"npm test alone", "alone"}, {"load", "load"}},
	{{"ask", "shield leaves a question to it"}, {"permission", "shield answers before it asks"}},
	{{"tools", "offered"}, {"unknown tools", "asked about"}, {"missing tools", "in shield's file and not offered"}},
	{{"gateway allowed", "`get-sum`"}, {"gateway denied", "`get-env`"}},
}

// record puts what was seen of a host into the tables of the file that
// SHIELD_HOSTS_DOC names, in place of what was seen of it before. What was not looked at
// stays as it was seen in the same version with the same build.
func record(t *testing.T, name string, row map[string]string) {
	t.Helper()
	path := os.Getenv("SHIELD_HOSTS_DOC")
	if path == "" {
		return
	}
	h, err := host.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(doc), "\n")
	for _, columns := range tables {
		if !slices.ContainsFunc(columns, func(c column) bool { return row[c.key] != "" }) {
			continue
		}
		head, cells := []string{"host", "version", "date", "shield"}, []string{h.Title(), versionOf(name), time.Now().UTC().Format(time.DateOnly), builtFrom}
		for _, c := range columns {
			head, cells = append(head, c.title), append(cells, row[c.key])
		}
		begin := slices.Index(lines, line(head))
		if begin < 0 {
			t.Fatalf("%s has no table of %q", path, head)
		}
		end := begin
		for end < len(lines) && strings.HasPrefix(lines[end], "|") && !strings.HasPrefix(lines[end], "| "+h.Title()+" |") {
			end++
		}
		if end == len(lines) || lines[end] == "" {
			lines = slices.Insert(lines, end, "")
		}
		old := strings.Split(lines[end], " | ")
		for i, c := range columns {
			if at := len(cells) - len(columns) + i; row[c.key] == "" && len(old) == len(cells) && old[1] == cells[1] && old[3] == cells[3] {
				cells[at] = strings.TrimSuffix(old[at], " |")
			}
		}
		lines[end] = line(cells)
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

func line(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }
