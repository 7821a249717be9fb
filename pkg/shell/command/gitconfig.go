package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// harmlessGitSections are the sections of git's configuration in which only riskyGitKeys, and the keys that applyGitSetting lists,
// run or redirect anything.
const harmlessGitSections = " user author committer color advice init push pull fetch branch log status diff merge rebase commit tag gc pack index feature safe rerere stash format help column i18n apply blame grep checkout versionsort transfer receive maintenance repack "

// harmlessGitKeys are harmless git settings in sections that harmlessGitSections does not list. A key of the sections
// submodule and lfs may have a name or a URL between its two parts, as in lfs.URL.locksverify.
// riskyGitKeys are settings in the sections of harmlessGitSections that may run a program or cannot be judged.
const (
	harmlessGitKeys = " core.autocrlf core.eol core.safecrlf core.filemode core.ignorecase core.quotepath core.abbrev core.longpaths core.symlinks core.bare core.compression core.preloadindex core.untrackedcache core.precomposeunicode core.protectntfs core.whitespace core.checkstat core.bigfilethreshold core.commentchar core.logallrefupdates core.sharedrepository core.sparsecheckout core.multipackindex core.excludesfile core.attributesfile http.postbuffer http.version http.lowspeedlimit http.lowspeedtime http.maxrequests http.followredirects protocol.version credential.usehttppath gpg.format interactive.singlekey remote.pushdefault submodule.fetchjobs submodule.active submodule.branch submodule.ignore lfs.locksverify lfs.access lfs.fetchinclude lfs.fetchexclude lfs.fetchrecentalways lfs.fetchrecentrefsdays lfs.fetchrecentremoterefs lfs.fetchrecentcommitsdays lfs.pruneoffsetdays lfs.pruneverifyremotealways lfs.concurrenttransfers lfs.basictransfersonly lfs.tustransfers lfs.maxretries lfs.activitytimeout lfs.dialtimeout lfs.tlstimeout lfs.keepalive lfs.cachecredentials lfs.skipdownloaderrors lfs.allowincompletepush lfs.setlockablereadonly lfs.lockignoredfiles "
	riskyGitKeys    = " diff.external commit.template diff.orderfile receive.procreceiverefs fetch.fsckobjects merge.tool diff.tool diff.guitool merge.guitool rebase.instructionformat "
)

// applyGitRole processes a word that is a git setting, its key or its value. It records the effects
// of the setting once it has both the key and the value.
func (r *argParser) applyGitRole(role argRole, w Word) {
	switch role {
	case argRoleGitConfigSetting:
		i := strings.IndexByte(w.Text, '=')
		if i < 0 {
			r.applyGitSetting(w, Word{Span: w.Span})
			return
		}
		key := w
		key.Text = w.Text[:i]
		r.applyGitSetting(key, skipBytes(w, i+1))
	case argRoleGitConfigKey:
		r.gitSettingKey = w
	default:
		r.raiseProgramClass(localWriteProgramClassRank)
		r.applyGitSetting(r.gitSettingKey, w)
	}
}

// applyGitSetting records the programs that git runs because key is set to value.
func (r *argParser) applyGitSetting(key, value Word) {
	k := strings.ToLower(key.Text)
	section, _, _ := strings.Cut(k, ".")
	last := k[strings.LastIndexByte(k, '.')+1:]
	if key.IsGlobPattern && strings.ContainsAny(k, "*?[{") {
		r.setNotUnderstood("unknown git setting %s", key.Text)
		return
	}
	run := func() { r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{value}}) }
	switch {
	case section == "alias":
		if hasPrefix(value.Text, "!") {
			r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{skipBytes(value, 1)}})
		} else {
			// The value is a git command line, which git splits like a shell.
			value.Text = "git " + value.Text
			run()
		}
	case section == "pager", k == "core.pager", k == "core.editor", k == "sequence.editor", k == "interactive.difffilter":
		if !isPager(value) {
			run()
		}
	case k == "core.sshcommand", k == "core.askpass", k == "core.gitproxy", k == "core.alternaterefscommand",
		k == "diff.external", k == "uploadpack.packobjectshook", k == "gpg.program",
		section == "gpg" && last == "program", section == "diff" && (last == "command" || last == "textconv"),
		section == "filter", section == "merge" && last == "driver", last == "cmd", last == "uploadpack", last == "receivepack", last == "vcs",
		hasPrefix(k, "lfs.customtransfer.") && last == "path", hasPrefix(k, "lfs.extension.") && (last == "clean" || last == "smudge"):
		run()
	case k == "core.fsmonitor":
		if value.Text != "true" && value.Text != "false" || value.IsGlobPattern {
			run()
		}
	case section == "credential" && last == "helper":
		switch {
		case value.Text == "", value.Text == "store", hasPrefix(value.Text, "cache"), value.Text == "osxkeychain", value.Text == "manager":
		default:
			r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{{Text: strings.TrimPrefix(value.Text, "!"), IsGlobPattern: value.IsGlobPattern, Span: value.Span}}})
		}
	case k == "core.hookspath":
		r.addNestedCode(NestedCommandOrCode{Language: "file", Words: []Word{value}})
	case section == "remote" && (last == "url" || last == "pushurl"):
		r.addGitRemote(value)
		_, name, _ := strings.Cut(key.Text[:strings.LastIndexByte(key.Text, '.')], ".")
		r.result.GitRemotes = append(r.result.GitRemotes, GitRemote{Name: name, Address: value})
	case (section == "submodule" || section == "lfs") && (last == "url" || last == "pushurl"), section == "remote" && (last == "lfsurl" || last == "lfspushurl"):
		r.addGitRemote(value)
		if gitHost(value.Text) != "" || value.IsGlobPattern {
			r.addChangeRemoteSystemEffect("redirect")
		}
	case k == "remote.pushdefault", section == "branch" && (last == "pushremote" || last == "remote"):
		if strings.Contains(value.Text, ":") || strings.Contains(value.Text, "/") || value.IsGlobPattern {
			r.addChangeRemoteSystemEffect("redirect") // the value is a URL or a path, so pushes or pulls go to it and not to a named remote
		}
	case section == "url" && (last == "insteadof" || last == "pushinsteadof"):
		to := urlInInsteadOfKey(key)
		r.result.GitRemotes = append(r.result.GitRemotes, GitRemote{Address: to})
		if gitHost(to.Text) != gitHost(value.Text) || value.IsGlobPattern {
			r.addChangeRemoteSystemEffect("redirect")
		}
	case last == "sslverify" && (value.Text == "false" || value.Text == "0" || value.Text == "no" || value.Text == "off" || value.IsGlobPattern),
		section == "protocol" && last == "allow" && value.Text == "always", k == "safe.directory" && value.Text == "*":
		r.addChangeRemoteSystemEffect("weaken")
	case k == "init.templatedir", last == "update" && section == "submodule" && (hasPrefix(value.Text, "!") || value.IsGlobPattern), last == "proxy":
		r.addChangeRemoteSystemEffect("redirect")
	case section == "include", section == "includeif":
		if value.IsGlobPattern || strings.HasPrefix(value.Text, "/") || strings.HasPrefix(value.Text, "~") {
			r.addChangeRemoteSystemEffect("redirect") // a file outside the repository can set other remotes; git resolves a relative path from the .git folder
		}
		r.addOperandEffect(effect.ReadFile, value, false)
		r.setNotUnderstood("git setting %s reads other settings", key.Text)
	case section == "submodule" && last == "update" && (value.Text == "checkout" || value.Text == "rebase" || value.Text == "merge" || value.Text == "none"):
	case strings.Contains(harmlessGitKeys, " "+k+" "), (section == "submodule" || section == "lfs") && last != "" && strings.Contains(harmlessGitKeys, " "+section+"."+last+" "):
	case k != "" && strings.Contains(harmlessGitSections, " "+section+" ") && !strings.Contains(riskyGitKeys, " "+k+" "):
	default:
		r.setNotUnderstood("unknown git setting %s", key.Text)
	}
}

// isPager reports whether w is a pager or editor without further commands.
func isPager(w Word) bool {
	if w.IsGlobPattern {
		return false
	}
	switch w.Text {
	case "", "cat", "less", "more", "less -R", "less -F", "less -FRX", "less -S", "vim", "vi", "nano", "emacs", "true", ":", "false", "code --wait", "delta", "bat":
		return true
	}
	return false
}

// urlInInsteadOfKey returns the URL in the key url.URL.insteadOf.
func urlInInsteadOfKey(key Word) Word {
	key.Text = key.Text[:strings.LastIndexByte(key.Text, '.')]
	return skipBytes(key, min(len("url."), len(key.Text)))
}

// gitHost returns the host of a git URL, "" if it has none.
func gitHost(address string) string {
	if urlScheme(address) == "" {
		host, _, _ := splitRemotePath(Word{Text: address})
		return effect.CanonicalHost(host.Text)
	}
	_, host := effect.NormalizeURL(address)
	return host
}
