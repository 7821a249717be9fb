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

// A conversation replays one task of a host. It implements [sink].
type conversation struct {
	ctx  context.Context //nolint:containedctx // of one replay, for the sink
	s    *scanner
	id   string
	host *host.Host
	t    *tally

	cwd, root, home string
	layer           *layer
	p               Pipeline // nil before the first call
	failed          error    // why the calls cannot be judged

	pending map[string]*pending
	last    uint64 // hash of the previous call
	times   int    // how many times in a row that call occurred
	loop    *Loop
}

// A pending call was judged and has no result yet.
type pending struct {
	call    call
	actions []*action.Action
	outcome *judged
}

// A judged call is a call with shield's decision.
type judged struct {
	decision verdict.Decision
	action   *action.Action
	v        verdict.Verdict
	asked    string // the policy rule that asked the user, if any
	cannot   bool   // not judged, because a file no longer exists
}

// maxPending is the maximum number of calls that wait for results.
const maxPending = 4096

// loopFrom is the number of equal calls in a row that counts as a loop.
const loopFrom = 20

func (s *scanner) newConversation(ctx context.Context, f file) (*conversation, error) {
	h, err := host.Named(f.source.Host)
	if err != nil {
		return nil, err
	}
	return &conversation{ctx: ctx, s: s, id: f.task, host: h, t: newTally(), pending: map[string]*pending{}}, nil
}

func (c *conversation) folder(cwd string) {
	if cwd != c.cwd {
		c.cwd = cwd
		if c.layer != nil {
			c.layer.enter(cwd)
		}
	}
}

// open creates the conversation's pipeline in its first folder.
func (c *conversation) open() error {
	c.root = c.cwd
	c.home = HomeOf(c.root, c.s.opts.Home)
	c.layer = newLayer(c.home)
	c.layer.enter(c.home)
	c.layer.enter(c.root)
	var err error
	c.p, err = c.s.opts.Open(c.host.Name, c.home, c.root, c.layer)
	return err
}

var homes = prefilter.Lazy(`^(/home/[^/]+|/Users/[^/]+|/root|[A-Za-z]:[\\/]Users[\\/][^\\/]+)(?:[\\/]|$)`)

// HomeOf returns the home folder of the user who worked in folder dir, derived from its path.
func HomeOf(dir, own string) string {
	if own != "" && (dir == own || strings.HasPrefix(dir, own+"/")) {
		return own
	}
	if m := homes().FindStringSubmatch(dir); m != nil {
		return m[1]
	}
	return own
}

func (c *conversation) unknown(kind string) { c.t.unknown(c.host.Name, c.show(kind, 60)) }

func (c *conversation) call(x call) {
	if c.failed != nil || c.ctx.Err() != nil {
		return
	}
	key := keyOf(&x)
	if len(x.id) >= 16 && c.s.repeated(key(x.id)) {
		c.t.repeated++
		return
	}
	if c.p == nil {
		if c.failed = c.open(); c.failed != nil {
			c.failed = fmt.Errorf("%s: %w", c.id, c.failed)
			return
		}
	}
	c.loops(key(""), &x)
	c.t.calls++
	c.s.calls.Add(1)
	actions, out := c.judge(&x)
	c.t.count(c, &x, out)
	if len(c.pending) < maxPending {
		c.pending[x.id] = &pending{x, actions, out}
	}
}

// keyOf returns a function that returns the hash of a call with an ID, or with "".
func keyOf(x *call) func(id string) uint64 {
	return func(id string) uint64 {
		h := fnv.New64a()
		fmt.Fprintf(h, "%d %s %d %s %s", len(id), id, len(x.tool), x.tool, x.input) // a hash does not fail
		return h.Sum64()
	}
}

// judge judges a call as the hook would, and returns its actions.
func (c *conversation) judge(x *call) (actions []*action.Action, out *judged) {
	cwd := cmp.Or(x.cwd, c.cwd)
	c.layer.enter(cwd)
	refused := func(err error) *judged {
		return &judged{decision: verdict.Block, v: verdict.Verdict{Decision: verdict.Block, Error: "unreadable", Reasoning: err.Error()}}
	}
	raws, internal, err := c.host.Actions(c.ctx, host.Call{Tool: x.tool, Input: x.input, ID: x.id, CWD: cwd, Session: c.id})
	if internal {
		return nil, &judged{decision: verdict.Allow}
	}
	if err != nil {
		return nil, refused(err)
	}
	out = &judged{decision: verdict.Allow}
	c.layer.absent, c.layer.assume = false, false
	for _, raw := range raws {
		a, err := action.Parse(raw)
		if err != nil {
			return actions, refused(err)
		}
		actions = append(actions, a)
		if a.Type == "write_file" {
			c.layer.before(c.p.Case(a))
		}
		v, trail := c.p.Judge(c.ctx, a)
		if v.Decision > out.decision {
			out.decision, out.v, out.action = v.Decision, v, a
			for _, step := range trail {
				if step.Tier == 0 && step.Decision == verdict.Escalate && step.Source == "policy" {
					out.asked = step.Rule
				}
			}
		}
	}
	if out.decision != verdict.Allow && c.layer.absent {
		c.layer.assume = true
		out.cannot = c.p.Peek(c.ctx, out.action).Decision == verdict.Allow
		c.layer.assume = false
	}
	return actions, out
}

// loops counts equal calls in a row.
func (c *conversation) loops(key uint64, x *call) {
	if key != c.last {
		c.last, c.times, c.loop = key, 0, nil
	}
	switch c.times++; {
	case c.loop != nil:
		c.loop.Times = c.times
	case c.times == loopFrom:
		c.loop = c.t.loop(Loop{Times: c.times, Example: c.show(x.tool+" "+string(x.input), maxExample), At: c.at(x.place)})
	}
}

func (c *conversation) result(r result) {
	if c.failed != nil || c.ctx.Err() != nil {
		return
	}
	w := c.pending[r.id]
	if w == nil {
		return
	}
	delete(c.pending, r.id)
	c.t.secrets(c, w, r.value, r.place)
	out := w.outcome
	if r.status == denied {
		c.t.refused++
		return
	}
	command := len(w.actions) == 1 && w.actions[0].Type == "execute_command"
	if r.status == failed && !command {
		return
	}
	if out.decision == verdict.Block && !out.cannot && out.action != nil {
		c.t.dangerous(c, &w.call, out)
	}
	if out.decision == verdict.Escalate && out.asked != "" && !out.cannot && command {
		c.t.approve(c.root, policy.Approval{Command: out.action.Text("command"), CWD: out.action.CWD, Rule: out.asked})
	}
	if len(w.actions) > 0 {
		// On an error the session does not learn of the result, as if the hook had not been called.
		if err := c.p.Returned(c.ctx, w.actions, r.value); err != nil {
			c.t.unknown(c.host.Name, "a tool result that could not be scanned")
		}
	}
	c.layer.assume = false
	for _, a := range w.actions {
		switch a.Type {
		case "execute_command", "write_file", "delete_file", "move_file", "copy_file", "create_directory", "delete_directory", "move_directory":
			c.layer.apply(c.p.Case(a))
		case "read_file":
			c.layer.reads(a, c.p.Case(a), r.value)
		}
	}
}

// ends drops the calls without a result at the end of a transcript.
func (c *conversation) ends() {
	c.t.open += len(c.pending)
	clear(c.pending)
	c.last, c.times, c.loop = 0, 0, nil
}

func (c *conversation) close() {
	if c.p != nil {
		c.p.Close()
	}
}

func (c *conversation) at(p place) string { return fmt.Sprintf("%s:%d", term.Escape(p.file), p.line) }

// maxExample is the number of characters shown of a call.
const maxExample = 160

// show returns a text on one line, without credentials and terminal control characters.
func (c *conversation) show(text string, most int) string {
	if len(text) > 64<<10 {
		text = strings.ToValidUTF8(text[:64<<10], "")
	}
	text = c.s.redact.String(text)
	return term.Cut(term.Escape(strings.Join(strings.Fields(text), " ")), most)
}

// gist returns the command, path or URL of an action.
func (c *conversation) gist(a *action.Action, x *call) string {
	if a != nil {
		for _, field := range []string{"command", "path", "url", "pattern"} {
			if text := a.Text(field); text != "" {
				if field == "command" {
					return c.show(text, maxExample)
				}
				return c.show(a.Type+" "+text, maxExample)
			}
		}
	}
	return c.show(x.tool+" "+string(x.input), maxExample)
}

// texts returns the strings in a result, up to a size limit.
func texts(v any) string {
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

// forms returns the kinds of credentials in a text.
func forms(text string) (kinds []string) {
	known := map[string]bool{}
	for _, found := range redact.Credentials(text) {
		if !known[found.Form] {
			known[found.Form] = true
			kinds = append(kinds, found.Form)
		}
	}
	return kinds
}
