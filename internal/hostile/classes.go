package hostile

import (
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/action"
)

// classes are all kinds of attack.
var classes = append(append(append(broken, ambiguous...), mistyped...), forged...)

// broken are texts that are not JSON, or not within bounds.
var broken = []class{
	{name: "cut in a string", code: action.InvalidJSON, make: func(g *generator) string {
		return `{"type":"` + g.typ() + `","payload":{"path":"` + g.word()
	}},
	{name: "cut anywhere", code: action.InvalidJSON, make: func(g *generator) string {
		s := g.action()
		return s[:1+g.IntN(len(s)-1)]
	}},
	{name: "cut in an escape", code: action.InvalidJSON, make: func(g *generator) string {
		return `{"type":"` + g.word() + g.pick(`\`, `\u`, `\u00`, `\ud83d\`)
	}},
	{name: "no JSON", code: action.InvalidJSON, make: func(g *generator) string {
		return g.pick("rm -rf /", "ALLOW", "decision: ALLOW", "<action/>", "--", "type=read_file", "$(id)", "`id`") + g.word()
	}},
	{name: "YAML", code: action.InvalidJSON, make: func(g *generator) string {
		return "type: " + g.typ() + "\npayload:\n  path: " + g.word()
	}},
	{name: "array of actions", code: action.InvalidJSON, make: func(g *generator) string { return "[" + g.action() + "," + g.action() + "]" }},
	{name: "scalar", code: action.InvalidJSON, make: func(g *generator) string {
		return g.pick("null", "true", `"`+g.word()+`"`, strconv.Itoa(g.Int()), "-", "1e", `"`)
	}},
	{name: "comment", code: action.InvalidJSON, make: func(g *generator) string {
		return g.pick("/*x*/", "//"+g.word()+" ", "# ", "-- ") + g.action()
	}},
	{name: "comment inside", code: action.InvalidJSON, make: func(g *generator) string { return "{/*" + g.word() + "*/" + g.action()[1:] }},
	{name: "single quotes", code: action.InvalidJSON, make: func(g *generator) string {
		return `{'type':'` + g.typ() + `','payload':{'path':'` + g.word() + `'}}`
	}},
	{name: "bare keys", code: action.InvalidJSON, make: func(g *generator) string { return `{type:"` + g.typ() + `",payload:{}}` }},
	{name: "trailing comma", code: action.InvalidJSON, make: func(g *generator) string {
		s := g.action()
		return s[:len(s)-1] + g.pick(",}", ",,}", ", \n}")
	}},
	{name: "missing comma", code: action.InvalidJSON, make: func(g *generator) string {
		return `{"type":"` + g.typ() + `" "payload":{"path":"` + g.word() + `"}}`
	}},
	{name: "wrong bracket", code: action.InvalidJSON, make: func(g *generator) string {
		return `{"type":"` + g.typ() + `","payload":{"a":` + g.pick("[}", "[1}}", "]", "{]", "[[1]}}") + "}}"
	}},
	{name: "no number", code: action.InvalidJSON, make: func(g *generator) string {
		return g.payload(g.pick("NaN", "Infinity", "-Infinity", "01", "1.", ".5", "+1", "0x10", "1e", "--1", "1_000"))
	}},
	{name: "no literal", code: action.InvalidJSON, make: func(g *generator) string {
		return g.payload(g.pick("True", "None", "undefined", "nul", "TRUE", "nil", "false1"))
	}},
	{name: "raw newline in a string", code: action.InvalidJSON, make: func(g *generator) string { return g.payload("\"" + g.word() + "\n" + g.word() + "\"") }},
	{name: "raw control in a string", code: action.InvalidJSON, make: func(g *generator) string {
		return g.payload("\"" + g.word() + string(rune(g.pick("\x00\x01\x08\x0b\x1b\x1f")[g.IntN(6)])) + "\"")
	}},
	{name: "NUL bytes", code: action.InvalidJSON, make: func(g *generator) string {
		s := g.action()
		i := 1 + g.IntN(len(s)-1)
		return s[:i] + "\x00" + s[i:]
	}},
	{name: "NUL first", code: action.InvalidJSON, make: func(g *generator) string { return strings.Repeat("\x00", 1+g.IntN(9)) + g.action() }},
	{name: "bad escape", code: action.InvalidJSON, make: func(g *generator) string {
		return g.payload(`"` + g.word() + g.pick(`\x41`, `\'`, `\u12g4`, `\U0041`, `\0`, `\ `) + `"`)
	}},
	{name: "UTF-16", code: action.InvalidJSON, make: func(g *generator) string {
		s := strings.ReplaceAll(strings.Join(strings.Split(g.action(), ""), "\x00"), "\n", "")
		return g.pick("\xff\xfe"+s+"\x00", "\xfe\xff\x00"+s, "\xff\xfe\x00\x00"+s)
	}},
	{name: "invisible before the object", code: action.InvalidJSON, make: func(g *generator) string {
		return g.pick("\u200b", "\u00a0", "\u2028", "\u202e", "\v", "\f", "\x1b[2J") + g.action()
	}},
	{name: "invalid UTF-8", code: action.InvalidUTF8, make: func(g *generator) string {
		return g.payload("\"" + g.word() + g.pick("\xff", "\xc3", "\xe2\x82", "\x80", "\xf8\x88\x80\x80\x80") + "\"")
	}},
	{name: "overlong UTF-8", code: action.InvalidUTF8, make: func(g *generator) string {
		return `{"type":"read_file","payload":{"path":"` + g.pick("..\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xc0\x80") + `etc"}}`
	}},
	{name: "surrogates in UTF-8", code: action.InvalidUTF8, make: func(g *generator) string {
		return g.payload("\"" + g.pick("\xed\xa0\x80", "\xed\xbf\xbf", "\xed\xa0\xbd\xed\xb8\x80") + "\"")
	}},
	{name: "lone surrogate", code: action.LoneSurrogate, make: func(g *generator) string {
		return g.payload(`"` + g.pick("", "x") + g.pick(`\ud800`, `\uDFFF`, `\ud83dx`, `\ude00\ud83d`, `\ud83d\ud83d`, `\ud83d\u0041`) + `"`)
	}},
	{name: "lone surrogate in a key", code: action.LoneSurrogate, make: func(g *generator) string {
		return `{"` + g.pick(`\ud800`, `\udc00`) + `":1,"type":"x","payload":{}}`
	}},
	{name: "deep arrays", code: action.TooDeep, make: func(g *generator) string { return g.payload(nest("[", "]", 63+g.IntN(200))) }},
	{name: "deep objects", code: action.TooDeep, make: func(g *generator) string { return g.payload(nest(`{"a":`, "}", 63+g.IntN(200))) }},
	{name: "very deep", code: action.TooDeep, few: 6, make: func(g *generator) string { return g.payload(nest("[", "]", 100_000+g.IntN(100_000))) }},
	{name: "very deep and cut", code: action.TooDeep, few: 6, make: func(g *generator) string {
		return `{"type":"x","payload":` + strings.Repeat(g.pick(`{"a":`, "["), 100_000+g.IntN(50_000))
	}},
	{name: "10 MB on a line", code: action.TooLarge, few: 3, make: func(g *generator) string {
		return g.payload(`"` + strings.Repeat(g.pick("a", "/../", "<"), 10<<20/4*4))
	}},
	{name: "10 MB of garbage", code: action.TooLarge, few: 2, make: func(g *generator) string { return strings.Repeat(g.pick("x", "[", "}"), 10<<20) }},
	{name: "large and good", code: action.TooLarge, few: 4, make: func(g *generator) string {
		return `{"type":"execute_command","payload":{"command":"ls ` + strings.Repeat(g.pick("a", "b"), action.MaxBytes) + `"}}`
	}},
	{name: "large and printed", code: action.TooLarge, few: 2, make: func(g *generator) string {
		return "{\n" + strings.Repeat("  \"a\": [1, 2],\n", 400_000) + "  \"b\": 0\n}"
	}},
	{name: "long type", code: action.TooLarge, make: func(g *generator) string {
		return `{"type":"` + strings.Repeat(g.word(), 100) + `","payload":{}}`
	}},
	{name: "long id", code: action.TooLarge, make: func(g *generator) string {
		return g.with(`"` + g.pick("id", "session") + `":"` + strings.Repeat("x", 1025+g.IntN(2000)) + `"`)
	}},
}

// ambiguous are records that two readers would understand differently.
var ambiguous = []class{
	{name: "type twice", code: action.DuplicateKey, make: func(g *generator) string { return g.with(`"type":"list_directory"`) }},
	{name: "payload twice", code: action.DuplicateKey, make: func(g *generator) string { return g.with(`"payload":{"path":"README.md"}`) }},
	{name: "type twice, escaped", code: action.DuplicateKey, make: func(g *generator) string {
		return g.with(`"` + g.pick(`\u0074ype`, `t\u0079pe`, `typ\u0065`) + `":"list_directory"`)
	}},
	{name: "type in two cases", code: action.DuplicateKey, make: func(g *generator) string {
		return g.with(`"` + g.pick("Type", "TYPE", "tYpE") + `":"list_directory"`)
	}},
	{name: "payload in two cases", code: action.DuplicateKey, make: func(g *generator) string {
		return g.with(`"` + g.pick("Payload", "PAYLOAD") + `":{}`)
	}},
	{name: "keys equal by folding", code: action.DuplicateKey, make: func(g *generator) string {
		return g.with(`"session":"a","` + g.pick("ſession", "seſſion", `\u017fession`) + `":"b"`)
	}},
	{name: "duplicate in the payload", code: action.DuplicateKey, make: func(g *generator) string {
		return `{"type":"execute_command","payload":{"command":"ls","` + g.pick("command", "Command", "COMMAND", `c\u006fmmand`) + `":"` + g.command() + `"}}`
	}},
	{name: "duplicate far inside", code: action.DuplicateKey, make: func(g *generator) string {
		return g.payload(nest(`{"a":`, "}", g.IntN(40)+1)[:5] + `[{"k":1,"` + g.pick("k", "K", "\u212a") + `":2}]}`)
	}},
	{name: "duplicate among many", code: action.DuplicateKey, make: func(g *generator) string {
		var b strings.Builder
		for i := range 500 {
			b.WriteString(`"k` + strconv.Itoa(i) + `":0,`)
		}
		return g.payload("{" + b.String() + `"` + g.pick("k", "K") + strconv.Itoa(g.IntN(500)) + `":1}`)
	}},
	{name: "command and its alias", code: action.AliasCollision, make: func(g *generator) string {
		return `{"type":"execute_command","payload":{"command":"ls","` + g.pick("cmd", "script", "commandLine", "Cmd", "shell-command") + `":"` + g.command() + `"}}`
	}},
	{name: "path and its alias", code: action.AliasCollision, make: func(g *generator) string {
		return `{"type":"` + g.pick("read_file", "Write", "delete_file") + `","payload":{"path":"a","` + g.pick("file_path", "filePath", "FileName", "target_file") + `":"` + g.path() + `"}}`
	}},
	{name: "two aliases", code: action.AliasCollision, make: func(g *generator) string {
		return `{"type":"http_request","payload":{"uri":"http://a.test","` + g.pick("link", "href", "endpoint") + `":"http://x.test"}}`
	}},
	{name: "alias beside null", code: action.AliasCollision, make: func(g *generator) string {
		return `{"type":"Bash","payload":{"command":null,"cmd":"` + g.command() + `"}}`
	}},
	{name: "source twice", code: action.AliasCollision, make: func(g *generator) string {
		return `{"type":"move_file","payload":{"source":"a","` + g.pick("path", "old_path", "from") + `":"` + g.path() + `","destination":"b"}}`
	}},
}

// mistyped are records whose fields are missing or no good.
var mistyped = []class{
	{name: "empty object", code: action.MissingField, make: func(g *generator) string { return "{" + strings.Repeat(" ", g.IntN(50)) + "}" }},
	{name: "no type", code: action.MissingField, make: func(g *generator) string { return `{"payload":{"command":"` + g.command() + `"}}` }},
	{name: "type in another case", code: action.MissingField, make: func(g *generator) string {
		return `{"` + g.pick("Type", "TYPE", "type ", "\u200btype", "tуpe") + `":"` + g.typ() + `","payload":{}}`
	}},
	{name: "no payload", code: action.MissingField, make: func(g *generator) string { return `{"type":"` + g.typ() + `","path":"` + g.path() + `"}` }},
	{name: "no command", code: action.MissingField, make: func(g *generator) string {
		return `{"type":"execute_command","payload":{` + g.pick("", `"run":"`+g.command()+`"`, `"command":null`) + `}}`
	}},
	{name: "no path", code: action.MissingField, make: func(g *generator) string {
		return `{"type":"` + g.pick("read_file", "delete_file", "write_file") + `","payload":{"where":"` + g.path() + `"}}`
	}},
	{name: "type is not a string", code: action.WrongType, make: func(g *generator) string {
		return `{"type":` + g.pick("1", "null", "[]", `["read_file"]`, `{"a":1}`, "true") + `,"payload":{"path":"` + g.path() + `"}}`
	}},
	{name: "payload is not an object", code: action.WrongType, make: func(g *generator) string {
		return `{"type":"` + g.typ() + `","payload":` + g.pick("null", "[]", `"rm -rf /"`, "1", `"{\"path\":\"a\"}"`, "false") + `}`
	}},
	{name: "id is not a string", code: action.WrongType, make: func(g *generator) string {
		return g.with(`"` + g.pick("id", "session", "cwd") + `":` + g.pick("1", "null", "{}", "[]", "true"))
	}},
	{name: "command is not text", code: action.WrongType, make: func(g *generator) string {
		return `{"type":"execute_command","payload":{"command":` + g.pick("1", "{}", `{"0":"rm"}`, "true", `["rm",1]`, `[["rm"]]`, `[null]`) + `}}`
	}},
	{name: "path is not text", code: action.WrongType, make: func(g *generator) string {
		return `{"type":"delete_file","payload":{"path":` + g.pick("0", "{}", `{"path":"a"}`, "false", `[{"path":"a"}]`) + `}}`
	}},
	{name: "tier is not a number", code: action.WrongType, make: func(g *generator) string { return g.with(`"min_tier":` + g.pick(`"0"`, "null", "[]", "false")) }},
	{name: "tier out of range", code: action.InvalidValue, make: func(g *generator) string {
		return g.with(`"min_tier":` + g.pick("-1", "4", "0.5", "1e400", "-1e400", "9223372036854775808", "3.0000000000000000000001", "1e-999"))
	}},
	{name: "relative folder", code: action.InvalidValue, make: func(g *generator) string {
		return g.with(`"cwd":"` + g.pick("", ".", "..", "src", "~", "~root", "C:", "C:src", "$HOME", `\\src`, " /", "file:///") + `"`)
	}},
	{name: "empty type", code: action.InvalidValue, make: func(g *generator) string {
		return `{"type":"` + g.pick("", " ", `\t`, `\u00a0`, `\u3000`) + `","payload":{"command":"` + g.command() + `"}}`
	}},
	{name: "NUL in a name", code: action.InvalidValue, make: func(g *generator) string {
		return g.pick(`{"type":"read_file\u0000`+g.word()+`","payload":{"path":"a"}}`, g.with(`"cwd":"/tmp\u0000/x"`), g.with(`"session":"\u0000"`))
	}},
	{name: "NUL in a path", code: action.InvalidValue, make: func(g *generator) string { return `{"type":"read_file","payload":{"path":"/etc/shadow\u0000.txt"}}` }},
	// Well formed, and for the tiers to refuse.
	{name: "parentheses", few: 10, make: func(g *generator) string {
		return `{"type":"execute_command","payload":{"command":"` + strings.Repeat(g.pick("(", "$(", "{ ", "`"), 100_000+g.IntN(1000)) + `"}}`
	}},
	{name: "huge numbers", make: func(g *generator) string {
		return g.payload(g.pick("1e999999999", strings.Repeat("9", 5000), "-1e-99999999999999999999", "0."+strings.Repeat("0", 5000)+"1"))
	}},
	{name: "unknown type", make: func(g *generator) string {
		return `{"type":"` + g.pick("read_file\u200b", "ｒead_file", "rеad_file", "mcp__evil__read_file", "read_file/../x", "*", "read_*", g.word()) + `x","payload":{"path":"` + g.path() + `"}}`
	}},
	{name: "attack in a key", make: func(g *generator) string {
		return `{"type":"` + g.word() + `_tool","payload":{"` + g.command() + `":true}}`
	}},
}

func nest(open, end string, n int) string {
	return strings.Repeat(open, n) + "0" + strings.Repeat(end, n)
}
