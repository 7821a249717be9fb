package shell

import (
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// maxArgumentsWithoutRecordedEffect is the maximum number of words and inputs without an effect that are shown.
const maxArgumentsWithoutRecordedEffect = 128

// recordUnrecognizedArguments judges arguments whose meaning is unknown by the paths in them: the program may
// read and write each file outside the workspace that is neither temporary nor part of a tool.
func (s *analysisState) recordUnrecognizedArguments(base string, argv []abstract.Value, use command.Interpretation) {
	if s.remoteOrContainerDepth > 0 {
		return
	}
	if !use.Understood && !command.IsProgramWithKnownSyntax(base) {
		for _, v := range argv[1:min(len(argv), maxArgumentsWithoutRecordedEffect)] {
			s.recordArgumentWithoutEffect(base, v.String())
		}
	}
	for _, w := range use.Unrecognized {
		if w.MaybeOptionValue { // other unrecognized words are plain text
			s.recordArgumentWithoutEffect(base, w.Text)
		}
		if !strings.ContainsAny(w.Text, "/~:\\ ") { // it contains no path or URL
			continue
		}
		if !s.spendSteps(1) {
			return
		}
		v := wordValue(w.Word, argv)
		if v.FullyUnknown {
			continue
		}
		if _, rest, ok := strings.Cut(v.Text, "://"); ok && w.MaybeOptionValue && use.Class == effect.Network && rest != "" {
			s.recordURLWithUnknownUse(base, v)
		}
		for _, text := range pathsIn(v.Text) {
			if use.IsWindowsProgram && text[0] == '/' {
				continue // a Windows option
			}
			one := v
			one.Text = text
			if v.IsGlobPattern {
				one.Display = text
			}
			s.recordPathWithUnknownUse(base, one, w.MaybeOptionValue)
		}
	}
}

// recordArgumentWithoutEffect notes an argument or an input of a program if its meaning is unknown, for
// effect.CommandAnalysis.TextsCoveredByNoEffect.
func (s *analysisState) recordArgumentWithoutEffect(programBaseName, text string) {
	if s.effectSuppressionDepth == 0 && len(s.argumentsWithoutRecordedEffect) < maxArgumentsWithoutRecordedEffect {
		s.argumentsWithoutRecordedEffect = append(s.argumentsWithoutRecordedEffect, programBaseName+" "+abstract.ClipForMessage(text))
	}
}

// pathsIn returns the absolute paths, home paths and paths that ".." leads above their start in a word: the word itself,
// or a part of it such as "dest=/a", "html:/a", "-o/a", "@/a" or "c=a/../../b". A text with spaces counts only as a whole.
func pathsIn(text string) []string {
	if text == "" {
		return nil
	}
	if strings.ContainsAny(text, " \n\t") {
		if strings.Trim(text[:1], "/~") == "" {
			return []string{text}
		}
		return nil
	}
	if len(text) > 2 && text[0] == '-' && text[1] != '-' {
		text = text[2:]
	}
	text = strings.ReplaceAll(text, "file://", "")
	if strings.Contains(text, "://") || distinguishedNamePattern().MatchString(text) {
		return nil
	}
	var out []string
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(",=:;@{}", r) }) {
		if part[0] == '/' && len(part) > 1 || strings.HasPrefix(part, "~/") || strings.HasPrefix(part, "..") || strings.HasPrefix(path.Clean(part)+"/", "../") {
			if out = append(out, part); len(out) == 8 {
				break
			}
		}
	}
	return out
}

// distinguishedNamePattern matches the subject name of a certificate, such as /C=XX/CN=a.
var distinguishedNamePattern = prefilter.LazyRegexp(`^(?:/[A-Za-z]+=[^/]*)+$`)

// recordURLWithUnknownUse records that the use of a public URL in a network program's option is unknown.
func (s *analysisState) recordURLWithUnknownUse(base string, v abstract.Value) {
	start := strings.LastIndexAny(v.Text[:strings.Index(v.Text, "://")], "=,;@ ") + 1
	if _, host := effect.NormalizeURL(v.Text[start:]); host != "" && command.IsPublicHost(host) {
		s.emitUnknownEffect(effect.CauseUnparsedWord, "shield does not know what "+base+" does to "+abstract.ClipForMessage(v.String()), v.SourceSpan)
	}
}

// recordPathWithUnknownUse records that it is unknown what a program does with a path.
func (s *analysisState) recordPathWithUnknownUse(base string, v abstract.Value, includesOrdinaryFiles bool) {
	p, pattern := s.workingFolderContext().CanonicalPath(v.Text, v.IsGlobPattern)
	if p == "" || strings.HasPrefix(p, "*") || isStreamDevice(p) || !s.isOutsideKnownFolders(p, pattern, includesOrdinaryFiles) {
		return
	}
	mark := len(s.effects)
	s.emitPathEffect(effect.ReadFile, v, false)
	s.emitPathEffect(effect.WriteFile, v, false)
	s.markEffectsPossible(mark)
	s.emitUnknownEffect(effect.CauseUnparsedWord, "shield does not know what "+base+" does to "+abstract.ClipForMessage(v.String()), v.SourceSpan)
}

// stdinFileText returns the content of the file on a command's standard input; found is false if it is unknown.
func (s *analysisState) stdinFileText(io abstract.Streams, at effect.CommandTextSpan) (text string, found bool) {
	if io.ExistingInputFile == "" || io.Stdin.IsLiteral() || s.remoteOrContainerDepth > 0 && s.initialPathContext.ReadScript == nil {
		return "", false
	}
	return s.scriptText(io.ExistingInputFile, at)
}

// isScriptPossiblyCreatedBeforeRun reports whether a script that does not exist yet may be created before it
// runs. This is so if earlier text watches for file changes, tests for the script in a loop, or
// leaves a command in the background.
func (s *analysisState) isScriptPossiblyCreatedBeforeRun(scriptFile abstract.Value) bool {
	name := path.Base(scriptFile.Text)
	at := strings.LastIndex(s.analyzedText, name)
	if name == "" || at < 0 {
		return false
	}
	before := s.analyzedText[:at]
	return leavesBackgroundCommand(before) || containsAny(before, "inotifywait", "fswatch") && fileWaitPattern().MatchString(before) ||
		strings.Contains(before, name) && containsAny(before, "while", "until") && whileOrUntilPattern().MatchString(before)
}

// isInUserHome reports whether a path outside the workspace is in a home folder, where another process of the user may
// create a script.
func (s *analysisState) isInUserHome(p string) bool {
	return s.isOutsideKnownFolders(p, false, true) && s.initialPathContext.PersistenceClassName(p, false, false) == "" && (s.initialPathContext.Home != "" && isUnder(p, s.initialPathContext.Home) || isUnder(p, "~") || isUnder(p, "/root"))
}

// isTemporaryPath reports whether a path is in a folder for temporary files, where every user can create files.
func isTemporaryPath(p string) bool {
	folder, _ := effect.CutTemporaryFolder(p)
	return folder != ""
}

func containsAny(text string, literals ...string) bool {
	return slices.ContainsFunc(literals, func(lit string) bool { return strings.Contains(text, lit) })
}

// leavesBackgroundCommand reports whether a text runs a command in the background while another follows.
func leavesBackgroundCommand(text string) bool {
	for i := 1; i < len(text); i++ {
		n := strings.IndexByte(text[i:], '&')
		if n < 0 {
			return false
		}
		i += n
		next := strings.TrimLeft(text[i+1:], "\t\n\f\r ")
		if strings.IndexByte("&>|", text[i-1]) < 0 && next != "" && next[0] != '&' && len(next) < len(text)-i-1 {
			return true
		}
	}
	return false
}

// fileWaitPattern matches commands that wait for a file; whileOrUntilPattern matches the start of a while
// or until loop.
var (
	fileWaitPattern     = prefilter.LazyRegexp(`\b(?:inotifywait|fswatch)\s`)
	whileOrUntilPattern = prefilter.LazyRegexp(`(?:^|[;&|\n(])\s*(?:while|until)\s`)
)

// recordSuspiciousStdinLine checks the input lines of a program if it is unknown how the program uses its input.
// It records the first line that contains a URL, a path outside the workspace, a command or a destructive verb.
func (s *analysisState) recordSuspiciousStdinLine(base string, in abstract.Value, at effect.CommandTextSpan) {
	if !in.IsLiteral() || in.Text == "" {
		return
	}
	s.recordArgumentWithoutEffect(base+" <<<", in.Text)
	for line := range strings.Lines(in.Text) {
		if !s.spendSteps(1 + len(line)/512) {
			return
		}
		if what := s.lineIfSuspiciousInstruction(strings.TrimSpace(line)); what != "" {
			s.emitUnknownEffect(effect.CauseUnparsedWord, "shield does not know what "+base+" does with the input line "+abstract.ClipForMessage(what)+"; instead: leave the line out, or ask the user", at)
			return
		}
	}
}

// recordSuspiciousUnparsedCode judges code in a language without a parser by its lines: code piped to a shell, or a protected path.
func (s *analysisState) recordSuspiciousUnparsedCode(text string, at effect.CommandTextSpan) {
	if s.remoteOrContainerDepth > 0 {
		return
	}
	for line := range strings.Lines(text) {
		if !s.spendSteps(1 + len(line)/512) {
			return
		}
		if line = strings.TrimSpace(line); pipeToShellPattern().MatchString(line) || s.mentionsProtectedPath(line) {
			s.emitUnknownEffect(effect.CauseUnparsedWord, "code in a language that shield does not read contains "+abstract.ClipForMessage(line)+"; instead: remove this line, or ask the user", at)
			return
		}
	}
}

// maxProtectedPathListBytes is the maximum size in bytes of a file that is searched for protected paths.
const maxProtectedPathListBytes = 4096

// protectedPathListText returns the content of a file on the disk that lists protected paths, for
// example paths of credentials. found is true only if the file's content goes to another command,
// which may use the paths as arguments.
func (s *analysisState) protectedPathListText(filePath string, isPattern bool) (text string, found bool) {
	if s.capturedOutputDepth == 0 || s.initialPathContext.ReadScript == nil || s.remoteOrContainerDepth > 0 || isPattern || effect.IsSecretPath(filePath, false) {
		return "", false
	}
	data, err := s.initialPathContext.ReadScript(filePath)
	if err != nil || len(data) > maxProtectedPathListBytes || isBinary(data) {
		return "", false
	}
	for line := range strings.Lines(string(data)) {
		if s.mentionsProtectedPath(line) {
			return string(data), true
		}
	}
	return "", false
}

// mentionsProtectedPath reports whether a line contains an absolute path, outside the workspace, of
// a credential file or of a file that runs code later, such as a shell startup file.
func (s *analysisState) mentionsProtectedPath(line string) bool {
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(" \t\"'(){}[];,`<>|=", r) }) {
		if word[0] != '/' && word[0] != '~' {
			continue
		}
		if p, pattern := s.workingFolderContext().CanonicalPath(word, false); p != "" && !pattern && s.isOutsideKnownFolders(p, false, false) {
			return true
		}
	}
	return false
}

// pipeToShellPattern matches a pipe into a shell. hostPrivilegePattern matches settings that give a
// container the privileges of its host, or a user those of a cluster administrator.
var (
	pipeToShellPattern   = prefilter.LazyRegexp(`\|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\b`)
	hostPrivilegePattern = prefilter.LazyRegexp(`\b(?:privileged|hostPID|hostIPC)["']?\s*[:=]\s*["']?true|(?:^|[\s"'\[])/:/|docker\.sock\b|\bcluster-admin\b|\bsystem:(?:unauthenticated|anonymous|masters)\b`)
)

// lineIfSuspiciousInstruction returns the line if it may be an instruction: it names a URL of another machine or
// a path outside the workspace, has a destructive verb among its first words, is a destructive or shell command,
// or gives a container or user the privileges of a host or cluster administrator. Otherwise it returns "".
func (s *analysisState) lineIfSuspiciousInstruction(line string) string {
	if line == "" {
		return ""
	}
	first, _, _ := strings.Cut(strings.ToLower(line), " ")
	if isDestructiveCommand(line) || first == "del" || strings.HasPrefix(first, "delete") || hostPrivilegePattern().MatchString(line) || pipeToShellPattern().MatchString(line) || strings.HasPrefix(line, "!") || strings.Contains(line, " !") {
		return line
	}
	n := 0
	for part := range strings.FieldsFuncSeq(line, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) {
		if n++; n > 4 {
			break
		}
		if command.DestroyingVerbs[strings.ToLower(part)] {
			return line
		}
	}
	runs := command.IsProgramWithKnownSyntax(first) && strings.Contains(line, " -") // a command with options, not prose
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(" \t\"'(){}[];,`<>|", r) }) {
		if runs && (word == "/" || word == "/*" || word == "~") { // paths of a command; in prose, these words are separators
			return line
		}
		for _, text := range pathsIn(word) {
			if p, pattern := s.workingFolderContext().CanonicalPath(text, false); p != "" && !isStreamDevice(p) && s.isOutsideKnownFolders(p, pattern, true) {
				return line
			}
		}
		if i := strings.Index(word, "://"); i > 0 {
			if _, host := effect.NormalizeURL(word); host != "" && !effect.IsLoopbackHost(host) {
				return line
			}
		}
	}
	return ""
}

// isDestructiveCommand reports whether a line is a complete command that destroys data or changes the system.
func isDestructiveCommand(line string) bool {
	fields := strings.Fields(line)
	if len(fields) > 8 || len(fields) > 3 && !strings.Contains(line, " -") || !command.IsProgramWithKnownSyntax(fields[0]) {
		return false
	}
	words := make([]command.Word, len(fields))
	for i, f := range fields {
		words[i].Text = f
	}
	use := command.Interpret(words)
	return use.Understood && (use.Class == effect.Destructive || use.Class == effect.Privileged)
}

// isOutsideKnownFolders reports whether a path is outside the workspace, not temporary, and not in a folder of
// tools and their caches. If includesOrdinaryFiles is false, it does so only for paths of credentials and of
// files that run code later.
func (s *analysisState) isOutsideKnownFolders(p string, isPattern, includesOrdinaryFiles bool) bool {
	if s.workingFolderContext().IsInsideRoots(p, isPattern, false) {
		return false
	}
	if effect.IsInSharedTemporaryFolder(p+"/") || isUnder(p, "/dev/fd") || isUnder(p, "/proc/self") {
		return false
	}
	if effect.IsSecretPath(p, isPattern) {
		return true
	}
	tail := p
	if rest, ok := strings.CutPrefix(p, s.initialPathContext.Home+"/"); ok && s.initialPathContext.Home != "" {
		tail = "/~/" + rest
	}
	if _, tool := programAndCacheFolders().FirstCoveringGlob(tail, isPattern, false, false); tool {
		return false
	}
	return includesOrdinaryFiles || s.initialPathContext.PersistenceClassName(p, isPattern, false) != ""
}

// programAndCacheFolders match the folders of programs, libraries and caches.
var programAndCacheFolders = sync.OnceValue(func() *effect.Globs {
	var all []string
	for _, name := range [...]string{"tool_folders", "own_caches"} {
		list, _ := knowledge.GlobsOfPathList(name)
		all = append(all, list...)
	}
	globs, err := effect.NewGlobs(all, map[string][]string{"HOME": {"/~"}})
	if err != nil {
		panic(err) // cannot happen: a test builds the globs
	}
	return globs
})
