// Package grounding extracts the objects that a user names in a prompt, with what should be done to
// them. It makes no decisions and reads only English. If in doubt, it leaves an object out.
package grounding

import (
	"slices"
	"strings"
	"unicode"

	"github.com/shieldcli/shield/internal/prefilter"
	"golang.org/x/text/unicode/norm"
)

// ObjectOperationSet is a set of kinds of operations that a user wants on an object.
type ObjectOperationSet uint8

// The kinds of operations.
const (
	OperationDelete ObjectOperationSet = 1 << iota
	OperationChange
	OperationSend
	OperationFetch
)

// A PromptNamedObject is an object that the user names in a prompt, such as a file or a host, with the
// operations that the user wants or forbids.
type PromptNamedObject struct {
	Name                        string             `json:"name"`           // canonical name, see [CanonicalObjectName]; in storage, a keyed hash of it
	ObjectKindNoun              string             `json:"noun,omitempty"` // canonical noun that the user gives for the object, such as branch or bucket; "" if the user gives none
	WantedOrForbiddenOperations ObjectOperationSet `json:"does"`
	AreOperationsForbidden      bool               `json:"not,omitempty"` // the user does not want the operation
	Quote                       string             `json:"said"`          // the user's words, shortened
}

// AllObjects is a name that matches all objects named before; it is used when the user retracts a request.
const AllObjects = "*"

// Limits of a prompt.
const (
	maxPromptBytes          = 8 << 10 // bytes that are read; of a longer prompt only the first line counts
	maxFullyReadPromptRunes = 600     // maximum characters of a prompt that is read in full; of a longer prompt only the first line is read
	maxFullyReadPromptLines = 8
	maxNamedObjects         = 32
	maxObjectNameBytes      = 200
	maxQuoteBytes           = 80
)

// ExtractObjectsAndNames returns the objects that a prompt names together with a verb, each with
// the operation, and also all names of any kind, at most maxNames.
func ExtractObjectsAndNames(prompt string, maxNames int) (objects []PromptNamedObject, allNames []string) {
	if len(prompt) > maxPromptBytes {
		prompt = prompt[:maxPromptBytes]
	}
	text := userWrittenText(prompt)
	allNames, _ = NamesInText(text, maxNames)
	var about []PromptNamedObject // objects of the last sentence that had any
	reported := false             // the next sentences report somebody else's words, which can forbid but not request
	for _, sentence := range splitSentences(text) {
		taken := retraction().MatchString(sentence)
		if taken { // a retraction also covers names in the same sentence before it
			objects = slices.DeleteFunc(objects, func(n PromptNamedObject) bool { return !n.AreOperationsForbidden || n.Name == AllObjects })
			objects = slices.Insert(objects, 0, PromptNamedObject{Name: AllObjects, AreOperationsForbidden: true})
		}
		for _, n := range namedObjectsOfSentence(sentence, &about) {
			if (taken || reported) && !n.AreOperationsForbidden {
				continue
			}
			if len(objects) == maxNamedObjects {
				return objects, allNames
			}
			if !slices.Contains(objects, n) {
				objects = append(objects, n)
			}
		}
		reported = reported || strings.HasSuffix(sentence, ":") && slices.ContainsFunc(lowerWords(splitWords(sentence)), func(w string) bool { return quoteIntroductions(w) })
	}
	return objects, allNames
}

// CanonicalObjectName returns a name in the form in which names are compared; "" for a name that is not compared.
func CanonicalObjectName(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	if len(name) > 1 {
		name = strings.TrimRight(name, "/")
	}
	name = strings.TrimPrefix(name, "./")
	if name == "" || len(name) > maxObjectNameBytes || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return name
}

var (
	fencedText       = prefilter.LazyRegexp("(?s)```.*?(```|$)|~~~.*?(~~~|$)|<[a-zA-Z_-]+[^>]*>.*?(</[a-zA-Z_-]+>|$)")
	doubleQuotedText = prefilter.LazyRegexp("[\"“”«»„][^\"“”«»„\\n]*[\"“”«»„]|`[^`\\n]*\\s[^`\\n]*`")
	singleQuotedText = prefilter.LazyRegexp(`(^|[\s(])'[^'\n]*\s[^'\n]*'($|[\s).,;:!?])`) // does not match an apostrophe, as in don't
	logLine          = prefilter.LazyRegexp(`^\s*(>|\||\$ |#|\d{4}-\d\d-\d\d|\d\d:\d\d|\[?(ERROR|WARN|INFO|DEBUG|TRACE|error|warning)\b|at \S+\(|Traceback|File "|diff |[+-]{3} |@@)`)
	markupTag        = prefilter.LazyRegexp(`<[a-zA-Z_/!-]`)
)

// userWrittenText returns the parts of a prompt that its author certainly wrote: without code fences, quotes of
// more than one word, and log lines; of a long prompt the first line. It returns "" for a prompt that begins
// with markup.
func userWrittenText(prompt string) string {
	prompt = strings.ReplaceAll(prompt, "\r\n", "\n")
	long := len([]rune(prompt)) > maxFullyReadPromptRunes || strings.Count(strings.TrimSpace(prompt), "\n") >= maxFullyReadPromptLines
	if markupTag().MatchString(prompt) && strings.HasPrefix(strings.TrimSpace(prompt), "<") {
		return "" // a prompt that begins with markup is the output of another program
	}
	prompt = fencedText().ReplaceAllString(prompt, "\n")
	var lines []string
	for line := range strings.SplitSeq(prompt, "\n") {
		if logLine().MatchString(line) {
			lines = append(lines, "")
			continue
		}
		line = singleQuotedText().ReplaceAllString(line, " , ")
		line = doubleQuotedText().ReplaceAllStringFunc(line, func(q string) string {
			runes := []rune(q)
			inside := strings.TrimSpace(string(runes[1 : len(runes)-1]))
			if inside != "" && !strings.ContainsFunc(inside, unicode.IsSpace) {
				return " " + inside + " " // a quoted name
			}
			return " , "
		})
		if strings.TrimSpace(line) == "" {
			continue
		}
		lines = append(lines, line)
		if long {
			break
		}
	}
	return strings.Join(lines, "\n")
}

// retraction matches words by which a user retracts what was said before.
var retraction = prefilter.LazyRegexp(`(?i)\b(never ?mind|scratch that|forget (it|that|about it|what i said|my last)|(wait|hold on|hang on|no|stop),? (no|wait|stop|hold on)\b|stop (it|that|everything|right there)\b|hold off|changed my mind|on second thoughts?|cancel that|ignore (that|what i said|my last))`)

var sentenceEnd = prefilter.LazyRegexp(`[.!;:]+(\s+|$)|\n+|(\?)\s*|,?\s+(?:but|however|instead)\s+|—|–|→|->|=>`)

// splitSentences splits a text into sentences. A sentence keeps a question mark or colon at its end.
func splitSentences(text string) (out []string) {
	at := 0
	for _, m := range sentenceEnd().FindAllStringSubmatchIndex(text, -1) {
		end := m[0]
		if m[4] >= 0 {
			end = m[5]
		} else if text[end] == ':' {
			end++
		}
		if s := strings.TrimSpace(text[at:end]); s != "" {
			out = append(out, s)
		}
		at = m[1]
	}
	if s := strings.TrimSpace(text[at:]); s != "" {
		out = append(out, s)
	}
	return out
}

// splitWords returns the words of a sentence.
func splitWords(sentence string) []string {
	fields := strings.Fields(strings.NewReplacer("(", " ", ")", " ", "`", " ", "\"", " ").Replace(sentence))
	out := make([]string, 0, 2*len(fields))
	for _, w := range fields {
		comma := strings.HasSuffix(w, ",")
		w = strings.TrimLeft(strings.TrimRight(w, ",.!?;:'’*"), ",!?;:'’*")
		if w == "" || w == "-" {
			continue
		}
		out = append(out, w)
		if comma {
			out = append(out, ",")
		}
	}
	return out
}

// namedObjectsOfSentence returns the objects that one sentence names. lastNamedObjects are the
// objects of the last sentence that named any, to which "it" refers; they are updated.
func namedObjectsOfSentence(sentence string, lastNamedObjects *[]PromptNamedObject) (out []PromptNamedObject) {
	list := splitWords(replacePhrasesWithVerbs(sentence))
	if len(list) == 0 || strings.ContainsFunc(norm.NFKC.String(sentence), func(r rune) bool { return r > unicode.MaxASCII && unicode.IsLetter(r) }) {
		return nil // the sentence has no words, or has a letter that is not ASCII: it may be in another language or have look-alike letters
	}
	lower := lowerWords(list)
	asks := strings.HasSuffix(sentence, "?") && !isQuestionRequestingOperation(lower)
	if asks || conditionStarts(lower[0]) && !isQuestionRequestingOperation(lower) {
		return nil
	}
	said := sentence
	if len(said) > maxQuoteBytes {
		said = said[:maxQuoteBytes]
	}
	negated := false
	before := *lastNamedObjects
	topic := splitWords(parenthesizedText().ReplaceAllString(sentence, " "))
	if mentioned := possiblePronounReferents(topic, lowerWords(topic)); len(mentioned) > 0 {
		*lastNamedObjects = mentioned
	} else if mentioned := possiblePronounReferents(list, lower); len(mentioned) > 0 {
		*lastNamedObjects = mentioned
	}
	var does ObjectOperationSet
	governed := false // the verb does not request the operation, as in: explain how to …
	ends := false     // whether governed becomes false at the next comma, "and", "then" or "please"
	fresh := true     // a requested operation can begin here
	first := false    // no object has followed the last operation yet, or the last negation with a preposition
	apart := false    // a comma has followed the negation
	within := false   // the next words say where, and are not the object
	for i, w := range lower {
		if requestVerbs()[w] != 0 || w == "," || w == "and" {
			within = false
		} else if placePrepositions(w) && does&OperationDelete != 0 && !negated && (w != "at" || len(out) > 0) { // a place follows, not an object to delete, as in: delete all keys in redis-1
			within = true
		}
		switch {
		case wordsMarkingNonEnglishSentences(w):
			return nil
		case pastParticiples()[w] != 0 && i > 0 && lower[i-1] == "be" && !governed: // a request in the passive, as in: main-1 must be deleted
			from, not := participleSubjectStart(lower, i)
			if !not && !negated && (!obligationModals(lower[max(i-2, 0)]) || i+1 < len(lower) && lower[i+1] == "by" || slices.ContainsFunc(lower[:i], func(w string) bool { return reportedSpeechWords(w) && w != "that" || w == "that" && lower[0] != "that" })) {
				does, fresh = 0, false
				continue
			}
			for _, n := range possiblePronounReferents(list[from:i], lower[from:i]) {
				out = append(out, PromptNamedObject{Name: n.Name, ObjectKindNoun: n.ObjectKindNoun, WantedOrForbiddenOperations: pastParticiples()[w], AreOperationsForbidden: not, Quote: said})
			}
			if does, fresh = 0, false; negated { // the objects can follow the participle, as in: nothing may be deleted on db-1
				does = pastParticiples()[w]
			}
			continue
		case w == "let" && fresh && !governed && i+2 < len(lower) && lower[i+2] == "know":
			does, fresh, first = OperationSend, false, true
			continue
		case (pronouns[w] || refersToEarlierObject(lower, i)) && does != 0 && (first || negated) && !governed: // delete it
			of := before
			if here := possiblePronounReferents(list[:i], lower[:i]); len(here) > 0 {
				of = here
			}
			if noun := objectNouns()[w]; noun != "" && !areNamesOfOneMention(of) {
				of = slices.DeleteFunc(slices.Clone(of), func(n PromptNamedObject) bool {
					return n.ObjectKindNoun != noun && (n.ObjectKindNoun != "" || strings.Contains(n.Name, ".") != (noun == "host"))
				})
			}
			if telling := slices.DeleteFunc(slices.Clone(of), func(n PromptNamedObject) bool { return !isCertainlyObjectName(n.Name) }); len(telling) > 0 && !negated {
				of = telling
			}
			if areNamesOfOneMention(of) || negated {
				for _, n := range of {
					out = append(out, PromptNamedObject{Name: n.Name, ObjectKindNoun: n.ObjectKindNoun, WantedOrForbiddenOperations: does, AreOperationsForbidden: negated, Quote: said})
				}
			}
			first = false
			continue
		case negatesFollowingWords(lower, i):
			negated, fresh, apart = true, true, false
			first = i+1 < len(lower) && (lower[i+1] == "to" || lower[i+1] == "on" || lower[i+1] == "in" || lower[i+1] == "from")
			continue
		case statementStarts(w) && does == 0 && !governed: // the start of a statement, which requests nothing, as in: this could delete main-1
			fresh = false
			continue
		case w == "," || w == "and" || w == "then" || w == "please":
			fresh, governed, apart = true, governed && !ends, apart || w == ","
			continue
		case governed && relativeWords(w) && (w != "to" || i+1 < len(lower) && (requestVerbs()[lower[i+1]] != 0 || !ends)):
			ends = false
		case w == "to" && i+1 < len(lower) && requestVerbs()[lower[i+1]] != 0 && does != 0: // write a script to delete …
			governed, ends, does, fresh = true, false, 0, false
			continue
		case w == "to" && !governed && i > 0 && wordsBeforeToAndRequestVerb(lower[i-1]):
			fresh = true
			continue
		case discussionVerbs(w) && fresh:
			governed, ends, does, fresh = true, false, 0, false
			continue
		case codingTaskVerbs(w) && fresh:
			governed, ends, does, fresh = true, true, 0, false
			continue
		}
		if d := inflectedVerbs()[w]; negated && d != 0 && requestVerbs()[w] == 0 {
			does, governed, first = d, false, true
			continue
		}
		if d, ok := requestVerbs()[w]; ok && (fresh || negated) && !(i > 0 && determiners(lower[i-1])) && !(i+1 < len(lower) && lower[i+1] == "branch" && i > 0 && lower[i-1] == "the") {
			if w == "push" && i > 0 && (lower[i-1] == "force" || strings.HasPrefix(lower[i-1], "--force")) {
				d |= OperationDelete
			}
			if !governed || lower[max(i-1, 0)] == "then" {
				does, governed, first = d, false, true
			}
			if i+1 == len(lower) && i == 0 && !governed && areNamesOfOneMention(before) { // …: delete
				for _, n := range before {
					out = append(out, PromptNamedObject{Name: n.Name, ObjectKindNoun: n.ObjectKindNoun, WantedOrForbiddenOperations: does, AreOperationsForbidden: negated, Quote: said})
				}
			}
			if fresh = w == "force" || w == "force-push"; w == "force-push" {
				fresh = false
			}
			continue
		}
		if strings.HasPrefix(w, "--delete") && does != 0 || w == "--force" || w == "--force-with-lease" {
			does |= OperationDelete
		}
		if fillerWords(w) || fresh && (cliProgramNames(w) || objectNouns()[w] != "" && i > 0 && cliProgramNames(lower[i-1])) {
			continue
		}
		fresh = false
		if does == 0 || governed {
			continue
		}
		name, noun, ok := objectNameAt(list, lower, i, negated && first && !apart)
		first = first && objectNouns()[w] != ""
		if !ok {
			continue
		}
		of := namesImpliedByUserGivenName(name, does)
		if len(of) == 0 && negated {
			of = []PromptNamedObject{{Name: name, WantedOrForbiddenOperations: does}}
		}
		for _, n := range of {
			if within && !negated {
				n.WantedOrForbiddenOperations &^= OperationDelete
			}
			if n.WantedOrForbiddenOperations != 0 {
				out = append(out, PromptNamedObject{Name: n.Name, ObjectKindNoun: noun, WantedOrForbiddenOperations: n.WantedOrForbiddenOperations, AreOperationsForbidden: negated, Quote: said})
			}
		}
	}
	return markZeroScalingAsDelete(lower, out)
}

// parenthesizedText matches text in parentheses.
var parenthesizedText = prefilter.LazyRegexp(`\([^()]*\)`)

func lowerWords(list []string) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = strings.ToLower(w)
	}
	return out
}

// refersToEarlierObject reports whether a noun refers to an object mentioned before, as in: that queue.
func refersToEarlierObject(lower []string, nounIndex int) bool {
	return objectNouns()[lower[nounIndex]] != "" && nounIndex > 0 && (lower[nounIndex-1] == "that" || lower[nounIndex-1] == "this" || lower[nounIndex-1] == "the" && (nounIndex+1 == len(lower) || lower[nounIndex+1] == ","))
}

// markZeroScalingAsDelete adds Delete to the objects of a sentence that asks to scale them to zero.
func markZeroScalingAsDelete(lowerWords []string, objects []PromptNamedObject) []PromptNamedObject {
	at := slices.Index(lowerWords, "scale")
	for i := max(at, 0); at >= 0 && i+1 < len(lowerWords); i++ {
		if lowerWords[i] == "to" && (lowerWords[i+1] == "zero" || lowerWords[i+1] == "0") {
			for k := range objects {
				objects[k].WantedOrForbiddenOperations |= OperationDelete
			}
		}
	}
	return objects
}

// determiners are words before nouns. A verb after one is a noun: the push to main-1 fails.
var determiners = wordSet("the a an this that every each our my your their its last first previous")

// areNamesOfOneMention reports whether all names come from one mention of an object.
func areNamesOfOneMention(list []PromptNamedObject) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(n PromptNamedObject) bool { return n.Quote != list[0].Quote })
}

// participleSubjectStart returns the index at which the subject of a participle begins, and whether the participle is
// negated.
func participleSubjectStart(lower []string, participleIndex int) (from int, isNegated bool) {
	modal := false
	for from = participleIndex - 1; from > 0; from-- {
		switch w := lower[from]; {
		case negationWords(w) || strings.HasSuffix(w, "n't") || w == "cannot":
			isNegated, modal = true, true
		case modalVerbs(w):
			modal = true
		case modal && (w == "," || w == "and" || w == "so" || w == "means" || w == "because" || w == "since" || w == "but"):
			return from + 1, isNegated
		}
	}
	if !modal {
		return participleIndex, false
	}
	return from, isNegated
}

// possiblePronounReferents returns the names in a sentence to which a pronoun may refer. Names from the same
// mention have the same Quote.
func possiblePronounReferents(words, wordsInLowerCase []string) (out []PromptNamedObject) {
	for i := range wordsInLowerCase {
		if name, noun, ok := objectNameAt(words, wordsInLowerCase, i, false); ok && !fillerWords(wordsInLowerCase[i]) && !cliProgramNames(wordsInLowerCase[i]) && ObjectOperationSet(0) == requestVerbs()[wordsInLowerCase[i]] {
			for _, n := range namesImpliedByUserGivenName(name, OperationDelete|OperationChange|OperationSend|OperationFetch) {
				out = append(out, PromptNamedObject{Name: n.Name, ObjectKindNoun: noun, Quote: words[i]})
			}
		}
	}
	return out
}

// namesImpliedByUserGivenName returns the names that an action may use for an object named by the user,
// including the given one, each with the operations on it. For a URL these are the URL without its scheme, the
// host alone, and the first two segments of the path.
func namesImpliedByUserGivenName(userGivenName string, operations ObjectOperationSet) (out []PromptNamedObject) {
	add := func(name string, does ObjectOperationSet) {
		if name = CanonicalObjectName(name); name != "" && does != 0 && !slices.ContainsFunc(out, func(n PromptNamedObject) bool { return n.Name == name }) {
			out = append(out, PromptNamedObject{Name: name, WantedOrForbiddenOperations: does})
		}
	}
	if at := strings.IndexByte(userGivenName, '@'); at > 0 && !strings.ContainsAny(userGivenName, "/:") && operations&OperationDelete == 0 { // without OperationDelete, a mail address counts only if OperationSend is the only operation
		if operations != OperationSend {
			return nil
		}
	}
	_, rest, isURL := strings.Cut(userGivenName, "://")
	if !isURL {
		rest = userGivenName
	}
	rest = strings.TrimSuffix(rest, "/")
	add(rest, operations)
	host, path, _ := strings.Cut(rest, "/")
	at, file, remote := strings.Cut(host, ":")
	_, at, _ = cutLast(at, "@")
	switch place := operations &^ OperationDelete; { // the host of a page gets all operations except OperationDelete: deleting a page does not delete its host
	case strings.HasPrefix(userGivenName, "@"), strings.HasPrefix(userGivenName, "/"), strings.HasPrefix(userGivenName, "~"):
	case isURL && path == "":
		add(at, operations)
	case isURL:
		add(at, place|OperationFetch)
		folders := strings.SplitN(strings.TrimSuffix(path, ".git"), "/", 3)
		add(strings.Join(folders[:min(len(folders), 2)], "/"), operations)
	case remote && file != "" && strings.Contains(at, "."), path != "" && strings.Contains(strings.TrimPrefix(host, "."), ".") && !strings.HasPrefix(host, "."):
		add(at, place)
		if path != "" && remote {
			folders := strings.SplitN(strings.TrimSuffix(path, ".git"), "/", 3)
			add(strings.Join(folders[:min(len(folders), 2)], "/"), operations)
		}
	}
	return out
}

// pronouns refer to objects mentioned before.
var pronouns = map[string]bool{"it": true, "them": true, "both": true, "her": true, "him": true}

// cliProgramNames are the first words of commands that people write as sentences.
var cliProgramNames = wordSet("kubectl git gh helm aws gcloud az gsutil docker podman npm pnpm yarn psql mysql terraform heroku vercel fly flyctl doctl twine cargo curl wget rsync-cli mongosh redis-cli systemctl")

// isQuestionRequestingOperation reports whether a question asks for an operation.
func isQuestionRequestingOperation(lowerCaseWords []string) bool {
	return slices.Contains([]string{"can", "could", "will", "would", "please"}, lowerCaseWords[0]) && len(lowerCaseWords) > 2 && (lowerCaseWords[1] == "you" || lowerCaseWords[0] == "please")
}

// negatesFollowingWords reports whether the words at an index negate what follows.
func negatesFollowingWords(lower []string, wordIndex int) bool {
	w := lower[wordIndex]
	if w == "stop" && wordIndex+1 < len(lower) {
		return strings.HasSuffix(lower[wordIndex+1], "ing")
	}
	return negationWords(w) || w == "save" && wordIndex+1 < len(lower) && lower[wordIndex+1] == "for" || w == "apart" && wordIndex+1 < len(lower) && lower[wordIndex+1] == "from" || strings.HasSuffix(w, "n't") || strings.HasSuffix(w, "n’t") || w == "leave" && slices.Contains(lower[wordIndex:], "alone") || w == "stay" && slices.Contains(lower[wordIndex:], "away") ||
		w == "hands" && wordIndex+1 < len(lower) && lower[wordIndex+1] == "off" || w == "other" && wordIndex+1 < len(lower) && lower[wordIndex+1] == "than" || w == "rather" && wordIndex+1 < len(lower) && lower[wordIndex+1] == "than"
}

// objectNameAt returns the name of the object at word i, and the noun the user gives for it. If
// acceptsDictionaryWords is true, words of the dictionary are accepted as names too.
func objectNameAt(words, lowerWords []string, i int, acceptsDictionaryWords bool) (name, noun string, ok bool) {
	w := words[i]
	if lowerWords[i] == "," || objectNouns()[lowerWords[i]] != "" || nonNameWords(lowerWords[i]) {
		return "", "", false
	}
	if !acceptsDictionaryWords && serviceNames(lowerWords[i]) && i+1 < len(lowerWords) && objectNouns()[lowerWords[i+1]] != "" {
		return "", "", false
	}
	for _, k := range [...]int{i - 1, i + 1} { // the branch main, the main branch
		if k >= 0 && k < len(lowerWords) && objectNouns()[lowerWords[k]] != "" && noun == "" {
			noun = objectNouns()[lowerWords[k]]
		}
	}
	if i >= 2 && lowerWords[i-1] == "called" || i >= 2 && lowerWords[i-1] == "named" {
		noun = objectNouns()[lowerWords[i-2]]
	}
	if strings.HasPrefix(w, "@") && strings.Contains(w, "/") && strings.Contains(w, ".") && !strings.Contains(w[1:], "@") {
		w = w[1:] // @file: a reference to a file
	}
	name = CanonicalObjectName(w)
	if name == "" || !canonicalObjectNamePattern().MatchString(name) {
		return "", "", false
	}
	if scheme, rest, isURL := strings.Cut(name, "://"); isURL {
		return name, noun, scheme != "" && rest != ""
	}
	if noun == "" && !isCertainlyObjectName(name) && !(acceptsDictionaryWords && len(name) > 2) {
		return "", "", false
	}
	return name, noun, true
}

// isCertainlyObjectName reports whether a word is certainly a name and not a word of the dictionary.
func isCertainlyObjectName(word string) bool {
	return strings.ContainsAny(word, "./_-@~0123456789") && len(word) >= 5 && strings.ContainsFunc(word, unicode.IsLetter)
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

var canonicalObjectNamePattern = prefilter.LazyRegexp(`^[a-z0-9~./_@][a-z0-9~./_@:+=#-]*$`)
