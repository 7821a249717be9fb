package command

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
)

// anyService is the entry with the verbs and texts of all services.
const anyService = "any:service"

// severity orders what changes elsewhere mean, from the most.
var severity = [...]string{"delete", "grant", "expose", "weaken", "redirect", "run", "change"}

// noteVerb notes what a change elsewhere means; the most severe counts.
func (r *reader) noteVerb(verb string) {
	if verb != "" && (r.verb == "" || slices.Index(severity[:], verb) < slices.Index(severity[:], r.verb)) {
		r.verb = verb
	}
}

// change notes a change elsewhere, or of what comes from there.
func (r *reader) change(verb string) {
	r.effect(effect.ChangeRemote)
	r.noteVerb(verb)
}

// name is the program's name, as it is listed.
func (r *reader) name() string {
	_, name := baseName(r.args[0].Text)
	return name
}

// hereService is the service of subcommands that change this machine only.
const hereService = "here"

// service is what the program changes elsewhere, as its innermost subcommand that
// says so has it; "" if it is nothing elsewhere.
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

// maxVerb is how many words are looked at for a verb.
const maxVerb = 6

// elsewhere says what a change on another machine is: by the table, or by the
// verb and the texts that commands of all services share.
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

// noteServiceWords notes what the words of a service's program say where its table says
// nothing.
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

// At says that a program works on places that its arguments do not name, such as
// the value of a variable.
func (u *Use) At(places ...Word) {
	if len(places) > 0 && u.Remote.Service != "" {
		u.places = slices.Concat(u.places, places)
		u.at(true)
	}
}

// at says what a change is on the places that are known. One on a place for
// development or tests destroys nothing of note if it is one of a listed service.
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

// useOfUnlisted says what is known of a program that is not listed: what its name, its
// first words and its options tell.
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

// verbsInWords reports whether the name of a program, its first words or an option say
// that something is destroyed, and whether its words say that a secret is shown.
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

// destroyingOption reports whether an option is nothing but a verb that
// destroys, of everything: --nuke, --delete-all.
func destroyingOption(option string) bool {
	word := strings.ToLower(strings.TrimLeft(option, "-"))
	whole := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(word, "-all"), "-everything"), "-data")
	return len(option)-len(word) == 2 && (EndingVerbs[whole] || whole != word && DestroyingVerbs[whole])
}

// isDestroyVerb reports whether a word is a verb that destroys, or one with what
// it destroys: delete-instance, db:drop.
func isDestroyVerb(word string) bool {
	word = strings.ToLower(word)
	first, last := word, word
	if i := strings.IndexAny(word, "-_:"); i > 0 {
		first, last = word[:i], word[strings.LastIndexAny(word, "-_:")+1:]
	}
	return DestroyingVerbs[first] || DestroyingVerbs[last]
}

// verbOf returns what the first verb among the words means, nil if there is
// none. Words behind an option may be its value and count only if they are no
// reading verbs.
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

// settingForm matches a variable with its value, or an object of such.
var settingForm = prefilter.Lazy(`^(?:[A-Z_][A-Z0-9_]*|[A-Z][a-z]+=\{.*)=`)

// plainWords joins words that are no prose: titles and messages may say
// anything.
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

// namedPlaces adds the places that common options name.
func (r *reader) namedPlaces() {
	for i, w := range r.args[1:] {
		name, value := w, Word{}
		if eq := strings.IndexByte(w.Text, '='); eq > 0 {
			name.Text, value = w.Text[:eq], cut(w, eq+1)
		} else if i+2 < len(r.args) {
			value = r.args[i+2]
		}
		if PlaceOptions[name.Text] && value.Text != "" && !strings.ContainsAny(value.Text, "{= ") { // settings, as of aws lambda, name no place
			r.places = append(r.places, value)
		}
	}
}

// areTestPlaces reports whether places are for development and tests by their names:
// one says so, and none says that it is in use or is not known.
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

// A kind of place, by its name.
type kind int

const (
	ordinary kind = iota
	forTrial
	inUse
)

// placeKind tells a place by its name, or by host and path of its URL.
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

// PlacesOf returns the variables that name the places on which a program works.
func PlacesOf(program string) []string { return placesOf()[program] }

var placesOf = sync.OnceValue(func() map[string][]string {
	out := map[string][]string{}
	for _, word := range slices.Sorted(maps.Keys(PlaceVariables)) {
		program, variable, _ := strings.Cut(word, "/")
		out[program] = append(out[program], variable)
	}
	return out
})
