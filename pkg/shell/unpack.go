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

// maxUnpacked is the maximum number of archive members with effects of their own.
const maxUnpacked = 128

// unpacks records the archive members that need their own effects: outside the target folder, behind symbolic
// links, and files that run later. All others are part of the write to the folder. The members of an archive that
// the text changed, or of an unknown format, are unknown.
func (s *state) unpacks(base string, argv []abstract.Value, use command.Use) {
	if !command.Unpackers[base] || s.at.Archive == nil || s.remote > 0 || s.quiet > 0 {
		return
	}
	into, archives, extracts := "", []string{}, false
	for _, t := range use.Touches {
		p, pattern := s.place().Path(t.Word.Text, t.Word.Pattern)
		switch {
		case t.Kind == effect.WriteFile && t.Recursive:
			into, extracts = p, !pattern
		case t.Kind == effect.ReadFile && !t.Recursive && !pattern:
			archives = append(archives, p)
		}
	}
	words := tarWords{}
	if tars[base] {
		words = readTar(argv)
	}
	piped := len(archives) == 0
	switch {
	case words.clear && words.archive != "" && words.archive != "-":
		p, pattern := s.place().Path(words.archive, false)
		if piped = false; pattern {
			return
		}
		archives = []string{p}
	case words.clear: // the archive is standard input or a tape
		piped, archives = true, nil
	case !tars[base] && base != "cpio" && !piped: // further operands are member names
		archives = archives[:1]
	}
	if piped {
		for i := max(0, len(s.effects)-maxPiped); i < len(s.effects); i++ {
			if e := &s.effects[i]; e.Kind == effect.ReadFile && !e.Pattern && !e.Recursive && !slices.Contains(archives, e.Path) {
				archives = append(archives, e.Path)
			}
		}
	}
	if !extracts || into == "" || words.shows {
		return
	}
	for _, archive := range archives {
		if len(s.fileValues(archive, false)) == 0 {
			u := unpacking{s: s, base: base, argv: argv, at: join(argv), archive: archive, into: into, tarWords: words, links: map[string]string{}}
			u.named = !piped && (words.clear || !tars[base]) || archiveName(archive)
			u.unpack()
		}
	}
}

// tars are programs with the options of tar, which skip invalid blocks before the first member.
var tars = map[string]bool{"tar": true, "gtar": true, "bsdtar": true}

// zips are programs that find a zip archive by its end.
var zips = map[string]bool{"unzip": true, "py:zipfile": true}

// archiveName reports whether a file's name is that of a tar archive.
func archiveName(p string) bool {
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

// tarWords holds tar options that affect unpacking. If clear is false, some are unknown and all members count.
type tarWords struct {
	clear   bool
	shows   bool // members are printed to standard output
	top     bool // absolute names and names with ".." are kept
	zeros   bool
	archive string
	only    []string // members to unpack; empty for all
	without []string // name parts that are excluded
}

// absolute matches bundled tar options that contain P (--absolute-names).
var absolute = prefilter.Lazy(`^-[a-zA-Z]*P[a-zA-Z]*$`)

// readTar parses the arguments of tar. An unknown option sets clear to false, because it may take a value.
func readTar(argv []abstract.Value) (w tarWords) {
	w.clear = true
	for _, v := range argv[1:] { // these count even if other options are unclear
		if v.Text == "--ignore-zeros" || len(v.Text) > 1 && v.Text[0] == '-' && v.Text[1] != '-' && strings.Contains(v.Text, "i") || strings.HasPrefix(v.Text, "--ig") {
			w.zeros = true
		}
		if strings.HasPrefix(v.Text, "--abs") || v.Text == "-P" || absolute().MatchString(v.Text) {
			w.top = true
		}
	}
	if len(argv) > 1 && !strings.HasPrefix(argv[1].Text, "-") && strings.Contains(argv[1].Text, "P") {
		w.top = true
	}
	if len(argv) > 1 && !strings.HasPrefix(argv[1].Text, "-") && strings.Contains(argv[1].Text, "i") {
		w.zeros = true
	}
	unclear, listed := tarWords{zeros: w.zeros, top: w.top}, false // listed: another file names the members to unpack
	for i := 1; i < len(argv); i++ {
		v := argv[i]
		if !v.Known() {
			return unclear
		}
		letters, bare := strings.CutPrefix(v.Text, "-")
		bare = !bare && i == 1
		switch {
		case strings.HasPrefix(v.Text, "--"):
			name, value, attached := strings.Cut(v.Text, "=")
			switch {
			case tarFlags[name] && !attached:
				w.shows = w.shows || name == "--to-stdout"
				listed = listed || name == "--wildcards"
				continue
			case !tarValues[name]:
				return unclear
			case !attached:
				if i++; i == len(argv) || !argv[i].Known() {
					return unclear
				}
				value = argv[i].Text
			}
			switch {
			case name == "--files-from":
				listed = true
			case name == "--file" && w.archive != "":
				return unclear
			case name == "--file":
				w.archive = value
			case name == "--exclude" && len(w.only) == 0 && !listed && value != "" && !strings.ContainsAny(value, `/*?[]\!{}`):
				w.without = append(w.without, value)
			}
		case letters != v.Text && letters != "" || bare:
			for letters != "" {
				letter := letters[0]
				letters = letters[1:]
				if strings.IndexByte("xzjJvpkmoiawOP", letter) >= 0 {
					w.shows = w.shows || letter == 'O'
					continue
				}
				if strings.IndexByte("fCTX", letter) < 0 {
					return unclear
				}
				value := letters
				if bare || value == "" {
					if i++; i == len(argv) || !argv[i].Known() {
						return unclear
					}
					value = argv[i].Text
				} else {
					letters = ""
				}
				if letter == 'f' && w.archive != "" {
					return unclear
				}
				if letter == 'f' {
					w.archive = value
				}
				listed = listed || letter == 'T'
			}
		case v.Text == "" || v.Text == "-" || strings.ContainsAny(v.Text, `*?[]\@`):
			return unclear
		default:
			w.only = append(w.only, memberName(v.Text))
		}
	}
	if listed {
		w.only = nil
	}
	return w
}

// tarFlags are options of tar without a value that do not affect unpacking.
var tarFlags = map[string]bool{
	"--extract": true, "--get": true, "--gzip": true, "--gunzip": true, "--ungzip": true, "--bzip2": true, "--xz": true, "--zstd": true, "--auto-compress": true,
	"--verbose": true, "--touch": true, "--no-same-owner": true, "--no-same-permissions": true, "--same-owner": true, "--same-permissions": true, "--preserve-permissions": true,
	"--overwrite": true, "--keep-old-files": true, "--skip-old-files": true, "--keep-newer-files": true, "--ignore-zeros": true, "--to-stdout": true, "--wildcards": true, "--absolute-names": true,
}

// tarValues are options of tar that take a value.
var tarValues = map[string]bool{"--file": true, "--directory": true, "--exclude": true, "--strip-components": true, "--files-from": true, "--exclude-from": true}

func memberName(name string) string { return strings.TrimLeft(path.Clean(name), "/") }

// leftOut reports whether a member is not unpacked.
func (w *tarWords) leftOut(name string) bool {
	if !w.clear || strings.Contains("/"+name+"/", "/../") { // programs handle ".." in names differently
		return false
	}
	name = memberName(name)
	for _, part := range strings.Split(name, "/") {
		if slices.Contains(w.without, part) {
			return true
		}
	}
	return len(w.only) > 0 && !slices.ContainsFunc(w.only, func(o string) bool { return o == "." || name == o || strings.HasPrefix(name, o+"/") })
}

// maxPiped is how many of the last effects are searched for the archive that arrives on standard input.
const maxPiped = 16

// An unpacking is the extraction of one archive.
type unpacking struct {
	s       *state
	base    string
	argv    []abstract.Value
	at      effect.Span
	archive string
	into    string
	strip   int
	flat    bool // folders in names are dropped
	renames bool
	links   map[string]string // link targets, by the path of the link
	linked  int               // number of links that lead out of the folder
	twice   bool              // two links have one name, or a path has too many links
	found   int
	named   bool // it is certainly the archive
	tarWords
}

func (u *unpacking) unpack() {
	u.options()
	members, err := u.s.at.Archive(u.archive, packed.Query{Want: u.wanted, Used: &u.s.unpacked, Zip: zips[u.base], Zeros: u.zeros})
	if zipped := u.archive + ".zip"; u.base == "unzip" && errors.Is(err, fs.ErrNotExist) && len(u.s.fileValues(zipped, false)) == 0 {
		u.archive = zipped
		members, err = u.s.at.Archive(u.archive, packed.Query{Want: u.wanted, Used: &u.s.unpacked, Zip: true})
	}
	for i := range members {
		if !u.s.step(1) {
			return
		}
		u.member(&members[i])
	}
	name := abstract.Clip(path.Base(u.archive))
	switch {
	case errors.Is(err, packed.ErrLimit), u.found > maxUnpacked:
		u.s.dynamic(effect.CauseArchive, name+" is a larger archive than shield reads, so the rest of its content is unknown", u.at)
	case errors.Is(err, packed.ErrUnread):
		u.s.dynamic(effect.CauseArchive, "the content of "+name+" is unknown, as shield does not read archives of its format", u.at)
	case errors.Is(err, packed.ErrFormat) && u.named && (tars[u.base] || zips[u.base]):
		u.s.dynamic(effect.CauseArchive, name+" is not a readable archive, so its content is unknown", u.at)
	case u.twice:
		u.s.dynamic(effect.CauseArchive, "links in "+name+" can point to more than one place", u.at)
	case err != nil && len(members) > 0:
		u.s.dynamic(effect.CauseArchive, "the archive "+name+" is truncated or damaged", u.at)
	case err != nil && u.top:
		u.s.dynamic(effect.CauseArchive, u.base+" unpacks absolute paths, and the content of "+name+" was not read", u.at)
	case err == nil && u.renames:
		u.s.dynamic(effect.CauseUnresolved, u.base+" renames the files of "+name+" while unpacking", u.at)
	}
}

// options parses the options that change the names of members.
func (u *unpacking) options() {
	for i, v := range u.argv[1:] {
		name, value, attached := strings.Cut(v.Text, "=")
		if !attached && i+2 < len(u.argv) {
			value = u.argv[i+2].Text
		}
		switch {
		case strings.HasPrefix(name, "--strip"):
			n, err := strconv.Atoi(value)
			u.strip, u.renames = max(n, 0), u.renames || err != nil
		case strings.HasPrefix(name, "--transf"), strings.HasPrefix(name, "--xf"), u.base == "bsdtar" && strings.HasPrefix(name, "-s"):
			u.renames = true
		case u.base == "unzip" && len(name) > 1 && name[0] == '-' && name[1] != '-' && strings.Contains(name, "j"):
			u.flat = true
		}
	}
}

// target returns where a member is unpacked: p by its name, behind after following the archive's own links; "" if
// it is not unpacked. Which path is written depends on existing files.
func (u *unpacking) target(name string) (p, behind string) {
	if u.flat {
		name = path.Base(name)
	}
	for range u.strip {
		_, rest, ok := strings.Cut(strings.TrimLeft(name, "/"), "/")
		if !ok {
			return "", ""
		}
		name = rest
	}
	if strings.HasPrefix(name, "/") || windowsDrive(name) {
		p = path.Clean(name) // some programs keep absolute paths, others drop the slash
		return p, p
	}
	p = path.Join(u.into, name)
	if len(u.links) == 0 {
		return p, p
	}
	hops := maxNames
	return p, path.Join(u.walk(u.into, path.Dir(strings.TrimSuffix(name, "/")), &hops), path.Base(name))
}

// walk resolves a relative path from a folder through the archive's links.
func (u *unpacking) walk(at, rel string, hops *int) string {
	for name := range strings.SplitSeq(rel, "/") {
		at = path.Join(at, name)
		to, ok := u.links[at]
		if !ok || name == "" || name == "." || name == ".." {
			continue
		}
		if *hops--; *hops < 0 {
			u.twice = true
			return at
		}
		if !strings.HasPrefix(to, "/") {
			at = u.walk(path.Dir(at), to, hops)
		} else if rest, ok := strings.CutPrefix(to, strings.TrimSuffix(u.into, "/")+"/"); ok {
			at = u.walk(u.into, rest, hops)
		} else {
			at = u.walk("/", to, hops)
		}
	}
	return at
}

// isInside reports whether a path is in the target folder.
func (u *unpacking) isInside(p string) bool {
	return p == u.into || strings.HasPrefix(p, strings.TrimSuffix(u.into, "/")+"/")
}

func windowsDrive(name string) bool { return len(name) > 2 && name[1] == ':' && name[2] == '/' }

// wanted reports whether a member's text is analysed.
func (u *unpacking) wanted(name string) bool {
	if u.leftOut(name) {
		return false
	}
	p, _ := u.target(name)
	return u.hasOwnEffect(p)
}

// hasOwnEffect reports whether a file needs an effect besides the write to its folder.
func (u *unpacking) hasOwnEffect(p string) bool {
	return p != "" && (u.s.at.Persists(p, false, false) != "" || path.Base(p) == "CODEOWNERS")
}

// member records the effects of a member.
func (u *unpacking) member(m *packed.Member) {
	if u.leftOut(m.Name) {
		return
	}
	p, behind := u.target(m.Name)
	if p == "" {
		return
	}
	u.recordMember(p, m)
	if behind != p {
		u.recordMember(behind, m)
	}
	if _, ok := u.links[behind]; ok && m.Link == "" && !m.Dir { // some programs write through an existing link
		hops := maxNames
		u.recordMember(u.walk(path.Dir(behind), path.Base(behind), &hops), m)
	}
	if m.Link != "" {
		u.recordLink(behind, m)
	}
}

// recordMember records that a member is written to a path.
func (u *unpacking) recordMember(p string, m *packed.Member) {
	inside := u.isInside(p)
	if inside && (m.Dir || !u.hasOwnEffect(p) || u.harmless(p, m)) {
		return
	}
	if u.found++; u.found > maxUnpacked {
		return
	}
	e := effect.Effect{Kind: effect.WriteFile, Path: p, Program: u.base, From: u.at}
	if !inside {
		e.Sure, e.Reason = effect.May, path.Base(u.archive)+" holds "+abstract.Clip(m.Name)+", a path outside the folder that it is unpacked into (path traversal)"
	}
	u.s.emitOnce(e)
	if m.Read {
		u.s.recordWrittenText(p, abstract.Lit(m.Text), "")
	}
}

// harmless reports whether a file in the folder runs nothing although its name says so: a sample hook, settings of
// a new repository that name no program, and a package in node_modules without install scripts.
func (u *unpacking) harmless(p string, m *packed.Member) bool {
	if m.Link != "" {
		return false
	}
	dir, name := path.Split(p)
	switch {
	case strings.HasSuffix(dir, "/.git/hooks/"):
		return strings.HasSuffix(name, ".sample")
	case !m.Read:
		return false
	case name == "package.json":
		return strings.Contains(strings.TrimPrefix(p, u.into), "/node_modules/") && !strings.Contains(m.Text, `\u`) && !strings.Contains(m.Text, `install"`)
	case name == "config" && strings.HasSuffix(dir, "/.git/"):
		if u.s.at.Script == nil || !plainConfig(m.Text) {
			return false
		}
		_, err := u.s.at.Script(p)
		return errors.Is(err, fs.ErrNotExist)
	}
	return false
}

// plainConfig reports whether a repository's settings are those of any clone.
func plainConfig(text string) bool {
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
	raw := m.Link
	if m.Hard && !strings.HasPrefix(raw, "/") {
		_, raw = u.target(raw)
	}
	if raw == "" {
		return
	}
	if was, ok := u.links[p]; ok && was != raw {
		u.twice = true
	}
	u.links[p] = raw
	hops := maxNames
	to := u.walk(path.Dir(p), path.Base(p), &hops)
	if u.isInside(to) {
		if u.hasOwnEffect(to) || u.hasOwnEffect(to+"/x") {
			u.s.link(p, false, abstract.Lit(to))
		}
		return
	}
	if u.linked++; u.linked > maxNames {
		u.found = maxUnpacked + 1
		return
	}
	u.s.link(p, false, abstract.Lit(to))
	u.s.emitOnce(effect.Effect{Kind: effect.ReadFile, Path: to, Program: u.base, From: u.at, Reason: path.Base(u.archive) + " contains a link to this file, which other files are then written through"})
}
