package kind

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/action"
)

// maxShownActionVariants is the maximum number of variants of an action that a person is shown.
const maxShownActionVariants = 3

// CoveredVariants returns up to maxShownActionVariants variants of an action for which the function
// covers returns true. They are examples of what an approval would also allow.
func CoveredVariants(a *action.Action, covers func(*action.Action) bool) (out []*action.Action) {
	for _, n := range VariantsWithOneWordChanged(a) {
		if len(out) == maxShownActionVariants {
			break
		}
		if covers(n) {
			out = append(out, n)
		}
	}
	return out
}

// VariantsWithOneWordChanged returns actions that differ from a in one word: another file in the same folder, another number,
// another name. The caller must check whether a kind covers them.
func VariantsWithOneWordChanged(a *action.Action) (out []*action.Action) {
	with := func(key, text string) {
		b := *a
		b.Payload = maps.Clone(a.Payload)
		b.Payload[key] = text
		b.TypeAndPayloadHash, b.Raw = "", nil
		out = append(out, &b)
	}
	for _, key := range sorted.Keys(a.Payload) {
		text, ok := a.Payload[key].(string)
		if !ok || strings.Contains(text, "\n") || len(text) > 1000 {
			continue
		}
		if key != "command" {
			for _, other := range wordVariants(text) {
				with(key, other)
			}
			continue
		}
		words := strings.Split(text, " ")
		for i := len(words) - 1; i > 0; i-- {
			for _, other := range wordVariants(words[i]) {
				with(key, strings.Join(slices.Concat(words[:i], []string{other}, words[i+1:]), " "))
			}
		}
	}
	return out
}

// wordVariants returns variants of a word: the next number, or a path with another file name or
// number. It returns nil for options and shell syntax.
func wordVariants(word string) (out []string) {
	if word == "" || strings.HasPrefix(word, "-") || strings.ContainsAny(word, "$`'\"|&;<>(){}*?[]\\") {
		return nil
	}
	if n, err := strconv.Atoi(word); err == nil {
		return []string{strconv.Itoa(n + 1)}
	}
	dir, file := path.Split(word)
	ext := path.Ext(file)
	for _, name := range [...]string{"another", "other-name"} {
		out = append(out, dir+name+ext)
	}
	for i, part := range strings.Split(word, "/") {
		if n, err := strconv.Atoi(part); err == nil {
			parts := strings.Split(word, "/")
			parts[i] = strconv.Itoa(n + 1)
			out = append(out, strings.Join(parts, "/"))
		}
	}
	return out
}
