package knowledge

import "strings"

// A SettingForm describes a setting in configuration files that makes programs run or load other code.
type SettingForm struct {
	Files    []string // in the syntax of effect.Globs
	Setting  string   // RE2; the first group is the value
	Only     string   // RE2; a value without a match is harmless
	Harmless string   // RE2; a value that matches as a whole is harmless
}

// Runs returns the first value in a text that makes a program run code; "" if there is none.
func (f *SettingForm) Runs(text string) string {
	for _, m := range expression(f.Setting).FindAllStringSubmatch(text, maxValues) {
		value := strings.TrimSpace(m[1])
		if expression(f.Only).MatchString(value) && (f.Harmless == "" || !expression(`^(?:`+f.Harmless+`)$`).MatchString(value)) {
			return value
		}
	}
	return ""
}

// maxValues is the maximum number of settings of a form that are examined in one text. Real configuration
// files have fewer.
const maxValues = 4096
