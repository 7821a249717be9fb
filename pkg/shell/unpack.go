package shell

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/internal/packed"
	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// maxUnpackedMembers is the maximum number of archive members with effects of their own.
const maxUnpackedMembers = 128

// recordUnpackedMembers records the archive members that need an effect of their own: members that land outside
// the target folder, directly or through symbolic links, files whose code runs later, and CODEOWNERS files. All
// other members are part of the write to the target folder. An archive that the analyzed text writes is not
// read. If the format of an archive is not supported, the function records an unknown effect.
func (s *analysisState) recordUnpackedMembers(base string, argv []abstract.Value, use command.Interpretation) {
	if !command.Unpackers[base] || s.initialPathContext.ListArchive == nil || s.remoteOrContainerDepth > 0 || s.effectSuppressionDepth > 0 {
		return
	}
	into, archives, extracts := "", []string{}, false
	for _, t := range use.OperandEffects {
		p, pattern := s.workingFolderContext().CanonicalPath(t.Word.Text, t.Word.IsGlobPattern)
		switch {
		case t.Kind == effect.WriteFile && t.Recursive:
			into, extracts = p, !pattern
		case t.Kind == effect.ReadFile && !t.Recursive && !pattern:
			archives = append(archives, p)
		}
	}
	words := tarOptions{}
	if tarPrograms[base] {
		words = parseTarArguments(argv)
	}
	piped := len(archives) == 0
	switch {
	case words.areAllOptionsUnderstood && words.archivePath != "" && words.archivePath != "-":
		p, pattern := s.workingFolderContext().CanonicalPath(words.archivePath, false)
		if piped = false; pattern {
			return
		}
		archives = []string{p}
	case words.areAllOptionsUnderstood: // all words are known and none names an archive file: the archive is standard input or a tape
		piped, archives = true, nil
	case !tarPrograms[base] && base != "cpio" && !piped: // further operands are member names
		archives = archives[:1]
	}
	if piped {
		for i := max(0, len(s.effects)-maxEffectsSearchedForArchive); i < len(s.effects); i++ {
			if e := &s.effects[i]; e.Kind == effect.ReadFile && !e.PathIsPattern && !e.Recursive && !slices.Contains(archives, e.Path) {
				archives = append(archives, e.Path)
			}
		}
	}
	if !extracts || into == "" || words.printsMembers {
		return
	}
	for _, archive := range archives {
		if len(s.writtenFileContents(archive, false)) == 0 {
			u := unpacking{analysisState: s, program: base, argv: argv, span: wordsSpan(argv), archivePath: archive, targetFolder: into, tarOptions: words, linkTargets: map[string]string{}}
			u.isCertainlyArchive = !piped && (words.areAllOptionsUnderstood || !tarPrograms[base]) || isTarArchiveName(archive)
			u.recordUnpackEffects()
		}
	}
}

// tarPrograms are programs with the options of tar, which skip invalid blocks before the first member.
var tarPrograms = map[string]bool{"tar": true, "gtar": true, "bsdtar": true}

// zipPrograms are programs that find a zip archive by its end.
var zipPrograms = map[string]bool{"unzip": true, "py:zipfile": true}

// isTarArchiveName reports whether a file's name is that of a tar archive.
func isTarArchiveName(p string) bool {
	name := strings.ToLower(path.Base(p))
	if strings.Contains(name, ".tar.") && !strings.HasSuffix(name, ".gpg") && !strings.HasSuffix(name, ".enc") && !strings.HasSuffix(name, ".age") {
		return true
	}
	switch path.Ext(name) {
	case ".tar", ".tgz", ".tbz", ".tbz2", ".tzst", ".tz2":
		return true
	}
	return false
}

// tarOptions holds tar options that affect unpacking. If areAllOptionsUnderstood is false, some options are
// unknown, and every member is assumed to be unpacked.
type tarOptions struct {
	areAllOptionsUnderstood bool
	printsMembers           bool // members are printed to standard output
	keepsAbsoluteNames      bool // absolute names and names with ".." are kept
	ignoresZeros            bool
	archivePath             string
	onlyMembers             []string // members to unpack; empty for all
	excludedNames           []string // names from --exclude: a member is not unpacked if a part of its path has an excluded name
}

// tarAbsoluteNamesOptionPattern matches bundled tar options that contain P (--absolute-names).
var tarAbsoluteNamesOptionPattern = prefilter.LazyRegexp(`^-[a-zA-Z]*P[a-zA-Z]*$`)

// parseTarArguments parses the arguments of tar. An unknown option sets areAllOptionsUnderstood to false, because
// it may take a value.
func parseTarArguments(argv []abstract.Value) (w tarOptions) {
	w.areAllOptionsUnderstood = true
	for _, v := range argv[1:] { // --ignore-zeros and --absolute-names are found even if other options are unknown
		if v.Text == "--ignore-zeros" || len(v.Text) > 1 && v.Text[0] == '-' && v.Text[1] != '-' && strings.Contains(v.Text, "i") || strings.HasPrefix(v.Text, "--ig") {
			w.ignoresZeros = true
		}
		if strings.HasPrefix(v.Text, "--abs") || v.Text == "-P" || tarAbsoluteNamesOptionPattern().MatchString(v.Text) {
			w.keepsAbsoluteNames = true
		}
	}
	if len(argv) > 1 && !strings.HasPrefix(argv[1].Text, "-") && strings.Contains(argv[1].Text, "P") {
		w.keepsAbsoluteNames = true
	}
	if len(argv) > 1 && !strings.HasPrefix(argv[1].Text, "-") && strings.Contains(argv[1].Text, "i") {
		w.ignoresZeros = true
	}
	unclear, listed := tarOptions{ignoresZeros: w.ignoresZeros, keepsAbsoluteNames: w.keepsAbsoluteNames}, false // listed: another file names the members to unpack
	for i := 1; i < len(argv); i++ {
		v := argv[i]
		if !v.IsLiteral() {
			return unclear
		}
		letters, bare := strings.CutPrefix(v.Text, "-")
		bare = !bare && i == 1
		switch {
		case strings.HasPrefix(v.Text, "--"):
			name, value, attached := strings.Cut(v.Text, "=")
			switch {
			case tarFlagOptions[name] && !attached:
				w.printsMembers = w.printsMembers || name == "--to-stdout"
				listed = listed || name == "--wildcards"
				continue
			case !tarValueOptions[name]:
				return unclear
			case !attached:
				if i++; i == len(argv) || !argv[i].IsLiteral() {
					return unclear
				}
				value = argv[i].Text
			}
			switch {
			case name == "--files-from":
				listed = true
			case name == "--file" && w.archivePath != "":
				return unclear
			case name == "--file":
				w.archivePath = value
			case name == "--exclude" && len(w.onlyMembers) == 0 && !listed && value != "" && !strings.ContainsAny(value, `/*?[]\!{}`):
				w.excludedNames = append(w.excludedNames, value)
			}
		case letters != v.Text && letters != "" || bare:
			for letters != "" {
				letter := letters[0]
				letters = letters[1:]
				if strings.IndexByte("xzjJvpkmoiawOP", letter) >= 0 {
					w.printsMembers = w.printsMembers || letter == 'O'
					continue
				}
				if strings.IndexByte("fCTX", letter) < 0 {
					return unclear
				}
				value := letters
				if bare || value == "" {
					if i++; i == len(argv) || !argv[i].IsLiteral() {
						return unclear
					}
					value = argv[i].Text
				} else {
					letters = ""
				}
				if letter == 'f' && w.archivePath != "" {
					return unclear
				}
				if letter == 'f' {
					w.archivePath = value
				}
				listed = listed || letter == 'T'
			}
		case v.Text == "" || v.Text == "-" || strings.ContainsAny(v.Text, `*?[]\@`):
			return unclear
		default:
			w.onlyMembers = append(w.onlyMembers, cleanArchiveMemberName(v.Text))
		}
	}
	if listed {
		w.onlyMembers = nil
	}
	return w
}

// tarFlagOptions are options of tar without a value that do not affect unpacking.
var tarFlagOptions = map[string]bool{
	"--extract": true, "--get": true, "--gzip": true, "--gunzip": true, "--ungzip": true, "--bzip2": true, "--xz": true, "--zstd": true, "--auto-compress": true,
	"--verbose": true, "--touch": true, "--no-same-owner": true, "--no-same-permissions": true, "--same-owner": true, "--same-permissions": true, "--preserve-permissions": true,
	"--overwrite": true, "--keep-old-files": true, "--skip-old-files": true, "--keep-newer-files": true, "--ignore-zeros": true, "--to-stdout": true, "--wildcards": true, "--absolute-names": true,
}

// tarValueOptions are options of tar that take a value.
var tarValueOptions = map[string]bool{"--file": true, "--directory": true, "--exclude": true, "--strip-components": true, "--files-from": true, "--exclude-from": true}

func cleanArchiveMemberName(name string) string { return strings.TrimLeft(path.Clean(name), "/") }

// excludes reports whether a member is not unpacked.
func (w *tarOptions) excludes(name string) bool {
	if !w.areAllOptionsUnderstood || strings.Contains("/"+name+"/", "/../") { // programs handle ".." in names differently
		return false
	}
	name = cleanArchiveMemberName(name)
	for _, part := range strings.Split(name, "/") {
		if slices.Contains(w.excludedNames, part) {
			return true
		}
	}
	return len(w.onlyMembers) > 0 && !slices.ContainsFunc(w.onlyMembers, func(o string) bool { return o == "." || name == o || strings.HasPrefix(name, o+"/") })
}

// maxEffectsSearchedForArchive is how many of the last effects are searched for the archive that arrives on standard input.
const maxEffectsSearchedForArchive = 16

// An unpacking is the extraction of one archive.
type unpacking struct {
	analysisState              *analysisState
	program                    string
	argv                       []abstract.Value
	span                       effect.CommandTextSpan
	archivePath                string
	targetFolder               string
	stripComponents            int
	flattensMemberPaths        bool // folders in names are dropped
	renamesMembers             bool
	linkTargets                map[string]string // link targets, by the path of the link
	linksLeavingTargetCount    int               // number of links that lead out of the folder
	hasDuplicateOrTooManyLinks bool              // two links have one name, or a path has too many links
	recordedMemberCount        int
	isCertainlyArchive         bool // the file is certainly the archive that is unpacked
	tarOptions
}

func (u *unpacking) recordUnpackEffects() {
	u.parseOptions()
	members, err := u.analysisState.initialPathContext.ListArchive(u.archivePath, packed.ReadOptions{WantsText: u.needsMemberText, DecompressedByteCounter: &u.analysisState.unpackedBytes, ProgramReadsOnlyZip: zipPrograms[u.program], ProgramIgnoresZeroBlocks: u.ignoresZeros})
	if zipped := u.archivePath + ".zip"; u.program == "unzip" && errors.Is(err, fs.ErrNotExist) && len(u.analysisState.writtenFileContents(zipped, false)) == 0 {
		u.archivePath = zipped
		members, err = u.analysisState.initialPathContext.ListArchive(u.archivePath, packed.ReadOptions{WantsText: u.needsMemberText, DecompressedByteCounter: &u.analysisState.unpackedBytes, ProgramReadsOnlyZip: true})
	}
	for i := range members {
		if !u.analysisState.spendSteps(1) {
			return
		}
		u.recordMemberEffects(&members[i])
	}
	name := abstract.ClipForMessage(path.Base(u.archivePath))
	switch {
	case errors.Is(err, packed.ErrArchiveTooLarge), u.recordedMemberCount > maxUnpackedMembers:
		u.analysisState.emitUnknownEffect(effect.CauseUnreadArchive, name+" is a larger archive than shield reads, so the rest of its content is unknown", u.span)
	case errors.Is(err, packed.ErrUnsupportedFormat):
		u.analysisState.emitUnknownEffect(effect.CauseUnreadArchive, "the content of "+name+" is unknown, as shield does not read archives of its format", u.span)
	case errors.Is(err, packed.ErrFormat) && u.isCertainlyArchive && (tarPrograms[u.program] || zipPrograms[u.program]):
		u.analysisState.emitUnknownEffect(effect.CauseUnreadArchive, name+" is not a readable archive, so its content is unknown", u.span)
	case u.hasDuplicateOrTooManyLinks:
		u.analysisState.emitUnknownEffect(effect.CauseUnreadArchive, "links in "+name+" can point to more than one place", u.span)
	case err != nil && len(members) > 0:
		u.analysisState.emitUnknownEffect(effect.CauseUnreadArchive, "the archive "+name+" is truncated or damaged", u.span)
	case err != nil && u.keepsAbsoluteNames:
		u.analysisState.emitUnknownEffect(effect.CauseUnreadArchive, u.program+" unpacks absolute paths, and the content of "+name+" was not read", u.span)
	case err == nil && u.renamesMembers:
		u.analysisState.emitUnknownEffect(effect.CauseOtherUnresolvedCommandText, u.program+" renames the files of "+name+" while unpacking, so the written paths are unknown; instead: unpack without renaming", u.span)
	}
}

// parseOptions parses the options that change the names of members.
func (u *unpacking) parseOptions() {
	for i, v := range u.argv[1:] {
		name, value, attached := strings.Cut(v.Text, "=")
		if !attached && i+2 < len(u.argv) {
			value = u.argv[i+2].Text
		}
		switch {
		case strings.HasPrefix(name, "--strip"):
			n, err := strconv.Atoi(value)
			u.stripComponents, u.renamesMembers = max(n, 0), u.renamesMembers || err != nil
		case strings.HasPrefix(name, "--transf"), strings.HasPrefix(name, "--xf"), u.program == "bsdtar" && strings.HasPrefix(name, "-s"):
			u.renamesMembers = true
		case u.program == "unzip" && len(name) > 1 && name[0] == '-' && name[1] != '-' && strings.Contains(name, "j"):
			u.flattensMemberPaths = true
		}
	}
}

// targetPath returns the paths to which a member of an archive may be unpacked: namedPath follows
// from the member's name, and resolvedPath also follows links that the archive contains. Existing
// files decide which of the two is written. Both are "" if the member is not unpacked.
func (u *unpacking) targetPath(name string) (namedPath, resolvedPath string) {
	if u.flattensMemberPaths {
		name = path.Base(name)
	}
	for range u.stripComponents {
		_, rest, ok := strings.Cut(strings.TrimLeft(name, "/"), "/")
		if !ok {
			return "", ""
		}
		name = rest
	}
	if strings.HasPrefix(name, "/") || hasWindowsDrive(name) {
		namedPath = path.Clean(name) // some programs keep absolute paths, others drop the slash
		return namedPath, namedPath
	}
	namedPath = path.Join(u.targetFolder, name)
	if len(u.linkTargets) == 0 {
		return namedPath, namedPath
	}
	hops := maxItemsPerAnalyzedList
	return namedPath, path.Join(u.resolveLinks(u.targetFolder, path.Dir(strings.TrimSuffix(name, "/")), &hops), path.Base(name))
}

// resolveLinks resolves a relative path from a folder through the archive's links.
func (u *unpacking) resolveLinks(folder, relativePath string, hopsLeft *int) string {
	for name := range strings.SplitSeq(relativePath, "/") {
		folder = path.Join(folder, name)
		to, ok := u.linkTargets[folder]
		if !ok || name == "" || name == "." || name == ".." {
			continue
		}
		if *hopsLeft--; *hopsLeft < 0 {
			u.hasDuplicateOrTooManyLinks = true
			return folder
		}
		if !strings.HasPrefix(to, "/") {
			folder = u.resolveLinks(path.Dir(folder), to, hopsLeft)
		} else if rest, ok := strings.CutPrefix(to, strings.TrimSuffix(u.targetFolder, "/")+"/"); ok {
			folder = u.resolveLinks(u.targetFolder, rest, hopsLeft)
		} else {
			folder = u.resolveLinks("/", to, hopsLeft)
		}
	}
	return folder
}

// isInTargetFolder reports whether a path is in the target folder.
func (u *unpacking) isInTargetFolder(p string) bool {
	return p == u.targetFolder || strings.HasPrefix(p, strings.TrimSuffix(u.targetFolder, "/")+"/")
}

func hasWindowsDrive(name string) bool { return len(name) > 2 && name[1] == ':' && name[2] == '/' }

// needsMemberText reports whether a member's text is analysed.
func (u *unpacking) needsMemberText(memberName string) bool {
	if u.excludes(memberName) {
		return false
	}
	p, _ := u.targetPath(memberName)
	return u.needsOwnEffect(p)
}

// needsOwnEffect reports whether a file needs an effect besides the write to its folder.
func (u *unpacking) needsOwnEffect(filePath string) bool {
	return filePath != "" && (u.analysisState.initialPathContext.PersistenceClassName(filePath, false, false) != "" || path.Base(filePath) == "CODEOWNERS")
}

// recordMemberEffects records the effects of a member.
func (u *unpacking) recordMemberEffects(m *packed.Member) {
	if u.excludes(m.Name) {
		return
	}
	p, behind := u.targetPath(m.Name)
	if p == "" {
		return
	}
	u.recordMemberWrite(p, m)
	if behind != p {
		u.recordMemberWrite(behind, m)
	}
	if _, ok := u.linkTargets[behind]; ok && m.LinkTarget == "" && !m.IsDir { // some programs write through an existing link
		hops := maxItemsPerAnalyzedList
		u.recordMemberWrite(u.resolveLinks(path.Dir(behind), path.Base(behind), &hops), m)
	}
	if m.LinkTarget != "" {
		u.recordLink(behind, m)
	}
}

// recordMemberWrite records that a member is written to a path.
func (u *unpacking) recordMemberWrite(p string, m *packed.Member) {
	inside := u.isInTargetFolder(p)
	if inside && (m.IsDir || !u.needsOwnEffect(p) || u.isInertArchiveMember(p, m)) {
		return
	}
	if u.recordedMemberCount++; u.recordedMemberCount > maxUnpackedMembers {
		return
	}
	e := effect.Effect{Kind: effect.WriteFile, Path: p, Program: u.program, Span: u.span}
	if !inside {
		e.Certainty, e.Reason = effect.Possible, path.Base(u.archivePath)+" contains "+abstract.ClipForMessage(m.Name)+", a path outside the target folder (path traversal)"
	}
	u.analysisState.emitOnce(e)
	if m.TextComplete {
		u.analysisState.recordInsertedFileText(p, abstract.Lit(m.Text), "")
	}
}

// isInertArchiveMember reports whether an unpacked file runs nothing, although files at such paths usually
// run code: a sample git hook, the default git settings of a new repository, or a package.json in
// node_modules without install scripts.
func (u *unpacking) isInertArchiveMember(p string, m *packed.Member) bool {
	if m.LinkTarget != "" {
		return false
	}
	dir, name := path.Split(p)
	switch {
	case strings.HasSuffix(dir, "/.git/hooks/"):
		return strings.HasSuffix(name, ".sample")
	case !m.TextComplete:
		return false
	case name == "package.json":
		return strings.Contains(strings.TrimPrefix(p, u.targetFolder), "/node_modules/") && !strings.Contains(m.Text, `\u`) && !strings.Contains(m.Text, `install"`)
	case name == "config" && strings.HasSuffix(dir, "/.git/"):
		if u.analysisState.initialPathContext.ReadScript == nil || !isDefaultGitConfig(m.Text) {
			return false
		}
		_, err := u.analysisState.initialPathContext.ReadScript(p)
		return errors.Is(err, fs.ErrNotExist)
	}
	return false
}

// isDefaultGitConfig reports whether the text of a git config file contains only settings that git
// clone writes, and the user's name and email.
func isDefaultGitConfig(text string) bool {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.ContainsAny(line, "\\;#\r") {
			return false
		}
		if strings.HasPrefix(line, "[") {
			name, ok := strings.CutSuffix(line[1:], "]")
			section, _, _ = strings.Cut(name, " ")
			if section != "core" && section != "remote" && section != "branch" && section != "user" || !ok || strings.Contains(name, "]") {
				return false
			}
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		switch key = strings.ToLower(strings.TrimSpace(key)); {
		case line == "":
		case strings.Contains(value, "::"):
			return false
		case section == "core" && slices.Contains([]string{"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks"}, key),
			section == "remote" && (key == "url" || key == "fetch"), section == "branch" && (key == "remote" || key == "merge"), section == "user" && (key == "name" || key == "email"):
		default:
			return false
		}
	}
	return true
}

// recordLink stores the target of a link in the archive, and records the link if it leads out of the folder.
func (u *unpacking) recordLink(p string, m *packed.Member) {
	raw := m.LinkTarget
	if m.IsHardLink && !strings.HasPrefix(raw, "/") {
		_, raw = u.targetPath(raw)
	}
	if raw == "" {
		return
	}
	if was, ok := u.linkTargets[p]; ok && was != raw {
		u.hasDuplicateOrTooManyLinks = true
	}
	u.linkTargets[p] = raw
	hops := maxItemsPerAnalyzedList
	to := u.resolveLinks(path.Dir(p), path.Base(p), &hops)
	if u.isInTargetFolder(to) {
		if u.needsOwnEffect(to) || u.needsOwnEffect(to+"/x") {
			u.analysisState.recordLink(p, false, abstract.Lit(to))
		}
		return
	}
	if u.linksLeavingTargetCount++; u.linksLeavingTargetCount > maxItemsPerAnalyzedList {
		u.recordedMemberCount = maxUnpackedMembers + 1
		return
	}
	u.analysisState.recordLink(p, false, abstract.Lit(to))
	u.analysisState.emitOnce(effect.Effect{Kind: effect.ReadFile, Path: to, Program: u.program, Span: u.span, Reason: path.Base(u.archivePath) + " contains a symbolic link to this path, so opening the link reads or writes this path"})
}
