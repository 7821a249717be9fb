package rulefile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/shieldcli/shield/internal/suggest"
	"github.com/shieldcli/shield/internal/yamlfile"
)

// A Session is the criterion of a rule on earlier actions of the session. All given parts must hold.
type Session struct {
	Labels                    []string      // one of these must hold: a label, or several joined by "+"
	EarlierActionTypesOrKinds []string      // action types or kinds of effects, one of which an earlier action must have
	Within                    time.Duration // maximum age of the action that matches EarlierActionTypesOrKinds; 0 means any
	MaxActionsAgo             int           // how many actions ago the one that matches EarlierActionTypesOrKinds may be; 0 means any number
	SendsEarlierReadValue     string        // "true" or "false": an effect carries, or does not carry, a value that the session has seen; "": either
}

// Empty reports whether the criterion is not given.
func (s *Session) Empty() bool {
	return len(s.Labels) == 0 && len(s.EarlierActionTypesOrKinds) == 0 && s.SendsEarlierReadValue == ""
}

// String returns the criterion as policy files write it; "" if it is not given.
func (s *Session) String() string {
	if s.Empty() {
		return ""
	}
	var parts []string
	add := func(key, value string) {
		if value != "" {
			parts = append(parts, key+": "+value)
		}
	}
	add("labels", strings.Join(s.Labels, ", "))
	add("after", strings.Join(s.EarlierActionTypesOrKinds, ", "))
	switch {
	case s.MaxActionsAgo > 0:
		add("within", fmt.Sprintf("%d actions", s.MaxActionsAgo))
	case s.Within > 0:
		add("within", s.Within.String())
	}
	add("value_flow", s.SendsEarlierReadValue)
	return strings.Join(parts, "; ")
}

// sessionLabels are the labels that a rule can require of a session: it has read credentials (secret), private
// data, or untrusted text.
var sessionLabels = []string{"secret", "private", "untrusted"}

var sessionKeys = []string{"labels", "after", "within", "value_flow"}

// parseSession reads the session criterion of a rule.
func parseSession(n ast.Node) (s Session, err error) {
	fs, err := yamlfile.Fields(n, sessionKeys)
	if err != nil {
		return s, err
	}
	within := (*yamlfile.Field)(nil)
	for i, f := range fs {
		switch f.Key {
		case "labels":
			s.Labels, err = parseStringOrStringList(f, maxLabelBytes, checkSessionLabels)
		case "after":
			s.EarlierActionTypesOrKinds, err = parseStringOrStringList(f, 80, nil)
		case "within":
			within = &fs[i]
			err = s.parseSessionWindow(f.Value)
		case "value_flow":
			s.SendsEarlierReadValue, err = parseBoolAsText(f.Value)
		}
		if err != nil {
			return s, err
		}
	}
	switch {
	case s.Empty() && within == nil:
		return s, yamlfile.PositionOf(n).Errorf("session has no criterion; add labels, after or value_flow")
	case within != nil && len(s.EarlierActionTypesOrKinds) == 0:
		return s, within.KeyPos.Errorf("\"within\" limits the time since the actions under \"after\", which are missing; add \"after\", or remove \"within\"")
	}
	return s, nil
}

const (
	maxLabelBytes           = 60 // maximum length of an entry in a rule's list of session labels, in bytes
	maxSessionWindow        = 30 * 24 * time.Hour
	maxSessionWindowActions = 100_000
)

func checkSessionLabels(entry string) error {
	for label := range strings.SplitSeq(entry, "+") {
		if !slices.Contains(sessionLabels, label) {
			return fmt.Errorf("%q is not a label of a session%s; use one of %s", label, suggest.DidYouMeanSuffix(label, sessionLabels), strings.Join(sessionLabels, ", "))
		}
	}
	return nil
}

// parseSessionWindow reads a duration, or a number of actions.
func (s *Session) parseSessionWindow(n ast.Node) error {
	t, err := parseText(n, 40, nil)
	if err != nil {
		return err
	}
	if count, ok := strings.CutSuffix(t, " actions"); ok {
		s.MaxActionsAgo, err = strconv.Atoi(count)
		if err == nil && s.MaxActionsAgo >= 1 && s.MaxActionsAgo <= maxSessionWindowActions {
			return nil
		}
	} else if s.Within, err = time.ParseDuration(t); err == nil && s.Within >= time.Second && s.Within <= maxSessionWindow {
		return nil
	}
	return yamlfile.PositionOf(n).Errorf("within %s is neither a time, such as 30m, nor a number of actions, such as \"64 actions\"", yamlfile.QuoteForMessage(t))
}
