package hostile

import (
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/action"
)

// attackClasses are all kinds of attack.
var attackClasses = append(append(append(unparsableAttackClasses, parserDifferentialAttackClasses...), invalidFieldAttackClasses...), forgedVerdictClasses...)

// unparsableAttackClasses are texts that are not JSON, or not within bounds.
var unparsableAttackClasses = []attackClass{
	{name: "cut in a string", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		return `{"type":"` + g.randomActionType() + `","payload":{"path":"` + g.randomWord()
	}},
	{name: "cut anywhere", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		s := g.forbiddenActionRecord()
		return s[:1+g.IntN(len(s)-1)]
	}},
	{name: "cut in an escape", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		return `{"type":"` + g.randomWord() + g.pickOne(`\`, `\u`, `\u00`, `\ud83d\`)
	}},
	{name: "no JSON", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		return g.pickOne("rm -rf /", "ALLOW", "decision: ALLOW", "<action/>", "--", "type=read_file", "$(id)", "`id`") + g.randomWord()
	}},
	{name: "YAML", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		return "type: " + g.randomActionType() + "\npayload:\n  path: " + g.randomWord()
	}},
	{name: "array of actions", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		return "[" + g.forbiddenActionRecord() + "," + g.forbiddenActionRecord() + "]"
	}},
	{name: "scalar", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		return g.pickOne("null", "true", `"`+g.randomWord()+`"`, strconv.Itoa(g.Int()), "-", "1e", `"`)
	}},
	{name: "comment", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		return g.pickOne("/*x*/", "//"+g.randomWord()+" ", "# ", "-- ") + g.forbiddenActionRecord()
	}},
	{name: "comment inside", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string { return "{/*" + g.randomWord() + "*/" + g.forbiddenActionRecord()[1:] }},
	{name: "single quotes", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		return `{'type':'` + g.randomActionType() + `','payload':{'path':'` + g.randomWord() + `'}}`
	}},
	{name: "bare keys", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string { return `{type:"` + g.randomActionType() + `",payload:{}}` }},
	{name: "trailing comma", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		s := g.forbiddenActionRecord()
		return s[:len(s)-1] + g.pickOne(",}", ",,}", ", \n}")
	}},
	{name: "missing comma", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		return `{"type":"` + g.randomActionType() + `" "payload":{"path":"` + g.randomWord() + `"}}`
	}},
	{name: "wrong bracket", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		return `{"type":"` + g.randomActionType() + `","payload":{"a":` + g.pickOne("[}", "[1}}", "]", "{]", "[[1]}}") + "}}"
	}},
	{name: "no number", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		return g.recordWithPayload(g.pickOne("NaN", "Infinity", "-Infinity", "01", "1.", ".5", "+1", "0x10", "1e", "--1", "1_000"))
	}},
	{name: "no literal", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		return g.recordWithPayload(g.pickOne("True", "None", "undefined", "nul", "TRUE", "nil", "false1"))
	}},
	{name: "raw newline in a string", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		return g.recordWithPayload("\"" + g.randomWord() + "\n" + g.randomWord() + "\"")
	}},
	{name: "raw control in a string", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		return g.recordWithPayload("\"" + g.randomWord() + string(rune(g.pickOne("\x00\x01\x08\x0b\x1b\x1f")[g.IntN(6)])) + "\"")
	}},
	{name: "NUL bytes", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		s := g.forbiddenActionRecord()
		i := 1 + g.IntN(len(s)-1)
		return s[:i] + "\x00" + s[i:]
	}},
	{name: "NUL first", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		return strings.Repeat("\x00", 1+g.IntN(9)) + g.forbiddenActionRecord()
	}},
	{name: "bad escape", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		return g.recordWithPayload(`"` + g.randomWord() + g.pickOne(`\x41`, `\'`, `\u12g4`, `\U0041`, `\0`, `\ `) + `"`)
	}},
	{name: "UTF-16", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		s := strings.ReplaceAll(strings.Join(strings.Split(g.forbiddenActionRecord(), ""), "\x00"), "\n", "")
		return g.pickOne("\xff\xfe"+s+"\x00", "\xfe\xff\x00"+s, "\xff\xfe\x00\x00"+s)
	}},
	{name: "invisible before the object", wantActionError: action.InvalidJSON, makeRecord: func(g *recordGenerator) string {
		return g.pickOne("\u200b", "\u00a0", "\u2028", "\u202e", "\v", "\f", "\x1b[2J") + g.forbiddenActionRecord()
	}},
	{name: "invalid UTF-8", wantActionError: action.InvalidUTF8, makeRecord: func(g *recordGenerator) string {
		return g.recordWithPayload("\"" + g.randomWord() + g.pickOne("\xff", "\xc3", "\xe2\x82", "\x80", "\xf8\x88\x80\x80\x80") + "\"")
	}},
	{name: "overlong UTF-8", wantActionError: action.InvalidUTF8, makeRecord: func(g *recordGenerator) string {
		return `{"type":"read_file","payload":{"path":"` + g.pickOne("..\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xc0\x80") + `etc"}}`
	}},
	{name: "surrogates in UTF-8", wantActionError: action.InvalidUTF8, makeRecord: func(g *recordGenerator) string {
		return g.recordWithPayload("\"" + g.pickOne("\xed\xa0\x80", "\xed\xbf\xbf", "\xed\xa0\xbd\xed\xb8\x80") + "\"")
	}},
	{name: "lone surrogate", wantActionError: action.LoneSurrogate, makeRecord: func(g *recordGenerator) string {
		return g.recordWithPayload(`"` + g.pickOne("", "x") + g.pickOne(`\ud800`, `\uDFFF`, `\ud83dx`, `\ude00\ud83d`, `\ud83d\ud83d`, `\ud83d\u0041`) + `"`)
	}},
	{name: "lone surrogate in a key", wantActionError: action.LoneSurrogate, makeRecord: func(g *recordGenerator) string {
		return `{"` + g.pickOne(`\ud800`, `\udc00`) + `":1,"type":"x","payload":{}}`
	}},
	{name: "deep arrays", wantActionError: action.TooDeep, makeRecord: func(g *recordGenerator) string { return g.recordWithPayload(nestedJSONValue("[", "]", 63+g.IntN(200))) }},
	{name: "deep objects", wantActionError: action.TooDeep, makeRecord: func(g *recordGenerator) string {
		return g.recordWithPayload(nestedJSONValue(`{"a":`, "}", 63+g.IntN(200)))
	}},
	{name: "very deep", wantActionError: action.TooDeep, maxRecords: 6, makeRecord: func(g *recordGenerator) string {
		return g.recordWithPayload(nestedJSONValue("[", "]", 100_000+g.IntN(100_000)))
	}},
	{name: "very deep and cut", wantActionError: action.TooDeep, maxRecords: 6, makeRecord: func(g *recordGenerator) string {
		return `{"type":"x","payload":` + strings.Repeat(g.pickOne(`{"a":`, "["), 100_000+g.IntN(50_000))
	}},
	{name: "10 MB on a line", wantActionError: action.TooLarge, maxRecords: 3, makeRecord: func(g *recordGenerator) string {
		return g.recordWithPayload(`"` + strings.Repeat(g.pickOne("a", "/../", "<"), 10<<20/4*4))
	}},
	{name: "10 MB of garbage", wantActionError: action.TooLarge, maxRecords: 2, makeRecord: func(g *recordGenerator) string { return strings.Repeat(g.pickOne("x", "[", "}"), 10<<20) }},
	{name: "large and good", wantActionError: action.TooLarge, maxRecords: 4, makeRecord: func(g *recordGenerator) string {
		return `{"type":"execute_command","payload":{"command":"ls ` + strings.Repeat(g.pickOne("a", "b"), action.DefaultMaxRecordBytes) + `"}}`
	}},
	{name: "large and printed", wantActionError: action.TooLarge, maxRecords: 2, makeRecord: func(g *recordGenerator) string {
		return "{\n" + strings.Repeat("  \"a\": [1, 2],\n", 400_000) + "  \"b\": 0\n}"
	}},
	{name: "long type", wantActionError: action.TooLarge, makeRecord: func(g *recordGenerator) string {
		return `{"type":"` + strings.Repeat(g.randomWord(), 100) + `","payload":{}}`
	}},
	{name: "long id", wantActionError: action.TooLarge, makeRecord: func(g *recordGenerator) string {
		return g.recordWithField(`"` + g.pickOne("id", "session") + `":"` + strings.Repeat("x", 1025+g.IntN(2000)) + `"`)
	}},
}

// parserDifferentialAttackClasses are records that two readers would understand differently.
var parserDifferentialAttackClasses = []attackClass{
	{name: "type twice", wantActionError: action.DuplicateKey, makeRecord: func(g *recordGenerator) string { return g.recordWithField(`"type":"list_directory"`) }},
	{name: "payload twice", wantActionError: action.DuplicateKey, makeRecord: func(g *recordGenerator) string { return g.recordWithField(`"payload":{"path":"README.md"}`) }},
	{name: "type twice, escaped", wantActionError: action.DuplicateKey, makeRecord: func(g *recordGenerator) string {
		return g.recordWithField(`"` + g.pickOne(`\u0074ype`, `t\u0079pe`, `typ\u0065`) + `":"list_directory"`)
	}},
	{name: "type in two cases", wantActionError: action.DuplicateKey, makeRecord: func(g *recordGenerator) string {
		return g.recordWithField(`"` + g.pickOne("Type", "TYPE", "tYpE") + `":"list_directory"`)
	}},
	{name: "payload in two cases", wantActionError: action.DuplicateKey, makeRecord: func(g *recordGenerator) string {
		return g.recordWithField(`"` + g.pickOne("Payload", "PAYLOAD") + `":{}`)
	}},
	{name: "keys equal by folding", wantActionError: action.DuplicateKey, makeRecord: func(g *recordGenerator) string {
		return g.recordWithField(`"session":"a","` + g.pickOne("ſession", "seſſion", `\u017fession`) + `":"b"`)
	}},
	{name: "duplicate in the payload", wantActionError: action.DuplicateKey, makeRecord: func(g *recordGenerator) string {
		return `{"type":"execute_command","payload":{"command":"ls","` + g.pickOne("command", "Command", "COMMAND", `c\u006fmmand`) + `":"` + g.forbiddenCommand() + `"}}`
	}},
	{name: "duplicate far inside", wantActionError: action.DuplicateKey, makeRecord: func(g *recordGenerator) string {
		return g.recordWithPayload(nestedJSONValue(`{"a":`, "}", g.IntN(40)+1)[:5] + `[{"k":1,"` + g.pickOne("k", "K", "\u212a") + `":2}]}`)
	}},
	{name: "duplicate among many", wantActionError: action.DuplicateKey, makeRecord: func(g *recordGenerator) string {
		var b strings.Builder
		for i := range 500 {
			b.WriteString(`"k` + strconv.Itoa(i) + `":0,`)
		}
		return g.recordWithPayload("{" + b.String() + `"` + g.pickOne("k", "K") + strconv.Itoa(g.IntN(500)) + `":1}`)
	}},
	{name: "command and its alias", wantActionError: action.FieldAliasCollision, makeRecord: func(g *recordGenerator) string {
		return `{"type":"execute_command","payload":{"command":"ls","` + g.pickOne("cmd", "script", "commandLine", "Cmd", "shell-command") + `":"` + g.forbiddenCommand() + `"}}`
	}},
	{name: "path and its alias", wantActionError: action.FieldAliasCollision, makeRecord: func(g *recordGenerator) string {
		return `{"type":"` + g.pickOne("read_file", "Write", "delete_file") + `","payload":{"path":"a","` + g.pickOne("file_path", "filePath", "FileName", "target_file") + `":"` + g.forbiddenPath() + `"}}`
	}},
	{name: "two aliases", wantActionError: action.FieldAliasCollision, makeRecord: func(g *recordGenerator) string {
		return `{"type":"http_request","payload":{"uri":"http://a.test","` + g.pickOne("link", "href", "endpoint") + `":"http://x.test"}}`
	}},
	{name: "alias beside null", wantActionError: action.FieldAliasCollision, makeRecord: func(g *recordGenerator) string {
		return `{"type":"Bash","payload":{"command":null,"cmd":"` + g.forbiddenCommand() + `"}}`
	}},
	{name: "source twice", wantActionError: action.FieldAliasCollision, makeRecord: func(g *recordGenerator) string {
		return `{"type":"move_file","payload":{"source":"a","` + g.pickOne("path", "old_path", "from") + `":"` + g.forbiddenPath() + `","destination":"b"}}`
	}},
}

// invalidFieldAttackClasses are classes of records in which a field is missing, or has a wrong type or value,
// and classes of well-formed records whose actions the tiers must refuse.
var invalidFieldAttackClasses = []attackClass{
	{name: "empty object", wantActionError: action.MissingField, makeRecord: func(g *recordGenerator) string { return "{" + strings.Repeat(" ", g.IntN(50)) + "}" }},
	{name: "no type", wantActionError: action.MissingField, makeRecord: func(g *recordGenerator) string { return `{"payload":{"command":"` + g.forbiddenCommand() + `"}}` }},
	{name: "type in another case", wantActionError: action.MissingField, makeRecord: func(g *recordGenerator) string {
		return `{"` + g.pickOne("Type", "TYPE", "type ", "\u200btype", "tуpe") + `":"` + g.randomActionType() + `","payload":{}}`
	}},
	{name: "no payload", wantActionError: action.MissingField, makeRecord: func(g *recordGenerator) string {
		return `{"type":"` + g.randomActionType() + `","path":"` + g.forbiddenPath() + `"}`
	}},
	{name: "no command", wantActionError: action.MissingField, makeRecord: func(g *recordGenerator) string {
		return `{"type":"execute_command","payload":{` + g.pickOne("", `"run":"`+g.forbiddenCommand()+`"`, `"command":null`) + `}}`
	}},
	{name: "no path", wantActionError: action.MissingField, makeRecord: func(g *recordGenerator) string {
		return `{"type":"` + g.pickOne("read_file", "delete_file", "write_file") + `","payload":{"where":"` + g.forbiddenPath() + `"}}`
	}},
	{name: "type is not a string", wantActionError: action.WrongType, makeRecord: func(g *recordGenerator) string {
		return `{"type":` + g.pickOne("1", "null", "[]", `["read_file"]`, `{"a":1}`, "true") + `,"payload":{"path":"` + g.forbiddenPath() + `"}}`
	}},
	{name: "payload is not an object", wantActionError: action.WrongType, makeRecord: func(g *recordGenerator) string {
		return `{"type":"` + g.randomActionType() + `","payload":` + g.pickOne("null", "[]", `"rm -rf /"`, "1", `"{\"path\":\"a\"}"`, "false") + `}`
	}},
	{name: "id is not a string", wantActionError: action.WrongType, makeRecord: func(g *recordGenerator) string {
		return g.recordWithField(`"` + g.pickOne("id", "session", "cwd") + `":` + g.pickOne("1", "null", "{}", "[]", "true"))
	}},
	{name: "command is not text", wantActionError: action.WrongType, makeRecord: func(g *recordGenerator) string {
		return `{"type":"execute_command","payload":{"command":` + g.pickOne("1", "{}", `{"0":"rm"}`, "true", `["rm",1]`, `[["rm"]]`, `[null]`) + `}}`
	}},
	{name: "path is not text", wantActionError: action.WrongType, makeRecord: func(g *recordGenerator) string {
		return `{"type":"delete_file","payload":{"path":` + g.pickOne("0", "{}", `{"path":"a"}`, "false", `[{"path":"a"}]`) + `}}`
	}},
	{name: "tier is not a number", wantActionError: action.WrongType, makeRecord: func(g *recordGenerator) string {
		return g.recordWithField(`"min_tier":` + g.pickOne(`"0"`, "null", "[]", "false"))
	}},
	{name: "tier out of range", wantActionError: action.InvalidValue, makeRecord: func(g *recordGenerator) string {
		return g.recordWithField(`"min_tier":` + g.pickOne("-1", "4", "0.5", "1e400", "-1e400", "9223372036854775808", "3.0000000000000000000001", "1e-999"))
	}},
	{name: "relative folder", wantActionError: action.InvalidValue, makeRecord: func(g *recordGenerator) string {
		return g.recordWithField(`"cwd":"` + g.pickOne("", ".", "..", "src", "~", "~root", "C:", "C:src", "$HOME", `\\src`, " /", "file:///") + `"`)
	}},
	{name: "empty type", wantActionError: action.InvalidValue, makeRecord: func(g *recordGenerator) string {
		return `{"type":"` + g.pickOne("", " ", `\t`, `\u00a0`, `\u3000`) + `","payload":{"command":"` + g.forbiddenCommand() + `"}}`
	}},
	{name: "NUL in a name", wantActionError: action.InvalidValue, makeRecord: func(g *recordGenerator) string {
		return g.pickOne(`{"type":"read_file\u0000`+g.randomWord()+`","payload":{"path":"a"}}`, g.recordWithField(`"cwd":"/tmp\u0000/x"`), g.recordWithField(`"session":"\u0000"`))
	}},
	{name: "NUL in a path", wantActionError: action.InvalidValue, makeRecord: func(g *recordGenerator) string {
		return `{"type":"read_file","payload":{"path":"/etc/shadow\u0000.txt"}}`
	}},
	// Well-formed records, which no parser rejects, so that the tiers must refuse the actions.
	{name: "parentheses", maxRecords: 10, makeRecord: func(g *recordGenerator) string {
		return `{"type":"execute_command","payload":{"command":"` + strings.Repeat(g.pickOne("(", "$(", "{ ", "`"), 100_000+g.IntN(1000)) + `"}}`
	}},
	{name: "huge numbers", makeRecord: func(g *recordGenerator) string {
		return g.recordWithPayload(g.pickOne("1e999999999", strings.Repeat("9", 5000), "-1e-99999999999999999999", "0."+strings.Repeat("0", 5000)+"1"))
	}},
	{name: "unknown type", makeRecord: func(g *recordGenerator) string {
		return `{"type":"` + g.pickOne("read_file\u200b", "ｒead_file", "rеad_file", "mcp__evil__read_file", "read_file/../x", "*", "read_*", g.randomWord()) + `x","payload":{"path":"` + g.forbiddenPath() + `"}}`
	}},
	{name: "attack in a key", makeRecord: func(g *recordGenerator) string {
		return `{"type":"` + g.randomWord() + `_tool","payload":{"` + g.forbiddenCommand() + `":true}}`
	}},
}

func nestedJSONValue(openingText, closingText string, nestingDepth int) string {
	return strings.Repeat(openingText, nestingDepth) + "0" + strings.Repeat(closingText, nestingDepth)
}
