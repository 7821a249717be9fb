package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
)

// CheckHostAwaitsUserAnswer returns nil if, in tests, at least one version and mode of the host waited for its user's
// answer when a hook asked a question.
func (h *Host) CheckHostAwaitsUserAnswer() error {
	if h.description.Ask.AskResponseJQ == "" {
		return fmt.Errorf("in tests, %s did not wait for its user when a hook asked a question", h.Title())
	}
	return nil
}

// CheckSessionAwaitsUserAnswer returns nil if the host that sent an event waits for its user's answer when a hook answers
// "ask", judged by its version and permission mode; otherwise the reason. in is the hook's input;
// running is nil if the host's process is unknown. The version is "" if it does not matter.
func (h *Host) CheckSessionAwaitsUserAnswer(ctx context.Context, in []byte, getenv func(string) string, running *HostProcess) (version string, err error) {
	ask := h.description.Ask
	if err := h.CheckHostAwaitsUserAnswer(); err != nil {
		return "", err
	}
	v, err := decodeStrictJSON(in)
	if err != nil {
		return "", err
	}
	out, err := h.runJQForOneResult(ctx, ask.VersionAndModeJQ, map[string]any{"input": v, "env": h.envVariablesReadByJQ(getenv), "process": running.jqValue()})
	if err != nil {
		return "", fmt.Errorf("the version or the permission mode of %s cannot be read; update shield", h.Title())
	}
	seen, _ := out.(map[string]any)
	version, _ = seen["version"].(string)
	mode, _ := seen["mode"].(string)
	switch {
	case seen == nil:
		return "", fmt.Errorf("this session of %s does not show questions to a user; start an interactive session in the mode %s", h.Title(), strings.Join(ask.PermissionModesAwaitingUserAnswer, " or "))
	case !slices.Contains(ask.PermissionModesAwaitingUserAnswer, mode):
		return "", fmt.Errorf("in tests, %s did not wait for its user in mode %.40q; use the mode %s", h.Title(), mode, strings.Join(ask.PermissionModesAwaitingUserAnswer, ", "))
	}
	return version, h.CheckHostVersionAwaitsUserAnswer(version)
}

// CheckHostVersionAwaitsUserAnswer returns nil if a version of the host waits for its user's answer: the
// version, or an earlier one of the same major version, waited in tests, and it is not among the failed ones. It
// also returns nil if the version does not matter.
func (h *Host) CheckHostVersionAwaitsUserAnswer(version string) error {
	ask := h.description.Ask
	if err := h.CheckHostAwaitsUserAnswer(); err != nil || ask.FirstVersionAwaitingUserAnswer == "" {
		return err
	}
	got, from := versionNumbers(version), versionNumbers(ask.FirstVersionAwaitingUserAnswer)
	if got == nil || slices.Compare(got, from) < 0 || got[0] != from[0] || slices.Contains(ask.VersionsNotAwaitingUserAnswer, version) {
		return fmt.Errorf("in tests, version %.40q of %s did not wait for its user; use %[3]s or later", version, h.Title(), ask.FirstVersionAwaitingUserAnswer)
	}
	return nil
}

// versionPattern matches a version with 1 to 4 numeric parts.
var versionPattern = prefilter.LazyRegexp(`^[0-9]{1,9}(\.[0-9]{1,9}){0,3}$`)

// versionNumbers returns the numeric parts of a version; nil if it has other parts.
func versionNumbers(version string) (out []int) {
	if !versionPattern().MatchString(version) {
		return nil
	}
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		out = append(out, n)
	}
	return out
}

// ResponseAskingUser returns the answer that makes the host ask its user about an event, one JSON text. It is for events
// for which [Host.CheckSessionAwaitsUserAnswer] returns nil.
func (h *Host) ResponseAskingUser(ctx context.Context, e Event, reason string) ([]byte, error) {
	if h.description.Ask.AskResponseJQ == "" || reason == "" {
		return nil, errors.New("hooks of this host cannot ask its user; set approval.channels: auto to be asked on the approval page")
	}
	out, err := h.runJQForOneResult(ctx, h.description.Ask.AskResponseJQ, map[string]any{"event": e.Name, "id": e.ToolCallID, "reason": reason})
	if err != nil {
		return nil, fmt.Errorf("%s hook: %w", h.Name, err)
	}
	return encodeCompactJSON(out)
}

// VersionAndPermissionModeSources returns the environment variables that [Host.CheckSessionAwaitsUserAnswer]
// reads, and the files of the user, project or machine that could set them, or contain a hook that answers for
// the user. A variable that such a file names is not trusted.
func (h *Host) VersionAndPermissionModeSources() (envVariables []string, settingsFiles []HostSettingsFile) {
	for _, f := range h.description.Ask.EnvAndHookFiles {
		settingsFiles = append(settingsFiles, HostSettingsFile{SettingsFile: f, host: h})
	}
	return h.description.Ask.VersionAndModeEnvVariables, settingsFiles
}

// HasHookAnsweringForUser reports whether a file of [Host.VersionAndPermissionModeSources] has a hook of another program that can answer for
// the user. An error means that shield cannot tell.
func (p *HostSettingsFile) HasHookAnsweringForUser(ctx context.Context, doc []byte) (bool, error) {
	if p.host.description.Ask.HasAnsweringHookJQ == "" {
		return false, nil
	}
	var v any = string(doc)
	if strings.HasSuffix(p.File, ".json") || strings.HasSuffix(p.File, ".toml") {
		var err error
		if v, err = p.parseJSONOrTOML(doc); err != nil {
			return false, err
		}
	}
	out, err := p.host.runJQForOneResult(ctx, p.host.description.Ask.HasAnsweringHookJQ, map[string]any{"doc": v})
	if err != nil {
		return false, err
	}
	answers, ok := out.(bool)
	if !ok {
		return false, fmt.Errorf("the hooks in the settings of %s cannot be read; correct the settings file", p.host.Title())
	}
	return answers, nil
}

// Headless reports whether a session of the host may have no user: it certainly has none, or shield
// cannot tell. It is false for a host whose description in folder hosts contains no test for this.
func (h *Host) Headless(ctx context.Context, getenv func(string) string, running *HostProcess) bool {
	if h.description.SessionHasNoUserJQ == "" {
		return false
	}
	out, err := h.runJQForOneResult(ctx, h.description.SessionHasNoUserJQ, map[string]any{"env": h.envVariablesReadByJQ(getenv), "process": running.jqValue()})
	return err != nil || out != false
}

// envVariablesReadByJQ returns the environment variables that the host's jq programs VersionAndModeJQ and
// SessionHasNoUserJQ may read, by name.
func (h *Host) envVariablesReadByJQ(getenv func(string) string) map[string]any {
	env := map[string]any{}
	for _, name := range h.description.Ask.VersionAndModeEnvVariables {
		env[name] = getenv(name)
	}
	return env
}
