package shell

import (
	"path"
	"slices"
	"sync"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// settingFiles are the names of the files of each of [knowledge.SettingForms].
var settingFiles = sync.OnceValue(func() []*effect.Globs {
	out := make([]*effect.Globs, len(knowledge.SettingForms))
	for i := range knowledge.SettingForms {
		out[i], _ = effect.NewGlobs(knowledge.SettingForms[i].Files, nil) // nil, which a test finds, names no file
	}
	return out
})

// hasSettings reports whether a file is one of those.
func hasSettings(file string) bool {
	return slices.ContainsFunc(settingFiles(), func(g *effect.Globs) bool { return touches(g, file) })
}

func touches(g *effect.Globs, file string) bool {
	if g == nil {
		return false
	}
	_, ok := g.Touches(file, false, false)
	return ok
}

// settingCode returns what a text in a file of settings makes programs run or load
// that only the file says.
func settingCode(file, text string) []effect.Effect {
	for i, globs := range settingFiles() {
		if !touches(globs, file) {
			continue
		}
		if value := knowledge.SettingForms[i].Runs(text); value != "" {
			return []effect.Effect{{Kind: effect.Dynamic, Cause: effect.CauseLoaded, Path: file,
				Reason: path.Base(file) + " makes programs run what a setting names: " + abstract.Clip(value)}}
		}
	}
	return nil
}
