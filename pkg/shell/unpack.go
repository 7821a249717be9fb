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

// maxUnpacked is how many members of an archive have an effect of their own.
const maxUnpacked = 128

// unpacks records what an archive puts where it matters: outside the folder that it is unpacked
// into, behind links, and in files that run later. All else is a part of what is written in the folder.
// An archive that is not on the disk as it is now, or of another format, has members that
// nobody knows.
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
	case words.clear: // it comes from standard input, or from a tape
		piped, archives = true, nil
	case !tars[base] && base != "cpio" && !piped: // which may read names, too
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

// tars are programs that take the options of tar, and skip what is not an archive before its first member.
var tars = map[string]bool{"tar": true, "gtar": true, "bsdtar": true}

// zips are programs that find an archive of zip by its end.
var zips = map[string]bool{"unzip": true, "py:zipfile": true}

// archiveName reports whether a file is named as what tar reads.
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

// tarWords are what the words of tar say that matters to what is unpacked. If they are not
// clear, all that the archive holds counts.
type tarWords struct {
	clear   bool
	shows   bool // members are written to standard output
	top     bool // members keep names from the top, and that climb
	zeros   bool
	archive string
	only    []string // members that are unpacked; empty for all
	without []string // names of which nothing is unpacked
}

// absolute matches letters of tar without a value that keep names from the top.
var absolute = prefilter.Lazy(`^-[a-zA-Z]*P[a-zA-Z]*$`)

// readTar reads the words of tar. Options of which it does not know whether they have
// a value make them unclear.
func readTar(argv []abstract.Value) (w tarWords) {
	w.clear = true
	for _, v := range argv[1:] { // whatever else they say
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
	unclear, listed := tarWords{zeros: w.zeros, top: w.top}, false // listed: what is unpacked is said elsewhere too
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

// tarFlags are options of tar without a value that change nothing here.
var tarFlags = map[string]bool{
	"--extract": true, "--get": true, "--gzip": true, "--gunzip": true, "--ungzip": true, "--bzip2": true, "--xz": true, "--zstd": true, "--auto-compress": true,
	"--verbose": true, "--touch": true, "--no-same-owner": true, "--no-same-permissions": true, "--same-owner": true, "--same-permissions": true, "--preserve-permissions": true,
	"--overwrite": true, "--keep-old-files": true, "--skip-old-files": true, "--keep-newer-files": true, "--ignore-zeros": true, "--to-stdout": true, "--wildcards": true, "--absolute-names": true,
}

// tarValues are those with one.
var tarValues = map[string]bool{"--file": true, "--directory": true, "--exclude": true, "--strip-components": true, "--files-from": true, "--exclude-from": true}

func memberName(name string) string { return strings.TrimLeft(path.Clean(name), "/") }

// leftOut reports whether a member is not unpacked.
func (w *tarWords) leftOut(name string) bool {
	if !w.clear || strings.Contains("/"+name+"/", "/../") { // programs differ in what they make of it
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

// maxPiped is how many of the last effects may have read an archive that standard input holds.
const maxPiped = 16

// An unpacking is of one archive.
type unpacking struct {
	s       *state
	base    string
	argv    []abstract.Value
	at      effect.Span
	archive string
	into    string
	strip   int
	flat    bool // without folders
	renames bool
	links   map[string]string // what the links name that the archive makes, by the paths that they get
	linked  int               // those that lead out
	twice   bool              // two links of a name, or too many on one way
	found   int
	named   bool // it is surely the archive
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
		u.s.dynamic(effect.CauseLimit, name+" is a larger archive than shield reads, so the rest of its content is unknown; list it first, or approve it if you trust its source", u.at)
	case errors.Is(err, packed.ErrUnread):
		u.s.dynamic(effect.CauseUnread, "the content of "+name+" is unknown, as shield does not read archives of its format", u.at)
	case errors.Is(err, packed.ErrFormat) && u.named && (tars[u.base] || zips[u.base]):
		u.s.dynamic(effect.CauseLimit, name+" is not a readable archive, so its content is unknown", u.at)
	case u.twice:
		u.s.dynamic(effect.CauseLimit, "links in "+name+" can point to more than one place", u.at)
	case err != nil && len(members) > 0:
		u.s.dynamic(effect.CauseLimit, "the archive "+name+" is truncated or damaged", u.at)
	case err != nil && u.top:
		u.s.dynamic(effect.CauseUnread, u.base+" unpacks absolute paths, and the content of "+name+" was not read", u.at)
	case err == nil && u.renames:
		u.s.dynamic(effect.CauseUnresolved, u.base+" renames the files of "+name+" while unpacking", u.at)
	}
}

// options reads what changes the names of members.
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

// target returns where a member lies then by its name, and where by the links that the archive
// makes; "" if it is not unpacked. Which of them it is depends on what is there before.
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
		p = path.Clean(name) // what some programs do, others drop the slash
		return p, p
	}
	p = path.Join(u.into, name)
	if len(u.links) == 0 {
		return p, p
	}
	hops := maxNames
	return p, path.Join(u.walk(u.into, path.Dir(strings.TrimSuffix(name, "/")), &hops), path.Base(name))
}

// walk returns where a path from a folder leads through the links of the archive.
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

// isInside reports whether a path is in the folder that is unpacked into.
func (u *unpacking) isInside(p string) bool {
	return p == u.into || strings.HasPrefix(p, strings.TrimSuffix(u.into, "/")+"/")
}

func windowsDrive(name string) bool { return len(name) > 2 && name[1] == ':' && name[2] == '/' }

// wanted reports whether the text of a member is judged.
func (u *unpacking) wanted(name string) bool {
	if u.leftOut(name) {
		return false
	}
	p, _ := u.target(name)
	return u.hasOwnEffect(p)
}

// hasOwnEffect reports whether a file has an effect beside that on its folder.
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
	if _, ok := u.links[behind]; ok && m.Link == "" && !m.Dir { // some write through it
		hops := maxNames
		u.recordMember(u.walk(path.Dir(behind), path.Base(behind), &hops), m)
	}
	if m.Link != "" {
		u.recordLink(behind, m)
	}
}

// recordMember records that a member gets a path.
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

// harmless reports whether a file in the folder runs nothing later although it is named as
// one that does: an example of a hook, the settings of a repository that is not there yet and that
// name no program, and a package of node_modules without scripts that its installation runs.
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

// plainConfig reports whether the settings of a repository are those of any clone.
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

// recordLink keeps where a link of an archive leads, and records it if that is not in the archive.
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
