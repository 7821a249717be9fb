package cmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/report"
	"github.com/shieldcli/shield/pkg/scan"
	"github.com/shieldcli/shield/pkg/shield"
)

func scanCommand(w *Environment) *cli.Command {
	var flags []cli.Flag
	for _, f := range commonJudgeFlags() {
		if f.Names()[0] != "root" && f.Names()[0] != "state" {
			flags = append(flags, f)
		}
	}
	return &cli.Command{
		Name:  "scan",
		Usage: "replay recorded agent sessions, and show what shield would have asked and blocked",
		Description: "Reads the transcripts that agent hosts keep on this machine and judges every tool call in order, one session a conversation, in the folder that it began in. " +
			"Nothing is executed, nothing is written, and nothing leaves the machine; the audit log does not change. " +
			"File contents are taken from the transcript, or else from the disk; a decision that depends on a missing file counts as \"cannot tell\". A " +
			"denial does not affect later calls of the conversation. A task is a conversation with a call. " +
			"Examples are shown without credentials. Hosts: " + strings.Join(scan.AgentHostNames(), ", ") + ".",
		Flags: append(flags,
			&cli.StringSliceFlag{Name: "host", Usage: "read only transcripts of the host `NAME`; may be repeated"},
			&cli.StringSliceFlag{Name: "path", Usage: "read the transcript `FILE|DIR` instead of those of the hosts; may be repeated"},
			&cli.IntFlag{Name: "jobs", DefaultText: "one a processor", Usage: "judge `N` conversations at a time, 1 to 256"},
			&cli.BoolFlag{Name: "json", Usage: "write the report as one JSON object"},
			&cli.BoolFlag{Name: "html", Usage: "write the report as a page that loads nothing"}),
		Action: func(c *cli.Context) error { return scanTranscripts(c, w) },
	}
}

func scanTranscripts(c *cli.Context, w *Environment) error {
	if _, err := operands(c); err != nil {
		return err
	}
	if c.Bool("json") && c.Bool("html") {
		return errors.New("scan: --json and --html exclude each other; use one")
	}
	set, err := loadSettings(c, w)
	if err != nil {
		return err
	}
	cfg, pool := pipelineConfigFromSettings(set, w, "scan"), &shield.PipelinePool{}
	defer pool.Clear()
	opts := scan.Options{OpenPipeline: func(host, home, folder string, files analysis.FileOverlay) (scan.CallJudgingPipeline, error) {
		one := cfg.ForReplay(home, folder, files)
		one.AgentHostName = host
		return pool.NewActionReplay(one)
	}, Home: w.Home, Getenv: w.Getenv, AgentHostNames: c.StringSlice("host"), TranscriptPaths: absolutePaths(c.StringSlice("path"), w.WorkingDir)}
	if c.IsSet("jobs") {
		if opts.MaxConcurrentConversations, err = parallelJobs(c); err != nil {
			return err
		}
	}
	notices := scanProgress{line: progressLine{terminal: w.Err, onTerminal: isTerminal(w.Err)}, now: w.Now}
	if notices.line.onTerminal {
		opts.ReportBytesAndCallsRead = notices.showProgress
	}
	r, err := scan.Run(c.Context, opts)
	notices.line.clear()
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	r.PolicyName = set.PolicyNameOrPath
	if r.SuggestedExceptions, err = proposePolicyExceptions(c, cfg, r); err != nil {
		return fmt.Errorf("scan: shield cannot propose policy exceptions: %w; run 'shield doctor'", err)
	}
	if r.Files == 0 && len(opts.TranscriptPaths) == 0 {
		fmt.Fprintln(w.Err, "shield: no transcript of an agent host was found; name one with --path")
	}
	switch {
	case c.Bool("json"):
		enc := json.NewEncoder(w.Out)
		enc.SetEscapeHTML(false)
		return enc.Encode(r)
	case c.Bool("html"):
		page := report.HTMLTablePage{Title: "shield scan", IntroParagraphs: []string{r.Headline()}}
		for _, s := range r.Sections() {
			page.Sections = append(page.Sections, report.PageSection{Title: s.Title, Head: s.TableHeaderCells, Rows: s.Rows, Text: s.Text})
		}
		return report.WriteHTMLTablePage(w.Out, page)
	}
	_, err = io.WriteString(w.Out, r.Text(terminalWidth(w.Out)))
	return err
}

// maxWorkspacesWithSuggestedExceptions is how many workspaces get proposed exceptions: those with the most questions.
const maxWorkspacesWithSuggestedExceptions = 50

// proposePolicyExceptions returns exceptions that would have avoided questions whose calls then ran, nil for none.
func proposePolicyExceptions(c *cli.Context, cfg shield.Config, r *scan.Report) (*scan.SuggestedExceptions, error) {
	preset, err := shield.PolicyPresetName(cfg)
	if err != nil {
		return nil, nil //nolint:nilerr // a policy that extends no preset, to whose rules exceptions could be made
	}
	roots := slices.SortedFunc(maps.Keys(r.ApprovalsByWorkspaceRoot), func(a, b string) int {
		return cmp.Or(len(r.ApprovalsByWorkspaceRoot[b])-len(r.ApprovalsByWorkspaceRoot[a]), strings.Compare(a, b))
	})
	s, text := scan.SuggestedExceptions{}, strings.Builder{}
	for _, root := range roots[:min(len(roots), maxWorkspacesWithSuggestedExceptions)] {
		if len(r.ApprovalsByWorkspaceRoot[root]) < minApprovalsPerException {
			continue
		}
		one := cfg.ForReplay(scan.HomeFromWorkingFolder(root, cfg.Home), root, nil)
		one.IgnoresFileSystem = true
		an, err := shield.NewAnalyzer(one)
		if err != nil {
			return nil, err
		}
		found, err := policy.SuggestVerifyRuleExceptions(c.Context, r.ApprovalsByWorkspaceRoot[root], preset, minApprovalsPerException, an, shield.PolicyOptions(one, &an.DefaultExecutionContext))
		if err == nil {
			found, err = keepSuggestionsAllowingApprovedCommands(c, one, preset, found)
		}
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			continue
		}
		for _, f := range found {
			s.Count++
			s.AvoidedQuestions += f.ApprovalCount
		}
		fmt.Fprintf(&text, "# for %s\n%s", root, policy.FormatSuggestionPolicy(preset, found))
	}
	if s.Count == 0 {
		return nil, nil
	}
	s.PolicyYAML = text.String()
	s.RemainingInterruptionsPer100Calls = 100 * float64(max(r.EscalatedCalls+r.BlockedCalls-s.AvoidedQuestions, 0)) / float64(max(r.Calls, 1))
	return &s, nil
}

// A scanProgress prints the progress of a scan, at most ten times a second.
type scanProgress struct {
	mu        sync.Mutex
	line      progressLine
	now       func() time.Time
	lastShown time.Time
}

func (n *scanProgress) showProgress(readBytes, totalBytes int64, judgedCalls int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := n.now(); now.Sub(n.lastShown) > 100*time.Millisecond {
		n.lastShown = now
		n.line.show(judgedCalls, fmt.Sprintf("tool calls judged; %d of %d MiB of transcripts read", readBytes>>20, totalBytes>>20))
	}
}
