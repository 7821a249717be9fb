//go:build unix

package cmd

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// examined runs the doctor on settings, which may name the folder they are in
// as DIR, and returns its status and the lines of its report.
func examined(t *testing.T, text string, flags ...string) (status int, report string) {
	t.Helper()
	w := newWorld(t)
	bin := filepath.Join(w.Home, "bin")
	program := filepath.Join(bin, "ask-somebody")
	open := filepath.Join(bin, "ask-anybody")
	for _, dir := range []string{bin, filepath.Join(w.Home, "project")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{program, open} {
		if err := os.WriteFile(f, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	w.Environ = func() []string { return []string{"PATH=.:relative:" + bin} }
	w.Getenv = func(name string) string { return map[string]string{"SET_KEY": "sk-of-the-doctor"}[name] }
	file := filepath.Join(w.Home, "shield.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "DIR", w.Home)), 0o600); err != nil {
		t.Fatal(err)
	}
	status, out, errs := run(t, w, "", append([]string{"doctor", "--config", file, "--model", "none"}, flags...)...)
	out, _, _ = strings.Cut(out+errs, "\n\n") // what follows are the settings
	return status, strings.ReplaceAll(out, w.Home, "DIR")
}

func TestDoctor(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("the doctor sends %s", r.Method)
		}
		_, _ = w.Write([]byte(`{"data":[{"id":"judge"}]}`))
	}))
	t.Cleanup(up.Close)
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	const bad, good = statusFailure, statusAllow
	for name, tt := range map[string]struct {
		settings string
		status   int
		want     []string // parts of the report
	}{
		"nothing": {"", good, []string{"ok    evaluator: none", "ok    policy: auto, which is offline here"}},
		"evaluator": {"evaluator: {provider: custom, model: judge, base_url: '" + up.URL + "'}\n", good,
			[]string{"ok    evaluator: custom, judge: answers", "ok    policy: auto, which is default here"}},
		"evaluator with a key": {"evaluator: {provider: custom, model: judge, api_key_env: SET_KEY, base_url: '" + up.URL + "'}\n", good,
			[]string{"ok    evaluator: custom, judge: answers"}},
		"evaluator without key": {"evaluator:\n  provider: openai\n  model: judge\n  base_url: '" + up.URL + "'\n", bad,
			[]string{"bad   evaluator: environment variable OPENAI_API_KEY, which should hold the API key, is not set", "run 'export OPENAI_API_KEY=…' where shield is started"}},
		"evaluator whose variable is empty": {"evaluator:\n  provider: custom\n  model: judge\n  api_key_env: NO_KEY\n  base_url: '" + up.URL + "'\n", bad,
			[]string{"bad   evaluator: environment variable NO_KEY", "(DIR/shield.yaml:4)"}},
		"evaluator with a missing key file": {"evaluator: {provider: custom, model: judge, api_key_file: key, base_url: '" + up.URL + "'}\n", bad,
			[]string{"bad   evaluator: api_key_file: stat DIR/key: no such file or directory (DIR/shield.yaml:1)"}},
		"evaluator with a loose key file": {"evaluator: {provider: custom, model: judge, api_key_file: shield.yaml, base_url: '" + up.URL + "'}\n", bad,
			[]string{"bad   evaluator: api_key_file: DIR/shield.yaml: the API key contains a character"}},
		"evaluator without model": {"evaluator: {provider: custom, base_url: '" + up.URL + "'}\n", bad, []string{"bad   evaluator: evaluator.model is not set\n      set evaluator.model"}},
		"evaluator with another model": {"evaluator: {provider: custom, model: jugde, base_url: '" + up.URL + "'}\n", good,
			[]string{`warn  evaluator: ` + up.URL + ` does not list the model "jugde"; it has judge (DIR/shield.yaml:1)`}},
		"evaluator that is down": {"evaluator: {provider: custom, model: judge, base_url: '" + down.URL + "'}\n", bad,
			[]string{"bad   evaluator: " + down.URL + " does not answer: ", "start the service"}},
		"evaluator without provider": {"evaluator: {model: judge}\n", bad, []string{"bad   evaluator: evaluator.model is set, but no provider", "set evaluator.provider"}},

		"program":                     {"approval: {channels: [command], command: [ask-somebody]}\n", good, []string{"ok    approval by a program: DIR/bin/ask-somebody, in DIR"}},
		"program beside the settings": {"approval: {channels: [command], command: [bin/ask-somebody]}\n", good, []string{"ok    approval by a program: DIR/bin/ask-somebody"}},
		"program that others change":  {"approval: {channels: [command], command: [ask-anybody]}\n", good, []string{"warn  approval by a program: other users can change DIR/bin/ask-anybody: the mode 0777 gives other users access"}},
		"missing program": {"approval: {channels: [tty, command], command: [./ask]}\n", bad,
			[]string{"bad   approval by a program: the program of approval.command cannot be run: ", "DIR/ask", "(DIR/shield.yaml:1)\n      set approval.command"}},
		"program that is not in PATH": {"approval: {channels: [command], command: [ask-nobody]}\n", bad, []string{"bad   approval by a program: the program of approval.command cannot be run"}},
		"no program":                  {"approval: {channels: [command]}\n", bad, []string{"bad   approval by a program: no program is configured"}},
		"program without channel":     {"approval: {command: [ask-somebody]}\n", good, []string{"warn  approval.command is set, but the channel command is not used", "set approval.channels: [command]"}},
		"page for everybody": {"approval: {channels: [web], web: {listen: '0.0.0.0:8080'}}\n", bad,
			[]string{"bad   approval on the approval page: approval.web.listen: ", `set approval.web.listen: "127.0.0.1:0"`}},
		"page":       {"approval: {channels: [web]}\n", good, []string{"ok    approval: web"}},
		"no channel": {"approval: {channels: []}\n", good, []string{"warn  approval: no channel, so actions that need a person are blocked"}},

		"roots":            {"roots: [project]\n", good, []string{"ok    workspace: DIR/project"}},
		"root not there":   {"roots: [project, none]\n", bad, []string{"bad   workspace: DIR/none does not exist (DIR/shield.yaml:1)\n      run 'mkdir -p DIR/none'"}},
		"root is a file":   {"roots: [bin/ask-somebody]\n", bad, []string{"bad   workspace: DIR/bin/ask-somebody is not a folder"}},
		"root is the home": {"roots: ['~']\n", bad, []string{"bad   settings: configuration DIR/shield.yaml:1:8: roots: root DIR is or contains the home folder"}},
		"root is /":        {"roots: [/]\n", bad, []string{"bad   settings: ", "roots: root / is"}},

		"missing policy":      {"policy: ./none.yaml\n", bad, []string{"bad   policy: ", "DIR/none.yaml", "(DIR/shield.yaml:1)"}},
		"policy that is none": {"policy: shield.yaml\n", bad, []string{`bad   policy: DIR/shield.yaml:1:1: unknown key "policy"`}},
		"fail open":           {"fail_closed: false\n", good, []string{"note  fail_closed is false"}},
		"skip types":          {"classifier: {skip_types: [write_fil, WriteFile, my_own_tool]}\n", good, []string{`warn  classifier.skip_types: no action has the type "write_fil"`, "write write_file", `type "WriteFile"`}},

		"everything at once": {"rate_limit: 0\nroots: [none]\npolicy: ./none.yaml\nevaluator: {provider: openai, base_url: 'ftp://x'}\napproval: {channels: [web, command], web: {listen: '0.0.0.0:1'}}\n", bad,
			[]string{"bad   settings: configuration DIR/shield.yaml:1:13: rate_limit: must be", "bad   workspace: DIR/none", "bad   policy: ", "bad   evaluator: evaluator.model is not set", "bad   evaluator: environment variable OPENAI_API_KEY", "bad   approval on the approval page", "bad   approval by a program"}},
	} {
		t.Run(name, func(t *testing.T) {
			status, report := examined(t, tt.settings)
			if status != tt.status {
				t.Errorf("status %d, want %d", status, tt.status)
			}
			for _, want := range tt.want {
				if !strings.Contains(report, want) {
					t.Errorf("no %q", want)
				}
			}
			if strings.Contains(report, "sk-of-the-doctor") {
				t.Error("the key is shown")
			}
			if t.Failed() {
				t.Log(report)
			}
		})
	}
}
