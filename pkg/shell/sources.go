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

// urlPattern matches the URLs in a setting that names package sources.
var urlPattern = prefilter.Lazy(`(?i)\b(?:https?|ftp|oci|ssh|git)://[^\s"'<>,|;)\]}]+`)

// recordPackageSources records that packages, plug-ins or images come from the URLs in a value, except from usual sources.
// Values of the environment are not recorded, because the text did not set them.
func (s *state) recordPackageSources(program string, v abstract.Value) {
	found := urlPattern().FindAllString(v.Text, 16)
	for _, address := range found {
		if e, ok := packageSourceEffect(address, v.IsPattern && strings.Contains(address, "*"), false); ok {
			e.Program, e.Span = program, v.From
			e.Reason = program + " takes packages from " + abstract.Clip(e.URL)
			s.emitOnce(e)
		}
	}
	if len(found) == 0 && isCommandOutput(v) && !strings.Contains(v.Text, " ") {
		s.emitOnce(effect.Effect{Kind: effect.ChangeRemote, Service: "packages", Verb: "redirect", Harms: []effect.Harm{effect.RedirectsTraffic}, Pattern: true, Program: program, Span: v.From,
			Reason: program + " takes packages from an unknown source"})
	}
}

// packageSourceEffect returns the effect of using a URL as a package source; ok is false for usual sources. If code is true,
// well-known code hosts are usual sources too.
func packageSourceEffect(address string, pattern, code bool) (e effect.Effect, ok bool) {
	url, host := effect.URL(address)
	if !pattern && (knowledge.UsualSource(host) || code && command.CodeHosts[host]) {
		return effect.Effect{}, false
	}
	return effect.Effect{Kind: effect.ChangeRemote, Service: "packages", Verb: "redirect", Harms: []effect.Harm{effect.RedirectsTraffic}, URL: url, Host: host, Pattern: pattern || host == ""}, true
}

// packageSourceFiles match the file names of each of [knowledge.SourceForms].
var packageSourceFiles = sync.OnceValue(func() *globLists {
	return newGlobLists(len(knowledge.SourceForms), func(i int) []string { return knowledge.SourceForms[i].Files })
})

// packageSourceForms returns the forms in which a file can name package sources; none for other files.
func packageSourceForms(file string) (out []*knowledge.SourceForm) {
	for _, i := range packageSourceFiles().matchingLists(file) {
		out = append(out, &knowledge.SourceForms[i])
	}
	return out
}

// writtenPackageSources returns the unusual package sources that a file with this text names.
func writtenPackageSources(file, text string) (out []effect.Effect) {
	for _, form := range packageSourceForms(file) {
		out = append(out, packageSourceEffects(file, form.Addresses(text), form.Code)...)
	}
	if path.Base(file) == "package.json" {
		for _, m := range npmAliasPattern().FindAllStringSubmatch(text, 16) {
			if command.AliasHidesPackage(m[1], m[2]) {
				out = append(out, effect.Effect{Kind: effect.ChangeRemote, Service: "packages", Verb: "redirect", Harms: []effect.Harm{effect.RedirectsTraffic},
					Reason: "package.json would install " + abstract.Clip(m[2]) + " as " + abstract.Clip(m[1])})
			}
		}
	}
	return out
}

// npmAliasPattern matches an npm alias: a package installed under another name.
var npmAliasPattern = prefilter.Lazy(`"([\w@./-]+)"\s*:\s*"npm:([^"]+)"`)

func packageSourceEffects(file string, addresses []string, code bool) []effect.Effect {
	var out []effect.Effect
	for _, address := range addresses {
		if e, ok := packageSourceEffect(address, false, code); ok {
			e.Reason = path.Base(file) + " would take packages from " + abstract.Clip(e.URL)
			out = append(out, e)
		}
	}
	return out
}

// recordSourceEdits records the package sources that the arguments of sed, jq, an interpreter and the like put
// into files. The resulting file text is unknown.
func (s *state) recordSourceEdits() {
	var files []string
	for i := range s.effects {
		if e := &s.effects[i]; e.Kind == effect.WriteFile && !e.Pattern && len(files) < maxWrittenFiles && len(packageSourceForms(e.Path)) > 0 {
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
		if e.Kind != effect.Execute || !command.Rewriters[e.Program] && command.InterpreterLanguage(e.Program) == "" && (!stdin || e.Program != "printf" && e.Program != "echo") {
			continue
		}
		put := make([]string, len(e.Args))
		for i, arg := range e.Args {
			put[i] = arg
			if _, text, ok := parseSedEdit(arg); ok && singleSubstitutionPattern().MatchString(arg) {
				put[i] = text
			}
		}
		for _, file := range files {
			s.recordSourceEdit(file, strings.Join(e.Args, " "), strings.Join(put, " "), e.Span)
		}
	}
}

// singleSubstitutionPattern matches a sed script that consists of one substitution.
var singleSubstitutionPattern = prefilter.Lazy(`^(?:[0-9$,]*|/[^/]*/)\s*s(?:/[^/]*/[^/]*/|#[^#]*#[^#]*#|\|[^|]*\|[^|]*\||,[^,]*,[^,]*,|@[^@]*@[^@]*@|~[^~]*~[^~]*~|![^!]*![^!]*!)[gIi0-9]*$`)

// recordSourceEdit records the package sources, such as registry URLs, that a command edits into a
// file. The parameter said holds all arguments of the command, and the parameter put only the text
// that it inserts.
func (s *state) recordSourceEdit(file, said, put string, at effect.Span) {
	addresses, code, checks := urlHostPattern().FindAllString(put, 16), false, false
	for _, form := range packageSourceForms(file) {
		code, checks = code || form.Code, checks || form.ConfiguresVerification(said)
	}
	found := packageSourceEffects(file, append(addresses, replacementHosts(said, put)...), code)
	if checks {
		found = append(found, effect.Effect{Kind: effect.ChangeRemote, Service: "packages", Verb: "weaken", Harms: []effect.Harm{effect.WeakensProtection},
			Reason: path.Base(file) + " loses the checksums of packages"})
	}
	for _, e := range found {
		e.Span = at
		s.emitOnce(e)
	}
}

// urlHostPattern matches a URL up to the end of its host; in a script, any character may follow.
var urlHostPattern = prefilter.Lazy(`(?i)\b(?:https?|ssh|git)://(?:[^\s/@"']*@)?[a-z0-9.-]+`)

// hostNamePattern matches host names in a text, with the delimiters around them.
var hostNamePattern = prefilter.Lazy(`(?i)(?:^|[\s"'#/|,@!:;%~^=])([a-z0-9-]+(?:\\?\.[a-z0-9-]+)*\\?\.[a-z]{2,})(?:[\s"'#/|,@!:;%~^]|$)`)

// replacementHosts returns the URLs of unusual hosts in the inserted text, if the arguments also name a usual package
// source: the edit replaces that source.
func replacementHosts(said, put string) (out []string) {
	if usual, _ := hostsIn(said); usual {
		_, out = hostsIn(put)
	}
	return out
}

func hostsIn(text string) (usual bool, others []string) {
	for len(others) < 16 {
		m := hostNamePattern().FindStringSubmatchIndex(text)
		if m == nil {
			break
		}
		host := strings.ReplaceAll(text[m[2]:m[3]], `\`, "")
		text = text[m[3]:] // keep the delimiter after this host: the next match may begin with it
		if knowledge.UsualSource(host) {
			usual = true
		} else if ending := host[strings.LastIndexByte(host, '.')+1:]; !command.FileEndings[strings.ToLower(ending)] {
			others = append(others, "https://"+host)
		}
	}
	return usual, others
}
