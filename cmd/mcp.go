package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/ancestry"
	"github.com/shieldcli/shield/internal/launch"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/gateway"
	"github.com/shieldcli/shield/pkg/sanitize"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/telemetry"
)

func mcpCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:      "mcp",
		Usage:     "judge the tool calls between an MCP client and an MCP server",
		ArgsUsage: "-- SERVER ARG…",
		Description: "Starts SERVER and passes messages between it and the MCP client on standard input and output. Each call of a tool is judged as an action before the server sees it; a blocked one is answered with the reason. Exactly the bytes that were judged are forwarded. The tools of a server are trusted as first listed, unless their descriptions give orders " +
			"to the model (tool poisoning); a tool that is new, changed, or imitates another server's tool is withheld until a person accepts it: see " +
			"shield mcp tools. Results are scanned as by shield sanitize, and forwarded as the setting sanitize.mode says; a structured result that this " +
			"would make invalid becomes an error. All servers of one client share one session. A verdict takes hook.timeout at most, including questions " +
			"to a person.",
		Flags: append(commonJudgeFlags(), unattendedFlag(),
			&cli.StringFlag{Name: "name", Usage: "call the server `NAME` in the log, in action types and in shield mcp tools (default: from its command line)"},
			&cli.StringFlag{Name: "session", Usage: "share the session `ID` with other gateways"},
			newContainFlag("SERVER"),
			&cli.StringFlag{Name: "record", Usage: "append each judged action to `FILE`, for shield score"},
		),
		Subcommands: append(mcpInstallCommands(w), mcpServeCommand(w), mcpToolsCommand(w)),
		Action: func(c *cli.Context) error {
			var own *statusError // the server's exit status
			err := relayMCP(c, w)
			if err == nil || errors.As(err, &own) {
				return err
			}
			return &statusError{statusBlock, err}
		},
	}
}

// relayMCP starts a server and relays messages until both sides have ended.
func relayMCP(c *cli.Context, w *Environment) error {
	argv := c.Args().Slice()
	if len(argv) == 0 {
		return errors.New("mcp: SERVER is missing; write: shield mcp -- SERVER ARG…")
	}
	server := gateway.NewServer(argv, w.WorkingDir, c.String("name"))
	if w.requestFromServiceClient != nil {
		return judgeToolCallForServiceClient(c, w, server)
	}
	env := w.Environ()
	path, err := launch.LookPath(argv[0], env)
	if err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	own := *w
	w, own.Err = &own, &lockedWriter{w: w.Err} // shared by the server's errors and shield's own
	set, p, err := loadSettingsAndMCPPipeline(c, w)
	if err != nil {
		return err
	}
	defer p.Close()
	session := c.String("session")
	if session == "" {
		above, _ := ancestry.ProcessAndAncestors(w.verdictRequesterPID) // if the ancestors are unknown, the process ID alone identifies the client
		session = mcpClientSessionID(w.verdictRequesterPID, above)
	}
	opts, err := gatewayOptions(c.Context, set, w, p, server, session, argv, path)
	if err != nil {
		return err
	}
	opts.Judge = mcpToolCallJudge{w, opts.Judge}
	if name := c.String("record"); name != "" {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return fmt.Errorf("mcp --record: %w", err)
		}
		defer f.Close()
		opts.CorpusRowRecorder = gateway.NewCorpusRowRecorder(f, nil)
	}
	mode, grants := containFlagValue(c), config.ServerContainment{}
	for i := range set.MCP.Servers {
		if s := &set.MCP.Servers[i]; s.Name == server.Name && s.Contain != nil {
			mode, grants = mcpServerContainmentMode(s.Contain, mode), *s.Contain
		}
	}
	process, err := startMCPServer(mode, grants, set, w, server, path, argv, env, p.ForMCPServer(server.Name), session)
	if err != nil {
		return fmt.Errorf("mcp: %s: %w", term.EscapeControlAndInvisible(argv[0]), err)
	}
	err = gateway.New(opts).Relay(c.Context, gateway.PeerStreams{FromPeer: w.In, ToPeer: nopWriteCloser{w.Out}}, process.PeerStreams)
	return mcpServerExitStatusError(process.End(err != nil), err, c.Context.Err() != nil)
}

// mcpServerExitStatusError returns the exit status of a command that ran a server: the server's status if the
// server ended first.
func mcpServerExitStatusError(serverErr, relayErr error, interrupted bool) error {
	var exit *exec.ExitError
	switch {
	case interrupted:
		return &statusError{statusBlock, nil}
	case errors.Is(relayErr, gateway.ErrServerEnded) && errors.As(serverErr, &exit) && exit.ExitCode() > 0:
		return &statusError{exit.ExitCode(), nil}
	case relayErr != nil:
		return fmt.Errorf("mcp: %w", relayErr)
	}
	return nil
}

// loadSettingsAndMCPPipeline returns the pipeline that judges calls to servers.
func loadSettingsAndMCPPipeline(c *cli.Context, w *Environment) (*config.LoadedSettings, *shield.Pipeline, error) {
	set, err := loadSettings(c, w)
	if err != nil {
		return nil, nil, err
	}
	p, err := newMCPPipeline(set, w, nil)
	return set, p, err
}

// newMCPPipeline returns the pipeline of some settings, which reports verdicts to observe unless
// that is nil.
func newMCPPipeline(set *config.LoadedSettings, w *Environment, observe func(telemetry.Action)) (*shield.Pipeline, error) {
	cfg := pipelineConfigFromSettings(set, w, "mcp")
	cfg.OmitsActionFromVerdicts, cfg.OffersAllowOnce, cfg.BacksUpLostFiles, cfg.AgentHostName, cfg.Observe = true, true, true, "mcp", observe
	return w.newPipeline(cfg)
}

// newToolResultReviewer returns a function that passes tool results to a pipeline's memory.
func newToolResultReviewer(p *shield.Pipeline) gateway.ActionResultHandler {
	return func(ctx context.Context, a *action.Action, result any, found gateway.Findings) error {
		r := shield.ToolResult{Actions: []*action.Action{a}, ReturnedValue: result}
		more, withheld, err := p.ReviewResultWithEvaluator(ctx, r)
		if err != nil {
			return err
		}
		talks := slices.ContainsFunc(found, func(f gateway.TextFinding) bool { return shield.MayBeInjection(sanitize.FindingKind(f.Kind)) }) ||
			slices.ContainsFunc(more, func(f sanitize.Finding) bool { return shield.MayBeInjection(f.Kind) })
		if err := p.RecordToolResult(ctx, r, talks); err != nil || withheld == "" {
			return err
		}
		return errors.New(withheld)
	}
}

// gatewayOptions returns the options of a gateway. argv is the command line to which a server's tools
// are pinned; program is the file that it starts, "" if none.
func gatewayOptions(ctx context.Context, set *config.LoadedSettings, w *Environment, p *shield.Pipeline, server gateway.Server, session string, argv []string, program string) (gateway.Options, error) {
	state := stateDir(&set.Settings, w)
	if state == "" {
		return gateway.Options{}, errors.New("mcp: no state folder for the accepted tools; set HOME or --state")
	}
	pins, err := gateway.OpenPins(state, &server, argv, program)
	if err != nil {
		return gateway.Options{}, fmt.Errorf("mcp: %w", err)
	}
	p = p.ForMCPServer(server.Name).WithUnknownToolLookup(gatewayToolDescriber(state, server.Name, argv))
	notify := func(text string) {
		p.LogAndNotify(audit.EntryKindMCPServerFindings, term.EscapeControlAndInvisible(text))
	}
	if program != "" {
		changed, err := pins.ProgramChanged(ctx)
		if err != nil {
			return gateway.Options{}, fmt.Errorf("mcp: %w", err)
		}
		if changed {
			notify(fmt.Sprintf("mcp %s: the program %s was replaced since the server's tools were last listed; review them with: shield mcp tools diff %[1]s", server.Name, program))
		}
	}
	var hosts []effect.HostPattern
	for _, name := range set.TrustedTargets.Hosts {
		if pattern, err := effect.ParseHostPattern(name); err == nil { // skips HOST/PATH entries, which trust only uploads
			hosts = append(hosts, pattern)
		}
	}
	mode := gateway.FindingsMode(set.SanitizeToolResults.ActionOnFindings)
	if set.SanitizeToolResults.Enabled == config.Off {
		mode = gateway.FindingsModeReportOnly
	}
	return gateway.Options{
		JudgeFor: func(client, connection string) (gateway.ActionJudge, string) {
			return judgeWithAgentFacingReasoning{p.WithSeparateDenialCount(connection)}, session + "-" + client
		},
		Judge: judgeWithAgentFacingReasoning{p}, Server: server, AcceptedToolPins: pins, ResultFindingsMode: mode, MarkTextAsData: sanitize.WrapAsUntrusted, OnActionResult: newToolResultReviewer(p), AllowsSampling: set.MCP.SamplingDenyOrAllow == "allow", TrustedElicitationURLHosts: hosts,
		JudgeTimeout: set.Hook.Timeout.AsTimeDuration(), WorkingDir: w.WorkingDir, SessionID: session,
		Redactor:   redact.New(set.Evaluator.FixedCanaryToken),
		NotifyUser: notify,
	}, nil
}

// gatewayToolDescriber returns a function that describes the tools of a server behind a gateway from their
// pins. argv is the command line to which the pins are bound, or the address of a remote server.
func gatewayToolDescriber(state, server string, argv []string) func(*action.Action) approve.UnknownTool {
	t := approve.UnknownTool{Server: strings.Join((*redact.Redactor)(nil).RedactArgs(argv[0], argv), " ")}
	if len(argv) == 1 && strings.Contains(argv[0], "://") {
		t.RemoteHost = networkHostOfURL(argv[0])
	}
	return func(a *action.Action) approve.UnknownTool {
		own := t
		name, ok := strings.CutPrefix(a.Type, "mcp__"+server+"__")
		if k, known := gateway.LoadAcceptedTool(state, argv, name); ok && known {
			own.IdentityHash, own.Description = k.CombinedServerAndToolHash, k.Description
		}
		return own
	}
}

// lockedWriter is a writer that goroutines share.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (t *lockedWriter) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.w.Write(b)
}

// A nopWriteCloser is a writer that stays open when its user closes it.
type nopWriteCloser struct{ io.Writer }

// Close does nothing: the stream belongs to the process.
func (nopWriteCloser) Close() error { return nil }
