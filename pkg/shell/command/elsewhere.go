package command

import (
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/effect"
)

// anyService is the entry with the verbs and texts that all services share.
const anyService = "any:service"

// severity lists the verbs for remote changes, most severe first.
var severity = [...]string{"delete", "grant", "expose", "weaken", "redirect", "run", "change"}

// noteVerb records the verb of a remote change; the most severe one is kept.
func (r *reader) noteVerb(verb string) {
	if verb != "" && (r.verb == "" || slices.Index(severity[:], verb) < slices.Index(severity[:], r.verb)) {
		r.verb = verb
	}
}

// change records a remote change with a verb, or a change of where data comes from.
func (r *reader) change(verb string) {
	r.effect(effect.ChangeRemote)
	r.noteVerb(verb)
}

// name returns the program's name, without its folder.
func (r *reader) name() string {
	_, name := baseName(r.args[0].Text)
	return name
}

// hereService marks subcommands that change only this machine.
const hereService = "here"

// service returns the remote service that the program changes, according to its innermost subcommand with one; ""
// for none.
func (r *reader) service() string {
	for d := r.depth - 1; d >= 0; d-- {
		switch s := r.levels[d].service; s {
		case "":
		case hereService:
			return ""
		default:
			return s
		}
	}
	return ""
}

// maxVerb is the number of words that are searched for a verb.
const maxVerb = 6

// elsewhere records the kind of a remote change: from the table, or from the verbs and texts that all services
// share.
func (r *reader) elsewhere() {
	r.requests()
	service := r.service()
	if service != "" && r.class != readOnly && (r.flags&asks == 0 || slices.Contains(r.use.Effects, effect.ChangeRemote)) {
		lexicon := find(programs[:], anyService)
		if verb := verbOf(r.args[1:], lexicon); verb == nil || len(verb.effects) > 0 {
			if verb != nil && r.verb == "" {
				r.act(verb)
			}
			r.matchTexts(lexicon.texts, plainWords(r.args[1:]))
		}
		r.noteServiceWords()
	}
	if !slices.Contains(r.use.Effects, effect.ChangeRemote) {
		if service == "" || !slices.Contains(r.use.Effects, effect.Destroy) {
			return
		}
		r.use.Effects = append(r.use.Effects, effect.ChangeRemote)
	}
	if slices.Contains(r.use.Effects, effect.Destroy) {
		r.noteVerb("delete")
	}
	r.noteVerb("change")
	r.use.Remote = Remote{Service: service, Verb: r.verb}
	switch {
	case r.plane != "":
		r.use.Remote.Service = r.plane
	case service == "":
		r.use.Remote.Service = r.name()
	}
	r.namedPlaces()
	r.use.places = r.places
	r.use.at(service != "")
}

// noteServiceWords records the verbs in the arguments of a service's program for which its table says nothing.
func (r *reader) noteServiceWords() {
	if len(r.use.Effects) > 0 {
		return
	}
	gone, shown := verbsInWords(r.name(), r.args[1:])
	if shown {
		r.act(&action{effects: []effect.Kind{effect.ReadSecret}})
	}
	if gone {
		r.change("delete")
	}
}

// At records places that a program works on but its arguments do not name, such as the value of a variable.
func (u *Use) At(places ...Word) {
	if len(places) > 0 && u.Remote.Service != "" {
		u.places = slices.Concat(u.places, places)
		u.at(true)
	}
}

// at decides the kind of a remote change by the known places. On a place for development or tests, changes of
// listed services destroy no important data.
func (u *Use) at(listed bool) {
	u.Remote.Target, u.Remote.Trial = areTestPlaces(u.places)
	if u.trialDrop && slices.ContainsFunc(u.places, func(w Word) bool { return w.Pattern || placeKind(w.Text) == inUse }) {
		u.trialDrop, u.Remote.Verb = false, "delete"
		u.Effects = append(slices.Clone(u.Effects), effect.Destroy)
	}
	u.Remote.Destroys = u.Remote.Verb == "delete" && !u.Remote.Trial
	if u.Remote.Trial && listed {
		u.Effects = slices.DeleteFunc(slices.Clone(u.Effects), func(k effect.Kind) bool { return k == effect.Destroy })
	}
}

// useOfUnlisted returns the use of a program that is not listed, as far as its name, its first words and its
// options tell.
func useOfUnlisted(name string, args []Word) Use {
	use := Use{Reason: clip(name) + " is not listed"}
	gone, shown := verbsInWords(name, args[1:])
	if shown {
		use.Effects = append(use.Effects, effect.ReadSecret)
	}
	if gone {
		use.Effects = append(use.Effects, effect.ChangeRemote)
		use.Remote = Remote{Service: clip(name), Verb: "delete", Destroys: true}
	}
	return use
}

// verbsInWords reports whether the name of a program, its first words or an option contain a destructive verb, and
// whether they say that a secret is shown.
func verbsInWords(name string, words []Word) (gone, shown bool) {
	gone = len(words) > 0 && strings.Count(name, "-") > 1 && isDestroyVerb(name[strings.IndexByte(name, '-')+1:])
	before := ""
	for i, w := range words[:min(len(words), maxVerb)] {
		if w.Pattern || w.Text == "" {
			break
		}
		if hasPrefix(w.Text, "-") {
			gone = gone || destroyingOption(w.Text)
			continue
		}
		if strings.ContainsAny(w.Text, " \t\n/.=") {
			break
		}
		word := strings.ToLower(w.Text)
		gone = gone || i+1 < len(words) && isDestroyVerb(word)
		shown = shown || SecretWords[before] && ShowingVerbs[word] || ShowingVerbs[before] && SecretWords[word]
		before = word
	}
	return gone, shown
}

// destroyingOption reports whether an option is only a destructive verb, for everything: --nuke, --delete-all.
func destroyingOption(option string) bool {
	word := strings.ToLower(strings.TrimLeft(option, "-"))
	whole := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(word, "-all"), "-everything"), "-data")
	return len(option)-len(word) == 2 && (EndingVerbs[whole] || whole != word && DestroyingVerbs[whole])
}

// isDestroyVerb reports whether a word is a destructive verb, alone or with its object: delete-instance, db:drop.
func isDestroyVerb(word string) bool {
	word = strings.ToLower(word)
	first, last := word, word
	if i := strings.IndexAny(word, "-_:"); i > 0 {
		first, last = word[:i], word[strings.LastIndexAny(word, "-_:")+1:]
	}
	return DestroyingVerbs[first] || DestroyingVerbs[last]
}

// verbOf returns the action of the first verb among the words, nil if there is none. A word after an option counts,
// too, although it may be its value.
func verbOf(words []Word, lexicon *syntax) *action {
	for _, w := range words[:min(len(words), maxVerb)] {
		text := strings.ToLower(w.Text)
		if w.Pattern || text == "" || text[0] == '-' || strings.ContainsAny(text, " \t\n/.=") {
			continue
		}
		for _, part := range [...]string{text, text[strings.LastIndexAny(text, ":_-")+1:]} {
			if g := find(lexicon.subs, part); g != nil {
				return g.base
			}
			if g := findPrefixed(lexicon.subs, part, 0); g != nil {
				return g.base
			}
		}
	}
	return nil
}

// settingForm matches a variable with its value, or an object with such values.
var settingForm = prefilter.Lazy(`^(?:[A-Z_][A-Z0-9_]*|[A-Z][a-z]+=\{.*)=`)

// plainWords joins the words that are not prose: titles and messages may contain any word.
func plainWords(words []Word) Word {
	plain := make([]Word, 1, len(words)+1)
	size := 0
	for _, w := range words {
		if size += len(w.Text); size > maxTexts {
			break
		}
		if !strings.ContainsAny(w.Text, " \n") || strings.ContainsAny(w.Text[:1], "{[") || settingForm().MatchString(w.Text) {
			plain = append(plain, w)
		}
	}
	return joined(plain)
}

// namedPlaces adds the places in options that all programs share.
func (r *reader) namedPlaces() {
	for i, w := range r.args[1:] {
		name, value := w, Word{}
		if eq := strings.IndexByte(w.Text, '='); eq > 0 {
			name.Text, value = w.Text[:eq], cut(w, eq+1)
		} else if i+2 < len(r.args) {
			value = r.args[i+2]
		}
		if PlaceOptions[name.Text] && value.Text != "" && !strings.ContainsAny(value.Text, "{= ") { // settings, as in aws lambda, name no place
			r.places = append(r.places, value)
		}
	}
}

// areTestPlaces reports whether places are for development and tests by name: at least one says this, and none may
// be in production use or is unknown.
func areTestPlaces(places []Word) (target string, is bool) {
	for _, w := range places {
		if target == "" || !is {
			target = w.Text
		}
		if w.Pattern {
			return clip(w.Text), false
		}
		switch placeKind(w.Text) {
		case inUse:
			return clip(w.Text), false
		case forTrial:
			target, is = w.Text, true
		case ordinary:
		}
	}
	return clip(target), is
}

// A kind is the kind of a place, by its name.
type kind int

const (
	ordinary kind = iota
	forTrial
	inUse
)

// placeKind returns the kind of a place by its name, or by host and path of its URL.
func placeKind(s string) kind {
	s = strings.ToLower(s)
	if i := strings.Index(s, "://"); i >= 0 {
		s = s[i+3:]
		if at := strings.LastIndexByte(s, '@'); at >= 0 {
			s = s[at+1:]
		}
	}
	out := ordinary
	if host, _, _ := strings.Cut(s, "/"); effect.Loopback(effect.Host(host)) {
		out = forTrial
	}
	for part := range strings.FieldsFuncSeq(s, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') }) {
		switch part = strings.TrimRight(part, "0123456789"); {
		case PlacesInUse[part]:
			return inUse
		case TrialPlaces[part]:
			out = forTrial
		}
	}
	return out
}

// PlacesOf returns the environment variables that name the places on which a program works.
func PlacesOf(program string) []string { return placesOf()[program] }

var placesOf = sync.OnceValue(func() map[string][]string {
	out := map[string][]string{}
	for _, word := range sorted.Keys(PlaceVariables) {
		program, variable, _ := strings.Cut(word, "/")
		out[program] = append(out[program], variable)
	}
	return out
})
