package command

import (
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/effect"
)

// anyServiceEntryName is the entry with the verbs and texts that all services share.
const anyServiceEntryName = "any:service"

// verbsBySeverity lists the verbs for remote changes, most severe first.
var verbsBySeverity = [...]string{"delete", "grant", "expose", "weaken", "redirect", "run", "change"}

// recordRemoteChangeVerb records the verb of a remote change; the most severe one is kept.
func (r *argParser) recordRemoteChangeVerb(verb string) {
	if verb != "" && (r.remoteChangeVerb == "" || slices.Index(verbsBySeverity[:], verb) < slices.Index(verbsBySeverity[:], r.remoteChangeVerb)) {
		r.remoteChangeVerb = verb
	}
}

// addChangeRemoteSystemEffect records an effect of kind [effect.ChangeRemoteSystem] with a verb, such as delete or
// weaken. The verb redirect means that data now comes from, or goes to, another host.
func (r *argParser) addChangeRemoteSystemEffect(verb string) {
	r.addEffect(effect.ChangeRemoteSystem)
	r.recordRemoteChangeVerb(verb)
}

// programName returns the program's name, without its folder.
func (r *argParser) programName() string {
	_, name := splitProgramPath(r.args[0].Text)
	return name
}

// localOnlySubcommandMarker marks subcommands that change only this machine.
const localOnlySubcommandMarker = "here"

// remoteService returns the remote service that the program changes, as its innermost subcommand
// with a service entry says; "" if there is none, or if that subcommand changes only this machine.
func (r *argParser) remoteService() string {
	for d := r.enteredSyntaxCount - 1; d >= 0; d-- {
		switch s := r.syntaxBySubcommandDepth[d].remoteService; s {
		case "":
		case localOnlySubcommandMarker:
			return ""
		default:
			return s
		}
	}
	return ""
}

// maxWordsSearchedForVerb is how many of a program's first arguments are searched for a verb, such as delete or
// show.
const maxWordsSearchedForVerb = 6

// deriveRemoteServiceChange records how the program changes a remote system. It uses the program's YAML
// entry, and the verbs and text patterns that apply to all services.
func (r *argParser) deriveRemoteServiceChange() {
	r.addRemoteChangesByHTTP()
	service := r.remoteService()
	if service != "" && r.programClassRank != readOnlyProgramClassRank && (r.activeActionFlags&actionFlagHTTPReadByDefault == 0 || slices.Contains(r.result.Effects, effect.ChangeRemoteSystem)) {
		lexicon := findEntry(programs[:], anyServiceEntryName)
		if verb := firstVerbAction(r.args[1:], lexicon); verb == nil || len(verb.effects) > 0 {
			if verb != nil && r.remoteChangeVerb == "" {
				r.applyAction(verb)
			}
			r.applyTextPatternActions(lexicon.argTextPatterns, joinWordsExceptFreeText(r.args[1:]))
		}
		r.addEffectsOfServiceVerbs()
	}
	if !slices.Contains(r.result.Effects, effect.ChangeRemoteSystem) {
		if service == "" || !slices.Contains(r.result.Effects, effect.DestroyData) {
			return
		}
		r.result.Effects = append(r.result.Effects, effect.ChangeRemoteSystem)
	}
	if slices.Contains(r.result.Effects, effect.DestroyData) {
		r.recordRemoteChangeVerb("delete")
	}
	r.recordRemoteChangeVerb("change")
	r.result.RemoteServiceChange = RemoteServiceChange{Service: service, Verb: r.remoteChangeVerb}
	switch {
	case r.controlledLocalService != "":
		r.result.RemoteServiceChange.Service = r.controlledLocalService
	case service == "":
		r.result.RemoteServiceChange.Service = r.programName()
	}
	r.addRemoteTargetsFromOptions()
	r.result.targetHostsAndDatabases = r.targetHostsAndDatabases
	r.result.setRemoteChangeTarget(service != "")
}

// addEffectsOfServiceVerbs searches the arguments of a remote service's program for verbs that delete data
// or show secrets, if the program's entry gives no effects for them.
func (r *argParser) addEffectsOfServiceVerbs() {
	if len(r.result.Effects) > 0 {
		return
	}
	gone, shown := hasDestroyOrShowSecretVerbs(r.programName(), r.args[1:])
	if shown {
		r.applyAction(&optionOrCommandAction{effects: []effect.Kind{effect.ReadSecret}})
	}
	if gone {
		r.addChangeRemoteSystemEffect("delete")
	}
}

// AddRemoteChangeTargets records places that a program works on but its arguments do not name, such as the value of a variable.
func (u *Interpretation) AddRemoteChangeTargets(places ...Word) {
	if len(places) > 0 && u.RemoteServiceChange.Service != "" {
		u.targetHostsAndDatabases = slices.Concat(u.targetHostsAndDatabases, places)
		u.setRemoteChangeTarget(true)
	}
}

// setRemoteChangeTarget sets the target of a remote change, and whether the change destroys data, from the
// hosts, databases, clusters and accounts in targetHostsAndDatabases. If their names say that they are for
// development or tests, the change destroys no important data. isServiceNamedBySyntax says that the program's
// entry names the service: only then is the effect DestroyData removed.
func (u *Interpretation) setRemoteChangeTarget(isServiceNamedBySyntax bool) {
	u.RemoteServiceChange.Target, u.RemoteServiceChange.IsTestTarget = areInTestEnvironment(u.targetHostsAndDatabases)
	if u.dropsTestDatabase && slices.ContainsFunc(u.targetHostsAndDatabases, func(w Word) bool {
		return w.IsGlobPattern || deploymentEnvironmentOf(w.Text) == productionDeploymentEnvironment
	}) {
		u.dropsTestDatabase, u.RemoteServiceChange.Verb = false, "delete"
		u.Effects = append(slices.Clone(u.Effects), effect.DestroyData)
	}
	u.RemoteServiceChange.Destroys = u.RemoteServiceChange.Verb == "delete" && !u.RemoteServiceChange.IsTestTarget
	if u.RemoteServiceChange.IsTestTarget && isServiceNamedBySyntax {
		u.Effects = slices.DeleteFunc(slices.Clone(u.Effects), func(k effect.Kind) bool { return k == effect.DestroyData })
	}
}

// interpretUnlisted returns the use of a program that is not listed, as far as its name, its first words and its
// options tell.
func interpretUnlisted(name string, args []Word) Interpretation {
	use := Interpretation{WhyNotUnderstood: shortenForMessage(name) + " is not listed"}
	gone, shown := hasDestroyOrShowSecretVerbs(name, args[1:])
	if shown {
		use.Effects = append(use.Effects, effect.ReadSecret)
	}
	if gone {
		use.Effects = append(use.Effects, effect.ChangeRemoteSystem)
		use.RemoteServiceChange = RemoteServiceChange{Service: shortenForMessage(name), Verb: "delete", Destroys: true}
	}
	return use
}

// hasDestroyOrShowSecretVerbs reports whether the name of a program, its first words or an option contain a destructive verb, and
// whether they say that a secret is shown.
func hasDestroyOrShowSecretVerbs(name string, words []Word) (hasDestroyVerb, hasShowSecretVerb bool) {
	hasDestroyVerb = len(words) > 0 && strings.Count(name, "-") > 1 && isDestroyVerb(name[strings.IndexByte(name, '-')+1:])
	before := ""
	for i, w := range words[:min(len(words), maxWordsSearchedForVerb)] {
		if w.IsGlobPattern || w.Text == "" {
			break
		}
		if hasPrefix(w.Text, "-") {
			hasDestroyVerb = hasDestroyVerb || isDestroyOption(w.Text)
			continue
		}
		if strings.ContainsAny(w.Text, " \t\n/.=") {
			break
		}
		word := strings.ToLower(w.Text)
		hasDestroyVerb = hasDestroyVerb || i+1 < len(words) && isDestroyVerb(word)
		hasShowSecretVerb = hasShowSecretVerb || SecretWords[before] && ShowingVerbs[word] || ShowingVerbs[before] && SecretWords[word]
		before = word
	}
	return hasDestroyVerb, hasShowSecretVerb
}

// isDestroyOption reports whether an option consists of a destructive verb, alone or followed by
// all, everything or data: --nuke, --delete-all.
func isDestroyOption(option string) bool {
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

// firstVerbAction returns the action of the first verb among the words, nil if there is none. A word after an option counts,
// too, although it may be its value.
func firstVerbAction(words []Word, lexicon *syntax) *optionOrCommandAction {
	for _, w := range words[:min(len(words), maxWordsSearchedForVerb)] {
		text := strings.ToLower(w.Text)
		if w.IsGlobPattern || text == "" || text[0] == '-' || strings.ContainsAny(text, " \t\n/.=") {
			continue
		}
		for _, part := range [...]string{text, text[strings.LastIndexAny(text, ":_-")+1:]} {
			if g := findEntry(lexicon.subcommands, part); g != nil {
				return g.unconditionalAction
			}
			if g := findLongestPrefix(lexicon.subcommands, part, 0); g != nil {
				return g.unconditionalAction
			}
		}
	}
	return nil
}

// environmentAssignmentPattern matches the assignment of a value to a variable, NAME=VALUE, also inside an object:
// Variables={NAME=VALUE}.
var environmentAssignmentPattern = prefilter.LazyRegexp(`^(?:[A-Z_][A-Z0-9_]*|[A-Z][a-z]+=\{.*)=`)

// joinWordsExceptFreeText joins the words that are not prose: titles and messages may contain any word.
func joinWordsExceptFreeText(words []Word) Word {
	plain := make([]Word, 1, len(words)+1)
	size := 0
	for _, w := range words {
		if size += len(w.Text); size > maxJoinedArgsBytes {
			break
		}
		if !strings.ContainsAny(w.Text, " \n") || strings.ContainsAny(w.Text[:1], "{[") || environmentAssignmentPattern().MatchString(w.Text) {
			plain = append(plain, w)
		}
	}
	return joinWords(plain)
}

// addRemoteTargetsFromOptions adds to targetHostsAndDatabases the values of the options in [PlaceOptions]. In every
// program, these options name a host, database, cluster, account or environment.
func (r *argParser) addRemoteTargetsFromOptions() {
	for i, w := range r.args[1:] {
		name, value := w, Word{}
		if eq := strings.IndexByte(w.Text, '='); eq > 0 {
			name.Text, value = w.Text[:eq], skipBytes(w, eq+1)
		} else if i+2 < len(r.args) {
			value = r.args[i+2]
		}
		if PlaceOptions[name.Text] && value.Text != "" && !strings.ContainsAny(value.Text, "{= ") { // a value such as {NAME=VALUE}, as aws lambda takes, is a setting and no target
			r.targetHostsAndDatabases = append(r.targetHostsAndDatabases, value)
		}
	}
}

// areInTestEnvironment reports whether remote targets, such as hosts, are for development or tests: at least one
// name says so, no name says production, and all names are known. target is the name that decided this, or else
// the last name.
func areInTestEnvironment(places []Word) (target string, is bool) {
	for _, w := range places {
		if target == "" || !is {
			target = w.Text
		}
		if w.IsGlobPattern {
			return shortenForMessage(w.Text), false
		}
		switch deploymentEnvironmentOf(w.Text) {
		case productionDeploymentEnvironment:
			return shortenForMessage(w.Text), false
		case testDeploymentEnvironment:
			target, is = w.Text, true
		case unknownDeploymentEnvironment:
		}
	}
	return shortenForMessage(target), is
}

// A deploymentEnvironment says whether the name of a host, database or other remote target is that of a test
// or production system.
type deploymentEnvironment int

const (
	unknownDeploymentEnvironment deploymentEnvironment = iota
	testDeploymentEnvironment
	productionDeploymentEnvironment
)

// deploymentEnvironmentOf returns the kind of a remote target, such as a host or database, according to the
// words in its name or URL.
func deploymentEnvironmentOf(s string) deploymentEnvironment {
	s = strings.ToLower(s)
	if i := strings.Index(s, "://"); i >= 0 {
		s = s[i+3:]
		if at := strings.LastIndexByte(s, '@'); at >= 0 {
			s = s[at+1:]
		}
	}
	out := unknownDeploymentEnvironment
	if host, _, _ := strings.Cut(s, "/"); effect.IsLoopbackHost(effect.CanonicalHost(host)) {
		out = testDeploymentEnvironment
	}
	for part := range strings.FieldsFuncSeq(s, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') }) {
		switch part = strings.TrimRight(part, "0123456789"); {
		case PlacesInUse[part]:
			return productionDeploymentEnvironment
		case TrialPlaces[part]:
			out = testDeploymentEnvironment
		}
	}
	return out
}

// EnvVariablesNamingTargets returns the environment variables that name the places on which a program works.
func EnvVariablesNamingTargets(program string) []string {
	return remoteTargetVariablesByProgram()[program]
}

var remoteTargetVariablesByProgram = sync.OnceValue(func() map[string][]string {
	out := map[string][]string{}
	for _, word := range sorted.Keys(PlaceVariables) {
		program, variable, _ := strings.Cut(word, "/")
		out[program] = append(out[program], variable)
	}
	return out
})
