package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// plugin notes what a plug-in is installed from: an address, a path, or a name,
// which the program looks up where all its plug-ins come from. Addresses on
// hosts of code say no more than such a name.
func (r *reader) plugin(w Word) {
	if strings.ContainsAny(w.Text, " \"'(") { // words that a text of the program's leads
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
	for _, getter := range [...]string{"git::", "hg::", "s3::", "gcs::", "url::", "git+"} { // terraform, npm and R
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
