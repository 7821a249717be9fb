package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A Duration is a time span, written as in "300s" or "5m".
type Duration time.Duration

// String returns the form for a settings file, without trailing zero units such as "0s".
func (d Duration) String() string {
	s := time.Duration(d).String()
	if short, ok := strings.CutSuffix(s, "m0s"); ok {
		s = short + "m"
	}
	if short, ok := strings.CutSuffix(s, "h0m"); ok {
		s = short + "h"
	}
	return s
}

// AsTimeDuration returns the span as a [time.Duration].
func (d Duration) AsTimeDuration() time.Duration { return time.Duration(d) }

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 300s", b)
	}
	*d = Duration(v)
	return nil
}

// AutoChannels lets shield choose the channel: the prompt of the calling agent host, the terminal,
// or the approval web page.
const AutoChannels = "auto"

// ApprovalChannels are the ways to ask a person for approval, for example "tty" or "web". In a settings file,
// the word "auto" ([AutoChannels]) can replace the list.
type ApprovalChannels []string

// IsChosenByShield reports whether shield chooses the channel.
func (c ApprovalChannels) IsChosenByShield() bool { return len(c) == 1 && c[0] == AutoChannels }

// UnattendedWaitDuration returns how long a question waits on the approval web page when no user can be reached; 0
// denies the action at once.
func (a *Approval) UnattendedWaitDuration() (time.Duration, error) {
	if a.UnattendedDenyOrWait == "deny" || a.UnattendedDenyOrWait == "" {
		return 0, nil
	}
	word, span, _ := strings.Cut(a.UnattendedDenyOrWait, " ")
	d, err := time.ParseDuration(strings.TrimSpace(span))
	switch {
	case word != "wait" || err != nil:
		return 0, fmt.Errorf("%.40q is not valid; write deny, or wait and a duration, such as: wait 10m", a.UnattendedDenyOrWait)
	case d <= 0 || d > 24*time.Hour:
		return 0, fmt.Errorf("the time to wait must be from 1s to 24h, not %v; write for example: wait 10m", d)
	}
	return d, nil
}

// A Switch is on, off, or automatic.
type Switch string

// The values of a [Switch], as written in settings files.
const (
	On   Switch = "true"
	Off  Switch = "false"
	Auto Switch = "auto"
)

// MarshalJSON implements [json.Marshaler]: true, false or "auto".
func (s Switch) MarshalJSON() ([]byte, error) {
	if s == On || s == Off {
		return []byte(s), nil
	}
	return json.Marshal(string(s))
}

// ActionTypeListOrModelDefault is a list of action types, or the model's own list.
type ActionTypeListOrModelDefault struct {
	UsesModelOwnList bool // use the list in the model's file shield.json, and ignore List
	List             []string
}

// MarshalJSON implements [json.Marshaler]: "auto" or a list.
func (t ActionTypeListOrModelDefault) MarshalJSON() ([]byte, error) {
	if t.UsesModelOwnList {
		return []byte(`"auto"`), nil
	}
	return json.Marshal(append([]string{}, t.List...))
}
