package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWithoutCgo checks that a shield without ONNX Runtime judges by its rules
// and says so: once to people, and in each verdict that a model would have had
// a part in. It refuses a model that was asked for by name.
func TestWithoutCgo(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds shield")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("missing go, which builds shield")
	}
	dir := t.TempDir()
	shield := filepath.Join(dir, "shield.exe")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", shield, "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	model, err := filepath.Abs("../pkg/classify/testdata/models/bert")
	if err != nil {
		t.Fatal(err)
	}
	const actions = `{"id":"a","type":"execute_command","payload":{"command":"make test"}}
{"id":"b","type":"execute_command","payload":{"command":"true"}}
{"id":"c","type":"execute_command","payload":{"command":"make all"}}
`
	const note = "only rules judge, since the model cannot be used: this build of shield has no ONNX Runtime; "
	for _, tt := range []struct {
		name       string
		args       []string
		status     int
		out, err   string // what streams say, as often as the next two tell
		outs, errs int
		never      string // on stdout
	}{
		{"by rules", []string{"classify", "--trace", "--no-action"}, 0, "none needs approval; " + note, "shield: " + note, 4, 1, `"source":"model"`},
		{"asked for rules", []string{"classify", "--trace", "--no-action", "--model", "none"}, 0, "ordinary: ", "shield:", 4, 0, note},
		{"a named model", []string{"classify", "--no-action", "--model", model}, 2, `"error":"config"`, "this build of shield has no ONNX Runtime; ", 3, 1, "ALLOW"},
		{"a named library", []string{"classify", "--no-action", "--onnxruntime", shield}, 2, `"error":"config"`, "this build of shield has no ONNX Runtime; ", 3, 1, "ALLOW"},
		{"doctor", []string{"doctor"}, 0, "ok    model: " + note, "shield:", 1, 0, "bad "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			cmd := exec.CommandContext(t.Context(), shield, tt.args...)
			cmd.Dir = t.TempDir()
			cmd.Env = []string{"HOME=" + filepath.Join(dir, "home"), "USERPROFILE=" + filepath.Join(dir, "home"), "SystemRoot=" + os.Getenv("SystemRoot")}
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(actions), &out, &errs
			var exit *exec.ExitError
			if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if got := cmd.ProcessState.ExitCode(); got != tt.status ||
				strings.Count(out.String(), tt.out) != tt.outs || strings.Count(errs.String(), tt.err) != tt.errs || strings.Contains(out.String(), tt.never) {
				t.Errorf("status %d, want %d\n%s\n%s", got, tt.status, &out, &errs)
			}
		})
	}
}
