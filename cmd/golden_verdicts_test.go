package cmd

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/hostile"
	"github.com/shieldcli/shield/pkg/verdict"
)

// changing matches the fields of a verdict that change with every rule, setting
// or word of the prompt. Golden files leave their values out.
var changing = regexp.MustCompile(`"(seal|prompt_hash)":"[^"]+"`)

// goldenHome is the home folder of golden files while they are made. In their inputs and
// texts it is /home/me, which a machine may have.
const goldenHome = "/home/no-such-user"

// goldenRun runs a command line over an input as [run] does, in the home of golden files.
func goldenRun(t *testing.T, w Environment, in string, args ...string) (status int, out, errs string) {
	t.Helper()
	there := regexp.MustCompile(`/home/me\b`)
	back := func(text string) string { return strings.ReplaceAll(text, goldenHome, "/home/me") }
	status, out, errs = run(t, w, there.ReplaceAllLiteralString(in, goldenHome), args...)
	return status, back(out), back(errs)
}

// goldenWorld returns a world that gives the same answers everywhere: clock,
// key and folders are fixed, rules judge alone, and each action is alone.
func goldenWorld(t *testing.T) (w Environment, state, config string) {
	t.Helper()
	state = t.TempDir()
	if err := os.WriteFile(filepath.Join(state, verdict.KeyFile), hostile.TestSealKey[:], 0o600); err != nil {
		t.Fatal(err)
	}
	config = filepath.Join(t.TempDir(), "shield.yaml")
	if err := os.WriteFile(config, []byte("audit: {enabled: false}\napproval: {channels: []}\nclassifier: {model: none}\nsession: {enabled: false}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Environment{Now: clock, Home: goldenHome, WorkingDir: goldenHome + "/app", ShieldExecutablePath: "/usr/local/bin/shield", OS: "linux"}, state, config
}

// TestGoldenVerdicts compares what policy, classify and run say about each input.
func TestGoldenVerdicts(t *testing.T) {
	w, state, config := goldenWorld(t)
	for name, in := range actionFiles(t) {
		for _, preset := range presets {
			for _, command := range []string{"policy", "classify", "run"} {
				_, out, _ := goldenRun(t, w, in, command, "--config", config, "--state", state, "--policy", preset, "--no-action")
				golden(t, filepath.Join(command, strings.TrimSuffix(name, ".jsonl")+"."+preset+".jsonl"), changing.ReplaceAllString(out, `"$1":"-"`))
			}
		}
	}
}
