package shell

import (
	"path"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/pwsh"
)

// invokeOnWindows runs a program on Windows: names ignore case, and some mean a different program than on other
// systems.
func (s *analysisState) invokeOnWindows(argv []abstract.Value, io abstract.Streams) abstract.Value {
	if !argv[0].IsLiteral() {
		return s.walkUnknownProgram(argv, io)
	}
	name := strings.ReplaceAll(argv[0].Text, "\\", "/")
	base := strings.ToLower(programName(name))
	ext := path.Ext(base)
	if short := strings.TrimSuffix(base, ext); (ext == ".cmd" || ext == ".bat" || ext == ".com") && command.CmdShims[short] {
		base = short
	}
	if listed, ok := command.WindowsProgramTableName(base); ok {
		words := commandWords(argv)
		words[0].Text = listed
		return s.walkProgramWithKnownSyntax(base, words, argv, io)
	}
	if i := strings.LastIndexByte(name, '/'); i >= 0 && !isSystemFolder(name[:i+1]) || isWindowsScript(base) {
		return s.runProgramGivenByPath(argv, io)
	}
	// cmd.exe and PowerShell also search the working folder.
	if p, pattern := s.workingFolderContext().CanonicalPath(argv[0].Text, false); len(s.writtenFileContents(p, pattern)) > 0 {
		return s.runProgramGivenByPath(argv, io)
	}
	argv[0].Text = base
	return s.walkNonBuiltinCommand(argv, io)
}

// isWindowsScript reports whether Windows executes files of this name as code.
func isWindowsScript(base string) bool {
	switch command.FileLanguage(base) {
	case "cmd", "powershell", "code":
		return true
	}
	return false
}

// recordRegistryAccess records an access to a registry key, and reports whether the key is read and holds credentials.
func (s *analysisState) recordRegistryAccess(base string, argv []abstract.Value, k command.RegistryKey) (secret bool) {
	if k.Write {
		s.recordRegistryWrite(base, argv[1:], wordsSpan(argv))
		return false
	}
	key := strings.ToLower(k.Word.Text)
	if !pwsh.IsSecretHive(key) {
		return false
	}
	s.emitOnce(effect.Effect{Kind: effect.ReadSecret, Program: base, Reason: "reads " + key, Span: wordsSpan(argv)})
	return true
}

// recordRegistryWrite records a change of the registry.
func (s *analysisState) recordRegistryWrite(program string, words []abstract.Value, at effect.CommandTextSpan) {
	e := effect.Effect{Kind: effect.ChangeSystem, Program: program, Reason: "changes the registry", Span: at}
	for _, v := range words {
		key := strings.ToLower(strings.ReplaceAll(v.Text, "/", `\`))
		if isAutorunKey(key) {
			e.Kind, e.Path, e.Reason = effect.Persist, v.String(), "programs named in this registry key run later (persistence)"
			break
		}
	}
	s.emitOnce(e)
}

// isAutorunKey reports whether Windows runs programs that a registry key names.
func isAutorunKey(key string) bool {
	for _, k := range [...]string{`\currentversion\run`, `\currentversion\policies\explorer\run`, `\winlogon`, `\image file execution options`, `\silentprocessexit`, `\currentversion\windows\load`, `appinit_dlls`,
		`\services\`, `\active setup\`, `\shell\open\command`, `\environment`, `\command processor`, `userinitmprlogonscript`, `\lsa\`, `\print\monitors`, `\netsh`, `\bootexecute`, `\inprocserver32`, `\appcertdlls`, `\explorer\shell folders`, `\explorer\user shell folders`, `\powershell\`, `scrnsave.exe`} {
		if strings.Contains(key, k) {
			return true
		}
	}
	return false
}
