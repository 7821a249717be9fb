package cmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shieldcli/shield/pkg/classify"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/shield"
)

// classifierTestInput is the text that the doctor classifies to test the model. The answer does not matter.
const classifierTestInput = `execute_command: {"command":"git status"}`

// examineClassifierModel reports which model Tier 1 uses in addition to its rules, and whether the model
// answers.
func examineClassifierModel(set *config.LoadedSettings, cfg shield.Config, w *Environment) doctorFinding {
	name := set.Classifier.ModelNameOrDir
	if addr := set.Classifier.EmptyIfDisabledOrModelNone().SidecarURLOrSocket; addr != "" {
		if err := checkClassifierSidecarReady(addr); err != nil {
			return doctorFinding{severityBad, fmt.Sprintf("classifier at %s: %v", addr, err), "start the classifier, or remove classifier.addr"}
		}
		return doctorFinding{severityOK, fmt.Sprintf("classifier at %s: ready", addr), ""}
	}
	m, err := shield.OpenModel(cfg)
	switch {
	case errors.Is(err, classify.ErrNoRuntime):
		return doctorFinding{severityOK, fmt.Sprintf("model: only rules judge, since the model cannot be used: %v", err), ""}
	case err == nil && m == nil:
		return doctorFinding{severityOK, "model: only rules judge, since no model is configured", "choose a model with --model NAME, and set classifier.enabled: true"}
	}
	said := ""
	if err == nil {
		if said, err = testAndDescribeClassifierModel(m, w); err != nil {
			err = fmt.Errorf("model %q: %w", name, err)
		}
	}
	if err != nil {
		return doctorFinding{severityBad, err.Error(), "correct the error, choose another model (--model) or ONNX Runtime (--onnxruntime), or use the rules alone: --model none"}
	}
	return doctorFinding{severityOK, fmt.Sprintf("model: %s %.12s: %s", name, m.FilesDigest, said), ""}
}

// testAndDescribeClassifierModel loads a model and classifies a test text. It returns a description with the
// duration of each step, and with the version and path of ONNX Runtime.
func testAndDescribeClassifierModel(m *classify.Model, w *Environment) (string, error) {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	start := w.Now()
	path, version, err := m.Runtime()
	if err != nil {
		return "", err
	}
	loaded := w.Now()
	if _, err := m.Score(ctx, classifierTestInput); err != nil {
		return "", err
	}
	return fmt.Sprintf("the model was loaded in %s, and classified a test text in %s, with ONNX Runtime %s from %s",
		formatMilliseconds(loaded.Sub(start)), formatMilliseconds(w.Now().Sub(loaded)), version, path), nil
}

func formatMilliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
}

// checkClassifierSidecarReady asks a sidecar whether it is ready.
func checkClassifierSidecarReady(addr string) error {
	s, err := classify.NewSidecarClient(addr, classify.SidecarOptions{})
	if err != nil {
		return err
	}
	return s.CheckHealth(context.Background())
}
