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
var urlPattern = prefilter.LazyRegexp(`(?i)\b(?:https?|ftp|oci|ssh|git)://[^\s"'<>,|;)\]}]+`)

// recordPackageSources records that packages, plug-ins or images come from the URLs in a value, except from usual sources.
// Values of the environment are not recorded, because the text did not set them.
func (s *analysisState) recordPackageSources(program string, v abstract.Value) {
	found := urlPattern().FindAllString(v.Text, 16)
	for _, address := range found {
		if e, ok := packageSourceEffect(address, v.IsGlobPattern && strings.Contains(address, "*"), false); ok {
			e.Program, e.Span = program, v.SourceSpan
			e.Reason = program + " takes packages from " + abstract.ClipForMessage(e.URL)
			s.emitOnce(e)
		}
	}
	if len(found) == 0 && isCommandOutput(v) && !strings.Contains(v.Text, " ") {
		s.emitOnce(effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteServiceName: "packages", RemoteOperationVerb: "redirect", Harms: []effect.Harm{effect.RedirectsTraffic}, PathIsPattern: true, Program: program, Span: v.SourceSpan,
			Reason: program + " downloads packages from a server whose address is unknown"})
	}
}

// packageSourceEffect returns the effect of using a URL as a package source; ok is false for usual
// sources. If allowsCodeHosts is true, well-known code hosts are usual sources too.
func packageSourceEffect(address string, isPattern, allowsCodeHosts bool) (e effect.Effect, ok bool) {
	url, host := effect.NormalizeURL(address)
	if !isPattern && (knowledge.IsUsualPackageSource(host) || allowsCodeHosts && command.CodeHosts[host]) {
		return effect.Effect{}, false
	}
	return effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteServiceName: "packages", RemoteOperationVerb: "redirect", Harms: []effect.Harm{effect.RedirectsTraffic}, URL: url, Host: host, PathIsPattern: isPattern || host == ""}, true
}

// packageSourceSettingsMatcher match the file names of each entry of [knowledge.SourceForms], the settings
// that name package sources.
var packageSourceSettingsMatcher = sync.OnceValue(func() *globListMatcher {
	return newGlobListMatcher(len(knowledge.SourceForms), func(i int) []string { return knowledge.SourceForms[i].Files })
})

// packageSourceSettingsForFile returns the forms in which a file can name package sources; none for other files.
func packageSourceSettingsForFile(filePath string) (out []*knowledge.PackageSourceSetting) {
	for _, i := range packageSourceSettingsMatcher().matchingLists(filePath) {
		out = append(out, &knowledge.SourceForms[i])
	}
	return out
}

// writtenFilePackageSourceEffects returns the unusual package sources that a file with this text names.
func writtenFilePackageSourceEffects(file, text string) (out []effect.Effect) {
	for _, form := range packageSourceSettingsForFile(file) {
		out = append(out, packageSourceEffects(file, form.Addresses(text), form.AllowsCodeHosts)...)
	}
	if path.Base(file) == "package.json" {
		for _, m := range npmAliasPattern().FindAllStringSubmatch(text, 16) {
			if command.AliasOmitsPackageName(m[1], m[2]) {
				out = append(out, effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteServiceName: "packages", RemoteOperationVerb: "redirect", Harms: []effect.Harm{effect.RedirectsTraffic},
					Reason: "package.json would install " + abstract.ClipForMessage(m[2]) + " under the name of another package, " + abstract.ClipForMessage(m[1])})
			}
		}
	}
	return out
}

// npmAliasPattern matches an npm alias: a package installed under another name.
var npmAliasPattern = prefilter.LazyRegexp(`"([\w@./-]+)"\s*:\s*"npm:([^"]+)"`)

func packageSourceEffects(file string, sourceAddresses []string, allowsCodeHosts bool) []effect.Effect {
	var out []effect.Effect
	for _, address := range sourceAddresses {
		if e, ok := packageSourceEffect(address, false, allowsCodeHosts); ok {
			e.Reason = path.Base(file) + " would take packages from " + abstract.ClipForMessage(e.URL)
			out = append(out, e)
		}
	}
	return out
}

// recordPackageSourceEdits records the package sources that the arguments of sed, jq, an interpreter and the like put
// into files. The resulting file text is unknown.
func (s *analysisState) recordPackageSourceEdits() {
	var files []string
	for i := range s.effects {
		if e := &s.effects[i]; e.Kind == effect.WriteFile && !e.PathIsPattern && len(files) < maxWrittenFiles && len(packageSourceSettingsForFile(e.Path)) > 0 {
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
			if _, text, ok := parseSedEdit(arg); ok && singleSedSubstitutionPattern().MatchString(arg) {
				put[i] = text
			}
		}
		for _, file := range files {
			s.recordPackageSourceEdit(file, strings.Join(e.Args, " "), strings.Join(put, " "), e.Span)
		}
	}
}

// singleSedSubstitutionPattern matches a sed script that consists of one substitution.
var singleSedSubstitutionPattern = prefilter.LazyRegexp(`^(?:[0-9$,]*|/[^/]*/)\s*s(?:/[^/]*/[^/]*/|#[^#]*#[^#]*#|\|[^|]*\|[^|]*\||,[^,]*,[^,]*,|@[^@]*@[^@]*@|~[^~]*~[^~]*~|![^!]*![^!]*!)[gIi0-9]*$`)

// recordPackageSourceEdit records the package sources, such as registry URLs, that a command edits into a file.
// argumentText holds all arguments of the command. insertedText is the same, but holds only the inserted text in
// place of each argument that is a single sed substitution.
func (s *analysisState) recordPackageSourceEdit(file, argumentText, insertedText string, at effect.CommandTextSpan) {
	addresses, code, checks := urlHostPattern().FindAllString(insertedText, 16), false, false
	for _, form := range packageSourceSettingsForFile(file) {
		code, checks = code || form.AllowsCodeHosts, checks || form.ConfiguresPackageVerification(argumentText)
	}
	found := packageSourceEffects(file, append(addresses, unusualPackageSourceURLs(argumentText, insertedText)...), code)
	if checks {
		found = append(found, effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteServiceName: "packages", RemoteOperationVerb: "weaken", Harms: []effect.Harm{effect.WeakensSecurityControls},
			Reason: "edits checksums in " + path.Base(file) + ", with which package downloads are verified"})
	}
	for _, e := range found {
		e.Span = at
		s.emitOnce(e)
	}
}

// urlHostPattern matches a URL up to the end of its host; in a script, any character may follow.
var urlHostPattern = prefilter.LazyRegexp(`(?i)\b(?:https?|ssh|git)://(?:[^\s/@"']*@)?[a-z0-9.-]+`)

// hostNamePattern matches host names in a text, with the delimiters around them.
var hostNamePattern = prefilter.LazyRegexp(`(?i)(?:^|[\s"'#/|,@!:;%~^=])([a-z0-9-]+(?:\\?\.[a-z0-9-]+)*\\?\.[a-z]{2,})(?:[\s"'#/|,@!:;%~^]|$)`)

// unusualPackageSourceURLs returns the URLs of unusual hosts in the inserted text, if the arguments also name a usual package
// source: the edit replaces that source.
func unusualPackageSourceURLs(argumentText, insertedText string) (out []string) {
	if usual, _ := findPackageSourceHosts(argumentText); usual {
		_, out = findPackageSourceHosts(insertedText)
	}
	return out
}

func findPackageSourceHosts(text string) (hasUsualSource bool, otherHostURLs []string) {
	for len(otherHostURLs) < 16 {
		m := hostNamePattern().FindStringSubmatchIndex(text)
		if m == nil {
			break
		}
		host := strings.ReplaceAll(text[m[2]:m[3]], `\`, "")
		text = text[m[3]:] // keep the delimiter after this host: the next match may begin with it
		if knowledge.IsUsualPackageSource(host) {
			hasUsualSource = true
		} else if ending := host[strings.LastIndexByte(host, '.')+1:]; !command.FileEndings[strings.ToLower(ending)] {
			otherHostURLs = append(otherHostURLs, "https://"+host)
		}
	}
	return hasUsualSource, otherHostURLs
}
