package scan

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/host"
	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A conversation replays one task of a host. It implements [recordSink].
type conversation struct {
	ctx     context.Context //nolint:containedctx // of one replay, for the sink
	scanner *scanner
	id      string
	host    *host.Host
	counts  *callCounts

	cwd, workspaceRoot, home string
	overlay                  *fileOverlay
	pipeline                 CallJudgingPipeline // nil before the first call
	pipelineOpenError        error               // why the calls cannot be judged

	pendingCalls              map[string]*callAwaitingResult
	lastCallHash              uint64 // hash of the previous call
	consecutiveEqualCallCount int    // how many times in a row the previous call occurred
	currentLoop               *CallLoop
}

// A callAwaitingResult is a call that was judged and has no result yet.
type callAwaitingResult struct {
	call       toolCall
	actions    []*action.Action
	judgedCall *judgedCall
}

// A judgedCall is a call with shield's decision.
type judgedCall struct {
	decision             verdict.Decision
	action               *action.Action
	verdict              verdict.Verdict
	askingRule           string // the policy rule that asked the user, if any
	dependsOnMissingFile bool   // action would be allowed if the missing files were empty; the call counts as not judged
}

// maxPendingCalls is the maximum number of calls that wait for results.
const maxPendingCalls = 4096

// minLoopCalls is the number of equal calls in a row that counts as a loop.
const minLoopCalls = 20

func (s *scanner) newConversation(ctx context.Context, f transcript) (*conversation, error) {
	h, err := host.Named(f.source.Host)
	if err != nil {
		return nil, err
	}
	return &conversation{ctx: ctx, scanner: s, id: f.conversationID, host: h, counts: newCallCounts(), pendingCalls: map[string]*callAwaitingResult{}}, nil
}

func (c *conversation) handleFolderChange(cwd string) {
	if cwd != c.cwd {
		c.cwd = cwd
		if c.overlay != nil {
			c.overlay.addEmptyFolder(cwd)
		}
	}
}

// openJudgingPipeline opens the pipeline that judges the conversation's calls. The workspace root
// is the conversation's working folder at its first call.
func (c *conversation) openJudgingPipeline() error {
	c.workspaceRoot = c.cwd
	c.home = HomeFromWorkingFolder(c.workspaceRoot, c.scanner.opts.Home)
	c.overlay = newFileOverlay(c.home)
	c.overlay.addEmptyFolder(c.home)
	c.overlay.addEmptyFolder(c.workspaceRoot)
	var err error
	c.pipeline, err = c.scanner.opts.OpenPipeline(c.host.Name, c.home, c.workspaceRoot, c.overlay)
	return err
}

var homeFolderPattern = prefilter.LazyRegexp(`^(/home/[^/]+|/Users/[^/]+|/root|[A-Za-z]:[\\/]Users[\\/][^\\/]+)(?:[\\/]|$)`)

// HomeFromWorkingFolder returns the home folder of the user who worked in workingFolder, derived
// from its path; defaultHome if the path does not show it.
func HomeFromWorkingFolder(workingFolder, defaultHome string) string {
	if defaultHome != "" && (workingFolder == defaultHome || strings.HasPrefix(workingFolder, defaultHome+"/")) {
		return defaultHome
	}
	if m := homeFolderPattern().FindStringSubmatch(workingFolder); m != nil {
		return m[1]
	}
	return defaultHome
}

func (c *conversation) countUnknownRecordKind(kind string) {
	c.counts.countUnknownRecordKind(c.host.Name, c.printableLine(kind, 60))
}

func (c *conversation) handleCall(x toolCall) {
	if c.pipelineOpenError != nil || c.ctx.Err() != nil {
		return
	}
	key := callAndIDHashFunc(&x)
	if len(x.id) >= 16 && c.scanner.wasCallSeen(key(x.id)) {
		c.counts.duplicatesAcrossTranscripts++
		return
	}
	if c.pipeline == nil {
		if c.pipelineOpenError = c.openJudgingPipeline(); c.pipelineOpenError != nil {
			c.pipelineOpenError = fmt.Errorf("%s: %w", c.id, c.pipelineOpenError)
			return
		}
	}
	c.countConsecutiveEqualCalls(key(""), &x)
	c.counts.calls++
	c.scanner.judgedCallCount.Add(1)
	actions, out := c.judgeCall(&x)
	c.counts.countCall(c, &x, out)
	if len(c.pendingCalls) < maxPendingCalls {
		c.pendingCalls[x.id] = &callAwaitingResult{x, actions, out}
	}
}

// callAndIDHashFunc returns a function that hashes a call: its tool, its input and the given ID. With the
// ID "", equal calls have the same hash.
func callAndIDHashFunc(call *toolCall) func(id string) uint64 {
	return func(id string) uint64 {
		h := fnv.New64a()
		fmt.Fprintf(h, "%d %s %d %s %s", len(id), id, len(call.tool), call.tool, call.input) // a hash does not fail
		return h.Sum64()
	}
}

// judgeCall judges a call as the hook would, and returns its actions.
func (c *conversation) judgeCall(x *toolCall) (actions []*action.Action, out *judgedCall) {
	cwd := cmp.Or(x.cwd, c.cwd)
	c.overlay.addEmptyFolder(cwd)
	refused := func(err error) *judgedCall {
		return &judgedCall{decision: verdict.Block, verdict: verdict.Verdict{Decision: verdict.Block, ErrorCode: "unreadable", Reasoning: err.Error()}}
	}
	raws, internal, err := c.host.Actions(c.ctx, host.TranscriptToolCall{Tool: x.tool, Input: x.input, ID: x.id, CWD: cwd, SessionID: c.id})
	if internal {
		return nil, &judgedCall{decision: verdict.Allow}
	}
	if err != nil {
		return nil, refused(err)
	}
	out = &judgedCall{decision: verdict.Allow}
	c.overlay.hasReadMissingFile, c.overlay.treatsMissingFilesAsEmpty = false, false
	for _, raw := range raws {
		a, err := action.Parse(raw)
		if err != nil {
			return actions, refused(err)
		}
		actions = append(actions, a)
		if a.Type == "write_file" {
			c.overlay.recordTextBeforeEdit(c.pipeline.AnalyzeAction(a))
		}
		v, trail := c.pipeline.Judge(c.ctx, a)
		if v.Decision > out.decision {
			out.decision, out.verdict, out.action = v.Decision, v, a
			for _, step := range trail {
				if step.Tier == 0 && step.Decision == verdict.Escalate && step.JudgeName == "policy" {
					out.askingRule = step.Rule
				}
			}
		}
	}
	if out.decision != verdict.Allow && c.overlay.hasReadMissingFile {
		c.overlay.treatsMissingFilesAsEmpty = true
		out.dependsOnMissingFile = c.pipeline.JudgeWithoutRecording(c.ctx, out.action).Decision == verdict.Allow
		c.overlay.treatsMissingFilesAsEmpty = false
	}
	return actions, out
}

// countConsecutiveEqualCalls counts equal calls in a row.
func (c *conversation) countConsecutiveEqualCalls(callHash uint64, call *toolCall) {
	if callHash != c.lastCallHash {
		c.lastCallHash, c.consecutiveEqualCallCount, c.currentLoop = callHash, 0, nil
	}
	switch c.consecutiveEqualCallCount++; {
	case c.currentLoop != nil:
		c.currentLoop.Times = c.consecutiveEqualCallCount
	case c.consecutiveEqualCallCount == minLoopCalls:
		c.currentLoop = c.counts.addLoop(CallLoop{Times: c.consecutiveEqualCallCount, ExampleCall: c.printableLine(call.tool+" "+string(call.input), maxExampleCallColumns), TranscriptPosition: c.formatPlace(call.place)})
	}
}

func (c *conversation) handleResult(r toolResult) {
	if c.pipelineOpenError != nil || c.ctx.Err() != nil {
		return
	}
	w := c.pendingCalls[r.callID]
	if w == nil {
		return
	}
	delete(c.pendingCalls, r.callID)
	c.counts.addCredentials(c, w, r.value, r.place)
	out := w.judgedCall
	if r.status == outcomeRefusedByUserOrHost {
		c.counts.refusedInTranscript++
		return
	}
	command := len(w.actions) == 1 && w.actions[0].Type == "execute_command"
	if r.status == outcomeFailed && !command {
		return
	}
	if out.decision == verdict.Block && !out.dependsOnMissingFile && out.action != nil {
		c.counts.addDangerous(c, &w.call, out)
	}
	if out.decision == verdict.Escalate && out.askingRule != "" && !out.dependsOnMissingFile && command {
		c.counts.addApproval(c.workspaceRoot, policy.Approval{Command: out.action.Text("command"), CWD: out.action.CWD, Rule: out.askingRule})
	}
	if len(w.actions) > 0 {
		// On an error the session does not learn of the result, as if the hook had not been called.
		if err := c.pipeline.ExamineAndRecordToolResult(c.ctx, w.actions, r.value); err != nil {
			c.counts.countUnknownRecordKind(c.host.Name, "a tool result that could not be scanned")
		}
	}
	c.overlay.treatsMissingFilesAsEmpty = false
	for _, a := range w.actions {
		switch a.Type {
		case "execute_command", "write_file", "delete_file", "move_file", "copy_file", "create_directory", "delete_directory", "move_directory":
			c.overlay.applyEffects(c.pipeline.AnalyzeAction(a))
		case "read_file":
			c.overlay.recordReadFile(a, c.pipeline.AnalyzeAction(a), r.value)
		}
	}
}

// dropPendingCalls drops the calls without a result at the end of a transcript.
func (c *conversation) dropPendingCalls() {
	c.counts.withoutResult += len(c.pendingCalls)
	clear(c.pendingCalls)
	c.lastCallHash, c.consecutiveEqualCallCount, c.currentLoop = 0, 0, nil
}

func (c *conversation) closePipeline() {
	if c.pipeline != nil {
		c.pipeline.Close()
	}
}

func (c *conversation) formatPlace(p transcriptPosition) string {
	return fmt.Sprintf("%s:%d", term.EscapeControlAndInvisible(p.file), p.line)
}

// maxExampleCallColumns is the number of characters shown of a call.
const maxExampleCallColumns = 160

// printableLine returns a text on one line, without credentials and terminal control characters.
func (c *conversation) printableLine(text string, most int) string {
	if len(text) > 64<<10 {
		text = strings.ToValidUTF8(text[:64<<10], "")
	}
	text = c.scanner.redactor.RedactText(text)
	return term.TruncateWithEllipsis(term.EscapeControlAndInvisible(strings.Join(strings.Fields(text), " ")), most)
}

// actionSummary returns the command, path or URL of an action.
func (c *conversation) actionSummary(a *action.Action, x *toolCall) string {
	if a != nil {
		for _, field := range []string{"command", "path", "url", "pattern"} {
			if text := a.Text(field); text != "" {
				if field == "command" {
					return c.printableLine(text, maxExampleCallColumns)
				}
				return c.printableLine(a.Type+" "+text, maxExampleCallColumns)
			}
		}
	}
	return c.printableLine(x.tool+" "+string(x.input), maxExampleCallColumns)
}

// resultText returns the strings in a result, up to a size limit.
func resultText(v any) string {
	const most = 512 << 10
	text, isText := v.(string)
	if !isText && v != nil {
		raw, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		text = string(raw)
	}
	if len(text) > most {
		text = text[:most]
	}
	return text
}

// credentialKinds returns the kinds of credentials in a text.
func credentialKinds(text string) (kinds []string) {
	known := map[string]bool{}
	for _, found := range redact.FindCredentialSpans(text) {
		if !known[found.KindName] {
			known[found.KindName] = true
			kinds = append(kinds, found.KindName)
		}
	}
	return kinds
}
