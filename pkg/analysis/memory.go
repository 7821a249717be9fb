package analysis

import (
	"slices"
	"strings"
	"time"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/effect"
)

// A Memory is what earlier actions of a session left behind, as far as judging an
// action needs it. One goroutine at a time asks it.
type Memory interface {
	// Labels returns what entered the session, in a fixed order.
	Labels() []effect.Label

	// Origin returns the labels of a file, see [effect.Place].
	Origin(path string) []effect.Label

	// Brought returns the paths of what came from elsewhere, see [effect.Place].
	Brought() *effect.Paths

	// Made reports whether the session created a file, see [effect.Place].
	Made(path string) bool

	// After reports whether an action of one of the kinds came before, within a
	// time, or within a number of actions where that is not 0.
	After(kinds []string, within time.Duration, actions int) bool

	// Err returns why nothing is known of the session, nil if all is. An action
	// that is more than a plain read must not be allowed then.
	Err() error
}

// Recall returns the analysed action of a session. A nil memory knows no earlier
// actions.
func (an *Analyzer) Recall(a *action.Action, m Memory) *Case {
	if m == nil {
		return an.Case(a)
	}
	with := *an
	with.Place.Origin, with.Place.Brought, with.Place.Made = m.Origin, m.Brought, m.Made
	if downloads := an.Place.Home + "/Downloads/"; an.Place.Home != "" {
		with.Place.Origin = func(path string) []effect.Label {
			labels := m.Origin(path)
			if strings.HasPrefix(path, downloads) { // browsers and mail programs put there what they fetch
				labels = appendNewLabels(slices.Clone(labels), effect.LabelNetwork)
			}
			return labels
		}
	}
	c := with.Case(a)
	c.Memory = m
	return c
}

// Remembers reports whether a label is one of the session's.
func (c *Case) Remembers(l effect.Label) bool {
	return c.Memory != nil && slices.Contains(c.Memory.Labels(), l)
}

// addLeftFiles adds the labelled files that an action of a file tool leaves behind.
func (c *Case) addLeftFiles() {
	if c.Action.Type == "execute_command" {
		return
	}
	var labels []effect.Label
	for i := range c.Effects {
		switch e := &c.Effects[i]; e.Kind {
		case effect.HTTPRequest:
			if c.Action.Type == "download_file" || strings.HasPrefix(c.Action.Type, "browser_") {
				labels = appendNewLabels(labels, effect.LabelNetwork)
			}
		case effect.ReadFile, effect.MoveFile:
			if effect.SecretPath(e.Path, e.Pattern) {
				labels = appendNewLabels(labels, effect.LabelSecret)
			}
			if c.place.Origin != nil && !e.Pattern {
				labels = appendNewLabels(labels, c.place.Origin(e.Path)...)
			}
		}
	}
	if len(labels) == 0 {
		return
	}
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Kind == effect.WriteFile && !e.Pattern {
			c.Files = append(c.Files, effect.File{Path: e.Path, Tree: e.Recursive, Labels: labels})
		}
	}
}

func appendNewLabels(to []effect.Label, more ...effect.Label) []effect.Label {
	for _, l := range more {
		if !slices.Contains(to, l) {
			to = append(to, l)
		}
	}
	return to
}
