package knowledge

import (
	"slices"
	"strings"
	"sync"
)

// A VerbList is a list of verbs with the same kind of effect.
type VerbList struct {
	Name  string // name of the list in verbs.yaml, such as "reads"; [ToolNameVerb] uses only the lists up to "things"
	Words []string
}

// A verbEntry is the entry of a word in verbs.yaml.
type verbEntry struct {
	isToolNameVerb        bool // in "things" of verbs.yaml or in a list before it; [ToolNameVerb] uses only these lists
	lastToolVerbListIndex int  // index in VerbLists of the last list before "things" of verbs.yaml that contains the word; 0 if none
	isAlsoNoun            bool
	listBits              uint64 // bit set, by index in VerbLists, of all lists with the word
}

var verbEntries = sync.OnceValue(func() map[string]verbEntry {
	known := map[string]verbEntry{}
	things := verbListIndex("things")
	for i := range VerbLists {
		for _, w := range VerbLists[i].Words {
			v := known[w]
			v.listBits |= 1 << i
			switch {
			case i < things:
				v.isToolNameVerb, v.lastToolVerbListIndex = true, i
			case i == things:
				v.isToolNameVerb, v.isAlsoNoun = true, true
			}
			known[w] = v
		}
	}
	return known
})

func verbListIndex(listName string) int {
	return slices.IndexFunc(VerbLists[:], func(l VerbList) bool { return l.Name == listName })
}

// ToolNameVerb returns the verb in the name of a tool that says what it does, and the verb's list, such as "reads" or
// "destroys". Both are "" if the name has no known verb.
func ToolNameVerb(toolName string) (verb, verbListName string) {
	words := SplitNameWords(toolName)
	worst, before := -1, ""
	reads := len(words) > 0 && VerbIn(words[len(words)-1], "reads")
	for _, w := range words {
		v := verbEntries()[w]
		joined := before == "and" || before == "or" || before == "then"
		before = w
		if !v.isToolNameVerb || reads && v.isAlsoNoun && !joined {
			continue
		}
		reads = reads || VerbLists[v.lastToolVerbListIndex].Name == "reads"
		if v.lastToolVerbListIndex > worst {
			worst, verb = v.lastToolVerbListIndex, w
		}
	}
	if worst < 0 {
		return "", ""
	}
	return verb, VerbLists[worst].Name
}

// ToolReturnsSecret reports whether a tool returns secrets, judged by its full name, which includes the
// name of its server: get_secret_value does, list_secrets does not.
func ToolReturnsSecret(fullToolName string) bool {
	words := SplitNameWords(fullToolName)
	if !slices.ContainsFunc(words, func(w string) bool { return VerbIn(w, "shows") }) {
		return false
	}
	secret := func(end int) bool {
		last := strings.TrimSuffix(words[end], "s")
		return VerbIn(last, "secrets") || end > 0 && VerbIn(words[end-1]+last, "secrets")
	}
	last := len(words) - 1
	if !VerbIn(strings.TrimSuffix(words[last], "s"), "parts") {
		return secret(last)
	}
	for end := range last {
		if secret(end) {
			return true
		}
	}
	return false
}

// VerbIn reports whether a word, in any case, is in a list.
func VerbIn(word, list string) bool {
	i := verbListIndex(list)
	return i >= 0 && verbEntries()[strings.ToLower(word)].listBits&(1<<i) != 0
}

// VerbsIn returns the words of a list; nil if there is no such list.
func VerbsIn(list string) []string {
	if i := verbListIndex(list); i >= 0 {
		return VerbLists[i].Words
	}
	return nil
}

// SplitNameWords returns the words of a name in lower case, whether they are separated by capital letters, "_",
// "-", "." or any other character that is not an ASCII letter.
func SplitNameWords(name string) []string {
	var words []string
	start := 0
	cut := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(name[start:end]))
		}
		start = end
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c|0x20 < 'a' || c|0x20 > 'z':
			cut(i)
			start = i + 1
		case c <= 'Z' && i > start && (name[i-1] >= 'a' || i+1 < len(name) && name[i+1] >= 'a' && name[i+1] <= 'z'):
			cut(i)
		}
	}
	cut(len(name))
	return words
}
