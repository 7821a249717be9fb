package effect

import (
	"errors"
	"fmt"
	"strings"
)

// Globs is an indexed set of path globs: each path is compared with only a few of them. Goroutines may share
// it.
//
// A glob starts with "/" or a drive ("c:/"), with "~/" for every home folder, with "$NAME/" for every folder
// in a variable, or with "**/" for any folder. Within it * matches any characters except a slash, ** between
// slashes any number of folders, ? one character, […] one of several, \x the character x, and {a,b} either of
// two. A trailing "/**" also matches the folder itself.
type Globs struct {
	rules            []rule
	abs, home, float index
	homes            [][]segment // possible home folders
	known            [][]segment // home folders that are certain
}

// A rule is one glob after its braces and variables are expanded.
type rule struct {
	glob   int       // index of the glob it came from
	segs   []segment // case folded; without the home folder or a leading "**"
	exact  []segment // segs without case folding
	runs   uint64    // bit set of segments that are "**"
	loop   uint64    // 1 (state 0) if the glob starts with "**"
	strong uint64    // bit set of segments that are evidence, see [rule.match]
	open   bool      // no segment is evidence, and "**" matches any depth
	float  bool      // matches at any depth below the start
	lone   bool      // a single segment, which matches the last name of a path
}

// An index finds rules by the text of their first segment.
type index struct {
	first map[string][]int32
	wild  []int32 // rules whose first segment is not literal
	all   []int32
}

const (
	maxGlob       = 1024 // bytes
	maxRuleDepth  = 60   // segments; a rule's states fit in a 64-bit word
	maxExpansions = 64   // from the braces of one glob
)

// NewGlobs returns the set of some globs. vars maps variables to folders as canonical paths. A glob with a
// variable without folders matches nothing; a variable that is not in vars is an error. The folders of HOME
// are added to the usual home folders. An error names the invalid glob.
func NewGlobs(globs []string, vars map[string][]string) (*Globs, error) {
	b := builder{vars: vars, g: &Globs{
		rules: make([]rule, 0, len(globs)+len(globs)/2),
	}}
	b.g.homes, b.g.known = homeFolders(vars["HOME"])
	for i, glob := range globs {
		b.glob = i
		if err := b.braces(glob); err != nil {
			return nil, fmt.Errorf("glob %q: %w", glob, err)
		}
	}
	return b.g, nil
}

// A builder adds globs to a set.
type builder struct {
	g        *Globs
	vars     map[string][]string
	arena    []segment // unused rest of the block from which segments are allocated
	glob     int
	expanded int
}

// braces expands the braces of a glob and adds the results.
func (b *builder) braces(glob string) error {
	if len(glob) > maxGlob {
		return fmt.Errorf("it is longer than %d bytes; shorten it", maxGlob)
	}
	b.expanded = 0
	return b.expand(glob)
}

func (b *builder) expand(glob string) error {
	parts, err := alternatives(glob)
	if err != nil {
		return err
	}
	if parts == nil {
		if b.expanded++; b.expanded > maxExpansions {
			return fmt.Errorf("its braces stand for more than %d globs; write fewer alternatives", maxExpansions)
		}
		return b.add(glob)
	}
	for _, part := range parts {
		if err := b.expand(part); err != nil {
			return err
		}
	}
	return nil
}

// ExpandBraces returns the expansions of a glob with braces. It is for shield's own lists.
func ExpandBraces(glob string) []string {
	parts, err := alternatives(glob)
	if parts == nil || err != nil {
		return []string{glob}
	}
	var out []string
	for _, part := range parts {
		out = append(out, ExpandBraces(part)...)
	}
	return out
}

// alternatives returns the globs that the first braces of a glob expand to; nil if it has no braces.
func alternatives(glob string) ([]string, error) {
	open := strings.IndexByte(glob, '{')
	for open > 0 && glob[open-1] == '\\' {
		i := strings.IndexByte(glob[open+1:], '{')
		if i < 0 {
			return nil, nil
		}
		open += 1 + i
	}
	if open < 0 {
		return nil, nil
	}
	start, depth := open+1, 0
	var parts []string
	for i := open; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++
		case '{':
			depth++
		case ',':
			if depth == 1 {
				parts = append(parts, glob[:open]+glob[start:i])
				start = i + 1
			}
		case '}':
			if depth--; depth > 0 {
				continue
			}
			parts = append(parts, glob[:open]+glob[start:i])
			for k := range parts {
				parts[k] += glob[i+1:]
			}
			return parts, nil
		}
	}
	return nil, errors.New("a brace is not closed; add }")
}

// add adds a glob without braces.
func (b *builder) add(glob string) error {
	head, rest, _ := strings.Cut(glob, "/")
	switch {
	case strings.IndexByte(glob, 0) >= 0:
		return errors.New("it contains a NUL byte; remove it")
	case head == "~" || head == "$HOME":
		return b.rule(&b.g.home, nil, rest, rule{})
	case head == "**":
		return b.rule(&b.g.float, nil, rest, rule{float: true, loop: 1})
	case strings.HasPrefix(head, "$"):
		folders, ok := b.vars[head[1:]]
		if !ok {
			return fmt.Errorf("unknown variable %s", head)
		}
		for _, folder := range folders {
			anchor := split(nil, folder, false)
			if err := b.rule(&b.g.abs, anchor, rest, rule{float: strings.HasPrefix(rest, "**/")}); err != nil {
				return err
			}
		}
		return nil
	case strings.HasPrefix(glob, "//"):
		return b.rule(&b.g.abs, []segment{{text: unc}}, strings.ToLower(glob[2:]), rule{})
	case head == unc:
		return b.rule(&b.g.abs, []segment{{text: unc}}, strings.ToLower(rest), rule{})
	case head == "" && glob != "":
		return b.rule(&b.g.abs, nil, rest, rule{})
	case isDrive(head):
		return b.rule(&b.g.abs, []segment{patternSegment(strings.ToLower(head))}, strings.ToLower(rest), rule{})
	}
	return errors.New(`it is relative; start it with "/", "~/", "**/", "$WORKSPACE/" or a drive`)
}

// isDrive reports whether s is a drive such as "c:", or "?:" for any drive.
func isDrive(s string) bool {
	return len(s) == 2 && s[1] == ':' && (s[0] == '?' || 'a' <= s[0]|0x20 && s[0]|0x20 <= 'z')
}

// rule adds the rule that matches rest below anchor.
func (b *builder) rule(ix *index, anchor []segment, rest string, r rule) error {
	n := len(anchor) + strings.Count(rest, "/") + 1
	if n > maxRuleDepth {
		return fmt.Errorf("it is deeper than %d folders; shorten it", maxRuleDepth)
	}
	r.glob = b.glob
	r.exact = append(b.segments(n), anchor...)
	floating := ix == &b.g.float
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		s, err := globSegment(name)
		if err != nil {
			return err
		}
		k := len(r.exact)
		if s.kind == anyRun && (k == 0 && floating || k > 0 && r.exact[k-1].kind == anyRun) {
			continue
		}
		s.ends()
		r.exact = append(r.exact, s)
	}
	r.segs = r.exact
	for i, s := range r.exact {
		folded := foldPath(s.text)
		if folded == s.text {
			continue
		}
		if &r.segs[0] == &r.exact[0] {
			r.segs = append(b.segments(len(r.exact)), r.exact...)
		}
		r.segs[i].text = folded
		r.segs[i].ends()
	}
	r.weigh(len(anchor))
	b.g.insert(ix, r)
	return nil
}

// segments allocates n segments.
func (b *builder) segments(n int) []segment {
	if len(b.arena) < n {
		b.arena = make([]segment, max(n, 256))
	}
	room := b.arena[:0:n]
	b.arena = b.arena[n:]
	return room
}

// globSegment parses one segment of a glob.
func globSegment(name string) (segment, error) {
	switch name {
	case "":
		return segment{}, errors.New("it contains two slashes in a row; remove one")
	case ".", "..":
		return segment{}, fmt.Errorf("it contains %q; write the folder's full path", name)
	}
	if !isMeta(name) {
		return segment{text: name}, nil
	}
	for i := 0; i < len(name); {
		t, n := nextToken(name[i:])
		if t.kind == tokenRune && t.r == '[' && n == 1 {
			return segment{}, errors.New("a bracket is not closed; add ]")
		}
		i += n
	}
	s := patternSegment(name)
	if s.kind != wild {
		return s, nil
	}
	s.text = oneStar(s.text)
	return s, nil
}

// oneStar replaces each run of stars in a segment by one star, which means the same. Escaped stars are kept.
func oneStar(s string) string {
	if !strings.Contains(s, "**") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		t, n := nextToken(s[i:])
		if t.kind == tokenStar {
			b.WriteByte('*')
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// weigh determines which segments are evidence that a pattern with an unknown start means a protected path:
// names, and wildcards with a literal prefix such as "id_*". "*.json" is too common, unless the rule has
// nothing else.
func (r *rule) weigh(anchor int) {
	var names, any uint64
	for i, s := range r.segs {
		bit := uint64(1) << i
		switch {
		case s.kind == anyRun:
			r.runs |= bit
		case i < anchor:
		case s.kind == literal || literalHead(s.text) >= 2:
			names |= bit
		case strings.Trim(s.text, "*?") != "":
			any |= bit
		}
	}
	r.strong = names
	if names == 0 {
		r.strong = any
	}
	r.open = r.strong == 0 && (r.float || r.runs != 0)
	r.lone = r.loop != 0 && len(r.segs) == 1
}

// insert adds a rule to the set and to one of its indexes.
func (g *Globs) insert(ix *index, r rule) {
	id := int32(len(g.rules))
	g.rules = append(g.rules, r)
	ix.all = append(ix.all, id)
	if len(r.segs) == 0 || r.segs[0].kind != literal {
		ix.wild = append(ix.wild, id)
		return
	}
	if ix.first == nil {
		ix.first = make(map[string][]int32, 64)
	}
	ix.first[r.segs[0].text] = append(ix.first[r.segs[0].text], id)
}

// usualHomes are the home folders on Linux, BSD, macOS and Windows, also as named by WSL, Cygwin and Git
// Bash.
var usualHomes = [...]string{
	"/home/*", "/root", "/Users/*", "/var/root", "/var/home/*", "/usr/home/*", "/export/home/*",
	"?:/users/*", "?:/documents and settings/*",
	"/mnt/?/users/*", "/cygdrive/?/users/*", "/?/users/*",
}

// homeFolders returns all folders that "~" may be, case folded, and those that it certainly is.
func homeFolders(known []string) (all, certain [][]segment) {
	all = make([][]segment, 0, len(known)+len(usualHomes))
	room := make([]segment, 0, 4*len(usualHomes))
	for _, h := range known {
		all = append(all, split(nil, foldPath(h), false))
		certain = append(certain, split(nil, h, false))
	}
	for _, h := range usualHomes {
		from := len(room)
		for name := range strings.SplitSeq(strings.Trim(h, "/"), "/") {
			room = append(room, patternSegment(strings.ToLower(name)))
		}
		all = append(all, room[from:len(room):len(room)])
	}
	return all, certain
}
