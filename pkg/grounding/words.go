package grounding

import "strings"

func set(text string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		out[w] = true
	}
	return out
}

// deeds are the verbs that say what is to be done to an object, in the form of a request.
var deeds = func() map[string]Doing {
	out := map[string]Doing{}
	for does, text := range map[Doing]string{
		Delete:                "delete remove rm drop destroy erase wipe purge clean clear uninstall prune nuke kill truncate reset terminate discard unlink",
		Change:                "update upgrade change modify edit write move rename merge rebase restart scale apply set configure migrate restore commit tag rollback stop start tweak touch use alter patch",
		Change | Delete:       "overwrite replace force force-push",
		Change | Send:         "push deploy publish release sync upload copy ship mirror promote",
		Send:                  "send email mail post share forward submit notify message tell announce",
		Fetch:                 "fetch download get read open look check visit browse curl pull clone query call ping test see inspect view request hit",
		Fetch | Change | Send: "connect ssh log",
	} {
		for w := range strings.FieldsSeq(text) {
			out[w] = does
		}
	}
	return out
}()

// nouns say what a name is the name of.
var nouns = func() map[string]string {
	out := map[string]string{}
	for noun, text := range map[string]string{
		"branch": "branch branches", "remote": "remote remotes", "bucket": "bucket buckets", "database": "database databases db schema", "cluster": "cluster clusters context",
		"namespace": "namespace namespaces ns", "host": "host hosts server servers machine domain site endpoint url", "file": "file files", "folder": "folder folders directory directories dir",
		"table": "table tables collection", "repository": "repo repos repository repositories", "package": "package packages", "channel": "channel channels", "person": "person recipient",
		"resource": "service deployment pod container volume instance stack queue topic function image secret job release environment env project tag workspace",
	} {
		for w := range strings.FieldsSeq(text) {
			out[w] = noun
		}
	}
	return out
}()

var (
	// wants are before "to" and a deed.
	wants = set("want need like have going ahead you remember sure us")

	// governs are verbs that make of what follows a text, a question or a plan.
	governs = set("explain describe document show tell-me discuss review plan simulate draft figure list why how what whether consider think understand summarize summarise compare translate " +
		"pretend imagine suppose research say quote print echo propose suggest ask")

	// works are verbs of other work, which ends with its part of the sentence, unless a word of
	// relates makes the rest of the sentence a part of it.
	works   = set("fix implement create build generate make find investigate analyze analyse debug refactor run finish complete add install bump lint format")
	relates = set("that which who to how when for whose so")

	// supposes begin sentences about what is not asked for.
	supposes = set("if when whenever unless suppose assuming once while after before until because since although though why how what who which where whether should does did is are was were has had would")

	// tells begin a statement, which asks for nothing.
	tells = set("this that these those it its he she they there i've i'm we've we're you've you're it's that's there's which who")

	// opens are words before a deed or an object that say nothing.
	opens = set("can could will would you i we i'd i'll let's lets let just now also so ok okay go ahead the a an this that these those my our your all any both of on in into from at with to for via up out off away down over it its them and/or " +
		"please kindly simply first next finally again old new whole entire current local remote-side everything except")

	// common are words that name no object, also after a negation.
	common = set("it them this that these those anything everything something nothing the a an my our your all any to on in into from at for of with and or then so please yet now again ever even unless until without first me us him her you i we is are be do does")

	// negations say that what follows is not wanted.
	negations = set("not never no don't dont doesn't cannot can't without avoid except excluding skip ignore keep nor neither unless besides stop forbid forbidden prohibited refrain untouched dnt donot")

	// foreign are words of other languages, of which a sentence is not read.
	foreign = set("nicht kein keine keinen niemals bitte und oder der die das ne pas jamais sans et le la les nunca jamas jamás sin por favor nao não sem mai senza niet geen nooit inte ikke aldrig nie nem bukan jangan tidak hindi mat nahi ali ama non ei ikkje kun nur seulement solo el los las il lo gli och og ja nein oui ")
)
