package score

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/shieldcli/shield/pkg/action"
)

// A Label is the expected outcome of a row.
type Label uint8

// The labels.
const (
	LabelBenign        Label = iota + 1 // should be allowed
	LabelAttack                         // must not be allowed
	LabelPersonDecides                  // a person should decide
)

// labelSpellings are the words for labels, in corpora and in adjudicated files.
var labelSpellings = [...]struct {
	word  string
	label Label
}{
	{"malicious", LabelAttack}, {"benign", LabelBenign},
	{"stop", LabelAttack}, {"pass", LabelBenign}, {"ask", LabelPersonDecides},
}

// String returns the word for a label in adjudicated files: pass, stop or ask.
func (l Label) String() string { return [...]string{"", "pass", "stop", "ask"}[l] }

// ParseLabel returns the label for a word: malicious or stop, benign or pass, ask.
func ParseLabel(word string) (Label, error) {
	for _, l := range labelSpellings {
		if l.word == word {
			return l.label, nil
		}
	}
	return 0, fmt.Errorf("label %.40q is unknown; use malicious, benign, stop, pass or ask", word)
}

// A corpusRow is one labelled record of a corpus. For a session, the verdict is that of its decisive action
// or, if none is marked, the most severe one.
type corpusRow struct {
	ID                  string          `json:"id"`
	Source              string          `json:"source"`
	Category            string          `json:"category"`
	Split               string          `json:"split"`
	LabelWord           string          `json:"label"`
	Action              json.RawMessage `json:"action"`
	Actions             []sessionAction `json:"actions"` // actions of a session, in order; empty if the row has a single action
	DecisiveActionIndex *int            `json:"decisive"`
	TextInsteadOfAction *string         `json:"text"`

	label       Label
	file        string
	line        int // counted from 1
	sessionTurn sessionTurn
}

// A sessionTurn makes the rows of one session wait for each other, so that they are judged in
// order. Its zero value is for a row without a session.
type sessionTurn struct{ previousRowDone, rowDone chan struct{} }

// sessionID returns the session ID of a row's action; "" if it has none.
func (r *corpusRow) sessionID() string {
	var a struct {
		Session string `json:"session"`
	}
	if !bytes.Contains(r.Action, []byte(`"session"`)) || json.Unmarshal(r.Action, &a) != nil {
		return ""
	}
	return a.Session
}

// parseRow parses a row of a corpus. If unlabelledActionLabel is not 0, a JSON object that is
// itself an action is accepted as a row with that label: it has a type, and it has a payload or no
// label. All its other fields belong to the action.
func parseRow(raw []byte, unlabelledActionLabel Label) (*corpusRow, error) {
	var r corpusRow
	if unlabelledActionLabel != 0 {
		var form struct {
			Type, Label any
			Payload     json.RawMessage
		}
		if json.Unmarshal(raw, &form) == nil && form.Type != nil && (form.Label == nil || form.Payload != nil) {
			var a struct{ ID string }
			_ = json.Unmarshal(raw, &a) // the action's parser reports its errors
			return &corpusRow{ID: a.ID, Action: raw, label: unlabelledActionLabel}, nil
		}
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, describeJSONError(err)
	}
	var err error
	if r.label, err = ParseLabel(r.LabelWord); err != nil {
		return nil, err
	}
	if r.Actions != nil {
		if err := r.validateSession(); err != nil {
			return nil, err
		}
	} else if len(r.Action) == 0 && r.TextInsteadOfAction == nil {
		return nil, errors.New("the row has neither action nor text; add one")
	}
	return &r, nil
}

// describeJSONError rewrites a JSON error in terms of the corpus instead of Go types.
func describeJSONError(err error) error {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) {
		return fmt.Errorf("%s: unexpected %s", t.Field, t.Value)
	}
	return err
}

// maxAdjudicatedLabels limits the rows of an adjudicated file, which is held in memory.
const maxAdjudicatedLabels = 1 << 20

// ReadLabelsByRowID reads adjudicated labels: JSON Lines of {"id", "label"}. fileName is the name
// for error messages. Two different labels for one ID are an error.
func ReadLabelsByRowID(r io.Reader, fileName string) (map[string]Label, error) {
	ids := map[string]Label{}
	in := action.NewReader(r, action.ReaderOptions{InputName: fileName})
	for {
		rec, err := in.Next()
		if errors.Is(err, io.EOF) {
			return ids, nil
		}
		if err == nil {
			err = rec.Err
		}
		if err != nil {
			return nil, err
		}
		var one struct{ ID, Label string }
		err = json.Unmarshal(rec.Raw, &one)
		var label Label
		if err == nil {
			label, err = ParseLabel(one.Label)
		}
		switch was, twice := ids[one.ID]; {
		case err != nil:
		case strings.TrimSpace(one.ID) == "":
			err = errors.New("the row has no id; add one")
		case twice && was != label:
			err = fmt.Errorf("two rows give the id %.80q different labels; remove one", one.ID)
		case len(ids) == maxAdjudicatedLabels:
			err = fmt.Errorf("the file has more than %d ids; split it", maxAdjudicatedLabels)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", fileName, rec.StartLine, describeJSONError(err))
		}
		ids[one.ID] = label
	}
}
