package shell

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// pathListingPrograms are the programs that output paths, one per line.
var pathListingPrograms = map[string]bool{
	"find": true, "gfind": true, "bfs": true, "ls": true, "gls": true, "dir": true, "vdir": true, "fd": true, "fdfind": true, "tree": true,
	"git": true, "npm": true, "rg": true, "grep": true, "egrep": true, "fgrep": true, "ag": true, "locate": true, "mlocate": true, "plocate": true, "mdfind": true,
}

// oneWordPerLinePrintfFormats are the printf formats that output one word per line.
var oneWordPerLinePrintfFormats = map[string]bool{`%s\n`: true, `%s\0`: true, `%s\000`: true, "%s\n": true}

// pathsListedByProgram returns a pattern of the paths that a program lists; false if it lists no paths, or unknown ones.
func (s *analysisState) pathsListedByProgram(programBaseName string, argv []abstract.Value, f programIO) (abstract.Value, bool) {
	v := abstract.Value{Display: "$(" + programBaseName + ")", IsGlobPattern: true, HasPathPerLine: true}.WithOrigin(abstract.OriginCommandOutput)
	first := ""
	if len(argv) > 1 {
		first = argv[1].Text
	}
	tail := "/**"
	switch programBaseName {
	case "git":
		return s.gitListedPaths(argv, v)
	case "npm":
		if top := s.currentNPMPackageFolder(); first == "root" && len(argv) == 2 && top != "" {
			return abstract.Value{Text: top + "/node_modules", SourceSpan: v.SourceSpan}, true
		}
		return abstract.Value{}, false
	case "grep", "egrep", "fgrep", "rg", "ag":
		if !slices.ContainsFunc(argv[1:], isFileNamesOnlyOption) {
			return abstract.Value{}, false
		}
	case "locate", "mlocate", "plocate", "mdfind":
		v.Text = "/**"
		return v, true
	case "tree":
		if !slices.ContainsFunc(argv[1:], func(v abstract.Value) bool { return hasShortOption(v, "f") }) {
			return abstract.Value{}, false
		}
	case "ls", "gls", "dir", "vdir":
		v.HasPathPerLine = !slices.ContainsFunc(argv[1:], func(v abstract.Value) bool { return hasShortOption(v, "lgons") || strings.HasPrefix(v.Text, "--f") })
		if first == "-d" || len(f.listedFolders) == 1 && f.listedFolders[0].IsGlobPattern {
			tail = ""
		}
	case "find", "gfind", "bfs":
		v.HasPathPerLine = !slices.ContainsFunc(argv[1:], func(v abstract.Value) bool {
			return strings.HasPrefix(v.Text, "-printf") || v.Text == "-ls" || strings.HasPrefix(v.Text, "-exec") || strings.HasPrefix(v.Text, "-ok")
		})
	}
	if f.readContent.Taint&^abstract.TaintLocalMachineData != 0 {
		return abstract.Value{}, false
	}
	root, known, ok := commonParentFolder(f.listedFolders)
	if !ok {
		return abstract.Value{}, false
	}
	v.Text = strings.TrimSuffix(root, "/") + tail
	if v.HasPathPerLine && tail != "" && command.Finders[programBaseName] {
		v.ListedFileNamePatterns = strings.Join(command.FileNamesPrintedByFind(commandWords(argv)), "\n")
	}
	v.DoubleStarExcludesDotDot = known && tail != "" && !slices.ContainsFunc(argv, func(v abstract.Value) bool {
		return v.IsGlobPattern || v.Text == "-L" || v.Text == "-H" || v.Text == "-follow"
	})
	return v, true
}

// gitListedPaths returns a pattern of the paths that git outputs.
func (s *analysisState) gitListedPaths(argv []abstract.Value, v abstract.Value) (abstract.Value, bool) {
	if len(argv) < 2 {
		return abstract.Value{}, false
	}
	sub := argv[1].Text
	names := slices.ContainsFunc(argv, func(v abstract.Value) bool {
		return v.Text == "--name-only" || sub == "grep" && isFileNamesOnlyOption(v)
	})
	switch {
	case sub == "rev-parse" && len(argv) > 2 && argv[2].Text == "--show-toplevel" && s.workingFolderContext().CWD != "":
		if top := s.gitTopFolder(); top != "" && len(argv) == 3 {
			return abstract.Value{Text: top, SourceSpan: v.SourceSpan}, true
		}
		v.Text, v.Display, v.HasPathPerLine = effect.QuoteGlobMeta(s.workingFolderContext().CWD)+"*", "$(git rev-parse --show-toplevel)", false
		return v, false
	case sub == "rev-parse" && len(argv) == 4 && argv[2].Text == "--git-path" && argv[3].IsLiteral() && s.gitTopFolder() != "":
		return abstract.Value{Text: s.gitTopFolder() + "/.git/" + argv[3].Text, SourceSpan: v.SourceSpan}, true
	case sub == "ls-files", sub == "diff", sub == "rev-parse", sub == "branch", sub == "describe", sub == "status", names:
		v.Text, v.Display = "./**", "$(git "+sub+")"
		v.HasPathPerLine = names || sub == "ls-files" && !slices.ContainsFunc(argv, func(v abstract.Value) bool { return v.Text == "-s" || v.Text == "--stage" })
		v.DoubleStarExcludesDotDot = v.HasPathPerLine
		return v, true
	}
	return abstract.Value{}, false
}

// gitTopFolder returns the top folder of the current git working tree, "" if it is unknown: environment variables,
// git settings or earlier commands of the text can change it.
func (s *analysisState) gitTopFolder() string {
	cwd := s.workingFolderContext().CWD
	if s.initialPathContext.ReadScript == nil || s.remoteOrContainerDepth > 0 || slices.ContainsFunc(s.effects, func(e effect.Effect) bool {
		return e.Kind == effect.Execute && e.Program == "git" && e.Class != effect.ReadOnly || (e.Kind == effect.WriteFile || e.Kind == effect.MoveFile) && strings.Contains(e.Path+"/", "/.git/")
	}) {
		return ""
	}
	for _, name := range [...]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_CEILING_DIRECTORIES"} {
		if _, set := s.lookup(name); set {
			return ""
		}
	}
	if _, err := s.initialPathContext.ReadScript(cwd); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	for dir, n := cwd, 0; n < maxParentFolders; dir, n = path.Dir(dir), n+1 {
		linked, err := s.initialPathContext.ReadScript(path.Join(dir, ".git"))
		switch {
		case errors.Is(err, fs.ErrNotExist) && dir != path.Dir(dir):
			continue
		case err == nil && strings.HasPrefix(string(linked), "gitdir: "):
			return dir
		}
		config, err := s.initialPathContext.ReadScript(path.Join(dir, ".git/config"))
		if text := strings.ToLower(string(config)); err != nil || strings.Contains(text, "worktree") || strings.Contains(text, "include") {
			return ""
		}
		return dir
	}
	return ""
}

// maxListedOperands is the maximum number of operands that are read from a list.
const maxListedOperands = 256

// readOperandLists returns the operands that a program reads from a list in a file or on standard input; nil if there are
// none or they are unknown.
func (s *analysisState) readOperandLists(use command.Interpretation, io abstract.Streams) []command.Word {
	var lists []abstract.Value
	for _, w := range use.OperandListFiles {
		p, pattern := s.workingFolderContext().CanonicalPath(w.Text, w.IsGlobPattern)
		held := s.writtenFileContents(p, pattern)
		if text, found := "", false; len(held) == 0 && !pattern {
			if text, found = s.scriptText(p, w.Span); found {
				held = []abstract.Value{abstract.Lit(text)}
			}
		}
		if len(held) == 0 || !s.isWrittenContentCertain(p, pattern) {
			return nil
		}
		lists = append(lists, held[0])
	}
	if use.Stdin == command.StreamOperandList {
		if text, ok := s.stdinFileText(io, io.Stdin.SourceSpan); ok {
			io.Stdin = abstract.Lit(text)
		}
		lists = append(lists, io.Stdin)
	}
	var out []command.Word
	for _, v := range lists {
		if v.IsGlobPattern && v.HasPathPerLine && !v.FullyUnknown {
			out = append(out, command.Word{Text: v.Text, IsGlobPattern: true, DoubleStarExcludesDotDot: v.DoubleStarExcludesDotDot, Span: v.SourceSpan})
			continue
		}
		if !v.IsLiteral() || strings.ContainsAny(v.Text, "\"'\\") {
			return nil
		}
		for _, name := range strings.FieldsFunc(v.Text, func(c rune) bool { return c == '\n' || c == 0 }) {
			if name[0] == '-' || len(out) == maxListedOperands { // tar reads a name that begins with - as an option
				return nil
			}
			out = append(out, command.Word{Text: name, Span: v.SourceSpan})
		}
	}
	return out
}

// isFileNamesOnlyOption reports whether an option makes a search output file names instead of lines.
func isFileNamesOnlyOption(option abstract.Value) bool {
	return hasShortOption(option, "lL") || option.Text == "--files" || strings.HasPrefix(option.Text, "--files-with") || option.Text == "--name-only"
}

// hasShortOption reports whether a word contains a short option of the given letters.
func hasShortOption(v abstract.Value, letters string) bool {
	return len(v.Text) > 1 && v.Text[0] == '-' && v.Text[1] != '-' && strings.ContainsAny(v.Text, letters)
}

// commonParentFolder returns the common parent folder of the listed folders as a pattern, and
// whether it is a known text. hasCommonParent is false if there is none.
func commonParentFolder(roots []abstract.Value) (root string, isParentKnown, hasCommonParent bool) {
	if len(roots) == 0 {
		return ".", true, true
	}
	root, isParentKnown = roots[0].AsPattern(), roots[0].IsLiteral()
	for i, r := range roots {
		if r.FullyUnknown || i > 0 && (!r.IsLiteral() || !isParentKnown) {
			return "", false, false
		}
		for i > 0 && root != r.AsPattern() && !strings.HasPrefix(r.AsPattern(), strings.TrimSuffix(root, "/")+"/") {
			up := path.Dir(root)
			if up == root && path.IsAbs(r.Text) != path.IsAbs(root) || strings.HasPrefix(r.Text, "..") {
				return "", false, false
			}
			if up == root {
				break
			}
			root = up
		}
	}
	return root, isParentKnown, true
}

// selectsInputLines reports whether a program outputs a selection of its input lines, unchanged.
func selectsInputLines(base string, flags []string, operands []abstract.Value, f programIO) bool {
	letters := ""
	switch base {
	case "cat", "tac", "tee", "sponge", "pv", "shuf":
		return base == "shuf" || len(flags) == 0
	case "sort":
		letters = "nrfuzVRhdbktis0123456789,"
	case "uniq":
		letters = "duiz"
	case "head", "tail":
		letters = "nqz0123456789+"
	case "grep", "egrep", "fgrep", "rg":
		letters = "vEFPiwxzae"
		if f.readFileCount > 0 {
			return false
		}
	case "tr":
		return len(operands) == 2 && operands[0].Text == `\n` && strings.Trim(operands[1].Text, `\0`) == ""
	default:
		return false
	}
	return !slices.ContainsFunc(flags, func(flag string) bool { return strings.Trim(flag[1:], letters) != "" })
}

// pathWordPerListedName splits a list of paths into one pattern for each file name that the list
// can contain. It returns the list itself if these names are not known.
func pathWordPerListedName(pathList abstract.Value) []abstract.Value {
	folder, ok := strings.CutSuffix(pathList.Text, "**")
	if pathList.ListedFileNamePatterns == "" || !ok {
		return []abstract.Value{pathList}
	}
	var out []abstract.Value
	for name := range strings.SplitSeq(pathList.ListedFileNamePatterns, "\n") {
		pathList.Text, pathList.ListedFileNamePatterns = folder+"**/"+name, ""
		out = append(out, pathList)
	}
	return out
}

// stdinWords returns the words that xargs reads from standard input and adds to its command. They are unknown if
// options change how many words are added or where a word ends.
func (s *analysisState) stdinWords(io abstract.Streams, argv []abstract.Value) []abstract.Value {
	in, at := io.Stdin, wordsSpan(argv)
	if text, ok := s.stdinFileText(io, at); ok {
		in = abstract.Lit(text)
	}
	nul := len(argv) > 1 && (argv[1].Text == "-0" || argv[1].Text == "--null") && (len(argv) == 2 || !strings.HasPrefix(argv[2].Text, "-"))
	options := !nul && changesXargsWordSplitting(argv, len(strings.Fields(in.Text)))
	if !in.IsLiteral() || in.Text == "" || options || !nul && strings.ContainsAny(in.Text, "\"'\\") {
		v := abstract.Unknown("…", in.Taint|abstract.TaintUnknownText)
		if in.IsGlobPattern && !in.FullyUnknown {
			v = in
		}
		v = v.WithOrigin(abstract.OriginStdin)
		v.Display, v.SourceSpan = "…", at
		return pathWordPerListedName(v)
	}
	var out []abstract.Value
	list := strings.FieldsSeq(in.Text)
	if nul {
		list = strings.SplitSeq(strings.TrimSuffix(in.Text, "\x00"), "\x00")
	}
	for word := range list {
		if len(out) == abstract.MaxExpandedWords {
			s.abortAnalysis("too many words on standard input")
			break
		}
		out = append(out, abstract.Value{Text: word, Taint: in.Taint, SourceSpan: at})
	}
	return out
}

// changesXargsWordSplitting reports whether options of xargs change how its input is split into
// words, or make it run the command several times: code, options and target could then differ in
// each run. inputWordCount is the number of input words.
func changesXargsWordSplitting(argv []abstract.Value, inputWordCount int) bool {
	for i := 1; i < len(argv) && strings.HasPrefix(argv[i].Text, "-"); i++ {
		text := argv[i].Text
		for len(text) > 2 && (text[1] == 'r' || text[1] == 't') { // a group such as -ra
			text = "-" + text[2:]
		}
		name, _, joined := strings.Cut(text, "=")
		isArgumentFile := text == "-a" || len(name) > 2 && strings.HasPrefix("--arg-file", name)
		switch {
		case text == "-r", text == "-t", text == "--no-run-if-empty", isArgumentFile && joined, len(text) > 2 && text[:2] == "-a":
		case (text == "-n" || text == "-P" || isArgumentFile) && i+1 < len(argv):
			i++
			if n, err := strconv.Atoi(argv[i].Text); text == "-n" && (err != nil || n < inputWordCount) {
				return true
			}
		case strings.HasPrefix(text, "-n") || strings.HasPrefix(text, "-P"):
			if n, err := strconv.Atoi(text[2:]); text[1] == 'n' && (err != nil || n < inputWordCount) {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// replaceStdinByArgumentListFile makes the content of the file that a program such as xargs reads instead of standard
// input (xargs -a) the Stdin of io, if its options name one. The command that the program runs gets the original input.
func (s *analysisState) replaceStdinByArgumentListFile(base string, argv []abstract.Value, use command.Interpretation, io *abstract.Streams, f *programIO) {
	if command.Finders[base] || !slices.ContainsFunc(use.NestedCommandsAndCode, func(n command.NestedCommandOrCode) bool { return n.ArgsFromStdin }) {
		return
	}
	var files []abstract.Value
	for _, t := range use.OperandEffects {
		if t.Kind == effect.ReadFile {
			files = append(files, wordValue(t.Word, argv))
		}
	}
	if len(files) == 0 || len(files) == 1 && isStdinPath(files[0]) {
		return
	}
	given := *io
	f.streamsBesideArgumentListFile = &given
	io.Stdin, io.ExistingInputFile = f.readContent, ""
	if p, pattern := s.workingFolderContext().CanonicalPath(files[0].Text, files[0].IsGlobPattern); !pattern && len(files) == 1 {
		if text, ok := s.scriptText(p, wordsSpan(argv)); ok {
			io.Stdin = abstract.Lit(text)
		}
	}
}

// isStdinPath reports whether a path is that of the standard input of the program that opens it.
func isStdinPath(f abstract.Value) bool {
	return f.IsLiteral() && (f.Text == "/dev/stdin" || f.Text == "/dev/fd/0" || f.Text == "/proc/self/fd/0")
}

// currentNPMPackageFolder returns the folder of the current package as npm finds it: the nearest parent folder with a
// manifest or installed packages. It returns "" if that is unknown, as in a workspace, whose packages are
// installed in a folder further up.
func (s *analysisState) currentNPMPackageFolder() string {
	cwd := s.workingFolderContext().CWD
	if s.initialPathContext.ReadScript == nil || s.remoteOrContainerDepth > 0 || cwd == "" || slices.ContainsFunc(s.effects, func(e effect.Effect) bool {
		return (e.Kind == effect.WriteFile || e.Kind == effect.MoveFile || e.Kind == effect.CreateDirectory) && (e.PathIsPattern || path.Base(e.Path) == "package.json" || path.Base(e.Path) == "node_modules")
	}) {
		return ""
	}
	if _, err := s.initialPathContext.ReadScript(cwd); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	found := ""
	for dir, n := cwd, 0; ; dir, n = path.Dir(dir), n+1 {
		manifest, err := s.initialPathContext.ReadScript(path.Join(dir, "package.json"))
		switch {
		case n == maxParentFolders || path.Base(dir) == "node_modules" || err == nil && strings.Contains(string(manifest), "workspaces"),
			err != nil && !errors.Is(err, fs.ErrNotExist):
			return ""
		case found == "" && (err == nil || s.mayFileExist(path.Join(dir, "node_modules"))):
			found = dir
		}
		if dir == path.Dir(dir) {
			return found
		}
	}
}
