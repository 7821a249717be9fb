package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// addPlugin records the source of a plug-in: a URL, a path, or a name in the program's plug-in registry. URLs on
// well-known code hosts count like names.
func (r *argParser) addPlugin(w Word) {
	if strings.ContainsAny(w.Text, " \"'(") { // setting text that may contain URLs
		for word := range strings.FieldsSeq(w.Text) {
			i := strings.Index(word, "://")
			if i <= 0 {
				i = strings.Index(word, "git@")
			}
			if i >= 0 {
				w.Text = strings.Trim(word[strings.LastIndexAny(word[:i], "=\"'(")+1:], "\"',;)}]")
				r.addPlugin(w)
			}
		}
		return
	}
	if r.activeActionFlags&actionFlagImportsReposChartsManifests != 0 && isWellKnownKubernetesManifest(w) {
		return
	}
	if r.addRegistryPrefixedPackage(w) {
		return
	}
	for _, getter := range [...]string{"git::", "hg::", "s3::", "gcs::", "url::", "git+"} { // prefixes of package sources in terraform, npm and R
		if hasPrefix(w.Text, getter) {
			w = skipBytes(w, len(getter))
		}
	}
	if urlScheme(w.Text) == "" {
		host, path, ok := splitRemotePath(w)
		switch {
		case ok && strings.ContainsAny(host.Text, "."):
			w.Text = "ssh://" + host.Text + "/" + path.Text
		case hasPrefix(w.Text, "/"), hasPrefix(w.Text, "."), hasPrefix(w.Text, "~"):
			r.addOperandEffect(effect.ReadFile, w, true)
			return
		default:
			return
		}
	}
	switch sort, rest, _ := strings.Cut(w.Text, "://"); strings.ToLower(sort) {
	case "file":
		r.addOperandEffect(effect.ReadFile, Word{Text: rest, IsGlobPattern: w.IsGlobPattern, Span: w.Span}, true)
		return
	case "https", "ssh":
		authority, _, _ := strings.Cut(rest, "/")
		if !w.IsGlobPattern && CodeHosts[effect.CanonicalHost(authority[strings.LastIndexByte(authority, '@')+1:])] {
			return
		}
	}
	r.addOperandEffect(effect.ChangeRemoteSystem, w, false)
}
