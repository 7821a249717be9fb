package shell

import (
	"path"
	"slices"
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
			e.Reason = program + " takes packages from " + abstract.Clip(e.URL)
			s.emitOnce(e)
		}
	}
	if len(found) == 0 && isCommandOutput(v) && !strings.Contains(v.Text, " ") {
		s.emitOnce(effect.Effect{Kind: effect.ChangeRemote, Service: "packages", Verb: "redirect", Harms: []effect.Harm{effect.Redirects}, Pattern: true, Program: program, From: v.From,
			Reason: program + " takes packages from an unknown source"})
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
	return effect.Effect{Kind: effect.ChangeRemote, Service: "packages", Verb: "redirect", Harms: []effect.Harm{effect.Redirects}, URL: url, Host: host, Pattern: pattern || host == ""}, true
}

// sourceFiles are the names of the files of each of [knowledge.SourceForms].
var sourceFiles = sync.OnceValue(func() *forms {
	return newForms(len(knowledge.SourceForms), func(i int) []string { return knowledge.SourceForms[i].Files })
})

// sourceForms returns how a file says where packages come from.
func sourceForms(file string) (out []*knowledge.SourceForm) {
	for _, i := range sourceFiles().named(file) {
		out = append(out, &knowledge.SourceForms[i])
	}
	return out
}

// writtenSources returns the places that a text in a file makes packages come
// from, but for those from which they come all day.
func writtenSources(file, text string) (out []effect.Effect) {
	for _, form := range sourceForms(file) {
		out = append(out, fileSources(file, form.Addresses(text), form.Code)...)
	}
	if path.Base(file) == "package.json" {
		for _, m := range aliasForm().FindAllStringSubmatch(text, 16) {
			if command.Hides(m[1], m[2]) {
				out = append(out, effect.Effect{Kind: effect.ChangeRemote, Service: "packages", Verb: "redirect", Harms: []effect.Harm{effect.Redirects},
					Reason: "package.json would install " + abstract.Clip(m[2]) + " as " + abstract.Clip(m[1])})
			}
		}
	}
	return out
}

// aliasForm matches a package of npm that gets the name of another.
var aliasForm = prefilter.Lazy(`"([\w@./-]+)"\s*:\s*"npm:([^"]+)"`)

func fileSources(file string, addresses []string, code bool) []effect.Effect {
	var out []effect.Effect
	for _, address := range addresses {
		if e, ok := newSource(address, false, code); ok {
			e.Reason = path.Base(file) + " would take packages from " + abstract.Clip(e.URL)
			out = append(out, e)
		}
	}
	return out
}

// recordSourceEdits records from where packages would come once files are changed by what
// the arguments of sed, jq, an interpreter and the like say: nothing shows the
// text itself that is written then.
func (s *state) recordSourceEdits() {
	var files []string
	for i := range s.effects {
		if e := &s.effects[i]; e.Kind == effect.WriteFile && !e.Pattern && len(files) < maxWritten && len(sourceForms(e.Path)) > 0 {
			files = append(files, e.Path)
		}
	}
	if len(files) == 0 {
		return
	}
	stdin := slices.ContainsFunc(s.effects, func(e effect.Effect) bool {
		return e.Kind == effect.Execute && (e.Program == "ed" || e.Program == "ex")
	})
	for _, e := range s.effects {
		if e.Kind != effect.Execute || !command.Rewriters[e.Program] && command.Language(e.Program) == "" && (!stdin || e.Program != "printf" && e.Program != "echo") {
			continue
		}
		put := make([]string, len(e.Args))
		for i, arg := range e.Args {
			put[i] = arg
			if _, text, ok := putIn(arg); ok && oneCommand().MatchString(arg) {
				put[i] = text
			}
		}
		for _, file := range files {
			s.rewrites(file, strings.Join(e.Args, " "), strings.Join(put, " "), e.From)
		}
	}
}

// oneCommand matches a script of sed that puts one text in place of another, and
// nothing else.
var oneCommand = prefilter.Lazy(`^(?:[0-9$,]*|/[^/]*/)\s*s(?:/[^/]*/[^/]*/|#[^#]*#[^#]*#|\|[^|]*\|[^|]*\||,[^,]*,[^,]*,|@[^@]*@[^@]*@|~[^~]*~[^~]*~|![^!]*![^!]*!)[gIi0-9]*$`)

// rewrites records what arguments say about a file that is changed: all that they say,
// and what of it is put in.
func (s *state) rewrites(file, said, put string, at effect.Span) {
	addresses, code, checks := hostStart().FindAllString(put, 16), false, false
	for _, form := range sourceForms(file) {
		code, checks = code || form.Code, checks || form.Checks(said)
	}
	found := fileSources(file, append(addresses, replacedHosts(said, put)...), code)
	if checks {
		found = append(found, effect.Effect{Kind: effect.ChangeRemote, Service: "packages", Verb: "weaken", Harms: []effect.Harm{effect.Weakens},
			Reason: path.Base(file) + " loses the checksums of packages"})
	}
	for _, e := range found {
		e.From = at
		s.emitOnce(e)
	}
}

// hostStart matches an address up to the end of its host: what ends it in a script
// may be any sign.
var hostStart = prefilter.Lazy(`(?i)\b(?:https?|ssh|git)://(?:[^\s/@"']*@)?[a-z0-9.-]+`)

// hostForm matches the names of hosts in a text, with what stands around them.
var hostForm = prefilter.Lazy(`(?i)(?:^|[\s"'#/|,@!:;%~^=])([a-z0-9-]+(?:\\?\.[a-z0-9-]+)*\\?\.[a-z]{2,})(?:[\s"'#/|,@!:;%~^]|$)`)

// replacedHosts returns the addresses of hosts in a text that is put in, where those
// from which packages come all day are named, too: one is put in the other's place.
func replacedHosts(said, put string) (out []string) {
	if usual, _ := hostsIn(said); usual {
		_, out = hostsIn(put)
	}
	return out
}

func hostsIn(text string) (usual bool, others []string) {
	for len(others) < 16 {
		m := hostForm().FindStringSubmatchIndex(text)
		if m == nil {
			break
		}
		host := strings.ReplaceAll(text[m[2]:m[3]], `\`, "")
		text = text[m[3]:] // what ends one may begin the next
		if knowledge.UsualSource(host) {
			usual = true
		} else if ending := host[strings.LastIndexByte(host, '.')+1:]; !command.FileEndings[strings.ToLower(ending)] {
			others = append(others, "https://"+host)
		}
	}
	return usual, others
}
