package analysis

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/grants"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// grantFiles are the names of the files of each of [knowledge.GrantForms].
var grantFiles = sync.OnceValue(func() *effect.Globs {
	var all []string
	for i := range knowledge.GrantForms {
		for _, glob := range knowledge.GrantForms[i].Files {
			all, grantOf = append(all, glob), append(grantOf, i)
		}
	}
	globs, err := effect.NewGlobs(all, nil)
	if err != nil {
		panic(err) // a test reads them
	}
	return globs
})

var grantOf []int // the form that each glob is of

// grantForms returns the forms that a file may have.
func grantForms(file string) (out []int) {
	for _, i := range grantFiles().AppendTouched(nil, file, false, false) {
		out = append(out, grantOf[i])
	}
	return slices.Compact(out)
}

// maxWeakened is how many files of an action are compared with what they held.
const maxWeakened = 32

// weaker adds to what an action writes and deletes what files that carry checks or rights then
// grant, or no longer guard.
func (c *Case) weaker() {
	read := c.place.Script
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
		if compared++; compared > maxWeakened {
			c.dynamic(effect.CauseLimit, "the action changes more than 32 files that carry checks or rights")
			return
		}
		old, err := read(e.Path)
		was := err == nil
		unread := err != nil && !errors.Is(err, fs.ErrNotExist) && c.files != nil
		text, known := "", e.Kind != effect.WriteFile
		if !known {
			text, known = c.after(e.Path, string(old), was)
		}
		if !was && e.Kind != effect.WriteFile && c.place.Script == nil && grants.Sharp(e.Path) { // no file can be looked at
			e.Harms = append(slices.Clip(e.Harms), effect.Weakens)
			e.Reason = path.Base(e.Path) + " is deleted, and shield cannot read which checks it had"
			continue
		}
		if !known || !was && e.Kind != effect.WriteFile {
			continue
		}
		facts, err := grants.Weaker(e.Path, string(old), text, was, forms)
		if unread || err != nil {
			c.unclear(e, unread || errors.Is(err, grants.ErrLimit))
		}
		e = &c.Effects[i]
		for _, f := range facts {
			if !e.Does(effect.Harm(f.Harm)) {
				e.Harms = append(slices.Clip(e.Harms), effect.Harm(f.Harm))
			}
			if e.Reason != "" {
				e.Reason += "; "
			}
			e.Reason += path.Base(e.Path) + " " + f.Says
		}
	}
}

// unclear adds that nobody knows what a file that is there for its checks and rights says afterwards.
func (c *Case) unclear(e *effect.Effect, limit bool) {
	if !grants.Sharp(e.Path) {
		return
	}
	d := effect.Effect{Sure: effect.Unknown, Cause: effect.CauseSyntax, Path: e.Path, From: e.From, Reason: "what " + path.Base(e.Path) + " says then cannot be parsed"}
	if limit {
		d.Cause, d.Reason = effect.CauseLimit, path.Base(e.Path)+" is too long or too deep to be compared with what it was"
	}
	c.Effects = append(c.Effects, d)
}

// after returns what a file holds once an action has run.
func (c *Case) after(file, old string, was bool) (text string, known bool) {
	if c.Action.Type != "execute_command" && c.Action.Type != "apply_patch" {
		return edited(c.Action.Payload, old)
	}
	text, known = old, false
	for _, w := range c.writes {
		if w.Path != file {
			continue
		}
		switch {
		case w.Whole:
			text = w.Text
		case w.Added:
			text += w.Text
		case w.After != "":
			text = w.After
		case w.Gone != "" && strings.Contains(text, w.Gone):
			text = strings.ReplaceAll(text, w.Gone, w.Text)
		default:
			return "", false
		}
		known = true
	}
	return text, known
}

// edited returns what a file holds once a payload has written or edited it.
func edited(payload map[string]any, old string) (text string, known bool) {
	if gone, _ := replaced(payload); gone == "" && payload["edits"] == nil {
		text, known = payload["content"].(string)
		if _, _, isDiff := parted(text); isDiff {
			return "", false
		}
		return text, known
	}
	text = old
	list, _ := payload["edits"].([]any)
	for _, item := range append(list, payload) {
		fields, ok := item.(map[string]any)
		if !ok {
			return "", false
		}
		gone, come := replaced(fields)
		if gone == "" {
			continue
		}
		if !strings.Contains(text, gone) {
			return "", false // the edit fails
		}
		known = true
		if fields["replace_all"] == true || payload["replace_all"] == true {
			text = strings.ReplaceAll(text, gone, come)
		} else {
			text = strings.Replace(text, gone, come, 1)
		}
	}
	return text, known
}

// replaced returns what an edit takes out, and what it puts there.
func replaced(fields map[string]any) (gone, come string) {
	for _, name := range replacedFields {
		if text, ok := fields[name].(string); ok && text != "" {
			gone = text
			break
		}
	}
	for _, name := range [...]string{"content", "new_string", "new_str", "new_text", "newText", "newString", "new_content", "replace", "replacement", "text"} {
		if text, ok := fields[name].(string); ok {
			return gone, text
		}
	}
	return gone, ""
}
