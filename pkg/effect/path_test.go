package effect

import (
	"strings"
	"testing"
)

var (
	linux   = &PathContext{CWD: "/home/me/app", Home: "/home/me", WorkspaceRoots: []string{"/home/me/app"}}
	mac     = &PathContext{CWD: "/Users/me/app", Home: "/Users/me", WorkspaceRoots: []string{"/Users/me/app"}, FoldCase: true}
	windows = &PathContext{CWD: "c:/users/me/app", Home: "c:/users/me", WorkspaceRoots: []string{"c:/users/me/app"}, FoldCase: true}
	nowhere = &PathContext{}
)

var pathTests = []struct {
	name    string
	place   *PathContext
	word    string
	pattern bool
	want    string
	isPat   bool
}{
	{"absolute", linux, "/etc/passwd", false, "/etc/passwd", false},
	{"root", linux, "/", false, "/", false},
	{"root of dots", linux, "/./..//.", false, "/", false},
	{"trailing slash", linux, "/etc/", false, "/etc", false},
	{"trailing slashes", linux, "/etc//", false, "/etc", false},
	{"double slash", linux, "/etc//passwd", false, "/etc/passwd", false},
	{"leading double slash", linux, "//etc/passwd", false, "/etc/passwd", false},
	{"three slashes", linux, "///etc/passwd", false, "/etc/passwd", false},
	{"dot", linux, "/etc/./passwd", false, "/etc/passwd", false},
	{"dot dot", linux, "/usr/../etc/passwd", false, "/etc/passwd", false},
	{"above the root", linux, "/../../etc/passwd", false, "/etc/passwd", false},
	{"dot dot at the end", linux, "/etc/ssh/..", false, "/etc", false},
	{"three dots are a name", linux, "/etc/.../x", false, "/etc/.../x", false},
	{"hidden", linux, ".env", false, "/home/me/app/.env", false},
	{"relative", linux, "src/main.go", false, "/home/me/app/src/main.go", false},
	{"dot slash", linux, "./src/main.go", false, "/home/me/app/src/main.go", false},
	{"here", linux, ".", false, "/home/me/app", false},
	{"above", linux, "..", false, "/home/me", false},
	{"climb", linux, "../.ssh/id_rsa", false, "/home/me/.ssh/id_rsa", false},
	{"climb far", linux, "../../../../../etc/shadow", false, "/etc/shadow", false},
	{"climb within", linux, "a/b/../../c", false, "/home/me/app/c", false},
	{"blank inside", linux, "my file", false, "/home/me/app/my file", false},
	{"newline inside", linux, "a\nb", false, "/home/me/app/a\nb", false},
	{"backslash is a character", linux, `a\b`, false, `/home/me/app/a\b`, false},
	{"star is a character", linux, "a*b", false, "/home/me/app/a*b", false},
	{"bracket is a character", linux, "app/[id]/page.tsx", false, "/home/me/app/app/[id]/page.tsx", false},
	{"colon", linux, "a:b", false, "/home/me/app/a:b", false},
	{"backup", linux, "main.go~", false, "/home/me/app/main.go~", false},
	{"percent", linux, "50%", false, "/home/me/app/50%", false},
	{"percent twice", linux, "a%b%c", false, "/home/me/app/a%b%c", false},
	{"empty", linux, "", false, "", false},
	{"NUL", linux, "/etc/passwd\x00.png", false, "/etc/passwd", false},
	{"only NUL", linux, "\x00", false, "", false},
	{"unicode", linux, "日本/é", false, "/home/me/app/日本/é", false},
	{"invalid UTF-8", linux, "a\xffb", false, "/home/me/app/a\xffb", false},

	{"tilde", linux, "~", false, "/home/me", false},
	{"tilde slash", linux, "~/", false, "/home/me", false},
	{"tilde path", linux, "~/.ssh/id_rsa", false, "/home/me/.ssh/id_rsa", false},
	{"tilde dots", linux, "~/../../etc/passwd", false, "/etc/passwd", false},
	{"tilde root", linux, "~root/.ssh", false, "/root/.ssh", false},
	{"tilde myself", linux, "~me/.ssh", false, "/home/me/.ssh", false},
	{"tilde other", linux, "~bob/.ssh", false, "/home/bob/.ssh", false},
	{"tilde other on macOS", mac, "~bob/.ssh", false, "/Users/bob/.ssh", false},
	{"tilde plus", linux, "~+/x", false, "/home/me/app/x", false},
	{"tilde minus", linux, "~-/x", false, "**/x", true},
	{"tilde inside", linux, "a/~/b", false, "/home/me/app/a/~/b", false},
	{"HOME", linux, "$HOME/.ssh", false, "/home/me/.ssh", false},
	{"HOME alone", linux, "$HOME", false, "/home/me", false},
	{"HOME in braces", linux, "${HOME}/.ssh", false, "/home/me/.ssh", false},
	{"HOME glued", linux, "$HOMEx/.ssh", false, "/home/me/app/$HOMEx/.ssh", false},
	{"HOME with text behind", linux, "${HOME}x/.ssh", false, "**/x/.ssh", true},
	{"PWD", linux, "$PWD/x", false, "/home/me/app/x", false},
	{"XDG", linux, "$XDG_CONFIG_HOME/gh", false, "/home/me/.config/gh", false},
	{"unknown variable", linux, "$SECRETS/key", false, "**/key", true},
	{"name with a dollar", linux, "$slug.tsx", false, "/home/me/app/$slug.tsx", false},
	{"class file", linux, "Foo$Bar.class", false, "/home/me/app/Foo$Bar.class", false},
	{"user in a path", linux, "/home/$USER/.ssh", false, "/home/me/.ssh", false},
	{"user in braces", linux, "/home/${USER}/.ssh", false, "/home/me/.ssh", false},
	{"unknown user", nowhere, "/home/$USER/.ssh", false, "/home/*/.ssh", true},

	{"unknown cwd", nowhere, "notes", false, "**/notes", true},
	{"unknown cwd, climbing", nowhere, "../../notes", false, "**/notes", true},
	{"unknown cwd, here", nowhere, ".", false, "**", true},
	{"unknown cwd, quoted", nowhere, "a*b", false, `**/a\*b`, true},
	{"unknown cwd, absolute", nowhere, "/etc/passwd", false, "/etc/passwd", false},
	{"unknown home", nowhere, "~/.ssh", false, "/home/*/.ssh", true},
	{"unknown home alone", nowhere, "~", false, "/home/*", true},
	{"unknown home and above", nowhere, "~/../../etc/passwd", false, "/etc/passwd", false},
	{"unknown home by variable", nowhere, "$HOME/.ssh", false, "/home/*/.ssh", true},

	{"glob", linux, "*.go", true, "/home/me/app/*.go", true},
	{"glob in etc", linux, "/etc/pass*", true, "/etc/pass*", true},
	{"question mark", linux, "/etc/passw?", true, "/etc/passw?", true},
	{"class", linux, "/etc/passw[a-d]", true, "/etc/passw[a-d]", true},
	{"escaped star", linux, `a\*b`, true, "/home/me/app/a*b", false},
	{"escaped and wild", linux, `a\*b*`, true, `/home/me/app/a\*b*`, true},
	{"escaped dots", linux, `/usr/\.\./etc/passwd`, true, "/etc/passwd", false},
	{"escaped slash", linux, `/etc\/passwd`, true, "/etc/passwd", false},
	{"pattern without wildcards", linux, "/etc/passwd", true, "/etc/passwd", false},
	{"unknown part", linux, "**/id_rsa", true, "**/id_rsa", true},
	{"unknown start", linux, "**", true, "**", true},
	{"unknown part behind", linux, "src/**", true, "/home/me/app/src/**", true},
	{"unknown name", linux, "**.json", true, "**.json", true},
	{"unknown part above", linux, "/srv/**/../x", true, "/srv/**/x", true},
	{"unclosed bracket", linux, "/a[b*", true, "/a[b*", true},
	{"glob in home", linux, "~/*", true, "/home/me/*", true},
	{"glob of homes", linux, "/home/*/.ssh", true, "/home/*/.ssh", true},
	{"glob that climbs", linux, ".?/.?/etc/passwd", true, "**/etc/passwd", true},
	{"glob that climbs by star", linux, "/srv/.*/etc/passwd", true, "**/etc/passwd", true},
	{"hidden files", linux, ".*", true, "/home/me/app/.*", true},
	{"glob and dots", linux, "*/../x", true, "/home/me/app/x", false},
	{"run of runs", linux, "/a/**/**/b", true, "/a/**/b", true},

	{"proc root", linux, "/proc/self/root/etc/passwd", false, "/etc/passwd", false},
	{"proc root alone", linux, "/proc/self/root", false, "/", false},
	{"proc root twice", linux, "/proc/self/root/proc/self/root/etc/passwd", false, "/etc/passwd", false},
	{"proc root and dots", linux, "/proc/self/root/../../etc/passwd", false, "/etc/passwd", false},
	{"proc root of init", linux, "/proc/1/root/etc/shadow", false, "/etc/shadow", false},
	{"proc root of a thread", linux, "/proc/self/task/12/root/etc/shadow", false, "/etc/shadow", false},
	{"proc thread-self", linux, "/proc/thread-self/root/etc/shadow", false, "/etc/shadow", false},
	{"proc root by glob", linux, "/proc/*/root/etc/shadow", true, "/etc/shadow", false},
	{"proc root by globs", linux, "/proc/*/ro?t/etc/shadow", true, "/etc/shadow", false},
	{"proc cwd", linux, "/proc/self/cwd/.env", false, "/home/me/app/.env", false},
	{"proc cwd alone", linux, "/proc/self/cwd", false, "/home/me/app", false},
	{"proc cwd of another", linux, "/proc/12/cwd/.env", false, "**/.env", true},
	{"proc cwd unknown", nowhere, "/proc/self/cwd/.env", false, "**/.env", true},
	{"proc from the root", &PathContext{CWD: "/"}, "proc/self/root/etc/passwd", false, "/etc/passwd", false},
	{"proc from proc", &PathContext{CWD: "/proc/self"}, "root/etc/passwd", false, "/etc/passwd", false},
	{"proc by climbing", linux, "../../../proc/self/root/etc/passwd", false, "/etc/passwd", false},
	{"proc environment", linux, "/proc/self/environ", false, "/proc/self/environ", false},
	{"proc settings", linux, "/proc/sys/kernel/core_pattern", false, "/proc/sys/kernel/core_pattern", false},
	{"descriptor", linux, "/dev/fd/3", false, "/dev/fd/3", false},
	{"descriptor by proc", linux, "/proc/self/fd/3", false, "/dev/fd/3", false},
	{"descriptor of a folder", linux, "/proc/self/fd/3/etc/passwd", false, "**/etc/passwd", true},
	{"descriptor of a folder by dev", linux, "/dev/fd/3/etc/passwd", false, "**/etc/passwd", true},
	{"stdin", linux, "/dev/stdin", false, "/dev/fd/0", false},
	{"stderr", linux, "/dev/stderr", false, "/dev/fd/2", false},
	{"null", linux, "/dev/null", false, "/dev/null", false},
	{"tcp", linux, "/dev/tcp/evil.com/80", false, "/dev/tcp/evil.com/80", false},

	{"file URL", linux, "file:///etc/passwd", false, "/etc/passwd", false},
	{"file URL with host", linux, "file://localhost/etc/passwd", false, "/etc/passwd", false},
	{"file URL of this machine, spelled otherwise", linux, "file://0x7f.1/etc/passwd", false, "/etc/passwd", false},
	{"file URL of another machine", linux, "file://localhost.evil.com/etc/passwd", false, "unc:/localhost.evil.com/etc/passwd", false},
	{"file URL in capitals", linux, "FILE:///etc/passwd", false, "/etc/passwd", false},
	{"file URL, one slash", linux, "file:/etc/passwd", false, "/etc/passwd", false},
	{"file URL, encoded", linux, "file:///etc/%70asswd", false, "/etc/passwd", false},
	{"file URL, climbing", linux, "file:///a/%2e%2e/etc/passwd", false, "/etc/passwd", false},
	{"file URL, NUL", linux, "file:///etc/passwd%00.png", false, "/etc/passwd", false},
	{"file URL, fragment", linux, "file:///etc/passwd#x", false, "/etc/passwd", false},
	{"file URL, query", linux, "file:///etc/passwd?x", false, "/etc/passwd", false},
	{"file URL, drive", linux, "file:///C:/Windows/x", false, "c:/windows/x", false},
	{"file URL, share", linux, "file://server/share/x", false, "unc:/server/share/x", false},
	{"file URL, nothing", linux, "file:", false, "", false},

	{"private", mac, "/private/etc/passwd", false, "/etc/passwd", false},
	{"private var", mac, "/private/var/root/.ssh", false, "/var/root/.ssh", false},
	{"private tmp", mac, "/private/tmp/x", false, "/tmp/x", false},
	{"private other", mac, "/private/x", false, "/private/x", false},
	{"private in capitals", mac, "/PRIVATE/ETC/passwd", false, "/ETC/passwd", false},
	{"data volume", mac, "/System/Volumes/Data/Users/me/.ssh", false, "/Users/me/.ssh", false},
	{"data volume, private", mac, "/System/Volumes/Data/private/etc/passwd", false, "/etc/passwd", false},
	{"boot volume", mac, "/Volumes/Macintosh HD/etc/passwd", false, "/etc/passwd", false},
	{"other volume", mac, "/Volumes/Backup/x", false, "/Volumes/Backup/x", false},
	{"no follow", mac, "/.nofollow/private/etc/passwd", false, "/etc/passwd", false},
	{"resolve", mac, "/.resolve/1/etc/passwd", false, "/etc/passwd", false},
	{"by number", mac, "/.vol/16777234/2/etc/passwd", false, "**/etc/passwd", true},
	{"case is kept", mac, "/Users/Me/App", false, "/Users/Me/App", false},

	{"drive", linux, `C:\Users\Me\.ssh`, false, "c:/users/me/.ssh", false},
	{"drive with slashes", linux, "C:/Users/Me", false, "c:/users/me", false},
	{"drive alone", linux, `C:\`, false, "c:/", false},
	{"drive without slash", windows, "D:", false, "d:/", false},
	{"drive relative", windows, "c:x", false, "c:/users/me/app/x", false},
	{"other drive relative", windows, "d:x", false, "d:/**/x", true},
	{"dots", windows, `C:\a\..\b\.\c`, false, "c:/b/c", false},
	{"above the drive", windows, `C:\..\..\Windows`, false, "c:/windows", false},
	{"mixed slashes", windows, `C:\a/b\c`, false, "c:/a/b/c", false},
	{"relative backslash", windows, `src\main.go`, false, "c:/users/me/app/src/main.go", false},
	{"relative climb", windows, `..\.ssh\id_rsa`, false, "c:/users/me/.ssh/id_rsa", false},
	{"rooted", windows, `\Windows\x`, false, "c:/windows/x", false},
	{"rooted slash", windows, "/Windows/x", false, "c:/windows/x", false},
	{"rooted elsewhere", linux, `\Windows\x`, false, "?:/windows/x", true},
	{"Git's bash", windows, "/c/Users/me", false, "c:/users/me", false},
	{"tilde backslash", windows, `~\.ssh`, false, "c:/users/me/.ssh", false},
	{"tilde backslash on Linux", linux, `~\.ssh`, false, "/home/me/.ssh", false},
	{"USERPROFILE", windows, `%USERPROFILE%\.aws\credentials`, false, "c:/users/me/.aws/credentials", false},
	{"USERPROFILE in lower case", windows, `%userprofile%\.aws`, false, "c:/users/me/.aws", false},
	{"USERPROFILE of PowerShell", windows, `$env:USERPROFILE\.ssh`, false, "c:/users/me/.ssh", false},
	{"USERPROFILE in braces", windows, `${env:USERPROFILE}\.ssh`, false, "c:/users/me/.ssh", false},
	{"HOME of PowerShell", windows, `$HOME\.ssh`, false, "c:/users/me/.ssh", false},
	{"HOMEDRIVE HOMEPATH", windows, `%HOMEDRIVE%%HOMEPATH%\.ssh`, false, "c:/users/me/.ssh", false},
	{"APPDATA", windows, `%APPDATA%\x`, false, "c:/users/me/appdata/roaming/x", false},
	{"APPDATA unknown", nowhere, `%APPDATA%\x`, false, "?:/users/*/appdata/roaming/x", true},
	{"SystemRoot", windows, `%SystemRoot%\System32\config\SAM`, false, "c:/windows/system32/config/sam", false},
	{"ProgramFiles(x86)", windows, `%ProgramFiles(x86)%\x`, false, "c:/program files (x86)/x", false},
	{"verbatim", windows, `\\?\C:\Users\me`, false, "c:/users/me", false},
	{"verbatim slashes", windows, "//?/C:/Users/me", false, "c:/users/me", false},
	{"verbatim in the kernel", windows, `\??\C:\Users\me`, false, "c:/users/me", false},
	{"device drive", windows, `\\.\C:\Users\me`, false, "c:/users/me", false},
	{"device", windows, `\\.\PhysicalDrive0`, false, "unc:/device/physicaldrive0", false},
	{"global root", windows, `\\?\GLOBALROOT\Device\HarddiskVolume3\Windows`, false, "?:/**/device/harddiskvolume3/windows", true},
	{"share", windows, `\\Server\Share\x`, false, "unc:/server/share/x", false},
	{"share on Linux", linux, `\\Server\Share\x`, false, "unc:/server/share/x", false},
	{"verbatim share", windows, `\\?\UNC\Server\Share\x`, false, "unc:/server/share/x", false},
	{"own share", windows, `\\localhost\C$\Users`, false, "c:/users", false},
	{"own share by address", windows, `\\127.0.0.1\c$\Users`, false, "c:/users", false},
	{"own share by another address", windows, `\\127.0.0.2\c$\Users`, false, "c:/users", false},
	{"own share by a number", windows, `\\2130706433\c$\Users`, false, "c:/users", false},
	{"own share by an address of IPv6", windows, `\\0-0-0-0-0-0-0-1.ipv6-literal.net\c$\Users`, false, "c:/users", false},
	{"own share with a zone", windows, `\\0--1s4.IPv6-literal.net\c$\Users`, false, "c:/users", false},
	{"share of a name that begins alike", windows, `\\localhost.evil.com\c$\Users`, false, "unc:/localhost.evil.com/c$/users", false},
	{"Linux guest", windows, `\\wsl$\Ubuntu\home\me\.ssh`, false, "/home/me/.ssh", false},
	{"trailing dot", windows, `C:\a.\b.txt.`, false, "c:/a/b.txt", false},
	{"trailing blanks", windows, `C:\a \b.txt  `, false, "c:/a/b.txt", false},
	{"stream", windows, `C:\a\secret.txt::$DATA`, false, "c:/a/secret.txt", false},
	{"named stream", windows, `C:\a\secret.txt:x`, false, "c:/a/secret.txt", false},
	{"folder's stream", windows, `C:\a::$INDEX_ALLOCATION\b`, false, "c:/a/b", false},
	{"short name", windows, `C:\PROGRA~1\x`, false, "c:/*p*r*o*g*r*a*/x", true},
	{"short name with extension", windows, `C:\ID_RSA~1.PUB`, false, "c:/*i*d*_*r*s*a*p*u*b*", true},
	{"wildcard", windows, `C:\Users\*\x`, true, "c:/users/*/x", true},
	{"Kelvin sign", windows, "C:\\\u212aey", false, "c:/key", false},
}

func TestPath(t *testing.T) {
	t.Parallel()
	if len(pathTests) < 150 {
		t.Errorf("only %d cases", len(pathTests))
	}
	for _, tt := range pathTests {
		got, isPat := tt.place.CanonicalPath(tt.word, tt.pattern)
		if got != tt.want || isPat != tt.isPat {
			t.Errorf("%s: Path(%q, %t) = %q, %t, want %q, %t", tt.name, tt.word, tt.pattern, got, isPat, tt.want, tt.isPat)
			continue
		}
		if tt.place == windows && strings.HasPrefix(got, "/") {
			continue // a path of the guest is none of Windows
		}
		again, againPat := tt.place.CanonicalPath(got, isPat)
		if again != got || againPat != isPat {
			t.Errorf("%s: Path(%q, %t) of a canonical path = %q, %t", tt.name, got, isPat, again, againPat)
		}
	}
}

func TestPathTooLong(t *testing.T) {
	t.Parallel()
	for _, word := range []string{strings.Repeat("a/", 4000), strings.Repeat("a", 9000), "/" + strings.Repeat("é*/", 3000)} {
		for _, pattern := range []bool{false, true} {
			got, isPattern := linux.CanonicalPath(word, pattern)
			if len(got) > maxPathBytes+3 || !isPattern || !strings.HasSuffix(got, "**") {
				t.Errorf("Path(%.10q…, %t) = %.40q… of %d bytes, %t", word, pattern, got, len(got), isPattern)
			}
		}
	}
	if got, _ := linux.CanonicalPath("/"+strings.Repeat("./", 5000)+"etc/passwd", false); got != "/etc/passwd" {
		t.Errorf("padding hides %.40q", got)
	}
}
