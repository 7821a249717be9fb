package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

const externalOrDecodedTaints = abstract.TaintNetwork | abstract.TaintSocket | abstract.TaintDecoded | abstract.TaintUntrustedText

// recordEffectsOfLoadedFiles records the effects of the files that a program loads from its working folder or
// its arguments, if the text wrote, downloaded or unpacked these files, or an earlier action downloaded, decoded
// or cloned them. It also walks the recipes, such as Makefiles, that the program runs.
func (s *analysisState) recordEffectsOfLoadedFiles(base string, argv []abstract.Value, use command.Interpretation, io abstract.Streams) {
	if s.remoteOrContainerDepth > 0 || len(argv) > 1 && use.Understood && use.Class == effect.ReadOnly && len(use.NestedCommandsAndCode) == 0 {
		return
	}
	args := make([]string, len(argv)-1)
	for i, v := range argv[1:] {
		args[i] = v.Text
	}
	loaders := command.CodeFileLoaders(base, args)
	if len(loaders) == 0 {
		return
	}
	s.recordRunsOfWrittenOrDownloadedFiles(base, argv, loaders, s.workingFolderContext().CWD, s.argumentPaths(argv[1:]))
	for _, l := range loaders {
		s.walkRecipes(argv, l, io.Stdin)
	}
}

// recordRunsOfWrittenOrDownloadedFiles checks the files that a program loads, as far as earlier actions downloaded them or this text wrote
// them.
func (s *analysisState) recordRunsOfWrittenOrDownloadedFiles(base string, argv []abstract.Value, loaders []*command.CodeFileLoader, folder string, named []string) {
	s.recordRunsOfDownloadedFiles(base, argv, loaders, folder, named)
	at := wordsSpan(argv)
	for i := len(s.writtenFiles) - 1; i >= 0 && s.spendSteps(1); i-- {
		f := s.writtenFiles[i]
		if f.consumingProcessSubstitution != nil || f.isPathPattern || !s.isFilePossiblyUsedByProgram(&f, folder, named) {
			continue
		}
		if f.isFolder {
			s.recordUntrustedCodeRun(base, &f, at)
			continue
		}
		for _, l := range loaders {
			if l.Loads(f.path) {
				s.walkLoadedFile(base, &f, at)
				break
			}
		}
	}
}

// recordRunsOfDownloadedFiles records that a program loads files that earlier actions downloaded. It checks the
// files below the working folder (folder) and in the paths that the operands name (named), if one of the loaders
// loads files of their name. It also checks downloaded folders in the operands.
func (s *analysisState) recordRunsOfDownloadedFiles(base string, argv []abstract.Value, loaders []*command.CodeFileLoader, folder string, named []string) {
	if s.initialPathContext.DownloadedOrDecodedPaths == nil {
		return
	}
	at := wordsSpan(argv)
	if folder != "" {
		s.recordRunOfEarlierDownload(base, folder, at)
	}
	brought := s.initialPathContext.DownloadedOrDecodedPaths()
	for _, p := range named {
		_, tree := slices.BinarySearch(brought.All(), p+"/")
		if tree || path.Ext(p) == "" || slices.ContainsFunc(loaders, func(l *command.CodeFileLoader) bool { return l.Loads(p) }) {
			s.recordRunOfEarlierDownload(base, p, at)
		}
	}
	for _, in := range append(named, folder) {
		for _, p := range s.loadableDownloads(brought, loaders, in, in != folder) {
			if !s.spendSteps(1) {
				return
			}
			if in != folder || slices.ContainsFunc(loaders, func(l *command.CodeFileLoader) bool {
				return l.LoadsFileNotInArgs(p) || l.Loads(p) && mayMentionFile(argv, path.Base(p))
			}) {
				s.recordRunOfEarlierDownload(base, p, at)
			}
		}
	}
}

// loadableDownloads returns the sorted paths of downloaded files below a folder that the loaders
// may load. If withFolders is true, it also returns downloaded folders.
func (s *analysisState) loadableDownloads(importedPaths *effect.PathList, loaders []*command.CodeFileLoader, folder string, withFolders bool) (out []string) {
	for _, l := range loaders {
		out = append(out, pathsBelow(importedPaths.Select(l, l.Loads), folder)...)
	}
	if withFolders {
		out = append(out, pathsBelow(importedPaths.Select("folders", func(p string) bool { return strings.HasSuffix(p, "/") }), folder)...)
	}
	sorted.SortStrings(out)
	return slices.Compact(out)
}

// pathsBelow returns the paths of a sorted list that lie below a folder; all of them if the folder is unknown ("").
func pathsBelow(paths []string, folder string) []string {
	if folder == "" {
		return paths
	}
	folder = strings.TrimSuffix(folder, "/") + "/"
	from, _ := slices.BinarySearch(paths, folder)
	n, _ := slices.BinarySearchFunc(paths[from:], folder, func(p, folder string) int {
		if strings.HasPrefix(p, folder) {
			return -1
		}
		return 1
	})
	return paths[from : from+n]
}

// mayMentionFile reports whether an argument may contain the name of a file.
func mayMentionFile(argv []abstract.Value, fileName string) bool {
	return slices.ContainsFunc(argv[1:], func(v abstract.Value) bool { return !v.IsLiteral() || strings.Contains(v.Text, fileName) })
}

// isFilePossiblyUsedByProgram reports whether a program with a working folder and operands may use a file that the
// analysed text wrote. A written folder counts as used if the working folder or an operand is
// inside it.
func (s *analysisState) isFilePossiblyUsedByProgram(f *writtenFile, folder string, named []string) bool {
	if folder == "" {
		return true // the working folder is unknown
	}
	if f.isFolder {
		return isUnder(folder, f.path) || slices.ContainsFunc(named, func(p string) bool { return isUnder(p, f.path) })
	}
	return isUnder(f.path, folder) || slices.ContainsFunc(named, func(p string) bool { return isUnder(f.path, p) })
}

// isUnder reports whether a canonical path is a folder or lies below it.
func isUnder(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(folder, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// argumentPaths returns the paths in arguments, including option values after "=".
func (s *analysisState) argumentPaths(argv []abstract.Value) []string {
	var out []string
	for _, v := range argv[:min(len(argv), maxItemsPerAnalyzedList)] {
		text := v.Text
		if strings.HasPrefix(text, "-") {
			_, text, _ = strings.Cut(text, "=")
		}
		text = strings.TrimSuffix(text, "/...") // Go's pattern for all packages below a folder
		if !v.IsLiteral() || text == "" || len(text) > 4096 || strings.Contains(text, "://") {
			continue
		}
		if p, pattern := s.workingFolderContext().CanonicalPath(text, false); !pattern {
			out = append(out, p)
		}
	}
	return out
}

// walkLoadedFile walks a file that the text wrote and a program loads, or records that it was downloaded, decoded or
// cloned.
func (s *analysisState) walkLoadedFile(base string, f *writtenFile, at effect.CommandTextSpan) {
	if f.content.Taint&externalOrDecodedTaints != 0 {
		s.recordUntrustedCodeRun(base, f, at)
		return
	}
	language, _ := command.RecipeFormat(f.path)
	if language != "code" {
		language = command.FileLanguage(f.path)
	}
	if language != "" && f.content.IsLiteral() {
		s.walkCode(language, f.content.Text, at, []abstract.Value{})
	}
}

// cloneByNamePrograms are the programs that clone repositories by name from one of [command.CodeHosts].
var cloneByNamePrograms = map[string]bool{"gh": true, "glab": true}

// recordUntrustedCodeRun records that a program runs code that the text downloaded, decoded or cloned.
func (s *analysisState) recordUntrustedCodeRun(base string, f *writtenFile, at effect.CommandTextSpan) {
	e := effect.Effect{Kind: effect.RunCode, Program: base, Path: f.path, Recursive: f.isFolder, Span: at}
	switch {
	case f.isFromCodeHost:
		e.DataLabels, e.Reason = []effect.TaintLabel{effect.LabelUntrusted}, base+" runs code that was just cloned"
	case f.content.Taint&(abstract.TaintNetwork|abstract.TaintSocket) != 0:
		e.DataLabels, e.Reason = []effect.TaintLabel{effect.LabelFromNetwork}, base+" runs code that was just downloaded"
	case f.content.Taint&abstract.TaintDecoded != 0:
		e.DataLabels, e.Reason = []effect.TaintLabel{effect.LabelDecoderOutput}, base+" runs code that was just decoded"
	case f.content.Taint&abstract.TaintUntrustedText != 0:
		e.DataLabels, e.Reason = []effect.TaintLabel{effect.LabelUntrusted}, base+" runs code that was copied from a clone"
	default:
		return
	}
	s.emitOnce(e)
}

// recordDownloadedScriptRun records that a script was downloaded, decoded or cloned by an earlier action, or
// lies in a folder that the text unpacked or cloned. In such a folder, a script that exists and can be read is
// judged by its content instead.
func (s *analysisState) recordDownloadedScriptRun(script abstract.Value, path string, at effect.CommandTextSpan) {
	s.recordRunOfEarlierDownload(abstract.ClipForMessage(script.String()), path, at)
	f := s.newestWrittenFile(func(f *writtenFile) bool {
		return f.isFolder && f.content.Taint&externalOrDecodedTaints != 0 && isUnder(path, f.path)
	})
	if f == nil {
		return
	}
	if s.initialPathContext.ReadScript != nil {
		if _, err := s.initialPathContext.ReadScript(path); err == nil {
			return
		}
	}
	s.recordUntrustedCodeRun(abstract.ClipForMessage(script.String()), f, at)
}

// newestWrittenFile returns the file that the text wrote last among those for which matches returns
// true; nil if there is none. Files with a pattern as path are skipped.
func (s *analysisState) newestWrittenFile(matches func(f *writtenFile) bool) *writtenFile {
	for i := len(s.writtenFiles) - 1; i >= 0; i-- {
		if f := &s.writtenFiles[i]; !f.isPathPattern && matches(f) {
			return f
		}
	}
	return nil
}

// recordInstalledProgramRun records that a command runs a downloaded program in a folder named bin
// or sbin. This text or an earlier action downloaded the program.
func (s *analysisState) recordInstalledProgramRun(base string, at effect.CommandTextSpan) {
	s.recordDownloadRunByName(base, at, "/bin/", "/sbin/")
	if f := s.newestWrittenFile(func(f *writtenFile) bool {
		folder := path.Base(path.Dir(f.path))
		return !f.isFolder && path.Base(f.path) == base && (folder == "bin" || folder == "sbin")
	}); f != nil {
		s.recordUntrustedCodeRun(base, f, at)
	}
}

// recordMountedScriptRun records that a container runs a file with the name of a downloaded file: a mounted folder has another
// path in the container, so only names are compared.
func (s *analysisState) recordMountedScriptRun(script abstract.Value, at effect.CommandTextSpan) {
	name := path.Base(script.Text)
	if !script.IsGlobPattern {
		s.recordDownloadRunByName(name, at, "/")
	}
	if f := s.newestWrittenFile(func(f *writtenFile) bool {
		if script.IsGlobPattern {
			same, _ := path.Match(name, path.Base(f.path))
			return same && !f.isFolder
		}
		return path.Base(f.path) == name && !f.isFolder
	}); f != nil {
		s.recordUntrustedCodeRun(abstract.ClipForMessage(script.String()), f, at)
	}
}

// recordDownloadRunByName records that a downloaded file of a given name runs, if its folder ends in one of folders.
func (s *analysisState) recordDownloadRunByName(name string, at effect.CommandTextSpan, folders ...string) {
	if s.initialPathContext.DownloadedOrDecodedPaths == nil || name == "" {
		return
	}
	for _, p := range s.initialPathContext.DownloadedOrDecodedPaths().WithBaseName(name) {
		in := strings.TrimSuffix(p, name)
		if slices.ContainsFunc(folders, func(folder string) bool { return strings.HasSuffix(in, folder) }) && s.recordUntrustedFileRun(abstract.ClipForMessage(name), p, s.initialPathContext.OriginLabels(p), at) {
			return
		}
	}
}

// contactsOnlyCodeHosts reports whether a program contacts only well-known code hosts, and over protocols that others cannot
// modify (https, ssh).
func contactsOnlyCodeHosts(argv []abstract.Value, use command.Interpretation) bool {
	found := false
	for _, v := range argv {
		if strings.HasPrefix(v.Text, "git://") {
			return false
		}
	}
	for _, t := range use.OperandEffects {
		host := ""
		switch t.Kind {
		case effect.HTTPRequest:
			if !strings.HasPrefix(t.Word.Text, "https://") {
				return false
			}
			_, host = effect.NormalizeURL(t.Word.Text)
		case effect.Connect:
			host = effect.CanonicalHost(t.Word.Text[strings.LastIndexByte(t.Word.Text, '@')+1:])
		default:
			continue
		}
		if found = true; t.Word.IsGlobPattern || !command.CodeHosts[host] {
			return false
		}
	}
	return found
}
