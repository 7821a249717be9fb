package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// harmlessCurlWgetArgPattern matches the arguments of curl or wget that change neither the source of a file nor the check of the
// server's identity.
var harmlessCurlWgetArgPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:-[fsSLqoO]*|-qO-|-o-|-|--proto|=https|--proto==?https|--tlsv1\.[23]|--fail|--silent|--show-error|--location|--quiet|--retry(?:=\d+)?|-m|--max-time(?:=\d+)?|\d+|--output-document=-|--https-only|--compressed|--output|https://[^\s\\@]+)$`)
})

// versionedPythonPattern matches versioned names of the Python program, such as python3.12.
var versionedPythonPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^python3\.\d{1,2}$`) })

// repeatedOrBackgroundCodePattern matches texts that may run a part of themselves repeatedly, or in the background.
var repeatedOrBackgroundCodePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(?:while|until|for|select|trap|xargs|parallel|watch)\b|(?:^|[^&>])&(?:[^&>]|$)`)
})

// markWellKnownInstallerDownloads sets the cause of each download that a text runs to
// [effect.CauseKnownInstaller] if all of them are installers of well-known tools, fetched over an
// authenticated connection.
func (s *analysisState) markWellKnownInstallerDownloads() {
	marked := slices.ContainsFunc(s.effects, func(e effect.Effect) bool { return e.KindForPolicies() == effect.RunDownload })
	if !marked || !hasOnlyWellKnownInstallerRequests(s.effects) || len(s.definedFunctions) > 0 || len(s.aliases) > 0 {
		return
	}
	for _, word := range [...]string{"proxy", "path=", "curl_", "ssl_", "curlrc", "wgetrc", "/etc/hosts"} {
		if strings.Contains(strings.ToLower(s.analyzedText), word) {
			return
		}
	}
	last := 0 // offset in the text: commands before it may affect an installer, later commands cannot
	for _, e := range s.effects {
		switch {
		case e.KindForPolicies() != effect.RunDownload:
		case repeatedOrBackgroundCodePattern().MatchString(s.analyzedText):
			last = len(s.analyzedText)
		default:
			last = max(last, e.Span.End)
		}
	}
	for i := range s.effects {
		switch e := &s.effects[i]; e.KindForPolicies() {
		case effect.Execute:
			if e.Span.Start < last && !command.AroundInstallers[versionedPythonPattern().ReplaceAllString(e.Program, "python3")] && !hasOnlyHarmlessCurlWgetArgs(e) && !s.hasWrittenFileNamed(e.Program) {
				return
			}
		case effect.RunDecodedText, effect.RemoteShell, effect.Connect:
			return
		}
	}
	for i := range s.effects {
		if e := &s.effects[i]; e.KindForPolicies() == effect.RunDownload {
			e.Cause = effect.CauseKnownInstaller
			e.Reason += ", the installer of a known tool"
		}
	}
}

// hasOnlyHarmlessCurlWgetArgs reports whether curl or wget is run only with arguments that match harmlessCurlWgetArgPattern, and an output
// file.
func hasOnlyHarmlessCurlWgetArgs(e *effect.Effect) bool {
	if e.Program != "curl" && e.Program != "wget" {
		return false
	}
	for i, a := range e.Args {
		named := i > 0 && (e.Args[i-1] == "--output" || strings.HasSuffix(e.Args[i-1], "o") || strings.HasSuffix(e.Args[i-1], "O"))
		if !harmlessCurlWgetArgPattern().MatchString(a) && (!named || strings.HasPrefix(a, "-")) {
			return false
		}
	}
	return true
}

// hasWrittenFileNamed reports whether the text wrote a file with a given name.
func (s *analysisState) hasWrittenFileNamed(baseName string) bool {
	return slices.ContainsFunc(s.effects, func(e effect.Effect) bool { return e.Kind == effect.WriteFile && path.Base(e.Path) == baseName })
}
