// Package analysis turns an action into a [Case]: the action, its effects, and
// the views in which rules and models read its text. Every tier judges a Case.
package analysis

import (
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A Case is one action with everything that tiers know of it. A Case belongs
// to one goroutine at a time.
type Case struct {
	Action  *action.Action
	Effects []effect.Effect
	Trail   []verdict.Step // what earlier tiers and classifiers said
	MinTier int            // least tier that may allow: the strictest of action, type and policy, 0–3

	// Unexamined says why part of the action was not analysed or scanned; "" if
	// all of it was. Such a case is never allowed below a person or an evaluator.
	// [Case.Views] may set it.
	Unexamined string

	// Met holds for each of Effects the rules that count for it, noted by the
	// tiers with [Case.Meet]; nil if nobody asks.
	Met [][]Met

	shell   Shell
	written Written
	place   effect.Place
	words   string // of the command, resolved
	views   []View
}

// At returns the place the action is judged in; its CWD is the action's.
func (c *Case) At() *effect.Place { return &c.place }

// unexamined notes that part of the action was not read. The first reason
// stays.
func (c *Case) unexamined(why string) {
	if c.Unexamined == "" {
		c.Unexamined = why
	}
}

// dynamic adds an effect that cannot be resolved.
func (c *Case) dynamic(cause effect.Cause, why string) {
	c.Effects = append(c.Effects, effect.Effect{Kind: effect.Dynamic, Cause: cause, Reason: why})
}

// A Shell says what running text for a shell would do in a place, as
// shell.Analyze does. Text that it cannot read has a Dynamic effect. Goroutines
// share it.
type Shell func(text string, at *effect.Place) effect.Result

// Written says what a file with a text leads to once it runs, as shell.Written
// does. The path is canonical. Goroutines share it.
type Written func(file, text string, at *effect.Place) []effect.Effect

// An Analyzer makes Cases. Goroutines may share it. The zero Analyzer knows no
// folder, reads no file, and takes each command for one that cannot be known.
type Analyzer struct {
	Shell   Shell
	Written Written      // reads what is written to files; nil reads none
	Place   effect.Place // of actions that name no folder; CWD is the first root

	trust *trust // nil trusts this machine alone
}

// Bounds of one analysis; what is beyond makes the case dynamic or unexamined.
const (
	maxCommand = 64 << 10 // bytes
	maxDepth   = 200      // brackets within each other
	maxEffects = 512
	maxLinks   = 64 // paths whose symbolic links are resolved
	maxLeaves  = 256
)

// Case returns the analysed action.
func (an *Analyzer) Case(a *action.Action) *Case {
	c := &Case{Action: a, shell: an.Shell, written: an.Written, place: an.Place, MinTier: max(a.MinTier, MinTier(a.Type))}
	if a.CWD != "" {
		// The agent says where it is. That makes no folder a workspace: roots
		// come from the person.
		cwd, isPattern := (&effect.Place{Home: an.Place.Home}).Path(a.CWD, false)
		if c.place.CWD = cwd; isPattern {
			c.place.CWD = ""
		}
	}
	c.tool()
	c.bound()
	c.content()
	c.resolve()
	c.persist()
	an.trust.mark(c.Effects)
	return c
}

// bound cuts the effects where they are too many to judge.
func (c *Case) bound() {
	if len(c.Effects) > maxEffects {
		c.Effects = c.Effects[:maxEffects]
		c.dynamic(effect.CauseLimit, "more effects than are judged")
		c.unexamined("more effects than are judged")
	}
}

// resolve adds what effects touch behind symbolic links. The path as it was
// written stays: rules name files by either.
func (c *Case) resolve() {
	links := c.place.Links
	if links == nil {
		return
	}
	asked := 0
	for i, n := 0, len(c.Effects); i < n; i++ {
		e := c.Effects[i]
		if e.Path == "" || i > 0 && e.Path == c.Effects[i-1].Path && e.Kind == c.Effects[i-1].Kind {
			continue
		}
		if asked++; asked > maxLinks {
			c.dynamic(effect.CauseLimit, "more paths than are looked up")
			return
		}
		if path, ok := followed(e.Path, e.Pattern, links); ok {
			e.Path = path
			c.Effects = append(c.Effects, e)
		}
	}
}

// persist adds an effect for each file that is written and runs code later.
func (c *Case) persist() {
	for i, n := 0, len(c.Effects); i < n; i++ {
		e := c.Effects[i]
		switch e.Kind {
		case effect.WriteFile, effect.ChangePermissions:
		default:
			continue
		}
		if e.Path == "" || e.Path == "/dev/null" {
			continue
		}
		if class := effect.Persists(e.Path, e.Pattern, e.Recursive); class != "" {
			c.Effects = append(c.Effects, effect.Effect{
				Kind: effect.Persist, Path: e.Path, Pattern: e.Pattern, Recursive: e.Recursive, Reason: class, From: e.From,
			})
		}
	}
}
