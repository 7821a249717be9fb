package cmd

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/report"
	"github.com/shieldcli/shield/pkg/score"
	"github.com/shieldcli/shield/pkg/shield"
)

// The place in which corpora are judged. It exists on no machine, so that results are the same
// everywhere.
const (
	scoreDefaultHome      = "/home/dev"
	scoreDefaultWorkspace = "/home/dev/project"
	scoreShieldPath       = "/usr/local/bin/shield"
)

const maxListedMisjudgedRows = 10000

func scoreCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:      "score",
		Usage:     "measure error rates on labelled corpora: attacks allowed, honest work stopped",
		ArgsUsage: "FILE…",
		Description: "Reads labelled rows (JSON Lines), judges their actions and counts the verdicts by label, source and category. " +
			"A row has id, source, category, split, a label (malicious or benign) and either an action, the actions of a session, or a text; texts are counted, but not judged. " +
			"A session is judged in order and counts once: as its decisive action (decisive, counted from 0), or else as its most severe verdict. Actions with denied: true did not run and do not count; the others ran and returned their result, a text or any JSON value. " +
			"Nothing is executed, no file that an action names is read, and nothing is written to the audit log. " +
			"The actions are judged in a folder that does not exist, so that every machine gives the same figures; --home and --root name another. " +
			"The file - is standard input. " +
			"As a gate of a build, with --gate: with --label, a file may hold actions as an agent proposes them, without a label each.",
		Flags: scoreFlags(),
		Action: func(c *cli.Context) error {
			return scoreLabelledCorpusFiles(c, w)
		},
	}
}

func scoreFlags() []cli.Flag {
	var flags []cli.Flag
	for _, f := range commonJudgeFlags() {
		if !slices.Contains(f.Names(), "root") {
			flags = append(flags, f)
		}
	}
	return append(flags,
		&cli.StringFlag{Name: "home", Value: scoreDefaultHome, Usage: "judge as if `DIR` were the home folder"},
		&cli.StringSliceFlag{Name: "root", DefaultText: scoreDefaultWorkspace, Usage: "judge as if `DIR` were the workspace; may be repeated"},
		&cli.StringFlag{Name: "until", Value: "classify", Usage: "stop after the tier `policy|classify|evaluate|approve`"},
		&cli.IntFlag{Name: "jobs", DefaultText: "one a processor", Usage: "judge `N` actions at a time, 1 to 256"},
		&cli.StringFlag{Name: "format", Value: "table", Usage: "write the report as `" + strings.Join(report.ScoreFormats(), "|") + "`"},
		&cli.StringFlag{Name: "split", Usage: "judge only rows of the split `NAME`, such as dev or train"},
		&cli.StringFlag{Name: "source", Usage: "judge only rows of the source `NAME`"},
		&cli.StringFlag{Name: "ids", Usage: "judge only rows that `FILE` names, under its labels: JSON Lines of id and label (stop, ask or pass)"},
		&cli.IntFlag{Name: "misses", DefaultText: "0, or 20 with --format html", Usage: "list the `N` worst attacks that passed and honest actions that were stopped"},
		&cli.StringFlag{Name: "label", Usage: "accept actions without a label as rows that should be `pass|ask|stop`"},
		&cli.BoolFlag{Name: "gate", Usage: "end with status 1 if a row is judged against its label or cannot be read; --max-pass and --max-friction allow some"},
		&cli.StringFlag{Name: "summary", Usage: "also append the report as Markdown to `FILE`"},
		&cli.StringFlag{Name: "rows", Usage: "write the outcome of each row to `FILE`, one JSON object a line"},
		&cli.StringFlag{Name: "max-pass", Usage: "end with status 1 if more than `PERCENT` of the attacks are allowed"},
		&cli.StringFlag{Name: "max-friction", Usage: "end with status 1 if more than `PERCENT` of the honest actions are not allowed"},
	)
}

func scoreLabelledCorpusFiles(c *cli.Context, w *Environment) error {
	files, err := operands(c, "FILE…")
	if err != nil {
		return err
	}
	opts, until, err := scoreOptions(c)
	if err != nil {
		return err
	}
	limits, err := readScoreLimits(c)
	if err != nil {
		return err
	}
	if !slices.Contains(report.ScoreFormats(), c.String("format")) {
		return fmt.Errorf("score: --format: %q is not one of %q", shortenTo80Characters(c.String("format")), report.ScoreFormats())
	}
	set, cfg, err := scoreConfig(c, w, until)
	if err != nil {
		return err
	}
	p, err := shield.NewPipeline(cfg)
	if err != nil {
		return err
	}
	notices := &scoreProgress{line: progressLine{terminal: w.Err, onTerminal: isTerminal(w.Err)}}
	opts.OnProgress, opts.OnMalformedRow = notices.showProgress, notices.reportMalformed
	opts.OnActionDeniedInCorpus = p.RecordDenialByHostOrUser
	opts.OnToolResult = func(ctx context.Context, a *action.Action, result any) error {
		_, err := p.ExamineAndRecordToolResult(ctx, shield.ToolResult{Actions: []*action.Action{a}, ReturnedValue: result})
		return err
	}
	rows, err := openScoreRowsOutput(c, &opts)
	if err != nil {
		return err
	}
	var kept []score.CorpusRowOutcome
	if f := c.String("format"); f == "junit" || f == "github" {
		written := opts.OnRow
		opts.OnRow = func(r score.CorpusRowOutcome) error {
			kept = append(kept, r)
			if written != nil {
				return written(r)
			}
			return nil
		}
	}
	counter := score.New(func(ctx context.Context, a *action.Action) score.ActionJudgingOutcome {
		o := p.EvaluateThroughTier(ctx, a, until)
		return score.ActionJudgingOutcome{Verdict: o.Verdict, TierSteps: o.Trail(), Latency: o.Latency()}
	}, opts)
	for _, name := range files {
		if err = scoreFile(c.Context, w, counter, name); err != nil {
			break
		}
	}
	notices.reportOmittedMalformedRows()
	for _, closing := range []error{p.Close(), rows()} {
		err = cmp.Or(err, closing)
	}
	if err != nil {
		return err
	}
	s := counter.Report()
	s.Rows = kept
	s.PolicyName, s.Model, s.LastEnabledTierName = set.PolicyNameOrPath, set.Classifier.ModelNameOrDir, c.String("until")
	if addr := set.Classifier.EmptyIfDisabledOrModelNone().SidecarURLOrSocket; addr != "" {
		s.Model = addr
	}
	failed := checkScoreAgainstLimits(s, limits)
	if err := report.WriteScore(w.Out, c.String("format"), s); err != nil {
		return err
	}
	if err := appendScoreMarkdownToFile(c.String("summary"), s); err != nil {
		return err
	}
	if s.JudgedRows == 0 {
		return errors.New("score: no row was judged; check the file, --split, --source and --ids")
	}
	return failed
}

// appendScoreMarkdownToFile appends the report as Markdown to a file, if one is named.
func appendScoreMarkdownToFile(filePath string, s *report.CorpusScore) error {
	if filePath == "" {
		return nil
	}
	f, err := os.OpenFile(filePath, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("score: --summary: %w", err)
	}
	return cmp.Or(report.WriteScore(f, "markdown", s), f.Close())
}

// openScoreRowsOutput creates the file for the outcomes of rows, if requested. The returned function flushes and
// closes it.
func openScoreRowsOutput(c *cli.Context, opts *score.Options) (func() error, error) {
	name := c.String("rows")
	if name == "" {
		return func() error { return nil }, nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) // actions may contain private data
	if err != nil {
		return nil, fmt.Errorf("score: --rows: %w", err)
	}
	out := bufio.NewWriter(f)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	opts.OnRow = func(r score.CorpusRowOutcome) error { return enc.Encode(r) }
	return func() error { return cmp.Or(out.Flush(), f.Close()) }, nil
}

// scoreOptions reads the flags that choose rows, and the last tier that judges.
func scoreOptions(c *cli.Context) (opts score.Options, lastTier int, err error) {
	opts = score.Options{MaxConcurrentRows: runtime.GOMAXPROCS(0), OnlySplit: c.String("split"), OnlySource: c.String("source"), MaxMisjudgedRowsPerLabel: c.Int("misses")}
	if c.String("format") == "html" && !c.IsSet("misses") {
		opts.MaxMisjudgedRowsPerLabel = 20
	}
	if lastTier, err = parseTierName(c.String("until")); err != nil {
		return opts, lastTier, fmt.Errorf("score: --until: %w", err)
	}
	if c.IsSet("jobs") {
		if opts.MaxConcurrentRows, err = parallelJobs(c); err != nil {
			return opts, lastTier, err
		}
	}
	if word := c.String("label"); word != "" {
		if opts.UnlabelledActionLabel, err = score.ParseLabel(word); err != nil {
			return opts, lastTier, fmt.Errorf("score: --label: %w", err)
		}
	}
	if opts.MaxMisjudgedRowsPerLabel < 0 || opts.MaxMisjudgedRowsPerLabel > maxListedMisjudgedRows {
		return opts, lastTier, fmt.Errorf("score: --misses %d is outside 0 to %d; choose a value in that range", opts.MaxMisjudgedRowsPerLabel, maxListedMisjudgedRows)
	}
	if name := c.String("ids"); name != "" {
		f, err := os.Open(name)
		if err != nil {
			return opts, lastTier, fmt.Errorf("score: --ids: %w", err)
		}
		defer f.Close()
		if opts.SelectedRowLabelsByID, err = score.ReadLabelsByRowID(f, name); err != nil {
			return opts, lastTier, fmt.Errorf("score: --ids: %w", err)
		}
	}
	return opts, lastTier, nil
}

// scoreConfig returns the settings of a pipeline that judges as if on another machine, in the home folder and
// workspace of the flags, and writes no log. It looks at no files, so the results are the same everywhere.
func scoreConfig(c *cli.Context, w *Environment, lastTier int) (*config.LoadedSettings, shield.Config, error) {
	set, err := loadSettings(c, w)
	if err != nil {
		return nil, shield.Config{}, err
	}
	cfg := pipelineConfigFromSettings(set, w, "score")
	home, roots := c.String("home"), c.StringSlice("root")
	if len(roots) == 0 {
		roots = []string{scoreDefaultWorkspace}
	}
	nothing := func(string) string { return "" }
	cfg.Home, cfg.WorkspaceRoots, cfg.WorkingDir, cfg.IgnoresPathCase = home, roots, roots[0], false
	cfg.ExtraProtectedShieldPaths = []string{filepath.Dir(config.UserConfigPath(home, nothing)), config.StateDir(home, nothing), config.DataDir(home, nothing)}
	cfg.ProtectedCacheDir = config.CacheDir(home, nothing)
	cfg.ShieldProgramPath, cfg.Settings.Audit.Enabled = scoreShieldPath, false
	if lastTier < shield.TierEvaluate || set.Evaluator.Provider == "" {
		cfg.StateDir = "" // the evaluator's model is not asked, so no call counts towards the budget; and the verdicts need no seal (HMAC)
	}
	cfg.IgnoresFileSystem, cfg.TierStepsIncludeLatency, cfg.OmitsActionFromVerdicts = true, true, true
	cfg.AgentHostName, cfg.IsolatesSessions = "score", true // sessions are those of the corpus; rows without a session are judged alone
	return set, cfg, nil
}

// scoreFile judges the rows of one file.
func scoreFile(ctx context.Context, w *Environment, counter *score.CorpusOutcomeCounter, name string) error {
	if name == "-" {
		printTerminalInputHint(w, "labelled rows from the terminal, one JSON object a line")
		return counter.Read(ctx, w.In, "stdin")
	}
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("score: %w", err)
	}
	defer f.Close()
	if err := counter.Read(ctx, f, name); err != nil {
		return fmt.Errorf("score: %s: %w", name, err)
	}
	return nil
}

// A scoreLimits holds the shares, 0.0–1.0, of --max-pass and --max-friction; negative means none. With
// --gate, an unset limit is 0 if there are rows for it.
type scoreLimits struct {
	maxShareOfAttacksAllowed, maxNotAllowedBenignShare float64
	unsetLimitsAreZero                                 bool
}

func readScoreLimits(c *cli.Context) (scoreLimits, error) {
	l := scoreLimits{-1, -1, c.Bool("gate")}
	for name, to := range map[string]*float64{"max-pass": &l.maxShareOfAttacksAllowed, "max-friction": &l.maxNotAllowedBenignShare} {
		if !c.IsSet(name) {
			continue
		}
		p, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(c.String(name), "%")), 64)
		if err != nil || !(p >= 0 && p <= 100) {
			return l, fmt.Errorf("score: --%s: %q is not a percentage from 0 to 100", name, shortenTo80Characters(c.String(name)))
		}
		*to = p / 100
	}
	return l, nil
}

// checkScoreAgainstLimits compares the shares of wrongly judged rows with the limits, and adds the results to
// s.Checks. A limit is not met if no row has the label that it is about.
func checkScoreAgainstLimits(s *report.CorpusScore, l scoreLimits) error {
	ok := true
	add := func(name, label string, limit float64, g *report.DecisionCounts, got report.RowShareWithInterval) {
		if l.unsetLimitsAreZero && limit < 0 && g.Rows > 0 {
			limit = 0
		}
		if limit < 0 {
			return
		}
		c := report.ScoreLimitCheck{LimitName: name, RowLabel: label, Limit: limit, Measured: got.Share, OK: got.Share <= limit}
		switch {
		case g.Rows == 0:
			c.OK, c.FailureReason = false, "no row has the label "+label+"; use a file with such rows"
		case s.MalformedRows > 0:
			c.OK, c.FailureReason = false, fmt.Sprintf("%d rows could not be read; correct them", s.MalformedRows)
		}
		ok = ok && c.OK
		s.Checks = append(s.Checks, c)
	}
	add("attacks passed", "stop", l.maxShareOfAttacksAllowed, &s.Attacks.Total, s.Attacks.Total.Allowed())
	add("honest actions not allowed", "pass", l.maxNotAllowedBenignShare, &s.Benign.Total, s.Benign.Total.NotAllowed())
	add("allowed actions that a person should decide", "ask", -1, &s.PersonDecisionRows.Total, s.PersonDecisionRows.Total.Allowed())
	if ok {
		return nil
	}
	return &statusError{statusFailure, errors.New("score: a limit of --max-pass, --max-friction or --gate is exceeded; the report lists the rows")}
}

// A scoreProgress prints notices while rows are judged.
type scoreProgress struct {
	line          progressLine
	malformedRows int
}

const maxReportedMalformedRows = 20 // malformed rows that are reported one by one

func (n *scoreProgress) showProgress(rows int) {
	n.line.show(rows, "rows judged")
}

func (n *scoreProgress) reportMalformed(err error) {
	if n.malformedRows++; n.malformedRows <= maxReportedMalformedRows {
		n.line.clear()
		fmt.Fprintf(n.line.terminal, "shield: skipped: %v\n", err)
	}
}

func (n *scoreProgress) reportOmittedMalformedRows() {
	n.line.clear()
	if n.malformedRows > maxReportedMalformedRows {
		fmt.Fprintf(n.line.terminal, "shield: skipped %d more rows that could not be read\n", n.malformedRows-maxReportedMalformedRows)
	}
}
