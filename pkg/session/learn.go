package session

import (
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// A Delta is what one action adds to its session.
type Delta struct {
	Labels        []Labelled
	Files         []effect.File
	Shown         []string // files that the action showed: anyone who runs them later has seen them
	Sent          []Sent
	Values        []Value
	Events        []string // kinds of effects that a policy asks for
	CountsActions bool     // a policy counts actions
	MovesFiles    bool     // files may lie elsewhere after the action, or be gone
	Made          []string // what the action creates, or changes of what the session has created
	Owners        []string // accounts that the workspace comes from
	Denial        *Denial

	Prompt         *Prompt  // that may be the user's
	UserPrompt     *Prompt  // that the user has written
	SettledPrompts []string // sums of prompts of which it is known now
	Texts          bool     // a text came in that anybody may have written

	Instruction *Instruction // a file of instructions of the project's that the session changes

	Remotes       []Remote
	OriginChanged bool // the address of the workspace may be another one

	identified map[string]effect.Identity // files whose identity was not known before
}

// credentials returns the values that all sessions of a user share.
func (d *Delta) credentials() (out []Value) {
	for i := range d.Values {
		if !d.Values[i].Private {
			out = append(out, d.Values[i])
		}
	}
	return out
}

// sessionWords returns the values that are the session's alone.
func (d *Delta) sessionWords() (out []Value) {
	for i := range d.Values {
		if d.Values[i].Private {
			out = append(out, d.Values[i])
		}
	}
	return out
}

// Empty reports whether an action adds nothing for sure.
func (d *Delta) Empty() bool {
	return len(d.Labels)+len(d.Files)+len(d.Sent)+len(d.Events)+len(d.Values)+len(d.Owners)+len(d.Remotes)+len(d.Made) == 0 && !d.OriginChanged && !d.CountsActions && d.Denial == nil &&
		d.Prompt == nil && d.UserPrompt == nil && len(d.SettledPrompts) == 0 && !d.Texts && d.Instruction == nil
}

// Learn returns what an action adds to its session if it runs. events are the
// kinds of effects, and action types, that the policy asks for.
func Learn(c *analysis.Case, events []string, counts bool) Delta {
	l := learner{c: c, d: Delta{Files: leftFiles(c), CountsActions: counts, MovesFiles: mayMove(c), OriginChanged: changesOrigin(c), Remotes: remotes(c), Made: c.Makes()}}
	for i := range c.Effects {
		l.effect(&c.Effects[i])
	}
	for i := range l.d.Files {
		for _, label := range l.d.Files[i].Labels {
			l.addDataLabel(label, "a file")
		}
	}
	l.tool(c.Action.Type)
	for _, kind := range events {
		if c.Action.Type == kind || c.Action.Given == kind || slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return string(e.Word()) == kind }) {
			l.d.Events = append(l.d.Events, kind)
		}
	}
	return l.d
}

// leftFiles returns the files that an action leaves behind, without the folders that
// hold a workspace, since what was in them before came from nowhere else, and
// without clones of places that are trusted and releases from those who make them.
func leftFiles(c *analysis.Case) []effect.File {
	trusted, published := sendsToTrusted(c), onlyReleases(c)
	return slices.DeleteFunc(slices.Concat(c.Files, copiesOfPrivate(c), movedDownloads(c), copiedToContainer(c), unpackedFiles(c), buildFolders(c)), func(f effect.File) bool {
		if trusted && slices.Equal(f.Labels, []effect.Label{effect.LabelUntrusted}) {
			return true
		}
		if published && slices.Equal(f.Labels, []effect.Label{effect.LabelNetwork}) {
			return true
		}
		return f.Tree && slices.ContainsFunc(c.At().Roots, func(root string) bool {
			return root == f.Path || strings.HasPrefix(root, strings.TrimSuffix(f.Path, "/")+"/")
		})
	})
}

// mayMove reports whether an action may move, change or delete files.
func mayMove(c *analysis.Case) bool {
	return c.Unexamined != "" || len(c.Effects) == 0 || slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
		switch e.Word() {
		case effect.ReadFile, effect.ListDirectory, effect.ReadSecret, effect.ReadClipboard, effect.HTTPRequest, effect.Connect, effect.SendData, effect.SendMessage, effect.CreateDirectory:
			return false
		case effect.WriteFile, effect.Persist: // the file itself stays where it is
			return e.Pattern || e.Recursive || e.Path == ""
		case effect.Execute:
			return e.Class != effect.ReadOnly
		}
		return true
	})
}

// copiesOfPrivate returns what an action writes that reads or moves a private file: which of it
// went where is not known.
func copiesOfPrivate(c *analysis.Case) (out []effect.File) {
	place := c.At()
	own := func(e effect.Effect) bool {
		return (e.Kind == effect.ReadFile || e.Kind == effect.MoveFile) && e.Sure != effect.May && e.Path != "" && !place.Inside(e.Path, e.Pattern, e.Tree) && isUserFile(&e, place.Home)
	}
	if !slices.ContainsFunc(c.Effects, own) {
		return nil
	}
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Kind == effect.WriteFile && !e.Pattern && e.Path != "" {
			out = append(out, effect.File{Path: e.Path, Tree: e.Recursive, Labels: []effect.Label{effect.LabelPrivate}})
		}
	}
	return out
}

// maxMoved is how many files of folders that are moved or copied are followed.
const maxMoved = 256

// movedDownloads returns where what was brought into a folder lies once the folder is moved or
// copied: below each place that the action writes.
func movedDownloads(c *analysis.Case) (out []effect.File) {
	place := c.At()
	if place.Brought == nil || place.Origin == nil {
		return nil
	}
	for i := range c.Effects {
		from := &c.Effects[i]
		if (from.Kind != effect.MoveFile && from.Kind != effect.ReadFile) || !from.Recursive || from.Pattern || from.Path == "" {
			continue
		}
		for _, path := range place.Brought().All() {
			name := strings.TrimSuffix(path, "/")
			rest, below := strings.CutPrefix(name, from.Path+"/")
			for j := range c.Effects {
				if to := &c.Effects[j]; below && to.Kind == effect.WriteFile && !to.Pattern && to.Path != "" && to.Path != from.Path && len(out) < maxMoved {
					out = append(out, effect.File{Path: to.Path + "/" + rest, Tree: name != path, Labels: place.Origin(name)})
				}
			}
		}
	}
	return out
}

type learner struct {
	c *analysis.Case
	d Delta
}

// addLabel adds a label of the session.
func (l *learner) addLabel(label effect.Label, by string) {
	if !slices.ContainsFunc(l.d.Labels, func(have Labelled) bool { return have.Label == label }) {
		l.d.Labels = append(l.d.Labels, Labelled{Label: label, By: by})
	}
}

// addDataLabel adds the label of a session that data with a label gives it.
func (l *learner) addDataLabel(label effect.Label, by string) {
	switch label {
	case effect.LabelSecret, effect.LabelCredential:
		l.addLabel(effect.LabelSecret, by)
	case effect.LabelPrivate:
		l.addLabel(effect.LabelPrivate, by)
	case effect.LabelUntrusted:
		l.addLabel(effect.LabelUntrusted, by)
	}
}

func (l *learner) effect(e *effect.Effect) {
	by := string(e.Word())
	switch e.Word() {
	case effect.ReadSecret:
		l.addLabel(effect.LabelSecret, by)
	case effect.ReadClipboard:
		l.addLabel(effect.LabelPrivate, by)
	case effect.ReadFile:
		l.addRead(e)
	case effect.HTTPRequest:
		if !e.Trusted {
			l.addLabel(effect.LabelUntrusted, by)
		}
	case effect.Dynamic:
		if e.Cause == effect.CauseTool || e.Cause == effect.CauseReader { // no one knows whose words it returns
			l.addLabel(effect.LabelUntrusted, l.c.Action.Type)
		}
	case effect.SendSecret:
		l.addSent(e)
	case effect.SendData, effect.SendMessage:
		for _, label := range e.Labels {
			l.addDataLabel(label, by)
		}
		l.addSent(e)
	}
}

// addRead adds what the read of a file brings in.
func (l *learner) addRead(e *effect.Effect) {
	if e.Path == "" || e.Cause == effect.CauseUnshown || e.Sure == effect.May {
		return
	}
	place := l.c.At()
	if place.Origin != nil && !e.Pattern {
		for _, label := range place.Origin(e.Path) {
			l.addDataLabel(label, "read_file")
		}
		if l.shows(e) && !slices.ContainsFunc(l.c.Effects, func(o effect.Effect) bool { return o.Kind == effect.RunCode && o.Path == e.Path }) {
			l.d.Shown = append(l.d.Shown, e.Path)
		}
	}
	switch {
	case effect.SecretPath(e.Path, e.Pattern):
		if l.signsIn(e) {
			return
		}
		l.addLabel(effect.LabelSecret, "read_file")
		if onList("browser_data", e) {
			l.addLabel(effect.LabelPrivate, "read_file")
		}
	case !place.Inside(e.Path, e.Pattern, e.Tree) && isUserFile(e, place.Home):
		l.addLabel(effect.LabelPrivate, "read_file")
	}
}

// shows reports whether a read puts the file before anyone who asked for it: that of a
// file tool, or of a program that prints files. Counting its words does not.
func (l *learner) shows(e *effect.Effect) bool {
	return l.c.Action.Type != "execute_command" || slices.ContainsFunc(l.c.Effects, func(o effect.Effect) bool {
		return o.Kind == effect.Execute && slices.Contains(printPrograms, o.Program) && o.From.Start <= e.From.Start && e.From.End <= o.From.End
	})
}

// printPrograms are the programs that print files as they are.
var printPrograms = []string{"bat", "batcat", "cat", "get-content", "head", "less", "more", "most", "nl", "sed", "tac", "tail", "type", "view"}

// signsIn reports whether a file is read by a program that signs in with it, and
// shows nothing of it.
func (l *learner) signsIn(e *effect.Effect) bool {
	return slices.ContainsFunc(l.c.Effects, func(o effect.Effect) bool {
		return o.Kind == effect.Execute && slices.Contains(keyPrograms, o.Program) && o.From.Start <= e.From.Start && e.From.End <= o.From.End && e.From.End > 0
	})
}

// keyPrograms are the programs that sign in with the keys that their arguments name.
var keyPrograms = []string{"ssh", "ssh-add", "ssh-keygen", "scp", "sftp", "rsync"}

// isUserFile reports whether a file outside the workspace is the user's own: it lies
// below the home folder, and not in a folder that programs keep for themselves.
func isUserFile(e *effect.Effect, home string) bool {
	if onList("private_messages", e) || onList("browser_data", e) {
		return true
	}
	if home == "" || e.Pattern && strings.HasPrefix(e.Path, "*") {
		return false
	}
	rest, below := strings.CutPrefix(e.Path, home+"/")
	if !below || rest[0] == '.' || strings.Contains(rest, "/.") {
		return false
	}
	return !onList("library_files", e)
}

// onList reports whether an effect touches a file of a list of package knowledge.
func onList(list string, e *effect.Effect) bool {
	globs, err := fileLists[list]()
	if err != nil {
		return list != "library_files"
	}
	_, ok := globs.Touches(e.Path, e.Pattern, e.Recursive)
	return ok
}

var fileLists = map[string]func() (*effect.Globs, error){
	"private_messages": sync.OnceValues(func() (*effect.Globs, error) { return globsOf("private_messages") }),
	"browser_data":     sync.OnceValues(func() (*effect.Globs, error) { return globsOf("browser_data") }),
	"library_files":    sync.OnceValues(func() (*effect.Globs, error) { return globsOf("library_files") }),
}

func globsOf(list string) (*effect.Globs, error) {
	globs, _ := knowledge.Paths(list)
	return effect.NewGlobs(globs, nil)
}

// tool adds what a tool brings in by its name: pages, mail, results of servers.
func (l *learner) tool(name string) {
	if strings.HasPrefix(name, "browser_") {
		l.addLabel(effect.LabelUntrusted, name)
	}
	own := name[strings.LastIndex(name, "__")+1:]
	if _, list := knowledge.Verb(own); list != "reads" {
		return
	}
	if slices.ContainsFunc(knowledge.Words(name), func(word string) bool { return knowledge.VerbIn(word, "messages") }) {
		l.addLabel(effect.LabelPrivate, name)
		l.addLabel(effect.LabelUntrusted, name)
	}
}

// addSent adds what goes to a host or a recipient.
func (l *learner) addSent(e *effect.Effect) {
	to := e.Host
	if to == "" {
		to = e.Target
	}
	if to == "" {
		return
	}
	size := int64(0)
	switch place := l.c.At(); {
	case e.Path == "":
		size = int64(len(l.c.Action.Raw))
	case place.Script != nil && !e.Pattern:
		if data, err := place.Script(e.Path); err == nil {
			size = int64(len(data))
		}
	}
	to = shortenText(to)
	if i := slices.IndexFunc(l.d.Sent, func(s Sent) bool { return s.To == to }); i >= 0 {
		l.d.Sent[i].Bytes = max(l.d.Sent[i].Bytes, size)
		return
	}
	l.d.Sent = append(l.d.Sent, Sent{To: to, Times: 1, Bytes: size})
}
