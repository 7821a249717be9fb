package cmd

import (
	"io"
	"strconv"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/report"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A verdictOutput receives the verdicts of a stream.
type verdictOutput interface {
	Write(*verdict.Verdict) error
	PassUnchanged(raw []byte) error // a verdict of an earlier stage, unchanged
}

// A textOutput writes one line per action, for people.
type textOutput struct {
	w     io.Writer
	style report.Style
}

func (o *textOutput) Write(v *verdict.Verdict) error {
	row := report.JudgedAction{ActionText: "the action in line " + strconv.Itoa(v.Line), Verdict: v}
	if a, err := action.Parse(v.Action); err == nil {
		row.ActionText = actionHeadline(a.Type, a.Text)
	} else if v.ID != "" {
		row.ActionText = v.ID
	}
	return report.WriteLine(o.w, row, o.style)
}

func (o *textOutput) PassUnchanged(raw []byte) error {
	v, err := parseServiceVerdict(raw)
	if err != nil {
		return err
	}
	return o.Write(&v)
}

// actionHeadline returns an action for a person: its command, or its type and object. text returns a field
// of the payload, "" if it is not a string.
func actionHeadline(typ string, text func(field string) string) string {
	if command := text("command"); command != "" {
		return command
	}
	for _, field := range [...]string{"path", "url", "source", "to", "query"} {
		if s := text(field); s != "" {
			return typ + " " + s
		}
	}
	return typ
}
