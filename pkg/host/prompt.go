package host

import (
	"context"
	"fmt"
)

// A Prompt is a text that the host reports as its user's.
type Prompt struct {
	Session string
	ID      string // ID of the prompt; "" if the host gives none
	Text    string // "" if it is surely not the user's
	Waits   bool   // whether the user wrote it must be looked up in the host's transcript
}

// prompt reads the event by which the host tells what its user has written.
func (h *Host) prompt(ctx context.Context, in any) (*Prompt, error) {
	out, err := h.one(ctx, h.form.Prompt.Read, in)
	if err != nil {
		return nil, err
	}
	read, _ := out.(map[string]any)
	p := &Prompt{Waits: h.form.Prompt.Row != ""}
	p.Session, _ = read["session"].(string)
	p.ID, _ = read["id"].(string)
	p.Text, _ = read["text"].(string)
	return p, nil
}

// TellsPrompts reports whether the host tells what its user has written.
func (h *Host) TellsPrompts() bool { return h.form.Prompt.Event != "" }

// HasTranscript reports whether the host's transcript says who has written a prompt.
func (h *Host) HasTranscript() bool { return h.form.Prompt.Transcript != "" }

// Transcript returns the path of the transcript that an event names, the folder below the home
// folder in which it has to be, and the variable that names another folder for the first part
// of that; "" if the host needs none.
func (h *Host) Transcript(ctx context.Context, in []byte) (path, folder, variable string, err error) {
	if !h.HasTranscript() {
		return "", "", "", nil
	}
	v, err := decodeEvent(in)
	if err != nil {
		return "", "", "", err
	}
	out, err := h.one(ctx, h.form.Prompt.Transcript, v)
	if err != nil {
		return "", "", "", fmt.Errorf("%s hook: %w", h.Name, err)
	}
	path, _ = out.(string)
	return path, h.form.Prompt.Folder, h.form.Prompt.Variable, nil
}

// Wrote reads a row of the transcript: what it has of the prompt with an ID, and whether the
// user has written that; ok is false for another row.
func (h *Host) Wrote(ctx context.Context, row []byte, id string) (text string, written, ok bool) {
	v, err := decodeEvent(row)
	if err != nil {
		return "", false, false
	}
	out, err := h.one(ctx, h.form.Prompt.Row, map[string]any{"row": v, "id": id})
	if err != nil {
		return "", false, false
	}
	read, ok := out.(map[string]any)
	text, _ = read["text"].(string)
	written, _ = read["written"].(bool)
	return text, written, ok
}
