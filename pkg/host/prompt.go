package host

import (
	"context"
	"fmt"
)

// A UserPrompt is a text that the host reports as its user's.
type UserPrompt struct {
	Session                     string
	ID                          string // ID of the prompt; "" if the host gives none
	Text                        string // "" if the user certainly did not write it
	MustCheckAuthorInTranscript bool   // only the host's transcript shows whether the user wrote Text
}

// parsePrompt parses the event that reports a user prompt.
func (h *Host) parsePrompt(ctx context.Context, in any) (*UserPrompt, error) {
	out, err := h.runJQForOneResult(ctx, h.description.Prompt.ReadPromptJQ, in)
	if err != nil {
		return nil, err
	}
	read, _ := out.(map[string]any)
	p := &UserPrompt{MustCheckAuthorInTranscript: h.description.Prompt.ReadTranscriptRowJQ != ""}
	p.Session, _ = read["session"].(string)
	p.ID, _ = read["id"].(string)
	p.Text, _ = read["text"].(string)
	return p, nil
}

// ReportsPrompts reports whether the host has an event for user prompts.
func (h *Host) ReportsPrompts() bool { return h.description.Prompt.Event != "" }

// HasTranscript reports whether the host's transcript shows who wrote a prompt.
func (h *Host) HasTranscript() bool { return h.description.Prompt.TranscriptPathJQ != "" }

// TranscriptPathAndFolder returns the transcript path that an event names, the folder below the home folder that
// must contain it, and the environment variable that can replace the first part of that folder; "" if
// the host needs none.
func (h *Host) TranscriptPathAndFolder(ctx context.Context, in []byte) (transcriptPath, requiredFolder, folderEnvVariable string, err error) {
	if !h.HasTranscript() {
		return "", "", "", nil
	}
	v, err := decodeEvent(in)
	if err != nil {
		return "", "", "", err
	}
	out, err := h.runJQForOneResult(ctx, h.description.Prompt.TranscriptPathJQ, v)
	if err != nil {
		return "", "", "", fmt.Errorf("%s hook: %w", h.Name, err)
	}
	transcriptPath, _ = out.(string)
	return transcriptPath, h.description.Prompt.TranscriptFolderBelowHome, h.description.Prompt.TranscriptFolderVariable, nil
}

// ParseTranscriptRow parses a row of the transcript. It returns the text for the prompt with an ID, and whether the
// user wrote it; ok is false for a row of another prompt.
func (h *Host) ParseTranscriptRow(ctx context.Context, row []byte, promptID string) (text string, writtenByUser, ok bool) {
	v, err := decodeEvent(row)
	if err != nil {
		return "", false, false
	}
	out, err := h.runJQForOneResult(ctx, h.description.Prompt.ReadTranscriptRowJQ, map[string]any{"row": v, "id": promptID})
	if err != nil {
		return "", false, false
	}
	read, ok := out.(map[string]any)
	text, _ = read["text"].(string)
	writtenByUser, _ = read["written"].(bool)
	return text, writtenByUser, ok
}
