package config

import (
	"strings"
	"testing"
)

// TestEdit checks that an edit changes one setting, keeps the comments, and refuses a
// text in which it cannot.
func TestEdit(t *testing.T) {
	channels := SettingChange{"approval.channels", "[web]"}
	for _, c := range []struct {
		name, text string
		change     SettingChange
		want       string // "" for an error
	}{
		{"no file", "", channels, "approval: {channels: [web]}\n"},
		{"comment behind the value", "approval: {timeout: 5s}\npolicy: auto # mine\nfail_closed: true # yours\n", SettingChange{"policy", "strict"}, "approval: {timeout: 5s}\npolicy: strict # mine\nfail_closed: true # yours\n"},
		{"comment behind a list", "approval:\n  channels: [tty] # here\n  timeout: 60s\n", channels, "approval:\n  channels: [web] # here\n  timeout: 60s\n"},
		{"comments alone", "# mine\n", channels, "# mine\napproval: {channels: [web]}\n"},
		{"no newline at the end", "rate_limit: 5", channels, "rate_limit: 5\napproval: {channels: [web]}\n"},
		{"another setting of the section", "approval:\n  timeout: 60s # short\n", channels, "approval:\n  timeout: 60s # short\n  channels: [web]\n"},
		{"another value", "# mine\napproval:\n  # ask me\n  channels:\n    - tty\n  timeout: 60s\nrate_limit: 5 # few\n", channels,
			"# mine\napproval:\n  # ask me\n  channels: [web]\n  timeout: 60s\nrate_limit: 5 # few\n"},
		{"in braces", "approval: {channels: [tty], timeout: 60s}\n", channels, "approval: {channels: [web], timeout: 60s}\n"},
		{"everything in braces", "{rate_limit: 5}\n", channels, ""},
		{"no section of two", "rate_limit: 5\n", SettingChange{"policy", "strict"}, "rate_limit: 5\npolicy: strict\n"},
		{"a signed policy", "policy: {bundle: /x, keys: [RWQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA]}\n", SettingChange{"policy", "strict"}, ""},
		{"an invalid file", "aproval: 1\n", channels, ""},
		{"not YAML", "\t{", channels, ""},
		{"two documents", "rate_limit: 5\n---\nrate_limit: 6\n", channels, ""},
		{"an anchor", "approval: &a {timeout: 60s}\n", channels, ""},
	} {
		got, err := ApplyChangesToSettingsText(Sources{PresetPolicyNames: []string{"strict"}}, "/x/shield.yaml", []byte(c.text), c.change)
		switch {
		case c.want == "" && err == nil:
			t.Errorf("%s: no error, but\n%s", c.name, got)
		case c.want == "" && !strings.Contains(err.Error(), "/x/shield.yaml"):
			t.Errorf("%s: the error does not name the file: %v", c.name, err)
		case c.want != "" && (err != nil || string(got) != c.want):
			t.Errorf("%s: %v\n%s", c.name, err, got)
		}
	}
}
