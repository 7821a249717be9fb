package cmd

import (
	"io"
	"strconv"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/report"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A verdictWriter receives the verdicts of a stream.
type verdictWriter interface {
	Write(*verdict.Verdict) error
	PassUnchanged(raw []byte) error // writes a verdict of an earlier shield command, without judging again
}

// A verdictTextWriter writes one line per action, for people.
type verdictTextWriter struct {
	w     io.Writer
	style report.Style
}

func (o *verdictTextWriter) Write(v *verdict.Verdict) error {
	row := report.JudgedAction{ActionText: "the action in line " + strconv.Itoa(v.Line), Verdict: v}
	if a, err := action.Parse(v.Action); err == nil {
		row.ActionText = actionHeadline(a.Type, a.Text)
	} else if v.ActionID != "" {
		row.ActionText = v.ActionID
	}
	return report.WriteVerdictLine(o.w, row, o.style)
}

func (o *verdictTextWriter) PassUnchanged(raw []byte) error {
	v, err := parseServiceVerdict(raw)
	if err != nil {
		return err
	}
	return o.Write(&v)
}

// actionHeadline describes an action for a person: by its command, or by its type and object.
// payloadText returns a field of the payload; "" if the field is not a string.
func actionHeadline(actionType string, payloadText func(field string) string) string {
	if command := payloadText("command"); command != "" {
		return command
	}
	for _, field := range [...]string{"path", "url", "source", "to", "query"} {
		if s := payloadText(field); s != "" {
			return actionType + " " + s
		}
	}
	return actionType
}
