package scan

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// A layer is an overlay over the disk that holds the files of one conversation as its calls leave
// them. Folders of the conversation that do not exist on this machine appear as empty folders. It
// implements [analysis.Layer].
type layer struct {
	at    map[string]analysis.Entry
	below map[string][]string // names in a folder, derived from the paths in at
	bytes int

	home   string
	roots  []string // folders of the conversation that do not exist on the disk
	absent bool     // a call read a file in those folders whose content is unknown
	assume bool     // judge such a file as if it existed and were empty
}

// Limits of a layer. Files beyond them have unknown content.
const (
	maxLayer   = 32 << 20 // bytes
	maxEntries = 50_000
)

func newLayer(home string) *layer {
	return &layer{at: map[string]analysis.Entry{}, below: map[string][]string{}, home: home}
}

func (l *layer) Look(p string) (analysis.Entry, bool) {
	if e, known := l.at[p]; known {
		return e, true
	}
	for dir := path.Dir(p); len(dir) > 1; dir = path.Dir(dir) {
		if e, known := l.at[dir]; known {
			return analysis.Entry{Gone: true}, e.Gone
		}
	}
	return analysis.Entry{}, false
}

func (l *layer) Names(folder string) []string { return l.below[folder] }

func (l *layer) Absent(p string) bool {
	if !slices.ContainsFunc(l.roots, func(root string) bool { return strings.HasPrefix(p, root+"/") }) {
		return false
	}
	l.absent = true
	return l.assume
}

// enter adds an empty folder of the conversation if it does not exist on the disk.
func (l *layer) enter(dir string) {
	if len(dir) < 2 || dir[0] != '/' || slices.Contains(l.roots, dir) || len(l.roots) == 256 {
		return
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	l.roots = append(l.roots, dir)
	l.folder(dir)
}

// put records the entry at a path, and that the folders above it exist.
func (l *layer) put(p string, e analysis.Entry) {
	if p == "" || p[0] != '/' || len(l.at) >= maxEntries {
		return
	}
	if was, known := l.at[p]; known {
		l.bytes -= len(was.Text)
	}
	if l.bytes+len(e.Text) > maxLayer {
		e.Text, e.Unread = nil, true
	}
	l.bytes += len(e.Text)
	if !e.Gone {
		l.above(path.Dir(p))
	}
	l.note(p, e)
}

// above records that a folder and those above it exist, up to the first that the layer or the disk has.
func (l *layer) above(dir string) {
	for ; len(dir) > 1; dir = path.Dir(dir) {
		if e, known := l.Look(dir); known && !e.Gone {
			return
		} else if !known {
			if _, err := os.Lstat(dir); err == nil {
				return // the path exists on the disk
			}
		}
		l.note(dir, analysis.Entry{Folder: true})
	}
}

func (l *layer) note(p string, e analysis.Entry) {
	if _, known := l.at[p]; !known {
		dir := path.Dir(p)
		l.below[dir] = append(l.below[dir], path.Base(p))
	}
	l.at[p] = e
}

func (l *layer) folder(dir string) {
	if e, known := l.Look(dir); !known || !e.Folder {
		l.put(dir, analysis.Entry{Folder: true})
	}
}

// remove records that a path and everything below it was deleted.
func (l *layer) remove(p string) {
	if len(p) < 2 || slices.ContainsFunc(l.roots, func(root string) bool { return root == p || strings.HasPrefix(root, p+"/") }) {
		return
	}
	for name, e := range l.at {
		if strings.HasPrefix(name, p+"/") {
			l.bytes -= len(e.Text)
			delete(l.at, name)
			delete(l.below, path.Dir(name))
		}
	}
	l.put(p, analysis.Entry{Gone: true})
}

// moves moves a path to another.
func (l *layer) moves(from, to string) {
	e, known := l.Look(from)
	if known && e.Gone {
		return
	}
	if !known {
		e = analysis.Entry{Unread: true}
	}
	if into, known := l.Look(to); known && into.Folder {
		to = path.Join(to, path.Base(from))
	}
	var names []string
	for name := range l.at {
		if strings.HasPrefix(name, from+"/") {
			names = append(names, name)
		}
	}
	sorted.Strings(names)
	var moved []analysis.Entry
	for _, name := range names {
		moved = append(moved, l.at[name])
	}
	l.remove(from)
	l.put(to, e)
	for i, name := range names {
		l.put(to+strings.TrimPrefix(name, from), moved[i])
	}
}

// before records content that an edit shows to have existed: the text that it replaces.
func (l *layer) before(c *analysis.Case) {
	old := c.Replaced()
	if c.Action.Type != "write_file" || old == "" {
		return
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Kind != effect.WriteFile || e.Pattern || e.Path == "" {
			continue
		}
		if was, known := l.Look(e.Path); !known || was.Gone {
			if _, err := os.Lstat(e.Path); err != nil {
				l.put(e.Path, analysis.Entry{Text: []byte(old), Committed: true})
			}
		}
		return
	}
}

// apply records the certain effects of an action that was executed.
func (l *layer) apply(c *analysis.Case) {
	texts := map[string]bool{}
	c.Writes(func(w *analysis.Case) {
		p := w.Action.Text("path")
		l.write(p, w)
		texts[p] = true
	})
	if c.Action.Type == "write_file" {
		for i := range c.Effects {
			if e := &c.Effects[i]; e.Kind == effect.WriteFile && !e.Pattern && e.Path != "" {
				l.write(e.Path, c)
				return
			}
		}
		return
	}
	moved := ""
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Path == "" && e.Kind != effect.Execute || e.Pattern || e.Sure != effect.Does {
			continue
		}
		switch e.Kind {
		case effect.MoveFile:
			moved = e.Path
		case effect.WriteFile:
			switch was, known := l.Look(e.Path); {
			case moved != "":
				l.moves(moved, e.Path)
				moved = ""
			case texts[e.Path]:
			case known && !was.Gone && !was.Folder:
				was.Text, was.Unread, was.Committed = nil, true, false
				l.put(e.Path, was)
			}
		case effect.CreateDirectory:
			l.folder(e.Path)
		case effect.DeleteFile, effect.DeleteDirectory:
			l.remove(e.Path)
		case effect.Execute:
			if e.Program == "git" && command.Git(e.Args).Sub == "commit" {
				l.commit(c.At().CWD)
			}
		}
	}
}

// write records that an action wrote or edited a file.
func (l *layer) write(p string, c *analysis.Case) {
	old, text := c.Replaced(), c.Action.Text("content")
	if was, known := l.Look(p); old != "" {
		if known = known && !was.Gone; known {
			if after, ok := c.Edited(string(was.Text)); ok {
				l.put(p, analysis.Entry{Text: []byte(after)})
				return
			}
		}
		if known && !was.Unread {
			old = string(was.Text) + "\n"
		} else if _, err := os.Lstat(p); err == nil {
			return // the content is the file on the disk
		}
		text = old + text
	}
	l.put(p, analysis.Entry{Text: []byte(text)})
}

// commit records that the files of a repository are in its last commit.
func (l *layer) commit(dir string) {
	root := dir
	for _, r := range l.roots {
		if strings.HasPrefix(dir+"/", r+"/") && (root == dir || len(r) < len(root)) {
			root = r
		}
	}
	if root == "" {
		return
	}
	for name, e := range l.at {
		if strings.HasPrefix(name, root+"/") && !e.Folder && !e.Gone {
			e.Committed = true
			l.at[name] = e
		}
	}
}

// reads records the content of a file that was read completely.
func (l *layer) reads(a *action.Action, c *analysis.Case, v any) {
	text, isText := v.(string)
	if !isText || a.Type != "read_file" || len(c.Effects) == 0 || len(a.Payload) != 1 {
		return
	}
	e := &c.Effects[0]
	if e.Kind != effect.ReadFile || e.Pattern || e.Path == "" {
		return
	}
	if was, known := l.Look(e.Path); known && !was.Gone && !was.Unread {
		return
	}
	if _, err := os.Lstat(e.Path); err == nil {
		return
	}
	text, ok := unnumbered(text)
	l.put(e.Path, analysis.Entry{Text: []byte(text), Unread: !ok, Committed: true})
}

// unnumbered returns a text without the line numbers that a host adds. ok is false if they do not
// start at 1, so that the file was not read completely.
func unnumbered(text string) (plain string, ok bool) {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		rest := strings.TrimLeft(line, " ")
		n := 0
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		after, found := strings.CutPrefix(rest[n:], "→")
		if !found {
			after, found = strings.CutPrefix(rest[n:], "\t")
		}
		switch {
		case n > 0 && found && (i > 0 || rest[:n] == "1"):
			b.WriteString(after + "\n")
		case i == 0:
			return text, n == 0
		case line != "" && !strings.HasPrefix(line, "<"):
			return text, false
		}
	}
	return b.String(), true
}
