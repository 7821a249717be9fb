package shell

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/internal/packed"
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
	if len(archives) == 0 { // it comes from standard input
		for i := max(0, len(s.effects)-maxPiped); i < len(s.effects); i++ {
			if e := &s.effects[i]; e.Kind == effect.ReadFile && !e.Pattern && !e.Recursive && !slices.Contains(archives, e.Path) {
				archives = append(archives, e.Path)
			}
		}
	} else {
		archives = archives[:1]
	}
	if !extracts || into == "" {
		return
	}
	for _, archive := range archives {
		if len(s.fileValues(archive, false)) == 0 {
			u := unpacking{s: s, base: base, argv: argv, at: join(argv), archive: archive, into: into}
			u.unpack()
		}
	}
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
	links   []link // that the archive makes, by the paths that they get
	found   int
}

func (u *unpacking) unpack() {
	u.options()
	members, err := u.s.at.Archive(u.archive, u.wanted)
	for i := range members {
		if !u.s.step(1) {
			return
		}
		u.member(&members[i])
	}
	name := abstract.Clip(path.Base(u.archive))
	switch {
	case errors.Is(err, packed.ErrLimit), u.found > maxUnpacked:
		u.s.dynamic(effect.CauseLimit, name+" holds more than is read of an archive", u.at)
	case err != nil && len(members) > 0:
		u.s.dynamic(effect.CauseSyntax, "what "+name+" holds cannot be read to its end", u.at)
	case err == nil && u.renames:
		u.s.dynamic(effect.CauseUnresolved, u.base+" gives what "+name+" holds other names", u.at)
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

// target returns where a member lies then, and whether that is in the folder that it is unpacked
// into; "" if it is not unpacked.
func (u *unpacking) target(name string) (p string, inside bool) {
	if u.flat {
		name = path.Base(name)
	}
	for range u.strip {
		_, rest, ok := strings.Cut(strings.TrimLeft(name, "/"), "/")
		if !ok {
			return "", true
		}
		name = rest
	}
	if p = path.Join(u.into, name); strings.HasPrefix(name, "/") || windowsDrive(name) {
		p = path.Clean(name) // what some programs do, others drop the slash
	}
	for range maxNames {
		i := slices.IndexFunc(u.links, func(l link) bool { return strings.HasPrefix(p, l.at+"/") })
		if i < 0 {
			break
		}
		p = path.Join(u.links[i].to, strings.TrimPrefix(p, u.links[i].at+"/"))
	}
	return p, p == u.into || strings.HasPrefix(p, strings.TrimSuffix(u.into, "/")+"/")
}

func windowsDrive(name string) bool { return len(name) > 2 && name[1] == ':' && name[2] == '/' }

// wanted reports whether the text of a member is judged.
func (u *unpacking) wanted(name string) bool {
	p, _ := u.target(name)
	return u.counts(p)
}

// counts reports whether a file has an effect beside that on its folder.
func (u *unpacking) counts(p string) bool {
	return p != "" && (effect.Persists(p, false, false) != "" || path.Base(p) == "CODEOWNERS")
}

// member records the effects of a member.
func (u *unpacking) member(m *packed.Member) {
	p, inside := u.target(m.Name)
	if p == "" || m.Dir && inside {
		return
	}
	if m.Link != "" {
		u.linked(p, m)
	}
	if inside && !u.counts(p) {
		return
	}
	if u.found++; u.found > maxUnpacked {
		return
	}
	e := effect.Effect{Kind: effect.WriteFile, Path: p, Program: u.base, From: u.at}
	if !inside {
		e.Sure, e.Reason = effect.May, path.Base(u.archive)+" holds "+abstract.Clip(m.Name)+", which leads out of the folder that it is unpacked into"
	}
	u.s.once(e)
	if m.Read {
		u.s.puts(p, abstract.Lit(m.Text), "")
	}
}

// linked records what a link of an archive leads to, if that is not in the archive.
func (u *unpacking) linked(p string, m *packed.Member) {
	to := m.Link
	switch {
	case strings.HasPrefix(to, "/"):
		to = path.Clean(to)
	case m.Hard:
		to, _ = u.target(to)
	default:
		to = path.Join(path.Dir(p), to)
	}
	if to == "" || to == u.into || strings.HasPrefix(to, strings.TrimSuffix(u.into, "/")+"/") {
		return
	}
	if len(u.links) == maxNames {
		u.found = maxUnpacked + 1
		return
	}
	u.links = append(u.links, link{at: p, to: to})
	u.s.link(p, false, abstract.Lit(to))
	u.s.once(effect.Effect{Kind: effect.ReadFile, Path: to, Program: u.base, From: u.at, Reason: path.Base(u.archive) + " makes a link to it"})
}
