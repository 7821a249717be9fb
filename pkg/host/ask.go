package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// CanAsk returns nil if the host was seen to wait for its person, in any version and mode.
func (h *Host) CanAsk() error {
	if h.form.Ask.Answer == "" {
		return fmt.Errorf("%s was not seen to wait for a person when a hook asks for one", h.Title())
	}
	return nil
}

// Asks returns nil if the host that sends an event was seen, in its version and mode,
// to wait for its person's answer when it is told to ask, and else why it is not told.
// in is the hook's input.
func (h *Host) Asks(ctx context.Context, in []byte, getenv func(string) string) error {
	ask := h.form.Ask
	if err := h.CanAsk(); err != nil {
		return err
	}
	v, err := decodeEvent(in)
	if err != nil {
		return err
	}
	env := map[string]any{}
	for _, name := range ask.Variables {
		env[name] = getenv(name)
	}
	out, err := h.one(ctx, ask.Seen, map[string]any{"input": v, "env": env})
	if err != nil {
		return errors.New("the version and the mode of the host are not known")
	}
	seen, _ := out.(map[string]any)
	version, _ := seen["version"].(string)
	mode, _ := seen["mode"].(string)
	switch {
	case seen == nil:
		return errors.New("nobody attends this session of the host")
	case !slices.Contains(ask.Versions, version):
		return fmt.Errorf("version %.40q of %s was not seen to wait for a person, only %s", version, h.Title(), strings.Join(ask.Versions, ", "))
	case !slices.Contains(ask.Modes, mode):
		return fmt.Errorf("%s was not seen to wait for a person in mode %.40q, only in %s", h.Title(), mode, strings.Join(ask.Modes, ", "))
	}
	return nil
}

// Ask returns what has the host ask its person about an event, one JSON text. It is for
// events for which [Host.Asks] returns nil.
func (h *Host) Ask(ctx context.Context, e Event, reason string) ([]byte, error) {
	if h.form.Ask.Answer == "" || reason == "" {
		return nil, errors.New("the host cannot be told to ask")
	}
	out, err := h.one(ctx, h.form.Ask.Answer, map[string]any{"event": e.Name, "id": e.ID, "reason": reason})
	if err != nil {
		return nil, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	return encode(out)
}

// AskSources are the variables of the environment that [Host.Asks] reads, and the files
// by which a project could have set them: what these name proves nothing.
func (h *Host) AskSources() (variables []string, files []Place) {
	for _, f := range h.form.Ask.Sources {
		files = append(files, Place{Place: f, host: h})
	}
	return h.form.Ask.Variables, files
}

// AsksIn returns the versions and modes of the host in which it was seen to wait for
// its person.
func (h *Host) AsksIn() (versions, modes []string) {
	return h.form.Ask.Versions, h.form.Ask.Modes
}
