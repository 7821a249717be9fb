package cmd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/host"
	"github.com/shieldcli/shield/pkg/shield"
)

// rememberPrompt remembers the user's prompt from an event that the host itself has sent, in a session
// that a user attends. Other prompts do not count as the user's. It never blocks the prompt.
func rememberPrompt(ctx context.Context, c *cli.Context, w *Environment, h *host.Host, event host.Event) (hookAnswer, error) {
	answer, err := h.ResponseToAllowedEvent(ctx, host.Event{Host: h, Name: event.Name}, true, "")
	done := hookAnswer{Allow: true, HostResponseJSON: answer, AfterToolRan: true}
	if err != nil || event.Prompt.Text == "" || event.Prompt.Session == "" || w.checkHostAttendedByUser(ctx, h) != nil {
		return done, err
	}
	_, p, err := newPipelineWithConfigChange(c, w, func(cfg *shield.Config) { setSessionOrigin(cfg, w, h.Name, event.ParentSessionID) })
	if err != nil {
		return done, err
	}
	said := shield.UserPrompt{SessionID: event.Prompt.Session, ID: event.Prompt.ID, Text: event.Prompt.Text, IsAuthorUnverified: event.Prompt.MustCheckAuthorInTranscript}
	err = p.RecordUserPrompt(ctx, said)
	if closing := p.Close(); err == nil {
		err = closing
	}
	return done, err
}

// checkHostAttendedByUser returns why the host's reports about its user are not believed: the event may not come
// from the host, or no user attends; else nil.
func (w *Environment) checkHostAttendedByUser(ctx context.Context, h *host.Host) error {
	if w.hostAttendedByUserCheck != nil {
		return w.hostAttendedByUserCheck(h)
	}
	if err := checkEventSentByHost(w, h, newUserPromptHookWrapper(h)); err != nil {
		return err
	}
	running, err := w.callingHostProcess(h)
	if err != nil {
		return err
	}
	if h.Headless(ctx, w.Getenv, running) {
		return errHeadless
	}
	return nil
}

// Bounds of the search for a prompt in a transcript.
const (
	maxTranscriptBytes   = 8 << 20 // bytes at the end of the file
	maxTranscriptReads   = 10
	transcriptRetryPause = 10 * time.Millisecond
)

// recordAuthorsOfPendingPrompts looks up in the host's transcript who wrote the session's pending prompts. A prompt
// that is not in the transcript yet waits for the next event.
func recordAuthorsOfPendingPrompts(ctx context.Context, w *Environment, h *host.Host, p *shield.Pipeline, event host.Event, in []byte) {
	if !h.HasTranscript() {
		return
	}
	session := ""
	if a, err := action.Parse(event.Actions[0]); err == nil {
		session = a.Session
	}
	waiting := p.PromptIDsWithUnknownAuthor(ctx, session)
	if len(waiting) == 0 {
		return
	}
	path, folder, variable, err := h.TranscriptPathAndFolder(ctx, in)
	if err != nil || path == "" {
		return
	}
	base := filepath.Join(w.Home, filepath.FromSlash(folder))
	if dir := w.Getenv(variable); variable != "" && dir != "" {
		_, rest, _ := strings.Cut(folder, "/")
		base = filepath.Join(dir, filepath.FromSlash(rest))
	}
	if !filepath.IsAbs(path) || !isBelow(path, base) {
		return
	}
	for try := 0; try < maxTranscriptReads && len(waiting) > 0 && ctx.Err() == nil; try++ {
		if try > 0 {
			time.Sleep(transcriptRetryPause)
		}
		text := readFileTail(path)
		left := waiting[:0:0]
		for _, id := range waiting {
			if !resolvePromptAuthor(ctx, h, p, session, id, text) {
				left = append(left, id)
			}
		}
		waiting = left
	}
}

// resolvePromptAuthor reports whether rows of a transcript show who wrote the prompt with an ID.
func resolvePromptAuthor(ctx context.Context, h *host.Host, p *shield.Pipeline, session, promptID string, transcriptRows []byte) (authorKnown bool) {
	for row := range bytes.Lines(transcriptRows) {
		if promptID == "" || !bytes.Contains(row, []byte(promptID)) {
			continue
		}
		text, written, ok := h.ParseTranscriptRow(ctx, bytes.TrimSpace(row), promptID)
		if !ok {
			continue
		}
		if p.RecordPromptAuthor(ctx, session, promptID, text, written) != nil {
			return false
		}
		authorKnown = true
	}
	return authorKnown
}

// readFileTail returns the end of a file that belongs to this user.
func readFileTail(path string) []byte {
	f, err := owner.OpenNoFollow(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || owner.CheckOwnerAndDeniedModeBits(info, owner.GroupOrOtherWriteBits) != nil {
		return nil
	}
	if from := info.Size() - maxTranscriptBytes; from > 0 {
		if _, err := f.Seek(from, io.SeekStart); err != nil {
			return nil
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxTranscriptBytes))
	if err != nil {
		return nil
	}
	return text
}

var errHeadless = errors.New("the host runs without a user, so its prompts are not recorded")
