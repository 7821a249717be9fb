package config

import (
	"path/filepath"
	"strings"
	"testing"
)

const (
	otherKey = "RWSq6thomRGgWp9b5XERVH3p+qnIhw9GIyLBi9NoXLvdNEzsN6+d5C77"
)

func TestBundleSettings(t *testing.T) {
	t.Parallel()
	system := write(t, "policy: {bundle: 'https://a.test/acme.tar.gz', keys: ["+otherKey+"], grace: 1h}\n")
	locking := write(t, "locked: {policy: {keys: ["+otherKey+"], bundle: acme.tar.gz}}\n")
	flag := func(s *Settings) []string { s.PolicyNameOrPath = "strict"; return []string{"policy"} }
	for name, tt := range map[string]struct {
		src          Sources
		source, keys string
		grace        string
	}{
		"nothing":                            {Sources{}, "", "", "72h"},
		"the system's":                       {Sources{SystemSettingsPath: system}, "https://a.test/acme.tar.gz", otherKey, "1h"},
		"a file, from the folder of its own": {Sources{UserSettingsPath: write(t, "policy: {keys: ["+otherKey+"], bundle: acme.tar.gz}\n")}, "*/acme.tar.gz", otherKey, "72h"},
		"the user's instead, all of it":      {Sources{SystemSettingsPath: system, UserSettingsPath: write(t, "policy: {bundle: /b.tar.gz, keys: ["+otherKey+", "+otherKey+"]}\n")}, "/b.tar.gz", otherKey + " " + otherKey, "72h"},
		"a preset instead":                   {Sources{SystemSettingsPath: system, UserSettingsPath: write(t, "policy: strict\n")}, "", "", "72h"},
		"a flag instead":                     {Sources{SystemSettingsPath: system, ApplyFlagsAndListChanged: flag}, "", "", "72h"},
		"only layers":                        {Sources{SystemSettingsPath: system, UserSettingsPath: write(t, "layers: {user: mine.yaml}\n")}, "https://a.test/acme.tar.gz", otherKey, "1h"},
		"locked against a preset":            {Sources{SystemSettingsPath: locking, UserSettingsPath: write(t, "policy: strict\n")}, "*/acme.tar.gz", otherKey, "72h"},
		"locked against a flag":              {Sources{SystemSettingsPath: locking, ApplyFlagsAndListChanged: flag}, "*/acme.tar.gz", otherKey, "72h"},
		"locked against another source":      {Sources{SystemSettingsPath: locking, UserSettingsPath: write(t, "policy: {bundle: /b.tar.gz, keys: ["+otherKey+"], grace: 700h}\n")}, "*/acme.tar.gz", otherKey, "72h"},
	} {
		tt.src.PresetPolicyNames = presets
		l, err := Load(tt.src)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := l.PolicyBundle
		match, _ := filepath.Match(tt.source, "*/"+filepath.Base(got.URLOrPath))
		if got.URLOrPath != tt.source && !(match && filepath.IsAbs(got.URLOrPath)) || strings.Join(got.MinisignPublicKeys, " ") != tt.keys || got.ExpiryGracePeriod.String() != tt.grace {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestBundleSettingsAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"policy: {bundle: https://a.test/b}\n":                                   ":1:18: policy.bundle: needs policy.keys",
		"policy: {keys: [" + otherKey + "]}\n":                                   "policy.keys: needs policy.bundle",
		"policy: {bundle: 'https://a.test/b', keys: [RWabc]}\n":                  `policy.keys: "RWabc" is not a minisign public key`,
		"policy: {bundle: 'http://a.test/b', keys: [" + otherKey + "]}\n":        "policy.bundle: the address is neither a file nor an https URL",
		"policy: {bundle: 'https://me:x@a.test/b', keys: [" + otherKey + "]}\n":  "policy.bundle: the URL must not contain",
		"policy: {bundle: /b, keys: [" + otherKey + "], grace: 8000h}\n":         "policy.grace: must be from 0s to 720h",
		"policy: {bundel: /b}\n":                                                 `unknown key "policy.bundel"; did you mean "bundle"?`,
		"policy: {}\nlayers: {organisation: a.yaml}\n":                           `unknown key "layers.organisation"`,
		"policy: {bundle: , keys: [" + otherKey + "]}\n":                         "policy.bundle has no value",
		"locked: {policy: {bundle: '/b'}}\npolicy: {keys: [" + otherKey + "]}\n": "needs policy.keys",
		"policy: {bundle: '$HOME/b', keys: [" + otherKey + "]}\n":                "variables are not expanded",
		"policy: {bundle: '/b', keys: [" + strings.ToLower(otherKey) + "]}\n":    "not a minisign public key",
	} {
		l, err := LoadDespiteErrors(Sources{SystemSettingsPath: write(t, text), PresetPolicyNames: presets})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
		if l.PolicyBundle.URLOrPath != "" && len(l.PolicyBundle.MinisignPublicKeys) > 0 && !strings.Contains(text, "grace") {
			t.Errorf("%q: %+v is left", text, l.PolicyBundle)
		}
	}
}
