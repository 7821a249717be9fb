package knowledge

import "strings"

// A CodeRunningSetting describes a setting in configuration files that makes programs run or load other code.
type CodeRunningSetting struct {
	Files                   []string // in the syntax of effect.Globs
	SettingPattern          string   // RE2; the first group is the value
	CodeRunningValuePattern string   // RE2; a value without a match is harmless
	HarmlessValuePattern    string   // RE2; a value that matches as a whole is harmless
}

// FirstCodeRunningValue returns the first value in a text that makes a program run code; "" if there is none.
func (f *CodeRunningSetting) FirstCodeRunningValue(text string) string {
	for _, m := range cachedRegexp(f.SettingPattern).FindAllStringSubmatch(text, maxSettingMatchesPerText) {
		value := strings.TrimSpace(m[1])
		if cachedRegexp(f.CodeRunningValuePattern).MatchString(value) && (f.HarmlessValuePattern == "" || !cachedRegexp(`^(?:`+f.HarmlessValuePattern+`)$`).MatchString(value)) {
			return value
		}
	}
	return ""
}

// maxSettingMatchesPerText is the maximum number of matches of one code-running setting that are examined
// in a text. Real configuration files have fewer.
const maxSettingMatchesPerText = 4096
