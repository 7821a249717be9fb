package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/gentest"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// TestFresh checks that go generate would change nothing.
func TestFresh(t *testing.T) {
	gentest.CheckUpToDate(t, main, []string{"credentials.yaml", "gitleaks", "grants.yaml", "keeps.yaml", "later.yaml", "logins.yaml", "output.yaml", "owners.yaml", "running.yaml", "secrets.yaml", "services.yaml", "settings.yaml", "sources.yaml", "verbs.yaml"}, slices.Sorted(maps.Keys(generatedFiles)))
}

// What is imported must be found: each form has a literal to look for, in small
// letters, and an expression that the engine takes without its parts for source
// files.
func TestImported(t *testing.T) {
	forms, err := importGitleaksSecretForms("../gitleaks/gitleaks.toml", nil)
	if err == nil {
		t.Fatalf("%d rules were taken over although some cannot be", len(forms))
	}
	if n := len(knowledge.SecretForms); n < 250 {
		t.Errorf("%d forms of secrets; at least 250 are expected", n)
	}
	for _, f := range knowledge.SecretForms {
		if _, err := regexp.Compile(f.Pattern); err != nil {
			t.Errorf("%s: %v", f.ID, err)
		}
		if strings.Contains(f.Pattern, `[\x60'"\s;]|\\[nr]|$`) || strings.HasPrefix(f.Pattern, `(?i)[\w.-]{0,50}?`) {
			t.Errorf("%s: still looks at what stands around a secret: %s", f.ID, f.Pattern)
		}
	}
}

// TestRefuses holds that a source which contradicts itself is refused, and what
// is named in the error.
func TestRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct {
		source      func(dir string) ([]byte, error)
		file, text  string
		names       string
		beside, too string // another file that is read first
	}{
		{codeRunningVariablesTable, "running.yaml", "- {why: x, names: A, runs: shell, match: [y]}", "", "", ""},
		{codeRunningVariablesTable, "running.yaml", "- {why: x, names: A, holds: place}", "", "", ""},
		{codeRunningVariablesTable, "running.yaml", "- {names: A}", "why", "", ""},
		{codeRunningVariablesTable, "running.yaml", "- {why: x}", "names", "", ""},
		{codeRunningVariablesTable, "running.yaml", "- {why: x, names: '*'}", "everything", "", ""},
		{codeRunningVariablesTable, "running.yaml", "- {why: x, names: A, runs: shell}", "match", "", ""},
		{codeRunningVariablesTable, "running.yaml", "- {why: x, names: A, only: y}", "runs or holds", "", ""},
		{codeRunningVariablesTable, "running.yaml", "- {why: x, names: A, holds: water}", "water", "", ""},
		{codeRunningVariablesTable, "running.yaml", "- {why: x, names: A, holds: place, runs: shell, match: [y]}", "leave runs out", "", ""},
		{codeRunningVariablesTable, "running.yaml", "- {why: x, names: A, holds: output, only: y}", "match", "", ""},
		{codeRunningVariablesTable, "running.yaml", "- {why: x, names: A, runs: shell, test: luck, match: [y]}", "luck", "", ""},
		{codeRunningVariablesTable, "running.yaml", "- {why: x, names: A, runs: shell, only: '(', match: [y]}", "missing", "", ""},
		{codeRunningVariablesTable, "running.yaml", "- {why: x, names: A, runs: shell, only: z, match: [y]}", "runs nothing", "", ""},
		{codeRunningVariablesTable, "running.yaml", "- {why: x, names: A, runs: shell, match: [y], pass: [z]}", "runs something", "", ""},
		{codeRunningVariablesTable, "running.yaml", "- {why: x, names: A, colour: red}", "colour", "", ""},
		{serviceHostListsTable, "services.yaml", "a: [x.test, 10.0.0.1, 'fd00::1']", "", "", ""},
		{serviceHostListsTable, "services.yaml", "a: [X.test]", "X.test", "", ""},
		{serviceHostListsTable, "services.yaml", "a: ['*.x.test']", "*.x.test", "", ""},
		{serviceHostListsTable, "services.yaml", "a: [.x.test]", ".x.test", "", ""},
		{serviceHostListsTable, "services.yaml", "a: [7]", "7", "", ""},
		{serviceHostListsTable, "services.yaml", "a: []", "no hosts", "", ""},
		{serviceHostListsTable, "services.yaml", "a: [", "services.yaml", "", ""},
		{codeRunningSettingsTable, "settings.yaml", "- {files: x, setting: 'r=(.*)', only: h, match: [r=h], pass: [a, r=b]}", "", "", ""},
		{codeRunningSettingsTable, "settings.yaml", "- {files: x, setting: 'r=h', only: h, match: [r=h], pass: [a]}", "one group", "", ""},
		{codeRunningSettingsTable, "settings.yaml", "- {files: x, setting: 'r=(.*)', only: '(', match: [r=h], pass: [a]}", "missing closing", "", ""},
		{codeRunningSettingsTable, "settings.yaml", "- {files: x, setting: 'r=(.*)', match: [r=h], pass: [a]}", "only, match or pass is missing", "", ""},
		{codeRunningSettingsTable, "settings.yaml", "- {files: x, setting: 'r=(.*)', only: h, match: [r=b], pass: [a]}", "but runs nothing", "", ""},
		{codeRunningSettingsTable, "settings.yaml", "- {files: x, setting: 'r=(.*)', only: h, harmless: h, match: [r=hh], pass: [r=hi]}", "but runs hi", "", ""},
		{packageSourcesTable, "sources.yaml", "- {files: x, setting: 'r=(h.*)', match: [r=h.x], pass: [a]}", "", "", ""},
		{packageSourcesTable, "sources.yaml", "- {files: x, setting: 'r=h', match: [r=h], pass: [a]}", "one group", "", ""},
		{packageSourcesTable, "sources.yaml", "- {files: x, setting: '(', match: [r=h], pass: [a]}", "one group", "", ""},
		{packageSourcesTable, "sources.yaml", "- {files: x, setting: 'r=(h)', match: [r=h]}", "pass is missing", "", ""},
		{packageSourcesTable, "sources.yaml", "- {files: x, setting: 'r=(h)', match: [b], pass: [a]}", "names no address", "", ""},
		{packageSourcesTable, "sources.yaml", "- {files: x, setting: 'r=(h.x)', match: [r=h.x], pass: [r=h.x]}", "but names https://h.x", "", ""},
		{verbsTable, "verbs.yaml", "a: b Get", "a is not a list of words", "", ""},
		{verbsTable, "verbs.yaml", "a: [b]", "a is not a list of words", "", ""},
		{verbsTable, "verbs.yaml", "a: [", "verbs.yaml", "", ""},
		{verbsTable, "verbs.yaml", "a: b", "", "", ""},
		{credentialOwnersTable, "owners.yaml", "- {names: [A], hosts: [a.test]}", "", "", ""},
		{credentialOwnersTable, "owners.yaml", "- {names: [a], hosts: [a.test]}", "capitals", "", ""},
		{credentialOwnersTable, "owners.yaml", "- {names: [A], hosts: ['*.test']}", "*.test", "", ""},
		{credentialOwnersTable, "owners.yaml", "- {names: [A]}", "A holds no hosts", "", ""},
		{pathListAndSecretVariableTables, "later.yaml", "classes: [{name: a, paths: ['@b']}]", "@b", "", ""},
		{pathListAndSecretVariableTables, "later.yaml", "lists: {a: ['@b'], b: [/x]}", "before it", "", ""},
		{pathListAndSecretVariableTables, "later.yaml", "classes: [{paths: [/x]}]", "no name", "", ""},
		{pathListAndSecretVariableTables, "later.yaml", "classes: [{name: a}]", "no paths", "", ""},
		{pathListAndSecretVariableTables, "credentials.yaml", "a: [/x]", "template_words", "later.yaml", "lists: {}"},
		{pathListAndSecretVariableTables, "credentials.yaml", "template_words: [x]\nvariables: {words: [A], colour: [B]}", "variables", "later.yaml", "lists: {}"},
		{pathListAndSecretVariableTables, "credentials.yaml", "template_words: [x]\nvariables: {words: [A]}\na: {b: c}", "a", "later.yaml", "lists: {}"},
		{pathListAndSecretVariableTables, "credentials.yaml", "template_words: [x]\nvariables: {words: [A]}\na: [/x]", "", "later.yaml", "lists: {b: [/y], c: ['@b']}\nclasses: [{name: d, paths: ['@c', /z]}]"},
	} {
		files := map[string]string{"output.yaml": "build_output: [/x]", c.file: c.text}
		if c.beside != "" {
			files[c.beside] = c.too
		}
		_, err := c.source(gentest.WriteFolder(t, files))
		gentest.CheckErrorMentions(t, c.text, err, c.names)
	}
}

// TestListsWithin holds that a list or class which names another holds what
// that one does.
func TestListsWithin(t *testing.T) {
	t.Parallel()
	file, err := readLaterExecutedFiles(gentest.WriteFolder(t, map[string]string{"later.yaml": "lists: {a: [/x], b: ['@a', /y]}\nclasses: [{name: c, paths: [/z, '@b']}]"}))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(file.FileClasses[0].Paths, " "); got != "/z /x /y" {
		t.Errorf("class c holds %s", got)
	}
}

// TestKeepsRefuses: an entry that says nothing, names a program twice, or leads elsewhere.
func TestKeepsRefuses(t *testing.T) {
	for _, text := range []string{"", "x: {programs: a}", "x: {programs: a a, caches: ~/a}", "x: {programs: a, caches: /etc}", "x: {programs: a, credentials: $WORKSPACE/a}", "x: {colour: red}"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "keeps.yaml"), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := cachesAndCredentialFilesTable(dir); err == nil {
			t.Errorf("taken: %s", text)
		}
	}
}
