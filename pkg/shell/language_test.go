package shell

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestScripts checks that a script on disk is walked in the language that its
// first line or its name says.
func TestScripts(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"a.sh":   "rm -rf x",
		"a.py":   "import os; os.remove('x')",
		"a.js":   "require('fs').unlinkSync('x')",
		"a.ps1":  "Remove-Item x",
		"a.bat":  "del x",
		"a.nu":   "rm x",
		"b":      "#!/usr/bin/env -S python3 -u\nimport os; os.remove('x')",
		"c":      "#!/bin/busybox sh\nrm x",
		"d.py":   "#!/usr/bin/perl\nunlink 'x';",
		"e":      "\x7fELF\x02 rm x",
		"f":      "rm\x00x",
		"g.bash": "rm x",
	}
	for command, deletes := range map[string]bool{
		"./a.sh": true, "python3 a.py": true, "./a.py": true, "bun run a.js": true, "pwsh -File a.ps1": true, "uv run a.py": true,
		"cmd /c a.bat": true, "nu a.nu": true, "./b": true, "./c": true, "./d.py": true, "./e": false, "./f": false, "bash g.bash": true,
	} {
		at := here()
		at.ReadScript = func(p string) ([]byte, error) {
			data, ok := files[strings.TrimPrefix(p, "/home/me/app/")]
			if !ok {
				return nil, fs.ErrNotExist
			}
			return []byte(data), nil
		}
		r := Analyze(command, at)
		got := ""
		for _, e := range r.Effects {
			if e.KindForPolicies() == effect.DeleteFile {
				got = e.Path
			}
		}
		if deletes != (got == "/home/me/app/x") {
			t.Errorf("%q deletes %q:\n%s", command, got, list(r))
		}
	}
	if r := Analyze("./none.sh", here()); !has(r, effect.UnknownEffect) {
		t.Errorf("a script that is missing is not dynamic:\n%s", list(r))
	}
}

// TestWindowsDetected holds which texts are read as cmd.exe or PowerShell.
func TestWindowsDetected(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"del /s /q build":                 "cmd",
		"DIR C:\\x":                       "powershell",
		`C:\tools\a.exe`:                  "cmd",
		`"C:\a b\c.exe" x`:                "cmd",
		`.\build.bat`:                     "cmd",
		`..\x.exe`:                        "cmd",
		"%TEMP%\\a.exe":                   "cmd",
		"net user x /add":                 "cmd",
		"net rpc info":                    "",
		"schtasks /query":                 "cmd",
		"find . -name x":                  "",
		"sort a.txt":                      "",
		"pwsh -c 'Get-Date'":              "",
		"powershell -c Get-Date":          "cmd",
		"@echo off":                       "",
		"(dir /b )":                       "cmd",
		"Get-Date":                        "powershell",
		"# comment\nGet-Date":             "powershell",
		"[IO.File]::Delete('x')":          "powershell",
		"[ -f x ]":                        "",
		"$x = 'a'; iex $x":                "powershell",
		"$x":                              "",
		"$x = @{a = 1}":                   "powershell",
		"$x=@{ a = 1 }":                   "powershell",
		"$x=$(ls)":                        "powershell",
		"$x=@(`ls`)":                      "",
		"$x=1 ls":                         "",
		"$obj | Get-Member":               "powershell",
		"$obj.name | Should -Be a":        "",
		"$CMD | sort":                     "",
		"@{a = 'b'}":                      "powershell",
		"@'\na\n'@ | Set-Content b":       "powershell",
		"<# a #> Get-Date":                "powershell",
		"<a sort":                         "",
		"for /d %v in (a b) do (echo %v)": "cmd",
		"for f in a b; do echo $f; done":  "",
		"$env:PATH":                       "powershell",
		"& 'a.exe'":                       "powershell",
		"&& a":                            "",
		"iex $x":                          "powershell",
		"iex":                             "",
		"param ($a) Get-Item $a":          "powershell",
		"param() { ls -l $1; }":           "",
		"copy-item.sh a":                  "",
		`cat C:\x.txt`:                    "powershell",
		`echo C:\x.txt`:                   "cmd",
		"(Get-Item x).Length":             "powershell",
		`"`:                               "",
		"git commit -m 'Add-Feature'":     "",
	} {
		got := ""
		switch {
		case looksPowerShell(text):
			got = "powershell"
		case looksLikeCmdExe(text):
			got = "cmd"
		}
		if got != want {
			t.Errorf("%q is read as %q, want %q", text, got, want)
		}
	}
}

func TestDecodeCommand(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"aQBkAA==": "id", "": "", "!!": "", "aQ==": ""} {
		if got, ok := decodePowerShellCommand(text); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %t", text, got, ok)
		}
	}
}
