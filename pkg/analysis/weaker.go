package analysis

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/grants"
	"github.com/shieldcli/shield/internal/patch"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// permissionGrantFileGlobs are the file names of all [knowledge.GrantForms].
var permissionGrantFileGlobs = sync.OnceValue(func() *effect.Globs {
	var all []string
	for i := range knowledge.GrantForms {
		for _, glob := range knowledge.GrantForms[i].Files {
			all, permissionRuleIndexByGlobIndex = append(all, glob), append(permissionRuleIndexByGlobIndex, i)
		}
	}
	globs, err := effect.NewGlobs(all, nil)
	if err != nil {
		panic(err) // unreachable: a test compiles the globs
	}
	return globs
})

var permissionRuleIndexByGlobIndex []int // for each glob of permissionGrantFileGlobs, the index of its entry in knowledge.GrantForms

// permissionRuleIndexesForFile returns the indexes of the permission-change rules that apply to a
// file.
func permissionRuleIndexesForFile(file string) (out []int) {
	for _, i := range permissionGrantFileGlobs().AppendTouchedGlobIndices(nil, file, false, false) {
		out = append(out, permissionRuleIndexByGlobIndex[i])
	}
	return slices.Compact(out)
}

// maxFilesComparedWithOldContent is the maximum number of files of an action that are compared with their old content.
const maxFilesComparedWithOldContent = 32

// markSecurityWeakeningEffects marks written, deleted and moved files that hold security checks or permissions
// with the harm of the change: a check is weakened, or access is granted.
func (c *ActionCase) markSecurityWeakeningEffects() {
	read := c.executionContext.ReadScript
	if read == nil {
		read = alwaysNotExistScriptReader
	}
	compared := 0
	for i, n := 0, len(c.Effects); i < n; i++ {
		e := &c.Effects[i]
		if e.Kind != effect.WriteFile && e.Kind != effect.DeleteFile && e.Kind != effect.MoveFile || e.PathIsPattern || e.Path == "" || len(e.Harms) > 0 {
			continue
		}
		forms := permissionRuleIndexesForFile(e.Path)
		if len(forms) == 0 && path.Base(e.Path) != "CODEOWNERS" {
			continue
		}
		if compared++; compared > maxFilesComparedWithOldContent {
			c.addUnknownEffect(effect.CauseAnalysisLimitExceeded, "the action changes more than 32 files that contain security checks or permissions")
			return
		}
		old, err := read(e.Path)
		was := err == nil
		unread := err != nil && !errors.Is(err, fs.ErrNotExist) && c.files != nil
		if unread && !grants.IsCIOrCodeOwnersFile(e.Path) && len(forms) > 0 {
			if gone, come, whole := c.removedAndAddedText(e.Path); grants.ChangeConcernsGrantRule(forms, gone, come) || whole && grants.TextMatchesGrantRule(forms, come) {
				c.addUnknownSecurityWeakeningEffect(i, true)
			}
			continue
		}
		text, known := "", e.Kind != effect.WriteFile
		if !known {
			text, known = c.contentAfterAction(e.Path, string(old), was)
		}
		if !was && e.Kind != effect.WriteFile && c.executionContext.ReadScript == nil && grants.IsCIOrCodeOwnersFile(e.Path) { // shield looks at no files
			e.Harms = append(slices.Clip(e.Harms), effect.WeakensSecurityControls)
			e.Reason = path.Base(e.Path) + " is deleted, and shield cannot read which security checks it contained"
			continue
		}
		if unread && grants.IsCIOrCodeOwnersFile(e.Path) {
			c.addUnknownSecurityWeakeningEffect(i, true)
			continue
		}
		if !known && grants.IsCIOrCodeOwnersFile(e.Path) && slices.ContainsFunc(c.filesWrittenByCommand, func(w effect.WrittenFileText) bool { return w.Path == e.Path && w.IsTextPositionUnknown }) {
			c.addUnknownSecurityWeakeningEffect(i, false)
			continue
		}
		if !known || !was && e.Kind != effect.WriteFile {
			continue
		}
		facts, err := grants.FindSecurityWeakenings(e.Path, string(old), text, was, forms)
		if err != nil {
			gone, come := patch.DifferentLines(string(old), text)
			if grants.IsCIOrCodeOwnersFile(e.Path) || grants.TextMatchesGrantRule(forms, text+"\n"+string(old)) && grants.ChangeConcernsGrantRule(forms, strings.Join(gone, "\n"), strings.Join(come, "\n")) {
				c.addUnknownSecurityWeakeningEffect(i, errors.Is(err, grants.ErrLimit))
			}
		}
		e = &c.Effects[i]
		for _, f := range facts {
			if !e.HasHarm(effect.Harm(f.HarmName)) {
				e.Harms = append(slices.Clip(e.Harms), effect.Harm(f.HarmName))
			}
			if e.Reason != "" {
				e.Reason += "; "
			}
			e.Reason += path.Base(e.Path) + " " + f.Description
		}
	}
}

// addUnknownSecurityWeakeningEffect adds an unknown effect, which says that it is not known whether
// the change by the effect effectIndex weakens checks or permissions.
func (c *ActionCase) addUnknownSecurityWeakeningEffect(effectIndex int, isLimitExceeded bool) {
	e := &c.Effects[effectIndex]
	d := effect.Effect{Certainty: effect.Unknown, Cause: effect.CauseUnparseableText, Path: e.Path, Span: e.Span, Reason: path.Base(e.Path) + " cannot be parsed, so shield cannot tell whether the change weakens its checks or permissions"}
	if isLimitExceeded {
		d.Cause, d.Reason = effect.CauseAnalysisLimitExceeded, path.Base(e.Path)+" is too large or nested too deeply to tell whether the change weakens its checks or permissions"
	}
	c.Effects = append(c.Effects, d)
}

// removedAndAddedText returns the text that the action removes from a file and the text that it adds, as far as
// stated, and whether the new text is the whole file. For a file tool, it counts as the whole file if no text to
// replace is named.
func (c *ActionCase) removedAndAddedText(file string) (removed, added string, isWholeFile bool) {
	if c.Action.Type != "execute_command" && c.Action.Type != "apply_patch" {
		removed = oldTextOfEdits(c.Action.Payload)
		return removed, writtenText(c.Action.Payload), removed == ""
	}
	for _, w := range c.filesWrittenByCommand {
		if w.Path == file {
			removed, added, isWholeFile = removed+w.OldText+"\n", added+w.NewText+"\n", isWholeFile || w.IsWholeContent
		}
	}
	return removed, added, isWholeFile
}

// contentAfterAction returns the content of a file after the action; known is false if that cannot be determined.
func (c *ActionCase) contentAfterAction(file, oldContent string, existedBefore bool) (text string, known bool) {
	if c.Action.Type != "execute_command" && c.Action.Type != "apply_patch" {
		if text, known = contentAfterEdits(c.Action.Payload, oldContent); !known { // apply the other edits if one has no old text
			text, known = applyEdits(editsWithOldText(c.Action.Payload), oldContent)
		}
		return text, known
	}
	text, known = oldContent, false
	for _, w := range c.filesWrittenByCommand {
		if w.Path != file {
			continue
		}
		switch {
		case w.IsTextPositionUnknown, w.FullContentAfterWrite != "" && known && w.FullContentAfterWrite != text: // FullContentAfterWrite is computed from the file on disk, without earlier writes of this command
			return "", false
		case w.IsWholeContent:
			text = w.NewText
		case w.IsAppended:
			text += w.NewText
		case w.FullContentAfterWrite != "":
			text = w.FullContentAfterWrite
		case w.OldText != "" && strings.Contains(text, w.OldText):
			text = strings.ReplaceAll(text, w.OldText, w.NewText)
		default:
			return "", false
		}
		known = true
	}
	return text, known
}
