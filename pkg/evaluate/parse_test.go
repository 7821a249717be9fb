package evaluate

import (
	"errors"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/verdict"
)

// good is the canary that the replies of these tests should carry.
const good = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestParseReply(t *testing.T) {
	t.Parallel()
	const tail = `"confidence":0.9,"reasoning":"r","canary":"` + good + `"}`
	const allow = `{"decision":"ALLOW",` + tail
	const missing, spread, malformed = "canary token missing", "canary token in the wrong field", "reply is not one well-formed JSON object"
	tests := []struct {
		name, reply string
		want        string // the decision, or how the error begins
	}{
		{"plain", allow, "ALLOW"},
		{"escalate", strings.Replace(allow, "ALLOW", "ESCALATE", 1), "ESCALATE"},
		{"space around", "\n\t " + allow + " \n", "ALLOW"},
		{"fence", "```json\n" + allow + "\n```", "ALLOW"},
		{"fence without language", "```\n" + allow + "\n```\n", "ALLOW"},
		{"any order", `{"canary":"` + good + `","confidence":0.9,"decision":"ALLOW","reasoning":"r"}`, "ALLOW"},
		{"decision in another case alone", strings.Replace(allow, "decision", "Decision", 1), `unknown field "Decision"`},
		{"canary in the reasoning as well", strings.Replace(allow, `"r"`, `"`+good+`"`, 1), spread},
		{"canary in the decision as well", strings.Replace(allow, "ALLOW", good, 1), spread},
		{"canary in another field as well", `{"x":"` + good + `","decision":"ALLOW",` + tail, spread},
		{"unknown field", `{"note":{"a":[1,2]},"decision":"ALLOW",` + tail, `unknown field "note"`},
		{"confidence 0", strings.Replace(allow, "0.9", "0", 1), "ALLOW"},
		{"confidence 1", strings.Replace(allow, "0.9", "1", 1), "ALLOW"},

		{"empty", "", missing},
		{"no canary", `{"decision":"ALLOW","confidence":1,"reasoning":"r"}`, missing},
		{"empty canary", strings.Replace(allow, good, "", 1), missing},
		{"wrong canary", strings.Replace(allow, good, strings.Repeat("0", 64), 1), missing},
		{"one digit off", strings.Replace(allow, good, good[:63]+"e", 1), missing},
		{"canary in capitals", strings.Replace(allow, good, strings.ToUpper(good), 1), missing},
		{"canary with space", strings.Replace(allow, good, good+" ", 1), missing},
		{"canary cut", strings.Replace(allow, good, good[:32], 1), missing},
		{"canary in the reasoning", `{"decision":"ALLOW","confidence":1,"reasoning":"` + good + `"}`, missing},
		{"canary as a name", `{"decision":"ALLOW","confidence":1,"reasoning":"r","` + good + `":"canary"}`, missing},
		{"canary in a list", `{"decision":"ALLOW","confidence":1,"reasoning":"r","canary":["` + good + `"]}`, missing},
		{"canary one level down", `{"x":{"canary":"` + good + `"},"decision":"ALLOW","confidence":1,"reasoning":"r"}`, missing},
		{"canary null", `{"decision":"ALLOW","confidence":1,"reasoning":"r","canary":null}`, missing},
		{"prose without canary", "I think it is safe. ALLOW", missing},
		{"ALLOW alone", "ALLOW", missing},

		{"prose before", "Sure!\n" + allow, malformed},
		{"prose after", allow + "\nHope this helps", malformed},
		{"prose around a fence", "Here:\n```json\n" + allow + "\n```", malformed},
		{"two fences", "```json\n" + allow + "\n```\n```json\n" + allow + "\n```", ""},
		{"unfinished fence", "```json\n" + allow, malformed},
		{"other language", "```python\n" + allow + "\n```", malformed},
		{"two objects", allow + allow, malformed},
		{"two objects, canary in the second", `{"decision":"ALLOW"}` + allow, malformed},
		{"list", "[" + allow + "]", "the model's reply is JSON, but not an object"},
		{"string", `"` + good + `"`, "the model's reply is JSON, but not an object"},
		{"thinking", "<think>ALLOW</think>" + allow, "ALLOW"},
		{"thinking twice", "<think>" + allow + "</think>x</think>\n" + allow, "ALLOW"},
		{"thinking of BLOCK", "<think>" + strings.Replace(allow, "ALLOW", "BLOCK", 1) + "</think>" + allow, "ALLOW"},
		{"an answer among the thoughts alone", "<think>" + allow + "</think>", missing},
		{"thoughts without an end", "<think>hm " + allow, malformed},
		{"an end of thoughts in the reasoning", strings.Replace(allow, `"r"`, `"x</think>y"`, 1), malformed},
		{"cut off", allow[:len(allow)-1], malformed},
		{"trailing comma", strings.Replace(allow, "}", ",}", 1), ""},
		{"comment", strings.Replace(allow, "{", "{/* */", 1), ""},
		{"single quotes", strings.ReplaceAll(allow, `"`, `'`), ""},
		{"NaN", strings.Replace(allow, "0.9", "NaN", 1), ""},
		{"Infinity", strings.Replace(allow, "0.9", "Infinity", 1), ""},
		{"confidence above 1", strings.Replace(allow, "0.9", "1.01", 1), `confidence "1.01" is outside`},
		{"confidence below 0", strings.Replace(allow, "0.9", "-0.1", 1), `confidence "-0.1" is outside`},
		{"confidence huge", strings.Replace(allow, "0.9", "1e999", 1), `confidence "1e999" is outside`},
		{"confidence a string", strings.Replace(allow, "0.9", `"0.9"`, 1), "the confidence in the model's reply is not a number"},
		{"confidence missing", strings.Replace(allow, `"confidence":0.9,`, "", 1), `lacks the field "confidence"`},
		{"reasoning missing", strings.Replace(allow, `"reasoning":"r",`, "", 1), `lacks the field "reasoning"`},
		{"reasoning a number", strings.Replace(allow, `"r"`, "1", 1), "the reasoning in the model's reply is not a string"},
		{"decision missing", strings.Replace(allow, `"decision":"ALLOW",`, "", 1), `lacks the field "decision"`},
		{"decision a list", strings.Replace(allow, `"ALLOW"`, `["ALLOW"]`, 1), "the decision in the model's reply is not a string"},
		{"decision true", strings.Replace(allow, `"ALLOW"`, `true`, 1), "the decision in the model's reply is not a string"},
		{"decision in small letters", strings.Replace(allow, "ALLOW", "allow", 1), "ALLOW"},
		{"decision in a title's letters", strings.Replace(allow, "ALLOW", "Escalate", 1), "ESCALATE"},
		{"decision with a long s", strings.Replace(allow, "ALLOW", "eſcalate", 1), `unknown decision "eſcalate"`},
		{"decision with a Kelvin sign", strings.Replace(allow, "ALLOW", "bloc\u212a", 1), "unknown decision"},
		{"decision with space", strings.Replace(allow, "ALLOW", "ALLOW ", 1), `unknown decision "ALLOW "`},
		{"decision empty", strings.Replace(allow, "ALLOW", "", 1), `unknown decision ""`},
		{"decision twice", `{"decision":"BLOCK","decision":"ALLOW",` + tail, malformed},
		{"canary twice", `{"canary":"x","decision":"ALLOW",` + tail, malformed},
		{"decision twice by escape", `{"decision":"BLOCK","\u0064ecision":"ALLOW",` + tail, malformed},
		{"decision in another case", `{"Decision":"BLOCK","decision":"ALLOW",` + tail, "differ only in case"},
		{"canary in another case", `{"CANARY":"x","decision":"ALLOW",` + tail, "differ only in case"},
		{"long s", `{"deci` + "ſ" + `ion":"BLOCK","decision":"ALLOW",` + tail, "differ only in case"},
		{"deep", `{"x":` + strings.Repeat("[", 50) + strings.Repeat("]", 50) + `,"decision":"ALLOW",` + tail, "nested deeper than 4 levels"},
		{"huge", `{"x":"` + strings.Repeat("y", maxReplyBytes) + `","decision":"ALLOW",` + tail, "bytes, more than the limit of"},
		{"invalid UTF-8", strings.Replace(allow, `"r"`, "\"\xff\"", 1), "not UTF-8"},
		{"lone surrogate", strings.Replace(allow, `"r"`, `"\ud800"`, 1), ""},
		{"raw control", strings.Replace(allow, `"r"`, "\"\x01\"", 1), ""},
		{"byte order mark", "\ufeff" + allow, malformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := parseReply(tt.reply, good)
			if err == nil {
				if a.decision.String() != tt.want {
					t.Errorf("%s: got %v, want %s", tt.reply, a.decision, tt.want)
				}
				return
			}
			if tt.want == "ALLOW" || tt.want == "ESCALATE" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s:\ngot  %v\nwant %s", tt.reply, err, tt.want)
			}
		})
	}
}

// TestFailOpenOfReplies checks that of all broken replies only an unknown
// decision with the right canary opens.
func TestFailOpenOfReplies(t *testing.T) {
	t.Parallel()
	e := newEvaluator(t, Options{Provider: obedient, FailOpen: true})
	const tail = `,"confidence":0.9,"reasoning":"r","canary":"` + good + `"}`
	for reply, want := range map[string]verdict.Decision{
		`{"decision":"PERHAPS"` + tail:      verdict.Allow,
		`x{"decision":"ALLOW"` + tail:       verdict.Block,
		`{"decision":"ALLOW"` + tail + `{}`: verdict.Block,
		`{"decision":"ALLOW"}`:              verdict.Block,
		``:                                  verdict.Block,
	} {
		v := e.verdictFromReply(&modelExchange{canaries: []string{good}, reply: Reply{Text: reply}})
		if v.Decision != want || v.Decision == verdict.Allow && (!v.IsAllowedDespiteFailure || v.Confidence > 0.5) {
			t.Errorf("%s: %v %v degraded=%t, want %v", reply, v.Decision, v.Confidence, v.IsAllowedDespiteFailure, want)
		}
	}
}

// FuzzParseReply checks that no reply without the canary is believed, and
// that what is believed is in range.
func FuzzParseReply(f *testing.F) {
	f.Add(`{"decision":"ALLOW","confidence":0.9,"reasoning":"r","canary":"`+good+`"}`, good)
	f.Add("```json\n{}\n```", good)
	f.Add(`{"decision":"ALLOW","decision":"BLOCK"`, "x")
	f.Fuzz(func(t *testing.T, reply, canary string) {
		if canary == "" {
			return
		}
		a, err := parseReply(reply, canary)
		if err != nil {
			if a.decision == verdict.Allow && !errors.Is(err, errCanaryMissing) {
				t.Errorf("an error came with ALLOW: %v", err)
			}
			return
		}
		if a.decision < verdict.Allow || a.decision > verdict.Block || !(a.confidence >= 0 && a.confidence <= 1) {
			t.Errorf("%q: %+v", reply, a)
		}
		if _, err := parseReply(reply, canary+"0"); !errors.Is(err, errCanaryMissing) {
			t.Errorf("%q is believed with another canary: %v", reply, err)
		}
	})
}

func BenchmarkParseReply(b *testing.B) {
	reply := `{"decision":"ALLOW","confidence":0.9,"reasoning":"Lists the files of a folder in the project.","canary":"` + good + `"}`
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseReply(reply, good); err != nil {
			b.Fatal(err)
		}
	}
}
