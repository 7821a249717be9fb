package hostile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/shieldcli/shield/pkg/action"
)

// An ActionRecordTestVector is one file of testdata/vectors: some lines "name: value" that say
// what is expected and why, a blank line, and the record's bytes as they are.
type ActionRecordTestVector struct {
	Name              string           // file name without its suffix
	WantDecision      string           // the decision
	WantActionError   action.ErrorCode // the error that a reader of actions returns
	WantVerdictError  action.ErrorCode // the error that a reader of actions and verdicts returns; WantActionError if the file has no line "pipe"
	ExpectationReason string
	Raw               []byte
}

// ReadVectors reads the vectors of a folder in the order of their names.
func ReadVectors(dir string) ([]ActionRecordTestVector, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.vec"))
	if err != nil {
		return nil, err
	}
	var vectors []ActionRecordTestVector
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		v := ActionRecordTestVector{Name: strings.TrimSuffix(filepath.Base(path), ".vec")}
		head, raw, found := bytes.Cut(text, []byte("\n\n"))
		if !found {
			return nil, fmt.Errorf("%s: the blank line after the header is missing", path)
		}
		v.Raw = raw
		for line := range strings.Lines(string(head)) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			switch name {
			case "expect":
				v.WantDecision = value
			case "error":
				v.WantActionError = action.ErrorCode(value)
			case "pipe":
				v.WantVerdictError = action.ErrorCode(value)
			case "why":
				v.ExpectationReason = value
			default:
				return nil, fmt.Errorf("%s: unknown header %q", path, line)
			}
		}
		if v.WantVerdictError == "" {
			v.WantVerdictError = v.WantActionError
		}
		if v.WantDecision == "" || v.WantActionError == "" || v.ExpectationReason == "" {
			return nil, fmt.Errorf("%s: expect, error and why are needed", path)
		}
		vectors = append(vectors, v)
	}
	return vectors, nil
}
