package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/host"
	"github.com/shieldcli/shield/testdata/incidents"
)

// incidentReplayHostName is the agent host whose hook command line the replay of an incident runs.
const incidentReplayHostName = "claude-code"

// An incidentYAML is a public accident or attack; see testdata/incidents/README.md.
type incidentYAML struct {
	ID                  string
	Title               string
	Date                string
	Source              string
	IncidentDescription string `yaml:"happened"`
	Files               map[string]string
	Steps               []incidentStep
	Server              [][]map[string]any // the tools that a server lists, for each of its starts
	Call                *incidentMCPCall   // the tool call, made after the last start of the MCP server
	Twin                harmlessVariantYAML
}

// An incidentStep is one tool call and its result.
type incidentStep struct {
	Tool   string
	Input  map[string]any
	Result string
}

type incidentMCPCall struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

// A harmlessVariantYAML describes honest work that differs from an incident in one fact: the fact, and
// the changes of texts and files that turn the incident into that work.
type harmlessVariantYAML struct {
	Fact             string
	NewTextByOldText map[string]string `yaml:"replace"`
	Files            map[string]string
}

func incidentsCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:  "incidents",
		Usage: "replay public accidents and attacks, each beside honest work that differs in one fact",
		Description: "Replays each incident through an installed hook in a temporary home folder, and prints the rule that stopped it; then replays honest work " +
			"that differs in one fact. Settings and state of this machine are not used. No action is executed. Exits with 1 if an incident passes or honest work is stopped.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "dir", Usage: "make the temporary home folders below `DIR` instead of the home folder; figures from different folders cannot be compared"},
			&cli.StringFlag{Name: "only", Usage: "replay the incident `ID` alone"},
			&cli.BoolFlag{Name: "json", Usage: "write JSON, one object a line"},
		},
		Action: func(c *cli.Context) error {
			if _, err := operands(c); err != nil {
				return err
			}
			return demoIncidents(c, w)
		},
	}
}

// readIncidents returns the incidents that ship with shield.
func readIncidents() (all []incidentYAML, err error) {
	if err := yaml.UnmarshalWithOptions(incidents.YAML, &all, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("incidents: %w", err)
	}
	return all, nil
}

// applyHarmlessVariant returns the incident with the changes that turn it into its harmless
// variant, a similar but honest action.
func (i incidentYAML) applyHarmlessVariant() (incidentYAML, error) {
	text, err := json.Marshal(struct {
		Files  map[string]string
		Steps  []incidentStep
		Server [][]map[string]any
		Call   *incidentMCPCall
	}{i.Files, i.Steps, i.Server, i.Call})
	if err != nil {
		return i, err
	}
	for old, with := range i.Twin.NewTextByOldText {
		old, with := escapeForJSON(old), escapeForJSON(with)
		if !bytes.Contains(text, old) {
			return i, fmt.Errorf("incident %s: the harmless variant replaces the text %s, which is not in the incident; correct incidents.yaml", i.ID, old)
		}
		text = bytes.ReplaceAll(text, old, with)
	}
	out := incidentYAML{ID: i.ID}
	if err := json.Unmarshal(text, &out); err != nil {
		return i, fmt.Errorf("incident %s: twin: %w", i.ID, err)
	}
	if out.Files == nil {
		out.Files = map[string]string{}
	}
	for name, content := range i.Twin.Files {
		out.Files[name] = content
	}
	return out, nil
}

// escapeForJSON returns a text escaped as part of a JSON string.
func escapeForJSON(text string) []byte {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always marshals
	}
	return b[1 : len(b)-1]
}

// A replayResult is the result of replaying an incident or its harmless variant.
type replayResult struct {
	StoppedByShield bool   `json:"stopped"`
	StopReason      string `json:"by,omitempty"` // the reason
	err             error
}

// An incidentReplayReport is the result for one incident: a line of the report of "shield demo incidents".
type incidentReplayReport struct {
	ID                            string       `json:"id"`
	Date                          string       `json:"date"`
	Title                         string       `json:"title"`
	SourceCitation                string       `json:"source"`
	IncidentReplay                replayResult `json:"incident"`
	HarmlessVariantReplay         replayResult `json:"twin"`
	HarmlessVariantDifferenceText string       `json:"fact"`
}

// demoIncidents replays public accidents and attacks, each with a harmless variant, and reports which shield
// stopped.
func demoIncidents(c *cli.Context, w *Environment) error {
	if w.OS == "windows" {
		return errors.New("demo incidents: the hook needs the program sh, which Windows does not have; run the demo on Linux or macOS")
	}
	all, err := readIncidents()
	if err != nil {
		return err
	}
	if only := c.String("only"); only != "" {
		all = slices.DeleteFunc(all, func(i incidentYAML) bool { return i.ID != only })
		if len(all) == 0 {
			return fmt.Errorf("demo incidents: unknown incident %q; run 'shield demo incidents' for the list", shortenTo80Characters(only))
		}
	}
	dir := c.String("dir")
	if dir == "" {
		dir = w.Home
	}
	// Not in a temporary folder, where files may be deleted without a question.
	place, err := os.MkdirTemp(dir, ".shield-demo-")
	if err != nil {
		return fmt.Errorf("demo incidents: %w", err)
	}
	defer os.RemoveAll(place)
	if place, err = filepath.EvalSymlinks(place); err != nil {
		return fmt.Errorf("demo incidents: %w", err)
	}
	results := replayAllIncidents(c.Context, w, place, all)
	return reportIncidents(c, w, results)
}

// replayAllIncidents replays each incident and a harmless variant of it [harmlessVariantYAML], several incidents
// in parallel.
func replayAllIncidents(ctx context.Context, w *Environment, replayRootDir string, all []incidentYAML) []incidentReplayReport {
	results := make([]incidentReplayReport, len(all))
	var running sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for n, i := range all {
		results[n] = incidentReplayReport{ID: i.ID, Date: i.Date, Title: i.Title, SourceCitation: i.Source, HarmlessVariantDifferenceText: i.Twin.Fact}
		running.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			of := func(what string, i incidentYAML) replayResult {
				out, err := replayIncident(ctx, w, filepath.Join(replayRootDir, i.ID+"-"+what), filepath.Join(replayRootDir, "cache"), i)
				out.err = err
				return out
			}
			results[n].IncidentReplay = of("incident", i)
			twin, err := i.applyHarmlessVariant()
			if err != nil {
				results[n].HarmlessVariantReplay.err = err
				return
			}
			results[n].HarmlessVariantReplay = of("twin", twin)
		})
	}
	running.Wait()
	return results
}

// reportIncidents prints the results, and returns an error unless every incident was stopped and
// every harmless variant of an incident was allowed.
func reportIncidents(c *cli.Context, w *Environment, results []incidentReplayReport) error {
	var stopped, allowed int
	for _, r := range results {
		if err := errors.Join(r.IncidentReplay.err, r.HarmlessVariantReplay.err); err != nil {
			return fmt.Errorf("demo incidents: %s: %w", r.ID, err)
		}
		if r.IncidentReplay.StoppedByShield {
			stopped++
		}
		if !r.HarmlessVariantReplay.StoppedByShield {
			allowed++
		}
		if c.Bool("json") {
			if err := json.NewEncoder(w.Out).Encode(r); err != nil {
				return err
			}
			continue
		}
		what := "PASSED "
		if r.IncidentReplay.StoppedByShield {
			what = "stopped"
		}
		fmt.Fprintf(w.Out, "%s  %s (%s, %s)\n", what, r.Title, r.Date, r.SourceCitation)
		if r.IncidentReplay.StoppedByShield {
			fmt.Fprintf(w.Out, "         %s\n", term.EscapeControlAndInvisible(r.IncidentReplay.StopReason))
		}
		if r.HarmlessVariantReplay.StoppedByShield {
			fmt.Fprintf(w.Out, "         STOPPED (false alarm): the harmless variant, in which %s. Reason: %s\n", r.HarmlessVariantDifferenceText, term.EscapeControlAndInvisible(r.HarmlessVariantReplay.StopReason))
		} else {
			fmt.Fprintf(w.Out, "         allowed: the harmless variant, in which %s\n", r.HarmlessVariantDifferenceText)
		}
	}
	if !c.Bool("json") {
		if _, err := fmt.Fprintf(w.Out, "\n%d of %d incidents stopped, %d of %d honest variants allowed. Nothing was executed.\n", stopped, len(results), allowed, len(results)); err != nil {
			return err
		}
	}
	if stopped < len(results) || allowed < len(results) {
		return &statusError{statusFailure, nil}
	}
	return nil
}

// replayIncident replays one incident in its own home folder.
func replayIncident(ctx context.Context, w *Environment, home, cache string, i incidentYAML) (replayResult, error) {
	work := filepath.Join(home, "app")
	files := map[string]string{"~/.config/shield/shield.yaml": "approval: {channels: []}\n"} // ask no user
	for name, content := range i.Files {
		files[name] = content
	}
	if i.Server != nil {
		files["~/server.sh"] = fakeMCPServerScript
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		return replayResult{}, err
	}
	for name, content := range files {
		at := filepath.Join(work, filepath.FromSlash(name))
		if below, ok := strings.CutPrefix(name, "~/"); ok {
			at = filepath.Join(home, filepath.FromSlash(below))
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return replayResult{}, err
		}
		if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
			return replayResult{}, err
		}
	}
	there := *w
	there.Home, there.WorkingDir = home, work
	there.Getenv = func(name string) string { return map[string]string{"HOME": home, "XDG_CACHE_HOME": cache}[name] }
	r := &incidentReplay{ctx: ctx, homeFolder: home, workspaceFolder: work, childProcessEnv: []string{"HOME=" + home, "PATH=" + w.Getenv("PATH"), "XDG_CACHE_HOME=" + cache}, shieldEnvironment: &there}
	if i.Server != nil {
		return r.replayServerCalls(i)
	}
	return r.replayToolCalls(i.Steps)
}

// An incidentReplay replays the tool calls of an incident, or of its harmless variant, in a temporary home
// folder.
type incidentReplay struct {
	ctx                         context.Context
	homeFolder, workspaceFolder string
	childProcessEnv             []string
	shieldEnvironment           *Environment
}

// runProgram runs a program, shield or a shell, in the workspace, and returns its output and exit status.
func (r *incidentReplay) runProgram(in []byte, name string, args ...string) (out []byte, status int, err error) {
	cmd := exec.CommandContext(r.ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = r.workspaceFolder, r.childProcessEnv, bytes.NewReader(in)
	out, err = cmd.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return out, exit.ExitCode(), nil
	}
	return out, 0, err
}

// replayToolCalls proposes tool calls as a host does: through the installed hook line.
func (r *incidentReplay) replayToolCalls(steps []incidentStep) (replayResult, error) {
	h, err := host.Named(incidentReplayHostName)
	if err != nil {
		return replayResult{}, err
	}
	lines, err := hookCommandLines(r.ctx, r.shieldEnvironment, h, 20*time.Second)
	if err == nil {
		err = recordHookProgram(r.shieldEnvironment)
	}
	if err != nil {
		return replayResult{}, err
	}
	for n, step := range steps {
		event := map[string]any{
			"session_id": "incident", "transcript_path": "", "cwd": r.workspaceFolder, "permission_mode": "default",
			"hook_event_name": "PreToolUse", "tool_name": step.Tool, "tool_use_id": fmt.Sprintf("t%d", n), "tool_input": r.inputWithAbsoluteFilePath(step.Input),
		}
		answer, status, err := r.runHookLine(lines.BeforeTool, event)
		if err != nil {
			return replayResult{}, err
		}
		if why, stopped := answer.stopsToolCall(status); stopped {
			return replayResult{StoppedByShield: true, StopReason: why}, nil
		}
		event["hook_event_name"], event["tool_response"] = "PostToolUse", step.Result
		if _, _, err := r.runHookLine(lines.AfterTool, event); err != nil {
			return replayResult{}, err
		}
	}
	return replayResult{}, nil
}

// inputWithAbsoluteFilePath returns a tool's input with an absolute file_path, as hosts send it.
func (r *incidentReplay) inputWithAbsoluteFilePath(input map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range input {
		if text, ok := value.(string); ok && key == "file_path" {
			if below, ok := strings.CutPrefix(text, "~/"); ok {
				value = filepath.Join(r.homeFolder, below)
			} else {
				value = filepath.Join(r.workspaceFolder, text)
			}
		}
		out[key] = value
	}
	return out
}

// A claudeCodeHookAnswer is shield's answer to Claude Code.
type claudeCodeHookAnswer struct {
	HookSpecificOutput struct {
		PermissionDecision       string
		PermissionDecisionReason string
	}
}

func (a *claudeCodeHookAnswer) stopsToolCall(hookExitStatus int) (why string, stopped bool) {
	o := a.HookSpecificOutput
	return o.PermissionDecisionReason, hookExitStatus != 0 || o.PermissionDecision == "deny" || o.PermissionDecision == "ask"
}

// runHookLine runs an installed line with an event as input.
func (r *incidentReplay) runHookLine(line string, event map[string]any) (answer claudeCodeHookAnswer, status int, err error) {
	in, err := json.Marshal(event)
	if err != nil {
		return answer, 0, err
	}
	out, status, err := r.runProgram(in, "/bin/sh", "-c", line)
	if err != nil {
		return answer, status, fmt.Errorf("run the hook command: %w", err)
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return answer, status, fmt.Errorf("the hook command answered %q: %w", shortenTo80Characters(string(out)), err)
	}
	return answer, status, nil
}

// fakeMCPServerScript is an MCP server that lists the tools of tools.json, and answers each call with the
// same text. It does nothing else.
const fakeMCPServerScript = `while read -r line; do
	id=${line#*\"id\":}
	id=${id%%[,\}]*}
	case $line in
	*'"tools/list"'*) result="{\"tools\":$(cat "$HOME/tools.json")}" ;;
	*'"tools/call"'*) result='{"content":[{"type":"text","text":"the gateway called the server"}]}' ;;
	*'"id"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
	*) continue ;;
	esac
	printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
`

// replayServerCalls starts a server behind the gateway, once for each of its tool lists, and calls a tool at the
// last start.
func (r *incidentReplay) replayServerCalls(i incidentYAML) (replayResult, error) {
	var out []byte
	for n, tools := range i.Server {
		list, err := json.Marshal(tools)
		if err != nil {
			return replayResult{}, err
		}
		if err := os.WriteFile(filepath.Join(r.homeFolder, "tools.json"), list, 0o600); err != nil {
			return replayResult{}, err
		}
		var in bytes.Buffer
		messages := []any{
			map[string]any{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": map[string]any{
				"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "demo", "version": "1"},
			}},
			map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"},
			map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
		}
		if n == len(i.Server)-1 {
			messages = append(messages, map[string]any{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": i.Call})
		}
		for _, m := range messages {
			if err := json.NewEncoder(&in).Encode(m); err != nil {
				return replayResult{}, err
			}
		}
		if out, _, err = r.runProgram(in.Bytes(), r.shieldEnvironment.ShieldExecutablePath, "mcp", "--name", "town", "--", "/bin/sh", filepath.Join(r.homeFolder, "server.sh")); err != nil {
			return replayResult{}, err
		}
	}
	for line := range bytes.Lines(out) {
		var answer struct {
			ID     int
			Error  struct{ Message string }
			Result struct{ Content []struct{ Text string } }
		}
		if err := json.Unmarshal(line, &answer); err != nil || answer.ID != 3 {
			continue
		}
		why := answer.Error.Message
		for _, part := range answer.Result.Content {
			if part.Text == "the gateway called the server" {
				return replayResult{}, nil
			}
			why += part.Text
		}
		return replayResult{StoppedByShield: true, StopReason: why}, nil
	}
	return replayResult{}, errors.New("the gateway did not answer the tool call; run 'shield doctor'")
}
