package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocs runs the examples of docs/*.md: what a console block prints (… matches anything), settings and policies that
// shield must accept, and links to files of the repository.
func TestDocs(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	index, err := os.ReadFile("docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, page := range append(pages, "README.md") {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range link.FindAllStringSubmatch(string(text), -1) {
				if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
					t.Errorf("the link to %s leads nowhere", m[1])
				}
			}
			if page == "README.md" || page == "docs/README.md" {
				return
			}
			if !strings.Contains(string(index), "("+filepath.Base(page)+")") {
				t.Error("docs/README.md does not list this page")
			}
			examples := docExamples(t, string(text))
			if len(examples) == 0 {
				t.Error("this page has no example that can be tested")
			}
			home := t.TempDir()
			for _, e := range examples {
				e.test(t, home)
			}
		})
	}
}

// A docExample is a fenced block of a page: console, yaml settings or yaml policy.
type docExample struct{ kind, text string }

func docExamples(t *testing.T, page string) (all []docExample) {
	t.Helper()
	for {
		_, rest, found := strings.Cut(page, "\n```")
		if !found {
			return all
		}
		kind, rest, _ := strings.Cut(rest, "\n")
		text, rest, closed := strings.Cut("\n"+rest, "\n```")
		if !closed {
			t.Fatalf("a block of %q does not end", kind)
		}
		switch kind {
		case "console", "yaml settings", "yaml policy":
			all = append(all, docExample{kind, strings.TrimPrefix(text, "\n")})
		case "sh", "yaml", "json", "text", "":
		default:
			t.Errorf("no test knows blocks of the kind %q", kind)
		}
		page = rest
	}
}

func (e docExample) test(t *testing.T, home string) {
	t.Helper()
	run := func(name string, args ...string) (string, int) {
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "HOME="+home, "SHIELD_CONFIG=")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run()
		return out.String(), cmd.ProcessState.ExitCode()
	}
	file := filepath.Join(home, "example.yaml")
	switch e.kind {
	case "yaml settings":
		if err := os.WriteFile(file, []byte(e.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, _ := run("shield", "status", "--config", file); strings.Contains(out, "example.yaml") {
			t.Errorf("settings are not accepted: %s\n%s", out, e.text)
		}
	case "yaml policy":
		if err := os.WriteFile(file, []byte(e.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, status := run("shield", "policy", "check", file); status != 0 {
			t.Errorf("policy check: %s\n%s", out, e.text)
		}
	case "console":
		for command := range strings.SplitSeq("\n"+e.text, "\n$ ") {
			if command == "" {
				continue
			}
			line, want, _ := strings.Cut(command, "\n")
			if strings.Trim(want, "… \n") == "" {
				t.Errorf("$ %s: the page does not say what it prints", line)
			}
			got, _ := run("bash", "-c", line)
			var pattern strings.Builder
			for i, part := range strings.Split(strings.TrimSpace(want), "…") {
				if i > 0 {
					pattern.WriteString(`(?s:.*)`)
				}
				pattern.WriteString(regexp.QuoteMeta(part))
			}
			if !regexp.MustCompile("^" + pattern.String() + "$").MatchString(strings.TrimSpace(got)) {
				t.Errorf("$ %s\n%s\nthe page says\n%s", line, got, want)
			}
		}
	}
}
