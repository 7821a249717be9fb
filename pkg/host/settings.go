package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// Settings say how a host is made to call shield.
type Settings struct {
	Files  map[string]string // the settings file of each scope, below the home folder or the project
	Sample []byte            // an event that must be denied
	host   *Host
	path   []string // of the list that holds the hook
	entry  any      // of that list
}

// Settings returns how the host is made to run a command line as its hook.
func (h *Host) Settings(ctx context.Context, command string, timeout int, cwd string) (*Settings, error) {
	out, err := h.run(ctx, "settings", map[string]any{"command": command, "timeout": timeout, "cwd": cwd})
	if err != nil {
		return nil, fmt.Errorf("%s settings: %w", h.Name, err)
	}
	s := &Settings{host: h, Files: map[string]string{}}
	m, _ := out.(map[string]any)
	files, _ := m["files"].(map[string]any)
	for scope, name := range files {
		s.Files[scope], _ = name.(string)
	}
	path, _ := m["path"].([]any)
	for _, key := range path {
		k, _ := key.(string)
		s.path = append(s.path, k)
	}
	s.entry = m["entry"]
	if s.Sample, err = encode(m["sample"]); err != nil {
		return nil, err
	}
	if len(s.Files) == 0 || len(s.path) == 0 || s.entry == nil {
		return nil, fmt.Errorf("%s settings: incomplete", h.Name)
	}
	return s, nil
}

// Install returns a settings file's text with the hook in it, once. What was
// installed before is replaced.
func (s *Settings) Install(ctx context.Context, doc []byte) ([]byte, error) {
	if len(bytes.TrimSpace(doc)) > 0 {
		var err error
		if doc, _, err = removeAt(doc, s.path, s.ours(ctx)); err != nil {
			return nil, err
		}
	}
	return appendAt(doc, s.path, s.entry)
}

// Uninstall returns a settings file's text without the hook. If the file is
// what installing made of the text before, that text is given back byte for
// byte.
func (s *Settings) Uninstall(ctx context.Context, doc, before []byte) ([]byte, error) {
	rest, gone, err := removeAt(doc, s.path, s.ours(ctx))
	if err != nil {
		return nil, err
	}
	if len(gone) == 0 {
		return nil, ErrNotInstalled
	}
	entry, err := decode(gone[0])
	if err != nil {
		return nil, err
	}
	if made, err := appendAt(before, s.path, entry); err == nil && bytes.Equal(made, doc) {
		return before, nil
	}
	return rest, nil
}

// Commands returns the command lines of the hooks of shield in a settings file.
func (s *Settings) Commands(ctx context.Context, doc []byte) ([]string, error) {
	_, gone, err := removeAt(doc, s.path, s.ours(ctx))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, raw := range gone {
		entry, err := decode(raw)
		if err != nil {
			return nil, err
		}
		lines, err := s.host.run(ctx, "commands", entry)
		if err != nil {
			return nil, err
		}
		list, _ := lines.([]any)
		for _, line := range list {
			if text, ok := line.(string); ok {
				out = append(out, text)
			}
		}
	}
	if len(out) == 0 {
		return nil, ErrNotInstalled
	}
	return out, nil
}

// Denied reports, as an error, why a hook's output is not the host's own form of
// a denial.
func (s *Settings) Denied(ctx context.Context, out []byte) error {
	v, err := decode(out)
	if err != nil {
		return err
	}
	switch denied, err := s.host.run(ctx, "denied", v); {
	case err != nil:
		return err
	case denied != true:
		return errors.New("another answer")
	}
	return nil
}

// ErrNotInstalled says that a settings file holds no hook of shield.
var ErrNotInstalled = errors.New("no hook of shield is installed")

// ours returns whether an entry is a hook of shield.
func (s *Settings) ours(ctx context.Context) func([]byte) bool {
	return func(raw []byte) bool {
		entry, err := decode(raw)
		if err != nil {
			return false
		}
		lines, err := s.host.run(ctx, "commands", entry)
		list, _ := lines.([]any)
		return err == nil && len(list) > 0
	}
}
