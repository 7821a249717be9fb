package action

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/internal/sorted"
)

//go:generate go run ./gen

// CanonicalType returns shield's name of an action type, given that name or an agent host's name for it, such
// as "Bash" for "execute_command". Case, "_", "-" and spaces are ignored. It returns "" if the type is
// unknown.
func CanonicalType(name string) string {
	var few [maxAliasBytes]byte
	return canonicalType(normalizeName(few[:0], name))
}

// CanonicalTypes returns shield's names of action types.
func CanonicalTypes() []string { return types[:] }

// CanonicalField returns shield's name of a payload field of an action type, given that name or an alias, such
// as "file_path" for "path". If the name has no meaning of its own for the type, or the type is unknown or "",
// it returns the general meaning of the name. It returns "" if the name has no special meaning.
func CanonicalField(typ, name string) string {
	var few [maxAliasBytes]byte
	key := normalizeName(few[:0], name)
	if field := typeField(typ, key); field != "" {
		return field
	}
	return anyField(key)
}

// maxAliasBytes is the maximum length of an alias, in bytes.
const maxAliasBytes = 64

// normalizeName appends the name in lower case and without separators, so that filePath, file_path and FILE-PATH
// are equal. It returns nil for a name that cannot be in names.yaml: longer than maxAliasBytes, or with control
// or non-ASCII characters.
func normalizeName(dst []byte, name string) []byte {
	if len(name) > maxAliasBytes {
		return nil
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'A' <= c && c <= 'Z':
			dst = append(dst, c|0x20)
		case c == '_' || c == '-' || c == ' ':
		case c > '~' || c < ' ':
			return nil
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// canonicalizeTypeAndFields renames type and payload fields to their canonical names and validates the fields that say
// what the action touches. A payload with both a field and its alias is an error, because shield and the tool
// could use different ones.
func (a *Action) canonicalizeTypeAndFields() error {
	typ := CanonicalType(a.Type)
	if typ == "" {
		if !a.isCommandOfUnknownType() {
			return nil
		}
		typ, a.OriginalTypeSharedByOtherTools = "execute_command", a.Type
	}
	required, touches := requiredFields(typ)
	for _, field := range required {
		if a.hasField(typ, field) {
			continue
		}
		if typ != a.Type {
			return nil // a different tool that has the name of an alias: its type stays unknown
		}
		return &Error{Code: MissingField, Field: "payload." + field, Err: errors.New("missing; add it: " + typ + " needs this field")}
	}
	given := a.Type
	a.Type = typ
	if err := a.renamePayloadFieldsToCanonical(); err != nil || !touches {
		return err
	}
	a.IsPowerShellCommand = typ == "execute_command" && isPowerShellToolName(given)
	for _, field := range [...]string{"command", "path", "source", "destination", "url"} {
		if err := checkStringOrStringList(field, a.Payload[field]); err != nil {
			return err
		}
	}
	if typ == "execute_command" && isBlank(a.Payload["command"]) {
		return &Error{Code: MissingField, Field: "payload.command", Err: errors.New("empty; write the command that " + typ + " runs")}
	}
	return nil
}

// isCommandOfUnknownType reports whether an action of unknown type is a command: its type is a name that other tools
// have as well, and the payload has one command and otherwise only a folder and plain fields.
func (a *Action) isCommandOfUnknownType() bool {
	name := a.Type
	if rest, ok := strings.CutPrefix(name, "mcp__"); ok {
		_, name, _ = strings.Cut(rest, "__")
	}
	var few [maxAliasBytes]byte
	if key := normalizeName(few[:0], name); !looseCommand(key) && canonicalType(key) != "execute_command" {
		return false
	}
	commands := 0
	for field, v := range a.Payload {
		switch CanonicalField("execute_command", field) {
		case "command":
			if text, ok := v.(string); !ok || isBlank(text) {
				return false
			}
			commands++
		case "cwd":
		default:
			if !plainField(normalizeName(few[:0], field)) {
				return false
			}
		}
	}
	return commands == 1
}

// isPowerShellToolName reports whether a tool's name says that its commands are PowerShell.
func isPowerShellToolName(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "powershell") || strings.Contains(name, "pwsh")
}

// isBlank reports whether a text, or every text of a list, contains nothing that a
// shell would run.
func isBlank(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v) == ""
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !isBlank(e) })
	default:
		return false
	}
}

// hasField reports whether the payload has a field, by its name or an alias for the type.
func (a *Action) hasField(typ, field string) bool {
	if a.Payload[field] != nil {
		return true
	}
	for name, v := range a.Payload {
		if v != nil && CanonicalField(typ, name) == field {
			return true
		}
	}
	return false
}

// renamePayloadFieldsToCanonical renames the payload's fields to their canonical names.
func (a *Action) renamePayloadFieldsToCanonical() error {
	var aliases []string
	for name := range a.Payload {
		if field := CanonicalField(a.Type, name); field != "" && field != name {
			aliases = append(aliases, name)
		}
	}
	sorted.SortStrings(aliases) // the same input must always give the same error
	for _, name := range aliases {
		field := CanonicalField(a.Type, name)
		if _, taken := a.Payload[field]; taken {
			return &Error{Code: FieldAliasCollision, Field: "payload." + field,
				Err: fmt.Errorf("the field is given twice, also as %q; remove one", canonjson.Quote(name))}
		}
		a.Payload[field] = a.Payload[name]
		delete(a.Payload, name)
	}
	return nil
}

// checkStringOrStringList returns an error unless a value is a string, a list of strings, or nil: tools interpret numbers
// and objects differently, so shield cannot judge them.
func checkStringOrStringList(fieldName string, v any) error {
	switch v := v.(type) {
	case nil, string:
		return nil
	case []any:
		for i, e := range v {
			if _, ok := e.(string); !ok {
				return wrongTypeError("payload."+fieldName+"["+strconv.Itoa(i)+"]", "a string", e)
			}
		}
		return nil
	default:
		return wrongTypeError("payload."+fieldName, "a string", v)
	}
}
