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

// grantFiles are the file names of all [knowledge.GrantForms].
var grantFiles = sync.OnceValue(func() *effect.Globs {
	var all []string
	for i := range knowledge.GrantForms {
		for _, glob := range knowledge.GrantForms[i].Files {
			all, grantFormOfGlob = append(all, glob), append(grantFormOfGlob, i)
		}
	}
	globs, err := effect.NewGlobs(all, nil)
	if err != nil {
		panic(err) // unreachable: a test compiles the globs
	}
	return globs
})

var grantFormOfGlob []int // for each glob of grantFiles, the index of its entry in knowledge.GrantForms

// grantForms returns the indexes of the forms that apply to a file.
func grantForms(file string) (out []int) {
	for _, i := range grantFiles().AppendTouched(nil, file, false, false) {
		out = append(out, grantFormOfGlob[i])
	}
	return slices.Compact(out)
}

// maxComparedFiles is the maximum number of files of an action that are compared with their old content.
const maxComparedFiles = 32

// addWeakenedChecks marks written and deleted files that hold security checks or permissions with the harm of
// the change: a check is weakened, or access is granted.
func (c *Case) addWeakenedChecks() {
	read := c.place.ReadScript
	if read == nil {
		read = noFile
	}
	compared := 0
	for i, n := 0, len(c.Effects); i < n; i++ {
		e := &c.Effects[i]
		if e.Kind != effect.WriteFile && e.Kind != effect.DeleteFile && e.Kind != effect.MoveFile || e.Pattern || e.Path == "" || len(e.Harms) > 0 {
			continue
		}
		forms := grantForms(e.Path)
		if len(forms) == 0 && path.Base(e.Path) != "CODEOWNERS" {
			continue
		}
		if compared++; compared > maxComparedFiles {
			c.addUnknownEffect(effect.CauseLimit, "the action changes more than 32 files that contain security checks or permissions")
			return
		}
		old, err := read(e.Path)
		was := err == nil
		unread := err != nil && !errors.Is(err, fs.ErrNotExist) && c.files != nil
		if unread && !grants.IsSecurityOnlyFile(e.Path) && len(forms) > 0 {
			if gone, come, whole := c.changedText(e.Path); grants.ChangeConcernsForm(forms, gone, come) || whole && grants.MatchesForm(forms, come) {
				c.addUnclearCheck(i, true)
			}
			continue
		}
		text, known := "", e.Kind != effect.WriteFile
		if !known {
			text, known = c.contentAfter(e.Path, string(old), was)
		}
		if !was && e.Kind != effect.WriteFile && c.place.ReadScript == nil && grants.IsSecurityOnlyFile(e.Path) { // shield looks at no files
			e.Harms = append(slices.Clip(e.Harms), effect.WeakensProtection)
			e.Reason = path.Base(e.Path) + " is deleted, and shield cannot read which security checks it contained"
			continue
		}
		if unread && grants.IsSecurityOnlyFile(e.Path) {
			c.addUnclearCheck(i, true)
			continue
		}
		if !known && grants.IsSecurityOnlyFile(e.Path) && slices.ContainsFunc(c.writtenFiles, func(w effect.FileText) bool { return w.Path == e.Path && w.PositionUnknown }) {
			c.addUnclearCheck(i, false)
			continue
		}
		if !known || !was && e.Kind != effect.WriteFile {
			continue
		}
		facts, err := grants.FindWeakenings(e.Path, string(old), text, was, forms)
		if err != nil {
			gone, come := patch.DifferentLines(string(old), text)
			if grants.IsSecurityOnlyFile(e.Path) || grants.MatchesForm(forms, text+"\n"+string(old)) && grants.ChangeConcernsForm(forms, strings.Join(gone, "\n"), strings.Join(come, "\n")) {
				c.addUnclearCheck(i, errors.Is(err, grants.ErrLimit))
			}
		}
		e = &c.Effects[i]
		for _, f := range facts {
			if !e.HasHarm(effect.Harm(f.Harm)) {
				e.Harms = append(slices.Clip(e.Harms), effect.Harm(f.Harm))
			}
			if e.Reason != "" {
				e.Reason += "; "
			}
			e.Reason += path.Base(e.Path) + " " + f.Description
		}
	}
}

// addUnclearCheck adds an unknown effect: it is not known whether the change of effect i weakens checks or
// permissions.
func (c *Case) addUnclearCheck(i int, limit bool) {
	e := &c.Effects[i]
	d := effect.Effect{Certainty: effect.Unknown, Cause: effect.CauseSyntax, Path: e.Path, Span: e.Span, Reason: path.Base(e.Path) + " cannot be parsed, so shield cannot tell whether the change weakens its checks or permissions"}
	if limit {
		d.Cause, d.Reason = effect.CauseLimit, path.Base(e.Path)+" is too large or nested too deeply to tell whether the change weakens its checks or permissions"
	}
	c.Effects = append(c.Effects, d)
}

// changedText returns the text that the action removes from a file and the text that it adds, as far as
// stated, and whether the new text is the whole file.
func (c *Case) changedText(file string) (gone, come string, whole bool) {
	if c.Action.Type != "execute_command" && c.Action.Type != "apply_patch" {
		gone = replacedText(c.Action.Payload)
		return gone, writtenText(c.Action.Payload), gone == ""
	}
	for _, w := range c.writtenFiles {
		if w.Path == file {
			gone, come, whole = gone+w.Replaced+"\n", come+w.Text+"\n", whole || w.IsWholeContent
		}
	}
	return gone, come, whole
}

// contentAfter returns the content of a file after the action; known is false if that cannot be determined.
func (c *Case) contentAfter(file, old string, was bool) (text string, known bool) {
	if c.Action.Type != "execute_command" && c.Action.Type != "apply_patch" {
		if text, known = contentAfterEdits(c.Action.Payload, old); !known { // apply the other edits if one has no old text
			text, known = applyEdits(editsWithOldText(c.Action.Payload), old)
		}
		return text, known
	}
	text, known = old, false
	for _, w := range c.writtenFiles {
		if w.Path != file {
			continue
		}
		switch {
		case w.PositionUnknown, w.ContentAfter != "" && known && w.ContentAfter != text: // ContentAfter was computed from the file on disk, without earlier writes of this command
			return "", false
		case w.IsWholeContent:
			text = w.Text
		case w.IsAppended:
			text += w.Text
		case w.ContentAfter != "":
			text = w.ContentAfter
		case w.Replaced != "" && strings.Contains(text, w.Replaced):
			text = strings.ReplaceAll(text, w.Replaced, w.Text)
		default:
			return "", false
		}
		known = true
	}
	return text, known
}
