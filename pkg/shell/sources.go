package shell

import (
	"path"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// addressForm matches the addresses in a value that says where packages come from.
var addressForm = prefilter.Lazy(`(?i)\b(?:https?|ftp|oci|ssh|git)://[^\s"'<>,|;)\]}]+`)

// sources records that packages, plug-ins or images come from the places that a
// value names, unless they come from there all day. What the environment holds
// the text did not say.
func (s *state) sources(program string, v abstract.Value) {
	found := addressForm().FindAllString(v.Text, 16)
	for _, address := range found {
		if e, ok := newSource(address, v.IsPattern && strings.Contains(address, "*"), false); ok {
			e.Program, e.From = program, v.From
			e.Reason = program + " is told to take packages from " + abstract.Clip(e.URL)
			s.once(e)
		}
	}
	if len(found) == 0 && computed(v) {
		s.once(effect.Effect{Kind: effect.ChangeRemote, Service: "packages", Verb: "redirect", Cause: effect.CauseRedirects, Pattern: true, Program: program, From: v.From,
			Reason: program + " is told to take packages from a place that is not known"})
	}
}

// newSource returns the change that an address makes to where packages come from;
// ok is false if it changes nothing of note. If code is true, hosts of code are
// usual places.
func newSource(address string, pattern, code bool) (e effect.Effect, ok bool) {
	url, host := effect.URL(address)
	if !pattern && (knowledge.UsualSource(host) || code && command.CodeHosts[host]) {
		return effect.Effect{}, false
	}
	return effect.Effect{Kind: effect.ChangeRemote, Service: "packages", Verb: "redirect", Cause: effect.CauseRedirects, URL: url, Host: host, Pattern: pattern || host == ""}, true
}

// sourceFiles are the names of the files of each of [knowledge.SourceForms].
var sourceFiles = sync.OnceValue(func() *forms {
	return newForms(len(knowledge.SourceForms), func(i int) []string { return knowledge.SourceForms[i].Files })
})

// sourceForm returns how a file says where packages come from; nil if it does not.
func sourceForm(file string) *knowledge.SourceForm {
	if found := sourceFiles().named(file); len(found) > 0 {
		return &knowledge.SourceForms[found[0]]
	}
	return nil
}

// writtenSources returns the places that a text in a file makes packages come
// from, but for those from which they come all day.
func writtenSources(file, text string) []effect.Effect {
	form := sourceForm(file)
	if form == nil {
		return nil
	}
	return fileSources(file, form.Addresses(text), form)
}

// hostForm matches a text that is the name of a host, as an edit may put it in.
var hostForm = prefilter.Lazy(`(?i)^[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?::\d+)?(?:/\S*)?$`)

// editedSource is writtenSources for a text that an edit puts into such a file.
func editedSource(file, text string, form *knowledge.SourceForm) []effect.Effect {
	addresses := addressForm().FindAllString(text, 16)
	if len(addresses) == 0 && hostForm().MatchString(text) {
		addresses = []string{"https://" + text}
	}
	return fileSources(file, addresses, form)
}

func fileSources(file string, addresses []string, form *knowledge.SourceForm) []effect.Effect {
	var out []effect.Effect
	for _, address := range addresses {
		if e, ok := newSource(address, false, form.Code); ok {
			e.Reason = path.Base(file) + " would take packages from " + abstract.Clip(e.URL)
			out = append(out, e)
		}
	}
	return out
}
