package command

import (
	"slices"
	"strings"
)

// An Installer is a program that puts programs into a folder from which people run them; see
// installers.yaml.
type Installer struct {
	Names  string   // how the names of the programs are known; "" if they are not
	Bin    []string // the folder by default: the first whose variables have a value
	Remote bool     // operands that do not look like paths name what registries hold

	words, needs, bins, prefixes, from, as, values []string
}

// An Installation is what an installer is told.
type Installation struct {
	*Installer
	Folders []Word // where the programs go; none for the default
	Sources []Word // what is installed
	Named   []Word // names of programs
}

// Installs returns what the words of an installer say, once for each way in which it installs.
func Installs(args []Word) []Installation {
	var out []Installation
	for _, i := range installersOf(args[0].Text) {
		if in, ok := installers[i].read(args[1:]); ok {
			out = append(out, in)
		}
	}
	return out
}

func (l *Installer) read(args []Word) (in Installation, ok bool) {
	in.Installer = l
	needed, ended := len(l.needs) == 0, false
	var operands []Word
	for i := 0; i < len(args); i++ {
		w := args[i]
		name, value, attached := w.Text, Word{}, false
		if eq := strings.IndexByte(w.Text, '='); eq > 0 {
			name, value, attached = w.Text[:eq], cut(w, eq+1), true
		} else if colon := strings.IndexByte(w.Text, ':'); colon > 0 && strings.HasPrefix(w.Text, "-") { // of Nim
			name, value, attached = w.Text[:colon], cut(w, colon+1), true
		}
		if slices.Contains(l.needs, w.Text) || slices.Contains(l.needs, name) {
			needed = true
		}
		if attached && (slices.Contains(l.bins, name+"=") || slices.Contains(l.prefixes, name+"=")) {
			in.into(value, slices.Contains(l.prefixes, name+"="))
			continue
		}
		if ended || !strings.HasPrefix(w.Text, "-") || w.Text == "-" {
			operands = append(operands, w)
			continue
		}
		if w.Text == "--" {
			ended = true
			continue
		}
		list := l.kindOf(name)
		if list == nil && !attached && len(name) > 2 && name[1] != '-' { // -t~/x
			if short := l.kindOf(name[:2]); short != nil {
				list, value, attached = short, cut(w, 2), true
			}
		}
		if list == nil {
			continue
		}
		if !attached {
			if i++; i == len(args) {
				break
			}
			value = args[i]
		}
		switch {
		case slices.Contains(l.bins, list[0]):
			in.into(value, false)
		case slices.Contains(l.prefixes, list[0]):
			in.into(value, true)
		case slices.Contains(l.from, list[0]):
			if name == "--path" && !value.Pattern && strings.IndexByte("./~", (value.Text + " ")[0]) < 0 {
				value.Text = "./" + value.Text
			}
			in.Sources = append(in.Sources, value)
		case slices.Contains(l.as, list[0]):
			in.Named = append(in.Named, value)
		}
	}
	for _, word := range l.words {
		i := slices.IndexFunc(operands, func(w Word) bool { return w.Text == word && !w.Pattern })
		if i < 0 {
			return in, false
		}
		operands = slices.Delete(operands, i, i+1)
	}
	if below := slices.Contains(l.prefixes, "@"); (below || slices.Contains(l.bins, "@")) && len(operands) > 0 {
		in.into(operands[0], below)
		operands = operands[1:]
	}
	in.Sources = append(in.Sources, operands...)
	return in, needed
}

// kindOf returns the list that an option with a value is of, from it on.
func (l *Installer) kindOf(name string) []string {
	for _, list := range [...][]string{l.bins, l.prefixes, l.from, l.as, l.values} {
		if i := slices.Index(list, name); i >= 0 {
			return list[i:]
		}
	}
	return nil
}

// into notes a folder, or one in which bin is the folder.
func (in *Installation) into(w Word, below bool) {
	if below {
		w.Text = strings.TrimSuffix(w.Text, "/") + "/bin"
	}
	in.Folders = append(in.Folders, w)
}
