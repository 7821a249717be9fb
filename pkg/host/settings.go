package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Settings say how a host is made to call shield.
type Settings struct {
	Scopes  []Scope
	Managed []string // patterns of an administrator's files on this system
	Off     []string // environment variables that switch the host's hooks off
	Next    string   // what a person has to do for the host to read its settings again
	Sample  []byte   // an event that must be denied
	host    *Host
	path    []string // of the list that holds the hook
	entry   any      // of that list
}

// A Scope is one place where a host looks for settings.
type Scope struct {
	Name     string
	Folder   string // below the home folder for the scope "user", else below the project
	Variable string // of the environment, which names another folder instead; "" for none
	File     string // in that folder
	Install  bool   // shield can be installed there
}

// Settings returns how the host is made to run a command line as its hook.
// timeout is in seconds; system is the operating system, as in GOOS.
func (h *Host) Settings(ctx context.Context, command string, timeout int, cwd, system string) (*Settings, error) {
	out, err := h.run(ctx, "settings", map[string]any{"command": command, "timeout": timeout, "cwd": cwd})
	if err != nil {
		return nil, fmt.Errorf("%s settings: %w", h.Name, err)
	}
	raw, err := encode(out)
	if err != nil {
		return nil, fmt.Errorf("%s settings: %w", h.Name, err)
	}
	var m struct {
		Scopes  []Scope             `json:"scopes"`
		Managed map[string][]string `json:"managed"`
		Off     []string            `json:"off"`
		Next    string              `json:"next"`
		Path    []string            `json:"path"`
		Entry   any                 `json:"entry"`
		Sample  jsontext.Value      `json:"sample"`
	}
	if err := json.Unmarshal(raw, &m, json.MatchCaseInsensitiveNames(true)); err != nil {
		return nil, fmt.Errorf("%s settings: %w", h.Name, err)
	}
	s := &Settings{Scopes: m.Scopes, Managed: m.Managed[system], Off: m.Off, Next: m.Next, Sample: m.Sample, host: h, path: m.Path, entry: m.Entry}
	if len(s.Scopes) == 0 || len(s.path) == 0 || s.entry == nil || len(s.Sample) == 0 {
		return nil, fmt.Errorf("%s settings: incomplete", h.Name)
	}
	return s, nil
}

// An Inspection is how a host reads one of its settings files.
type Inspection struct {
	Ignored []string `json:"ignored"` // why it does not read the file, each with what to do
	Stops   []string `json:"stops"`   // what in the file keeps it from running hooks, whichever file has them
	Hooks   []Hook   `json:"hooks"`   // those of shield
}

// A Hook is one hook of shield in a settings file.
type Hook struct {
	Command  string   `json:"command"`
	Timeout  float64  `json:"timeout"`  // in seconds: how long the host waits
	Problems []string `json:"problems"` // why the host does not run it before every tool call, each with what to do
}

// Inspect returns how the host reads the settings file of a scope, which is
// one of [Settings.Scopes] or "managed". Hosts read plain JSON: comments and
// commas that installing tolerates make them ignore a file.
func (s *Settings) Inspect(ctx context.Context, scope string, doc []byte) (Inspection, error) {
	v, err := decode(bytes.TrimPrefix(doc, []byte("\ufeff")))
	if err != nil {
		if _, err := decode(plain(doc)); err == nil {
			return Inspection{Ignored: []string{"the host ignores a file with comments or trailing commas; remove those"}}, nil
		}
		return Inspection{}, errors.New("is not valid JSON, so the host ignores it; fix it")
	}
	out, err := s.host.run(ctx, "inspect", map[string]any{"scope": scope, "doc": v})
	if err != nil {
		return Inspection{}, fmt.Errorf("cannot be read (%w), so the host may ignore it; fix it", err)
	}
	raw, err := encode(out)
	if err != nil {
		return Inspection{}, err
	}
	var in Inspection
	return in, json.Unmarshal(raw, &in)
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
	if err := ctx.Err(); err != nil { // our own entries were not found
		return nil, err
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

// Denied returns the reason of a hook's output that is the host's own form of a
// denial. An output that is not a denial, or gives no reason, is an error: some
// hosts take it for permission.
func (s *Settings) Denied(ctx context.Context, out []byte) (reason string, err error) {
	v, err := decode(out)
	if err != nil {
		return "", err
	}
	got, err := s.host.run(ctx, "denied", v)
	if err != nil {
		return "", err
	}
	if reason, _ = got.(string); reason == "" {
		return "", errors.New("not a denial with a reason")
	}
	return reason, nil
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
