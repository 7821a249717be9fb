package grounding

import (
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/knowledge"
)

func wordSet(text string) func(word string) bool {
	words := sync.OnceValue(func() map[string]bool {
		out := map[string]bool{}
		for w := range strings.FieldsSeq(text) {
			out[w] = true
		}
		return out
	})
	return func(word string) bool { return words()[word] }
}

// requestVerbs maps verbs that request an operation on an object, in the imperative, to the operation.
var requestVerbs = sync.OnceValue(func() map[string]ObjectOperationSet {
	out := map[string]ObjectOperationSet{}
	for list, does := range map[string]ObjectOperationSet{
		"asked_delete":    OperationDelete,
		"asked_change":    OperationChange,
		"asked_overwrite": OperationChange | OperationDelete,
		"asked_upload":    OperationChange | OperationSend,
		"asked_send":      OperationSend,
		"asked_fetch":     OperationFetch,
		"asked_connect":   OperationFetch | OperationChange | OperationSend,
	} {
		for _, w := range knowledge.VerbsIn(list) {
			out[w] |= does
		}
	}
	return out
})

// objectNouns maps the nouns for kinds of objects to their canonical form.
var objectNouns = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for noun, text := range map[string]string{
		"branch": "branch branches", "remote": "remote remotes", "bucket": "bucket buckets", "database": "database databases db schema", "cluster": "cluster clusters context",
		"namespace": "namespace namespaces ns", "host": "host hosts server servers machine domain endpoint url", "file": "file files", "folder": "folder folders directory directories dir",
		"table": "table tables", "repository": "repo repos repository repositories", "package": "package packages", "channel": "channel channels", "person": "person recipient",
		"resource": "service services svc deployment deployments deploy pod pods container containers volume volumes instance instances stack stacks queue queues topic topics function functions image images secret secrets job jobs release releases environment " +
			"environments env project projects tag tags workspace workspaces droplet droplets app apps site statefulset daemonset cronjob ingress configmap pvc pv node nodes chart charts workflow workflows pipeline vm vms disk snapshot snapshots group groups zone index collection",
	} {
		for w := range strings.FieldsSeq(text) {
			out[w] = noun
		}
	}
	return out
})

// ClassifyWord reports whether a word of a command names a kind of object (isNoun) or an operation
// (isOperation). isKnown also covers nouns that only occur in commands.
func ClassifyWord(w string) (isNoun, isOperation, isKnown bool) {
	isNoun, isOperation = objectNouns()[w] != "", requestVerbs()[w] != 0
	return isNoun, isOperation, isNoun || isOperation || commandOnlyNouns(w)
}

// commandOnlyNouns are words for kinds of objects that only occur in commands.
var commandOnlyNouns = wordSet("compute sql s3api webapp functionapp run rollout pr issue workflow ns svc sts ds deploy cron alb elb rds ec2 ecs eks gke aks container-registry")

// phraseToVerbReplacer replaces phrases by a single verb with the same meaning.
var phraseToVerbReplacer = sync.OnceValue(func() *strings.Replacer {
	var list []string
	for phrase, word := range map[string]string{
		"get rid of": "remove", "getting rid of": "removing", "tear down": "remove", "blow away": "remove", "take down": "remove", "throw away": "remove", "throw out": "remove", "clean out": "clear", "clean up": "clear",
		"wipe out": "wipe", "spin down": "stop", "shut down": "stop", "turn off": "stop", "switch off": "stop", "kick off": "start", "fire up": "start", "spin up": "start", "roll out": "deploy", "roll back": "rollback",
		"hard reset": "reset", "hard-delete": "delete",
		"go ahead and": "and", "feel free to": "and", "needs to be": "must be", "need to be": "must be", "has to be": "must be", "have to be": "must be", "is to be": "must be", "are to be": "must be", "ought to be": "must be",
		"should go": "should be deleted", "must go": "must be deleted", "should disappear": "should be deleted", "must disappear": "must be deleted", "has to go": "must be deleted", "needs to go": "must be deleted", "may not be": "must not be", " = ": ", ",
	} {
		list = append(list, phrase, word, strings.ToUpper(phrase[:1])+phrase[1:], strings.ToUpper(word[:1])+word[1:])
	}
	return strings.NewReplacer(list...)
})

// splitPhrasalVerbPattern matches a phrasal verb, such as take down, with a name between its words: take
// NAME down.
var splitPhrasalVerbPattern = prefilter.LazyRegexp(`(?i)\b(take|tear|shut|roll|throw|spin|turn|switch|write|drop|shoot)\s+((?:an?\s+(?:e-?mail|message|note|line)\s+)?to\s+)?([\w~./@:-]+)\s*(down|back|away|off|out|a line|a mail|an e-?mail|a message)?\b`)

// httpRequestPhrase matches a phrase for an HTTP request.
var httpRequestPhrase = prefilter.LazyRegexp(`(?i)\b(?:make|send|do|issue|fire)\s+(?:an?|the)\s+(post|get|put|patch|delete)(?:\s+request)?\s+(?:to|on|at)\b`)

// replacePhrasesWithVerbs returns a sentence with phrases replaced by single verbs.
func replacePhrasesWithVerbs(sentence string) string {
	return splitPhrasalVerbPattern().ReplaceAllStringFunc(httpRequestPhrase().ReplaceAllString(phraseToVerbReplacer().Replace(sentence), ", $1"), func(text string) string {
		m := splitPhrasalVerbPattern().FindStringSubmatch(text)
		verb, to, object, end := strings.ToLower(m[1]), m[2], m[3], strings.ToLower(m[4])
		switch {
		case verb == "write" && to != "" && strings.Contains(object, "@"), (verb == "drop" || verb == "shoot") && strings.Contains(object, "@"):
			return "mail " + object + " "
		case to != "" || end == "":
		case verb == "roll" && end == "back":
			return "rollback " + object + " "
		case verb == "take" && end == "down", verb == "tear" && end == "down", verb == "throw" && (end == "away" || end == "out"):
			return "remove " + object + " "
		case verb == "shut" && end == "down", verb == "spin" && end == "down", (verb == "turn" || verb == "switch") && end == "off":
			return "stop " + object + " "
		}
		return text
	})
}

// pastParticiples maps the past participles of request verbs, such as deleted, to their operations.
var pastParticiples = sync.OnceValue(func() map[string]ObjectOperationSet {
	out := map[string]ObjectOperationSet{"sent": OperationSend, "put": OperationChange | OperationSend, "set": OperationChange, "reset": OperationDelete, "overwritten": OperationChange | OperationDelete, "cut": OperationDelete, "written": OperationChange, "shut": OperationChange}
	for w, does := range requestVerbs() {
		switch {
		case strings.HasSuffix(w, "e"):
			out[w+"d"] = does
		default:
			out[w+"ed"] = does
			out[w+w[len(w)-1:]+"ed"] = does // dropped
		}
	}
	return out
})

// inflectedVerbs maps other forms of request verbs, such as deletes and deleting, to their operations. These
// forms count only after a negation, as in "without deleting" or "no pushes".
var inflectedVerbs = sync.OnceValue(func() map[string]ObjectOperationSet {
	out := map[string]ObjectOperationSet{}
	for w, does := range requestVerbs() {
		out[w+"s"], out[w+"es"] = does, does
		out[w+"ing"], out[w+w[len(w)-1:]+"ing"], out[strings.TrimSuffix(w, "e")+"ing"] = does, does, does
	}
	return out
})

// modalVerbs precede "be" and a participle.
var modalVerbs = wordSet("can could should must may shall will cannot")

// placePrepositions are prepositions before a place.
var placePrepositions = wordSet("from in on inside within at")

// obligationModals are words with which a user asks for something. quoteIntroductions can precede a
// colon and a quotation, and reportedSpeechWords show that a sentence reports what other people
// say.
var (
	obligationModals   = wordSet("should must")
	quoteIntroductions = wordSet("say says said claim claims claimed report reports reported suggest suggests suggested states stated mentions mentioned recommends recommended ticket issue docs documentation page comment " +
		"wrote write writes written mail mails email emails message messages sent asked asks log logs output chat thread quote quoted reply answer answered told tells")
	reportedSpeechWords = wordSet("say says said claim claims claimed report reports reported suggest suggests suggested think thinks believe believes states stated mentions mentioned recommends recommended wants ticket issue docs documentation page comment that whether if when because how why")
)

var (
	// wordsBeforeToAndRequestVerb are words that can precede "to" and a request verb, as in: I want you to
	// delete.
	wordsBeforeToAndRequestVerb = wordSet("want need like have going ahead you remember sure us")

	// discussionVerbs are verbs that turn what follows into a text, a question or a plan.
	discussionVerbs = wordSet("explain describe document show tell-me discuss review plan simulate draft figure list why how what whether consider think understand summarize summarise compare translate " +
		"pretend imagine suppose research say quote print echo propose suggest ask")

	// codingTaskVerbs are verbs for other work than the operations that a prompt can request, such
	// as deleting. A request verb that depends on one of them does not count: in "fix the code that
	// deletes x", nothing is to be deleted.
	codingTaskVerbs = wordSet("fix implement create build generate make find investigate analyze analyse debug refactor run finish complete add install bump lint format")
	relativeWords   = wordSet("that which who to how when for whose so")

	// conditionStarts begin clauses about what is not requested.
	conditionStarts = wordSet("if when whenever unless suppose assuming once while after before until because since although though why how what who which where whether should does did is are was were has had would")

	// statementStarts begin a statement, which requests nothing.
	statementStarts = wordSet("this that these those it its he she they there i've i'm we've we're you've you're it's that's there's which who")

	// fillerWords are words without meaning before a request verb or an object.
	fillerWords = wordSet("can could will would you i we i'd i'll let's lets let just now also so ok okay go ahead the a an this that these those my our your all any both of on in into from at with to for via up out off away down over it its them and/or " +
		"please pls plz oops hey hi thanks great good right kindly simply first next finally again old new whole entire current local remote-side everything except")

	// serviceNames are names of services, as in: the GitHub release v1.0.
	serviceNames = wordSet("github gitlab bitbucket aws amazon azure gcp google cloud digitalocean heroku vercel netlify cloudflare dockerhub npm pypi s3 gcs sql postgres postgresql mysql mongodb mongo redis dynamodb rds gke eks aks kafka k8s kubernetes docker helm blob sqs sns lambda ")

	// nonNameWords are words that never name an object.
	nonNameWords = wordSet("it them this that these those anything everything something nothing the a an my our your all any to on in into from at for of with and or then so please yet now again as under over by if about there here called named ever even unless until without first me us him her you i we is are be do does")

	// negationWords are words that negate what follows.
	negationWords = wordSet("minus bar barring sparing spare omit omitting forget nothing nobody none not never no don't dont doesn't cannot can't without avoid except excluding skip ignore keep nor neither unless besides forbid forbidden prohibited refrain untouched dnt donot")

	// wordsMarkingNonEnglishSentences are words of other languages. Sentences with them are not read.
	wordsMarkingNonEnglishSentences = wordSet("nicht kein keine keinen niemals bitte und oder der die das ne pas jamais sans et le la les nunca jamas jamás sin por favor nao não sem mai senza niet geen nooit inte ikke aldrig nie nem bukan jangan tidak hindi mat nahi ali ama non ei ikkje kun nur seulement solo el los las il lo gli och og ja nein oui ")
)
