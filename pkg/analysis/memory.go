package analysis

import (
	"slices"
	"strings"
	"time"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/effect"
)

// A SessionState is the state that earlier actions of a session left, as far as judging needs it.
// It is used by one goroutine at a time.
type SessionState interface {
	// Labels returns the labels of data that entered the session, in a fixed order.
	Labels() []effect.TaintLabel

	// FileOriginLabels returns the labels of a file, see [effect.PathContext].
	FileOriginLabels(path string) []effect.TaintLabel

	// DownloadedOrDecodedPaths returns the paths of files that the session downloaded, decoded, unpacked or
	// cloned, see [effect.PathContext].
	DownloadedOrDecodedPaths() *effect.PathList

	// HasCreated reports whether the session created a file, see [effect.PathContext].
	HasCreated(path string) bool

	// HasRecentAction reports whether an earlier action of the session had one of the action types or kinds of
	// effects, within a duration and within a number of actions. A limit of 0 means no limit.
	HasRecentAction(kinds []string, within time.Duration, actions int) bool

	// Err returns why the state of the session is not known, nil if it is. With an error, only plain reads
	// may be allowed.
	Err() error
}

// CaseWithSessionState returns the analysed action of a session. If m is nil, no earlier actions
// are known.
func (an *Analyzer) CaseWithSessionState(a *action.Action, m SessionState) *ActionCase {
	if m == nil {
		return an.AnalyzeAction(a)
	}
	with := *an
	with.DefaultExecutionContext.OriginLabels, with.DefaultExecutionContext.DownloadedOrDecodedPaths, with.DefaultExecutionContext.IsFileCreatedBySession = m.FileOriginLabels, m.DownloadedOrDecodedPaths, m.HasCreated
	if downloads := an.DefaultExecutionContext.Home + "/Downloads/"; an.DefaultExecutionContext.Home != "" {
		with.DefaultExecutionContext.OriginLabels = func(path string) []effect.TaintLabel {
			labels := m.FileOriginLabels(path)
			if strings.HasPrefix(path, downloads) { // browsers and mail programs save files there
				labels = appendNewLabels(slices.Clone(labels), effect.LabelFromNetwork)
			}
			return labels
		}
	}
	c := with.AnalyzeAction(a)
	c.SessionState = m
	return c
}

// SessionHasLabel reports whether the session has a label.
func (c *ActionCase) SessionHasLabel(l effect.TaintLabel) bool {
	return c.SessionState != nil && slices.Contains(c.SessionState.Labels(), l)
}

// recordFilesWithTaintLabels records the labelled files that an action of a file tool leaves behind.
func (c *ActionCase) recordFilesWithTaintLabels() {
	if c.Action.Type == "execute_command" {
		return
	}
	var labels []effect.TaintLabel
	for i := range c.Effects {
		switch e := &c.Effects[i]; e.Kind {
		case effect.HTTPRequest:
			if c.Action.Type == "download_file" || strings.HasPrefix(c.Action.Type, "browser_") {
				labels = appendNewLabels(labels, effect.LabelFromNetwork)
			}
		case effect.ReadFile, effect.MoveFile:
			if effect.IsSecretPath(e.Path, e.PathIsPattern) {
				labels = appendNewLabels(labels, effect.LabelFromCredentialLocation)
			}
			if c.executionContext.OriginLabels != nil && !e.PathIsPattern {
				labels = appendNewLabels(labels, c.executionContext.OriginLabels(e.Path)...)
			}
		}
	}
	if len(labels) == 0 {
		return
	}
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Kind == effect.WriteFile && !e.PathIsPattern {
			c.LabelledFiles = append(c.LabelledFiles, effect.LabelledFile{Path: e.Path, IncludesDescendants: e.Recursive, Labels: labels})
		}
	}
}

func appendNewLabels(to []effect.TaintLabel, more ...effect.TaintLabel) []effect.TaintLabel {
	for _, l := range more {
		if !slices.Contains(to, l) {
			to = append(to, l)
		}
	}
	return to
}
