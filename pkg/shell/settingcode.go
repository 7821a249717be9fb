package shell

import (
	"path"
	"sync"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// codeRunningSettingsFiles match the file names of each entry of [knowledge.SettingForms], the
// settings that make programs run code.
var codeRunningSettingsFiles = sync.OnceValue(func() *globListMatcher {
	return newGlobListMatcher(len(knowledge.SettingForms), func(i int) []string { return knowledge.SettingForms[i].Files })
})

// isCodeRunningSettingsFile reports whether a file can contain settings that make programs run code
// ([knowledge.SettingForms]).
func isCodeRunningSettingsFile(file string) bool {
	return len(codeRunningSettingsFiles().matchingLists(file)) > 0
}

// settingsFileCodeEffects returns the effects of code that a settings file makes programs run or load.
func settingsFileCodeEffects(file, text string) []effect.Effect {
	for _, i := range codeRunningSettingsFiles().matchingLists(file) {
		if value := knowledge.SettingForms[i].FirstCodeRunningValue(text); value != "" {
			return []effect.Effect{{Certainty: effect.Unknown, Cause: effect.CauseFileLoadedViaVariable, Path: file,
				Reason: path.Base(file) + " contains a setting that programs run as a command: " + abstract.ClipForMessage(value)}}
		}
	}
	return nil
}
