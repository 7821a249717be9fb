package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// plugin notes what a plug-in is installed from: an address, a path, or a name,
// which the program looks up where all its plug-ins come from. Addresses on
// hosts of code say no more than such a name.
func (r *reader) plugin(w Word) {
	for _, getter := range [...]string{"git::", "hg::", "s3::", "gcs::", "git+"} { // terraform and npm
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
