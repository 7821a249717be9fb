package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// plugin records the source of a plug-in: a URL, a path, or a name in the program's plug-in registry. URLs on
// well-known code hosts count like names.
func (r *reader) plugin(w Word) {
	if strings.ContainsAny(w.Text, " \"'(") { // setting text that may contain URLs
		for word := range strings.FieldsSeq(w.Text) {
			i := strings.Index(word, "://")
			if i <= 0 {
				i = strings.Index(word, "git@")
			}
			if i >= 0 {
				w.Text = strings.Trim(word[strings.LastIndexAny(word[:i], "=\"'(")+1:], "\"',;)}]")
				r.plugin(w)
			}
		}
		return
	}
	if r.flags&adopts != 0 && usualManifest(w) {
		return
	}
	if r.prefixedPackage(w) {
		return
	}
	for _, getter := range [...]string{"git::", "hg::", "s3::", "gcs::", "url::", "git+"} { // prefixes of terraform, npm and R
		if hasPrefix(w.Text, getter) {
			w = cut(w, len(getter))
		}
	}
	if scheme(w.Text) == "" {
		host, path, ok := remoteHost(w)
		switch {
		case ok && strings.ContainsAny(host.Text, "."):
			w.Text = "ssh://" + host.Text + "/" + path.Text
		case hasPrefix(w.Text, "/"), hasPrefix(w.Text, "."), hasPrefix(w.Text, "~"):
			r.touch(effect.ReadFile, w, true)
			return
		default:
			return
		}
	}
	switch sort, rest, _ := strings.Cut(w.Text, "://"); strings.ToLower(sort) {
	case "file":
		r.touch(effect.ReadFile, Word{Text: rest, Pattern: w.Pattern, From: w.From}, true)
		return
	case "https", "ssh":
		authority, _, _ := strings.Cut(rest, "/")
		if !w.Pattern && CodeHosts[effect.Host(authority[strings.LastIndexByte(authority, '@')+1:])] {
			return
		}
	}
	r.touch(effect.ChangeRemote, w, false)
}
