package shell

import (
	"path"
	"sync"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// settingFiles match the file names of each of [knowledge.SettingForms].
var settingFiles = sync.OnceValue(func() *globLists {
	return newGlobLists(len(knowledge.SettingForms), func(i int) []string { return knowledge.SettingForms[i].Files })
})

// hasSettings reports whether a file is a settings file of a [knowledge.SettingForms] entry.
func hasSettings(file string) bool { return len(settingFiles().matchingLists(file)) > 0 }

// settingCodeEffects returns the effects of code that a settings file makes programs run or load.
func settingCodeEffects(file, text string) []effect.Effect {
	for _, i := range settingFiles().matchingLists(file) {
		if value := knowledge.SettingForms[i].FirstRunningValue(text); value != "" {
			return []effect.Effect{{Certainty: effect.Unknown, Cause: effect.CauseLoadedFile, Path: file,
				Reason: path.Base(file) + " contains a setting that programs run as a command: " + abstract.Clip(value)}}
		}
	}
	return nil
}
