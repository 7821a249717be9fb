package knowledge

import "strings"

// A SettingForm is a setting in files of some names by which programs run or load
// something else than what their command line says.
type SettingForm struct {
	Files    []string // globs, as of effect.Globs
	Setting  string   // RE2; the first group is the value
	Only     string   // RE2; a value without a match runs nothing of note
	Harmless string   // RE2; a value that matches completely runs nothing of note
}

// Runs returns the first value in a text by which a program runs something, or "".
func (f *SettingForm) Runs(text string) string {
	for _, m := range expression(f.Setting).FindAllStringSubmatch(text, maxValues) {
		value := strings.TrimSpace(m[1])
		if expression(f.Only).MatchString(value) && (f.Harmless == "" || !expression(`^(?:`+f.Harmless+`)$`).MatchString(value)) {
			return value
		}
	}
	return ""
}

// maxValues bounds the settings of one form that are looked at in one text; a text
// with more is not a file of settings that people write.
const maxValues = 4096
