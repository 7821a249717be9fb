package gateway

import (
	"io"
	"strconv"
	"sync"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A CorpusRowRecorder writes the actions of a connection as corpus rows for shield score: an
// allowed action is labelled pass, any other stop. Secrets are removed. It is safe for concurrent
// use.
type CorpusRowRecorder struct {
	mu       sync.Mutex
	w        io.Writer
	redactor *redact.Redactor
	rowCount int
	err      error
}

// NewCorpusRowRecorder returns a recorder that writes to w.
func NewCorpusRowRecorder(w io.Writer, r *redact.Redactor) *CorpusRowRecorder {
	return &CorpusRowRecorder{w: w, redactor: r}
}

// writeRow writes one action with its verdict. A nil CorpusRowRecorder writes nothing.
func (r *CorpusRowRecorder) writeRow(server string, c *pendingCall, a *action.Action, v *verdict.Verdict) error {
	if r == nil {
		return nil
	}
	label := "stop"
	if v.Decision == verdict.Allow {
		label = "pass"
	}
	act := object{"type": a.Type, "payload": r.redactor.RedactJSONValue(map[string]any(a.Payload), redact.MaxScannedTextBytes)}
	if a.CWD != "" {
		act["cwd"] = r.redactor.RedactText(a.CWD)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	r.rowCount++
	row := canonjson.AppendValue(nil, object{
		"id": server + "-" + strconv.Itoa(r.rowCount), "source": "mcp " + server, "category": r.redactor.RedactText(c.method + " " + c.requestTarget),
		"label": label, "action": act, "reasoning": r.redactor.RedactText(v.Reasoning),
	})
	_, r.err = r.w.Write(append(row, '\n'))
	return r.err
}
