package redact

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxPayloadNesting is the maximum nesting of a payload; deeper values are replaced.
const maxPayloadNesting = 64

// maxFieldNameCollisionsPerObject is how many names of one object can be equal after redaction.
const maxFieldNameCollisionsPerObject = 100

// RedactJSONValue returns a copy of a decoded JSON value with every string and field name redacted. Strings are
// truncated as by [Redactor.RedactAndTruncate] if maxStringBytes is more than 0; field names are always
// truncated to 1024 bytes. In a list, the word after an option such as "--password" is redacted as the option's
// value.
func (r *Redactor) RedactJSONValue(v any, maxStringBytes int) any {
	return r.redactValue("", v, maxStringBytes, 0)
}

func (r *Redactor) redactValue(name string, v any, maxStringBytes, depth int) any {
	if depth > maxPayloadNesting {
		return UnexaminedPrefix + "value]"
	}
	switch v := v.(type) {
	case string:
		if maxStringBytes > 0 {
			return r.redactNamedValueAndTruncate(name, v, maxStringBytes)
		}
		return r.RedactNamedValue(name, v)
	case []any:
		return r.redactList(name, "", v, maxStringBytes, depth)
	case map[string]any:
		return r.redactObject(v, maxStringBytes, depth)
	}
	return v // a number, true, false or null: nothing to redact
}

func (r *Redactor) redactObject(v map[string]any, maxStringBytes, depth int) any {
	out := make(map[string]any, len(v))
	program, args, label := findProgramArgsAndValueName(v)
	for _, k := range slices.Sorted(maps.Keys(v)) {
		key := r.RedactAndTruncate(k, 1024)
		for n := 2; ; n++ { // equal redacted names must not overwrite each other's values
			if _, taken := out[key]; !taken {
				break
			}
			key = fmt.Sprintf("%s (%d)", r.RedactAndTruncate(k, 1024), n)
			if n > maxFieldNameCollisionsPerObject {
				return UnexaminedPrefix + "value]"
			}
		}
		list, isList := v[k].([]any)
		switch {
		case isList && k == args:
			out[key] = r.redactList(k, program, list, maxStringBytes, depth+1)
		case k == "value" && label != "":
			out[key] = r.redactValue(label, v[k], maxStringBytes, depth+1)
		default:
			out[key] = r.redactValue(k, v[k], maxStringBytes, depth+1)
		}
	}
	return out
}

// findProgramArgsAndValueName returns texts of an object that tell how to redact its other fields:
// the program, the name of the field that holds the program's arguments, and the header or variable
// name that describes the field "value", as in {"name": "Authorization", "value": "Bearer x"}.
func findProgramArgsAndValueName(v map[string]any) (programName, argsFieldName, valueName string) {
	for _, field := range [...]string{"program", "command", "cmd", "executable", "binary"} {
		if s, ok := v[field].(string); ok && programName == "" {
			programName = s
		}
	}
	for _, field := range [...]string{"args", "arguments", "argv"} {
		if _, ok := v[field].([]any); ok && argsFieldName == "" {
			argsFieldName = field
		}
	}
	for _, field := range [...]string{"name", "key", "header"} {
		if s, ok := v[field].(string); ok && valueName == "" {
			valueName = s
		}
	}
	return programName, argsFieldName, valueName
}

// redactList redacts a list; if program is "", its first word is the program.
func (r *Redactor) redactList(name, program string, v []any, maxStringBytes, depth int) any {
	words := make([]string, len(v))
	for i, e := range v {
		words[i], _ = e.(string)
	}
	secrets := secretSpansByWordIndex(program, words)
	out := make([]any, len(v))
	option := ""
	for i, e := range v {
		as := name
		if option != "" && !strings.HasPrefix(words[i], "-") {
			as = option
		}
		if len(secrets[i]) > 0 {
			for _, sp := range secrets[i] {
				r.collectSecret(sp.secret)
			}
			e = replaceSpans(words[i], secrets[i])
		}
		out[i] = r.redactValue(as, e, maxStringBytes, depth+1)
		option = ""
		if strings.HasPrefix(words[i], "-") && !strings.Contains(words[i], "=") {
			option = words[i]
		}
	}
	return out
}

// RedactArgs returns the arguments of a program, redacted.
func (r *Redactor) RedactArgs(program string, args []string) []string {
	if len(args) == 0 {
		return args
	}
	list := make([]any, len(args))
	for i, a := range args {
		list[i] = a
	}
	out := make([]string, len(args))
	for i, e := range r.redactList("", program, list, 0, 0).([]any) {
		out[i], _ = e.(string)
	}
	return out
}

// secretSpansByWordIndex returns the secrets in the arguments of a program, by word index; if program is "", the
// first word is the program.
func secretSpansByWordIndex(program string, words []string) map[int][]secretSpan {
	if program == "" {
		if len(words) == 0 {
			return nil
		}
		program = words[0]
	}
	if program = normalizeProgramName(program[strings.LastIndexAny(program, `/\`)+1:]); len(loginCommandsByProgram()[program]) == 0 {
		return nil
	}
	args := make([]programArg, len(words))
	size := 0
	for i, w := range words {
		args[i] = programArg{w, size, true}
		size += len(w) + 1
	}
	var spans []secretSpan
	for _, l := range loginCommandsByProgram()[program] {
		spans = findArgSecrets(strings.Join(words, " "), l, args, spans)
	}
	found := map[int][]secretSpan{}
	for _, sp := range spans {
		for i, a := range args {
			if a.offset <= sp.start && sp.end <= a.offset+len(a.text) {
				found[i] = append(found[i], secretSpan{sp.start - a.offset, sp.end - a.offset, sp.kind, sp.secret})
			}
		}
	}
	return found
}
