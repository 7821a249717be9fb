package shell

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// walkRedirects walks redirections and returns the command's streams.
func (s *analysisState) walkRedirects(list []*syntax.Redirect, in abstract.Value) abstract.Streams {
	io := abstract.Streams{Stdin: in, HasSocket: in.Taint&abstract.TaintSocket != 0}
	from := abstract.Value{} // the file for standard input
	for _, r := range list {
		if !s.spendSteps(1) {
			break
		}
		n := ""
		if r.N != nil {
			n = r.N.Value
			if name, ok := strings.CutPrefix(n, "{"); ok { // {name}<FILE: the shell assigns a free descriptor number to the variable
				n = strconv.Itoa(firstFreeDescriptor + len(s.fds))
				name = strings.TrimSuffix(name, "}")
				s.possiblyAssignWithoutCodeCheck(name, abstract.Value{Text: n, Display: "$" + name, IsGlobPattern: true}) // the shell assigns nothing if it cannot open the file of the redirection
			}
		}
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			v := s.hereDocument(r.Word, r.Hdoc)
			if n == "" || n == "0" {
				io.Stdin, io.InputRedirected, io.IsStdinHeredoc = v, true, true
			} else {
				s.openDescriptor(n, v, nil)
			}
		case syntax.WordHdoc:
			v := s.expandWord(r.Word)
			if v.IsLiteral() {
				v.Text += "\n"
			}
			if n != "" && n != "0" {
				s.openDescriptor(n, v, nil)
				continue
			}
			io.Stdin, io.InputRedirected, io.IsStdinHeredoc = v, true, true
		case syntax.RdrIn, syntax.RdrInOut:
			if l, ok := r.Word.Parts[0].(*syntax.Lit); ok && strings.Contains(l.Value, "-") && strings.Trim(l.Value, "0123456789-") == "" && s.readsAsZsh() {
				s.emitUnknownEffect(effect.CauseUnparseableText, "zsh reads <1-9> as a pattern", s.spanOf(r.Word))
			}
			w := s.expandWord(r.Word)
			if s.redirectInput(&io, n, w, r.Op == syntax.RdrInOut); n == "" || n == "0" {
				from = w
			}
		case syntax.DplIn:
			d, ok := s.duplicateInputDescriptor(s.expandWord(r.Word))
			if !ok {
				continue
			}
			io.HasSocket = io.HasSocket || d.readableContent.Taint&abstract.TaintSocket != 0
			if n == "" || n == "0" {
				io.Stdin, io.InputRedirected = d.readableContent, true
				if d.readableContent.Taint&abstract.TaintSocket == 0 { // the next command that reads this descriptor gets the unread rest
					d.openFile.readableContent = inputAfterPartialRead(d.readableContent)
				}
			} else {
				s.openDescriptor(n, d.readableContent, d.out)
			}
		case syntax.DplOut:
			s.duplicateOutputDescriptor(&io, n, s.expandWord(r.Word))
		default:
			if r.Word.Lit() == "!" && s.readsAsZsh() {
				s.emitUnknownEffect(effect.CauseUnparseableText, "in zsh, >! writes the file in the next word", s.spanOf(r.Word))
			}
			s.redirectOutput(&io, n, s.expandWord(r.Word), r.Op == syntax.AppOut || r.Op == syntax.AppAll || r.Op == syntax.AppClob || r.Op == syntax.AppAllClob)
		}
	}
	if from.IsLiteral() && from.Text != "" && !io.Stdin.IsLiteral() && !io.HasSocket {
		if p, pattern := s.workingFolderContext().CanonicalPath(from.Text, false); !pattern && !strings.HasPrefix(p, "/dev/") {
			io.ExistingInputFile = p
		}
	}
	if from.Text != "" && io.Stdin.IsLiteral() {
		if io.InputFileWrittenByAnalyzedText, _ = s.workingFolderContext().CanonicalPath(from.Text, from.IsGlobPattern); io.Out != nil && !io.Out.Append && io.InputFileWrittenByAnalyzedText == io.Out.Path { // > truncates the file before it is read
			io.Stdin = outputOfPossiblySkippedCommand(io.Stdin)
		}
	}
	return io
}

// duplicateOutputDescriptor handles n>&WORD.
func (s *analysisState) duplicateOutputDescriptor(io *abstract.Streams, fd string, w abstract.Value) {
	to := strings.TrimSuffix(w.Text, "-")
	stdout := fd == "" || fd == "1"
	if d, ok := s.findDescriptor(to); ok {
		io.HasSocket = io.HasSocket || d.readableContent.Taint&abstract.TaintSocket != 0
		switch {
		case stdout && d.out != nil:
			t := *d.out
			t.Append = true // the file was opened before: later output is appended
			io.Out = &t
		case stdout && w.IsLiteral():
			io.Out, io.HasDuplicatedOutputDescriptor = nil, true
		case !stdout:
			s.openDescriptor(fd, d.readableContent, d.out)
			io.HasDuplicatedOutputDescriptor = true
		}
		return
	}
	if _, err := strconv.Atoi(to); err != nil && w.Text != "-" {
		s.redirectOutput(io, fd, w, false)
		return
	}
	switch {
	case w.Text == "-" && !stdout:
		s.openDescriptor(fd, abstract.Unknown("a closed descriptor", 0), nil)
	case stdout && to == "2" && !s.isStderrMergedByEnclosingCommand:
		io.Out = &abstract.OutputTarget{Discard: true}
	case stdout && to != "1":
		io.HasDuplicatedOutputDescriptor = true
	case !stdout:
		io.HasDuplicatedOutputDescriptor = true
		s.openDescriptor(fd, abstract.Unknown("…", 0), nil)
	}
}

// openDescriptor opens the descriptor n: reads from it return val, and writes to it go to out; out is nil if there
// is no target.
//
//go:noinline
func (s *analysisState) openDescriptor(n string, val abstract.Value, out *abstract.OutputTarget) {
	s.fds = append(slices.Clip(s.fds), descriptor{n, &openFile{readableContent: val, out: out}})
}

// coprocDescriptorPrefix begins the placeholders for the descriptor numbers of a coprocess, which are unknown
// before it runs.
const coprocDescriptorPrefix = "coproc"

func (s *analysisState) findDescriptor(n string) (descriptor, bool) {
	for i := len(s.fds) - 1; i >= 0; i-- {
		if s.fds[i].id == n {
			return s.fds[i], true
		}
	}
	return descriptor{openFile: &openFile{}}, false
}

// firstFreeDescriptor is the first descriptor number that a shell assigns for {name}<FILE.
const firstFreeDescriptor = 10

// duplicateInputDescriptor returns the descriptor for <&WORD. One that the text has not opened is inherited and may hold
// anything. ok is false for descriptors 0 to 2, which are always open.
func (s *analysisState) duplicateInputDescriptor(descriptorWord abstract.Value) (d descriptor, ok bool) {
	n := strings.TrimSuffix(descriptorWord.Text, "-")
	if d, ok := s.findDescriptor(n); ok && n != "" {
		return d, true
	}
	switch {
	case !descriptorWord.IsLiteral(): // any open descriptor
		v := abstract.Unknown("what descriptor "+descriptorWord.String()+" holds", abstract.TaintUnknownText)
		for _, d := range s.fds {
			v.Taint |= d.readableContent.Taint
		}
		return descriptor{openFile: &openFile{readableContent: v}}, true
	case descriptorWord.Text == "": // an error in the shell
		return descriptor{openFile: &openFile{}}, true
	case n == "":
		return descriptor{openFile: &openFile{}}, true // closed
	case n == "0" || n == "1" || n == "2":
		return descriptor{openFile: &openFile{}}, false
	}
	return descriptor{openFile: &openFile{readableContent: abstract.Unknown("what descriptor "+descriptorWord.String()+" holds", abstract.TaintUnknownText)}}, true
}

func (s *analysisState) redirectInput(io *abstract.Streams, fd string, w abstract.Value, isReadWrite bool) {
	if v, t, ok := s.openNetworkDevice(w); ok {
		io.HasSocket = true
		if isReadWrite || fd != "" && fd != "0" {
			s.openDescriptor(fd, v, t)
		}
		if fd == "" || fd == "0" {
			io.Stdin, io.InputRedirected = v, true
		}
		return
	}
	if w.IsLiteral() && isStreamDevice(w.Text) {
		io.Stdin, io.InputRedirected = abstract.Value{}, true
		return
	}
	kind := effect.ReadFile
	if isReadWrite {
		kind = effect.WriteFile
	}
	v := s.readFile(kind, w)
	if fd == "" || fd == "0" {
		io.Stdin, io.InputRedirected = v, true
		return
	}
	path, pattern := s.workingFolderContext().CanonicalPath(w.Text, w.IsGlobPattern)
	s.openDescriptor(fd, v, &abstract.OutputTarget{Path: path, PathIsGlobPattern: pattern})
}

func (s *analysisState) redirectOutput(io *abstract.Streams, fd string, w abstract.Value, isAppend bool) {
	if v, t, ok := s.openNetworkDevice(w); ok {
		io.HasSocket = true
		s.openDescriptor(fd, v, t)
		if fd == "" || fd == "1" {
			io.Out = t
		}
		return
	}
	stdout := fd == "" || fd == "1"
	if w.IsLiteral() && isStreamDevice(w.Text) {
		if stdout && w.Text == "/dev/null" {
			io.Out = &abstract.OutputTarget{Discard: true}
		}
		return
	}
	mark := len(s.effects)
	path, pattern := s.emitPathEffect(effect.WriteFile, w, false)
	if isAppend {
		s.addDataLosses(mark, effect.FileLossNone)
	}
	s.recordWriteToFileHeldOpen(path)
	t := &abstract.OutputTarget{Path: path, PathIsGlobPattern: pattern, Append: isAppend, WritesEachListedOrMatchedFile: w.HasPathPerLine || w.DoubleStarExcludesDotDot}
	if fd != "" && fd != "1" && fd != "2" {
		if !isAppend {
			s.addFile(writtenFile{path: path, isPathPattern: pattern})
		}
		t.Append = true
		s.openDescriptor(fd, abstract.Value{}, t)
		return
	}
	if stdout {
		io.Out = t
		if !isAppend && len(s.writtenFileContents(path, pattern)) > 0 { // > truncates the file before the command runs
			s.addFile(writtenFile{path: path, isPathPattern: pattern})
		}
	} else {
		s.addFile(writtenFile{path: path, isPathPattern: pattern, content: abstract.Unknown("…", 0), appends: true})
	}
}

// recordWriteToFileHeldOpen handles a write to a file that a descriptor also holds open: both write at their own positions, so the
// content and the input read from it become unknown.
func (s *analysisState) recordWriteToFileHeldOpen(writtenPath string) {
	for i, d := range s.fds {
		closed := slices.ContainsFunc(s.fds[i+1:], func(o descriptor) bool { return o.id == d.id })
		if !closed && d.out != nil && d.out.Path == writtenPath {
			d.readableContent = abstract.Unknown("…", d.readableContent.Taint)
			s.addFile(writtenFile{path: writtenPath, hasSeveralWriters: true})
		}
	}
}

// inputsExist reports whether the inputs of redirections certainly exist; otherwise the command may not run.
func (s *analysisState) inputsExist(list []*syntax.Redirect) bool {
	return !slices.ContainsFunc(list, func(r *syntax.Redirect) bool {
		n := strings.TrimSuffix(r.Word.Lit(), "-")
		switch r.Op {
		case syntax.DplIn, syntax.DplOut:
			_, ok := s.findDescriptor(n)
			return !(r.Word.Lit() == "-" || n == "0" || n == "1" || n == "2" || ok)
		case syntax.RdrIn:
			if _, process := r.Word.Parts[0].(*syntax.ProcSubst); process || isStreamDevice(n) {
				return false
			}
			p, _ := s.workingFolderContext().CanonicalPath(n, false)
			return n == "" || !s.fileCertainlyExists(p, abstract.Lit(n))
		}
		return false
	})
}

// fileCertainlyExists reports whether the text has certainly created a file and not deleted it.
func (s *analysisState) fileCertainlyExists(p string, w abstract.Value) bool {
	if len(s.writtenFileContents(p, false)) == 0 || !s.isWrittenContentCertain(p, false) || s.canPathWordNameOtherFile(p, w) || !s.spendSteps(len(s.effects)/64) {
		return false
	}
	return !slices.ContainsFunc(s.effects, func(e effect.Effect) bool {
		return e.Kind == effect.DeleteFile && (e.DoubleStarExcludesDotDot || e.PathIsPattern || e.Path == p)
	})
}

// rewalkIfInputChanged walks a command again, with unknown input, if the command wrote the file
// that it reads. fileCountBefore is the number of written files before the command, and out the
// command's output.
func (s *analysisState) rewalkIfInputChanged(io abstract.Streams, fileCountBefore int, out abstract.Value, walk func(abstract.Streams) abstract.Value) abstract.Value {
	if io.InputFileWrittenByAnalyzedText == "" || !slices.ContainsFunc(s.writtenFiles[min(fileCountBefore, len(s.writtenFiles)):], func(f writtenFile) bool { return f.path == io.InputFileWrittenByAnalyzedText }) {
		return out
	}
	effects := len(s.effects)
	io.Stdin = abstract.Unknown("what "+path.Base(io.InputFileWrittenByAnalyzedText)+" holds", io.Stdin.Taint).WithOrigin(abstract.OriginFileContent)
	out = outputOfPossiblySkippedCommand(abstract.Concat(out, walk(io)))
	s.dropRepeatedEffects(effects)
	return out
}

// isStreamDevice reports whether a path is a device without stored data, such as /dev/null.
//
//go:noinline
func isStreamDevice(path string) bool {
	switch path {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "-",
		"/dev/fd/0", "/dev/fd/1", "/dev/fd/2", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2", "nul", "NUL":
		return true
	}
	return false
}

// openNetworkDevice handles bash's /dev/tcp/HOST/PORT; ok is false for other paths.
func (s *analysisState) openNetworkDevice(w abstract.Value) (abstract.Value, *abstract.OutputTarget, bool) {
	rest, ok := strings.CutPrefix(w.Text, "/dev/tcp/")
	if !ok {
		if rest, ok = strings.CutPrefix(w.Text, "/dev/udp/"); !ok {
			return abstract.Value{}, nil, false
		}
	}
	host, _, _ := strings.Cut(rest, "/")
	e := effect.Effect{Kind: effect.Connect, Span: w.SourceSpan}
	if strings.ContainsAny(host, "*?") && w.IsGlobPattern {
		e.PathIsPattern = true
	} else {
		e.Host = effect.CanonicalHost(host)
	}
	s.emitOnce(e)
	v := abstract.Unknown("what "+w.String()+" sends", abstract.TaintNetwork|abstract.TaintSocket)
	return v, &abstract.OutputTarget{IsSocket: true}, true
}

// deliverOutput writes a command's output to its redirection target and returns the part that goes into the pipe.
func (s *analysisState) deliverOutput(io abstract.Streams, out abstract.Value) abstract.Value {
	t := io.Out
	s.lastRedirectedOutput = out
	switch {
	case t == nil:
		return out
	case t.Discard:
	case t.IsSocket:
		s.recordUpload(out, "/dev/tcp", out.SourceSpan)
		s.recordSentValue(out, "/dev/tcp", s.lastNetworkContactEffects(), out.SourceSpan)
	default:
		if out.Taint&(abstract.TaintUnprintedKeyStoreCredential|abstract.TaintEnvironmentDump) != 0 && !effect.IsSecretPath(t.Path, t.PathIsGlobPattern) {
			s.recordReadSecretEffect(out, "", out.SourceSpan)
		}
		if out.IsLiteral() && out.Text == "" && !t.Append {
			s.recordTruncation(*t, out.SourceSpan)
		}
		s.addFile(writtenFile{path: t.Path, isPathPattern: t.PathIsGlobPattern, content: out, appends: t.Append})
		s.recordInputAsFileContent(*t, out, io.Stdin)
	}
	return abstract.Value{}
}

// recordTruncations records that a program truncates the files it writes to.
func (s *analysisState) recordTruncations(base string, sources []abstract.Value, writes []abstract.OutputTarget, at effect.CommandTextSpan) {
	if command.Emptiers[base] || slices.ContainsFunc(sources, func(v abstract.Value) bool { return v.Text == "/dev/null" || v.Text == "/dev/zero" }) {
		for _, w := range writes {
			s.recordTruncation(w, at)
		}
	}
}

// recordTruncation records that a file is emptied, as a possible deletion. It does so only for a
// user's own file outside the workspace, and for a command that empties each file of a path list or
// glob.
func (s *analysisState) recordTruncation(t abstract.OutputTarget, at effect.CommandTextSpan) {
	below, own := strings.CutPrefix(t.Path, s.initialPathContext.Home+"/")
	own = own && s.initialPathContext.Home != "" && !strings.HasPrefix(below, ".") && !strings.Contains(below, "/.") && !s.initialPathContext.IsInsideRoots(t.Path, t.PathIsGlobPattern, t.WritesEachListedOrMatchedFile)
	if t.Path != "" && (t.WritesEachListedOrMatchedFile || own && !t.PathIsGlobPattern) {
		s.emitOnce(effect.Effect{Kind: effect.DeleteFile, Path: t.Path, PathIsPattern: t.PathIsGlobPattern, DoubleStarExcludesDotDot: t.WritesEachListedOrMatchedFile, Certainty: effect.Possible, Reason: "empties an existing file", Span: at})
	}
}
