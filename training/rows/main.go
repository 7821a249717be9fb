// Command rows turns labelled JSON Lines into the text that a model reads, so
// that training and judging share one implementation. It reads rows with an
// action or a text on standard input, and writes them on standard output with
// the prepared text in place of the action.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/shieldcli/shield/internal/tokenizer"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/classify"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rows:", err)
		os.Exit(1)
	}
}

type row struct {
	ID       string          `json:"id"`
	Source   string          `json:"source"`
	Category string          `json:"category,omitempty"`
	Split    string          `json:"split,omitempty"`
	Label    string          `json:"label"`
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Action   json.RawMessage `json:"action,omitempty"`
}

const maxRow = 4 << 20 // bytes

func run(in io.Reader, out io.Writer) error {
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, maxRow)
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for sc.Scan() {
		var r row
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			return err
		}
		if err := r.convert(); err != nil {
			// What is no action never reaches a model.
			fmt.Fprintf(os.Stderr, "rows: %s left out: %v\n", r.ID, err)
			continue
		}
		if err := enc.Encode(&r); err != nil {
			return err
		}
	}
	if err := sc.Err(); err != nil {
		return err
	}
	return w.Flush()
}

func (r *row) convert() error {
	r.Type = "text"
	if r.Action != nil {
		a, err := action.Parse(r.Action)
		if err != nil {
			return err
		}
		if r.Text, err = classify.ModelInputText(a); err != nil {
			return err
		}
		r.Type, r.Action = a.Type, nil
	}
	r.Text = tokenizer.NormalizeForShieldModels(r.Text)
	return nil
}
