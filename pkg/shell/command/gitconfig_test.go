package command

import (
	"strings"
	"testing"
)

// TestGitSettings holds what git would run or be told for a setting, and that no
// name of one, however short, is too much for its reader.
func TestGitSettings(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct{ setting, want string }{
		{"alias.x=!rm -rf ~", "shell[rm -rf ~]"},
		{"alias.x=log --oneline", "shell[git log --oneline]"},
		{"pager.log=sh -c x", "shell[sh -c x]"},
		{"core.pager=less -R", ""},
		{"core.editor=vim -c !x", "shell[vim -c !x]"},
		{"core.sshCommand=ssh -i k", "shell[ssh -i k]"},
		{"CORE.ASKPASS=x", "shell[x]"},
		{"gpg.ssh.program=x", "shell[x]"},
		{"diff.x.textconv=y", "shell[y]"},
		{"filter.x.smudge=y", "shell[y]"},
		{"merge.x.driver=y", "shell[y]"},
		{"mergetool.x.cmd=y", "shell[y]"},
		{"remote.o.uploadpack=y", "shell[y]"},
		{"core.fsmonitor=true", ""},
		{"core.fsmonitor=x", "shell[x]"},
		{"credential.helper=", ""},
		{"credential.helper=cache --timeout=9", ""},
		{"credential.https://x.test.helper=!f", "shell[f]"},
		{"core.hooksPath=/tmp/h", "file[/tmp/h]"},
		{"http.sslVerify=false", "change_remote weaken"},
		{"http.sslVerify=true", "unknown git setting"},
		{"protocol.ext.allow=always", "change_remote weaken"},
		{"safe.directory=*", "change_remote weaken"},
		{"safe.directory=/a", ""},
		{"init.templateDir=/x", "change_remote redirect"},
		{"submodule.a.update=!x", "change_remote redirect"},
		{"http.proxy=x", "change_remote redirect"},
		{"include.path=/x", "change_remote redirect"},
		{"include.path=x", "reads other settings"},
		{"url.https://evil.test/.insteadOf=https://github.com/", "change_remote redirect"},
		{"url.git@github.com:.insteadOf=https://github.com/", ""},
		{"branch.main.pushRemote=https://evil.test/a.git", "change_remote redirect"},
		{"remote.pushDefault=git@evil.test:a", "change_remote redirect"},
		{"branch.main.remote=origin", ""},
		{"remote.pushDefault=fork", ""},
		{"user.name=x", ""},
		{"core.autocrlf=input", ""},
		{"diff.external=x", "shell[x]"},
		{"submodule.recurse=true", "unknown git setting"},
		{"submodule.a.update=x", "unknown git setting"},
		{"submodule.a.update=rebase", ""},
		{"submodule.a.update=none", ""},
		{"submodule.a.url=https://evil.test/x", "change_remote redirect"},
		{"submodule.a.url=git@evil.test:x", "change_remote redirect"},
		{"submodule.a.url=ext::sh -c id", "shell[sh -c id]"},
		{"submodule.a.url=../x.git", ""},
		{"submodule.a.branch=main", ""},
		{"submodule.a.active=true", ""},
		{"submodule.a.ignore=dirty", ""},
		{"submodule.fetchJobs=8", ""},
		{"lfs.customtransfer.x.path=/tmp/evil", "shell[/tmp/evil]"},
		{"lfs.customtransfer.x.args=-x", "unknown git setting"},
		{"lfs.standalonetransferagent=x", "unknown git setting"},
		{"lfs.extension.foo.clean=/tmp/evil", "shell[/tmp/evil]"},
		{"lfs.extension.foo.smudge=/tmp/evil", "shell[/tmp/evil]"},
		{"lfs.url=https://evil.test/lfs", "change_remote redirect"},
		{"lfs.pushURL=https://evil.test/lfs", "change_remote redirect"},
		{"remote.origin.lfsurl=https://evil.test/lfs", "change_remote redirect"},
		{"lfs.locksverify=true", ""},
		{"lfs.https://github.com/a/b.git/info/lfs.locksverify=true", ""},
		{"lfs.fetchinclude=assets/*", ""},
		{"lfs.fetchexclude=*", ""},
		{"lfs.concurrenttransfers=8", ""},
		{"made.up=x", "unknown git setting made.up"},
		{"alias.x", "shell[git ]"},
		{"=x", "unknown git setting"},
	} {
		use := Interpret([]Word{{Text: "git"}, {Text: "-c"}, {Text: c.setting}, {Text: "status"}})
		got := summary(use) + " " + use.WhyNotUnderstood
		if c.want != "" && !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.setting, got, c.want)
		}
		if c.want == "" && (len(use.NestedCommandsAndCode) > 0 || changes(use) || use.WhyNotUnderstood != "") {
			t.Errorf("%s: %s, which is to be harmless", c.setting, got)
		}
	}
}

// TestGitDryRun holds that git runs code in a dry run too, and that a dry run is harmless otherwise.
func TestGitDryRun(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"git -c protocol.ext.allow=always push --dry-run 'ext::sh -c id'":     "shell[sh -c id]",
		"git -c protocol.ext.allow=always push --dry-run x":                   "change_remote weaken",
		"git push -n --receive-pack='touch a;' ../x.git":                      "shell[touch a;]",
		"git -c core.hooksPath=/tmp/evil push --dry-run":                      "file[/tmp/evil]",
		"git -c core.sshCommand=/tmp/evil push -n origin":                     "shell[/tmp/evil]",
		"git -c url.https://evil.test/.insteadOf=https://github.com/ push -n": "change_remote redirect",
		"git push --dry-run ext::id":                                          "shell[id]",
		"git push --dry-run origin main":                                      "",
		"git push -n --force origin main":                                     "",
		"git push --dry-run --delete origin main":                             "",
		"git -c user.name=x push --dry-run":                                   "",
		"git -c core.pager=cat push -n":                                       "",
		"git add -n .":                                                        "",
		"git prune -n":                                                        "",
		"git lfs push --dry-run origin main":                                  "",
		"npm publish --dry-run":                                               "",
	} {
		use := Interpret(split(command))
		got := summary(use)
		if want != "" && !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
		if want == "" && (len(use.NestedCommandsAndCode) > 0 || len(use.Effects) > 0 || !use.Understood) {
			t.Errorf("%s: %s, which is to be harmless", command, got)
		}
	}
}

// TestGitRemotes holds which names git is told to use for which addresses.
func TestGitRemotes(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]GitRemote{
		"git config remote.origin.url https://x.test/a":            {Name: "origin", Address: Word{Text: "https://x.test/a"}},
		"git config remote.a.b.pushurl https://x.test/a":           {Name: "a.b", Address: Word{Text: "https://x.test/a"}},
		"git config remote.url https://x.test/a":                   {Address: Word{Text: "https://x.test/a"}},
		"git config url.https://x.test/.insteadOf https://a.test/": {Address: Word{Text: "https://x.test/"}},
		"git config url.insteadOf https://a.test/":                 {},
	} {
		got := Interpret(split(command)).GitRemotes
		if len(got) != 1 || got[0].Name != want.Name || got[0].Address.Text != want.Address.Text {
			t.Errorf("%s: %+v, want %+v", command, got, want)
		}
	}
	for _, section := range []string{"remote", "url", "alias", "credential", "include", "includeIf", "submodule", "protocol", "gpg", "diff", "merge", "core", ""} {
		for _, last := range []string{"", ".", ".url", ".insteadOf", ".helper", ".x", "..", ".update", ".allow"} {
			for _, value := range []string{"", "!", "x", "*", "https://x.test"} {
				Interpret([]Word{{Text: "git"}, {Text: "config"}, {Text: section + last}, {Text: value}})
				Interpret([]Word{{Text: "git"}, {Text: "-c"}, {Text: section + last + "=" + value, IsGlobPattern: value == "*"}, {Text: "fetch"}})
			}
		}
	}
}
