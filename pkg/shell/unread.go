package shell

import (
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// maxUnread bounds how many words of a command are judged by their form.
const maxUnread = 128

// leftovers judges the words of a command of which no entry says what they mean by what
// they name: a file outside the workspace that is not temporary and no part of a tool
// may be read and written.
func (s *state) leftovers(base string, argv []abstract.Value, use command.Use) {
	if s.remote > 0 {
		return
	}
	for _, w := range use.Unread[:min(len(use.Unread), maxUnread)] {
		v := wordValue(w.Word, argv)
		if v.Bare {
			continue
		}
		for _, text := range pathsIn(v.Text) {
			if use.Windows && text[0] == '/' {
				continue // an option
			}
			one := v
			one.Text = text
			if v.IsPattern {
				one.Show = text
			}
			s.unreadPath(base, one, w.Option)
		}
	}
}

// pathsIn returns what a word names that is a path from the top, from the home folder or
// out of the folder: the word itself, or a part of it such as "dest=/a", "html:/a",
// "-o/a" or "@/a". In prose only the whole may be one.
func pathsIn(text string) []string {
	if strings.ContainsAny(text, " \n\t") {
		if strings.Trim(text[:1], "/~") == "" {
			return []string{text}
		}
		return nil
	}
	if len(text) > 2 && text[0] == '-' && text[1] != '-' {
		text = text[2:]
	}
	text = strings.ReplaceAll(text, "file://", "")
	if strings.Contains(text, "://") || distinguished().MatchString(text) {
		return nil
	}
	var out []string
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(",=:;@{}", r) }) {
		if part[0] == '/' && len(part) > 1 || strings.HasPrefix(part, "~/") || strings.HasPrefix(part, "..") {
			if out = append(out, part); len(out) == 8 {
				break
			}
		}
	}
	return out
}

// distinguished matches the name of a certificate's owner, such as /C=XX/CN=a.
var distinguished = prefilter.Lazy(`^(?:/[A-Za-z]+=[^/]*)+$`)

// unreadPath records that nobody knows what a program does with a path.
func (s *state) unreadPath(base string, v abstract.Value, option bool) {
	p, pattern := s.place().Path(v.Text, v.IsPattern)
	if p == "" || strings.HasPrefix(p, "*") || quietDevice(p) || !s.strange(p, pattern, option) {
		return
	}
	mark := len(s.effects)
	s.path(effect.ReadFile, v, false)
	s.path(effect.WriteFile, v, false)
	s.onlyMay(mark)
	s.dynamic(effect.CauseUnread, "what "+base+" does with "+abstract.Clip(v.String())+" is not known", v.From)
}

// strange reports whether a path is outside the workspace, not temporary, and not
// where tools and their caches are.
func (s *state) strange(p string, pattern, option bool) bool {
	if s.place().Inside(p, pattern, false) {
		return false
	}
	for _, folder := range [...]string{"/tmp", "/var/tmp", "/private/tmp", "/dev/shm", "/dev/fd", "/proc/self"} {
		if under(p, folder) {
			return false
		}
	}
	if effect.SecretPath(p, pattern) {
		return true
	}
	tail := p
	if rest, ok := strings.CutPrefix(p, s.at.Home+"/"); ok && s.at.Home != "" {
		tail = "/~/" + rest
	}
	if _, tool := toolFolders().Covers(tail, pattern, false, false); tool {
		return false
	}
	return option || effect.Persists(p, pattern, false) != ""
}

// toolFolders are where programs, their libraries and their caches are.
var toolFolders = sync.OnceValue(func() *effect.Globs {
	var all []string
	for _, name := range [...]string{"tool_folders", "own_caches"} {
		list, _ := knowledge.Paths(name)
		all = append(all, list...)
	}
	globs, err := effect.NewGlobs(all, map[string][]string{"HOME": {"/~"}})
	if err != nil {
		panic(err) // a test reads them
	}
	return globs
})
