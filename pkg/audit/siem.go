package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/verdict"
)

// A siemOutcome holds the field values of the SIEM formats CEF and OCSF that describe a decision.
type siemOutcome struct {
	cefAction       string // CEF: act
	cefSeverity     int    // CEF: severity, 0–10
	ocsfSeverity    int    // OCSF: severity_id, 1 informational, 2 low, 4 high
	ocsfAction      int    // OCSF: action_id, 1 allowed, 2 denied, 99 other
	ocsfDisposition int    // OCSF: disposition_id, 1 allowed, 2 blocked, 99 other
}

func outcomeOf(e *Entry) siemOutcome {
	switch e.Decision {
	case verdict.Allow:
		return siemOutcome{"Allowed", 1, 1, 1, 1}
	case verdict.Block:
		return siemOutcome{"Blocked", 8, 4, 2, 2}
	case verdict.Escalate:
		return siemOutcome{"Escalated", 5, 2, 99, 99}
	}
	return siemOutcome{"Noted", 3, 2, 99, 99} // not a verdict: a repair, a tool result, an MCP server
}

// actionTypeOrEntryKind returns a short title of an entry.
func (e *Entry) actionTypeOrEntryKind() string {
	switch {
	case e.Kind != EntryKindVerdict:
		return e.Kind
	case e.ActionType == "":
		return "unparseable action"
	}
	return e.ActionType
}

// An ocsfFinding is an entry in the Open Cybersecurity Schema Framework 1.3.0: class Detection Finding
// (2004) with the profile Security Control.
type ocsfFinding struct {
	Activity          int     `json:"activity_id"` // 1, create
	Category          int     `json:"category_uid"`
	Class             int     `json:"class_uid"`
	Type              int     `json:"type_uid"`
	Time              int64   `json:"time"` // milliseconds since 1970
	Severity          int     `json:"severity_id"`
	Message           string  `json:"message,omitempty"`
	ConfidencePercent float64 `json:"confidence_score"` // 0–100
	Action            int     `json:"action_id"`
	ActionName        string  `json:"action"`
	Disposition       int     `json:"disposition_id"`
	DispositionName   string  `json:"disposition"`
	FindingInfo       struct {
		ID    string        `json:"uid"`
		Title string        `json:"title"`
		Rule  *ocsfAnalytic `json:"analytic,omitempty"`
	} `json:"finding_info"`
	Metadata struct {
		Version  string   `json:"version"`
		Sequence uint64   `json:"sequence"`
		Profiles []string `json:"profiles"`
		Product  struct {
			Name    string `json:"name"`
			Vendor  string `json:"vendor_name"`
			Version string `json:"version,omitempty"`
		} `json:"product"`
	} `json:"metadata"`
	Entry json.RawMessage `json:"unmapped"` // the line of the log
}

// An ocsfAnalytic is the OCSF object "analytic".
type ocsfAnalytic struct {
	Name string `json:"name"`
	Type int    `json:"type_id"` // 1, rule
}

// ocsfEntryWriter returns a function that writes an entry as a finding, one per line.
func ocsfEntryWriter(w io.Writer, version string) func(line []byte, e *Entry) error {
	return func(line []byte, e *Entry) error {
		o := outcomeOf(e)
		f := ocsfFinding{
			Activity: 1, Category: 2, Class: 2004, Type: 200401, Time: e.Time.UnixMilli(), Severity: o.ocsfSeverity, Message: e.Reasoning,
			ConfidencePercent: e.Confidence * 100, Action: o.ocsfAction, ActionName: o.cefAction, Disposition: o.ocsfDisposition, DispositionName: o.cefAction, Entry: line,
		}
		f.FindingInfo.ID, f.FindingInfo.Title = strconv.FormatUint(e.Seq, 10), e.actionTypeOrEntryKind()
		if e.Rule != "" {
			f.FindingInfo.Rule = &ocsfAnalytic{e.Rule, 1}
		}
		f.Metadata.Version, f.Metadata.Sequence, f.Metadata.Profiles = "1.3.0", e.Seq, []string{"security_control"}
		f.Metadata.Product.Name, f.Metadata.Product.Vendor, f.Metadata.Product.Version = "shield", "shield", version
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(f); err != nil {
			return err
		}
		_, err := w.Write(append(escapeNonprinting(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), '\n'))
		return err
	}
}

var (
	cefHeaderEscaper = strings.NewReplacer(`\`, `\\`, `|`, `\|`, "\n", " ", "\r", " ")
	cefValueEscaper  = strings.NewReplacer(`\`, `\\`, `=`, `\=`, "\n", `\n`, "\r", `\r`)
)

// cefEntryWriter returns a function that writes an entry as a line in the Common Event Format, version 0.
func cefEntryWriter(w io.Writer, version string) func(line []byte, e *Entry) error {
	return func(_ []byte, e *Entry) error {
		o := outcomeOf(e)
		id := e.Rule
		if id == "" {
			id = e.Kind
		}
		var b bytes.Buffer
		fmt.Fprintf(&b, "CEF:0|shield|shield|%s|%s|%s|%d|", cefHeaderEscaper.Replace(version), cefHeaderEscaper.Replace(id), cefHeaderEscaper.Replace(e.actionTypeOrEntryKind()), o.cefSeverity)
		payload, err := json.Marshal(e.Payload)
		if err != nil || e.Payload == nil {
			payload = nil
		}
		for i, field := range [...]struct{ key, label, value string }{
			{"rt", "", strconv.FormatInt(e.Time.UnixMilli(), 10)}, {"externalId", "", strconv.FormatUint(e.Seq, 10)},
			{"act", "", o.cefAction}, {"cat", "", e.Kind}, {"msg", "", e.Reasoning}, {"reason", "", e.Error}, {"suser", "", e.Caller.User},
			{"cn1", "tier", strconv.Itoa(e.Tier)}, {"cfp1", "confidence", strconv.FormatFloat(e.Confidence, 'g', -1, 64)},
			{"cs1", "session", e.Session}, {"cs2", "action hash", e.ActionHash}, {"cs3", "payload", string(payload)},
			{"cs4", "folder", e.CWD}, {"cs5", "asked by", e.Caller.ShieldSubcommand}, {"cs6", "decided by", strings.TrimSpace(e.AnsweredBy + " " + e.AnswerChannel)},
		} {
			if field.value == "" {
				continue
			}
			if i > 0 {
				b.WriteByte(' ')
			}
			if field.label != "" {
				b.WriteString(field.key + "Label=" + field.label + " ")
			}
			b.WriteString(field.key + "=" + cefValueEscaper.Replace(field.value))
		}
		_, err = w.Write(append(escapeNonprinting(b.Bytes()), '\n'))
		return err
	}
}
