package action

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/shieldcli/shield/internal/canonjson"
)

func TestParse(t *testing.T) {
	raw := []byte(`{"id":"a1","type":"Bash","payload":{"cmd":"ls \u00e9","n":1.50,"ok":true,"none":null,"list":["x",2],"o":{"cmd":"y"}},` +
		`"cwd":"/home/me","session":"s1","min_tier":2,"other":[1]}`)
	got, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	want := &Action{
		ID: "a1", Type: "execute_command", CWD: "/home/me", Session: "s1", MinAllowTier: 2, Raw: raw, TypeAndPayloadHash: got.TypeAndPayloadHash,
		Payload: map[string]any{"command": "ls é", "n": jsontext.Value("1.50"), "ok": true, "none": nil,
			"list": []any{"x", jsontext.Value("2")}, "o": map[string]any{"cmd": "y"}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Action{})); diff != "" {
		t.Error(diff)
	}
	if got.Text("command") != "ls é" || got.Text("n") != "" || got.Text("cmd") != "" {
		t.Error("Text returns something else")
	}
}

// The canonical form that is kept of a record is what reading its text again gives.
func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"type":"execute_command","payload":{"command":"ls"}}`,
		` { "payload" : {"cmd":"a\u0041\/\n\u001b\u2028<é😀\ud83d\ude00","n":[1.50,1e400,-0,9007199254740993,{"b":{},"a":[]}]}, "type":"Bash", "id":"x" } `,
		`{"type":"x","payload":{"\ufb33":1,"\ud83d\ude00":2,"\u20ac":3},"\ufb33":null,"\ud83d\ude00":true,"min_tier":1,"c":1,"b":2,"a":3,"cwd":"/","session":"s"}`,
	} {
		a, err := Parse([]byte(raw))
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		want, err := canonjson.Append(nil, a.Raw, MaxJSONNestingDepth)
		if err != nil || string(a.Canonical()) != string(want) {
			t.Errorf("%s\n got %s\nwant %s, %v", raw, a.Canonical(), want, err)
		}
	}
	large := `{"type":"x","payload":{"a":"` + strings.Repeat("a", maxCanonicalizedRecordBytes) + `"}}`
	if a, err := Parse([]byte(large)); err != nil || a.Canonical() != nil {
		t.Errorf("a large record: %v, %d bytes are kept", err, len(a.Canonical()))
	}
}

// The hash is over type and payload as given, and over nothing else.
func TestHash(t *testing.T) {
	// printf '{"payload":{"command":"ls"},"type":"execute_command"}' | sha256sum
	const ls = "sha256:67998edb52cd03b476a75e23a07ce7686ca84295f6312649a92c6b7ee12b1323"
	hash := func(s string) string {
		a, err := Parse([]byte(s))
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		return a.TypeAndPayloadHash
	}
	for _, same := range []string{
		`{"type":"execute_command","payload":{"command":"ls"}}`,
		"{ \"payload\" : {\n\"command\" : \"\\u006cs\" } , \"type\":\"execute_command\"}",
		`{"id":"x","cwd":"/","session":"s","min_tier":3,"more":1,"type":"execute_command","payload":{"command":"ls"}}`,
	} {
		if got := hash(same); got != ls {
			t.Errorf("%s: %s, want %s", same, got, ls)
		}
	}
	seen := map[string]string{}
	for _, other := range []string{
		`{"type":"bash","payload":{"command":"ls"}}`,
		`{"type":"execute_command","payload":{"cmd":"ls"}}`,
		`{"type":"execute_command","payload":{"command":"ls "}}`,
		`{"type":"x","payload":{"n":9007199254740992}}`,
		`{"type":"x","payload":{"n":9007199254740993}}`,
		`{"type":"x","payload":{"n":1e400}}`,
		`{"type":"x","payload":{"n":1e401}}`,
		`{"type":"x","payload":{"n":"1e401"}}`,
	} {
		if twin, taken := seen[hash(other)]; taken || hash(other) == ls {
			t.Errorf("%s has the hash of %s", other, twin)
		}
		seen[hash(other)] = other
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		code     ErrorCode
		field    string
	}{
		{"empty", ``, InvalidJSON, ""},
		{"cut", `{"type":"x"`, InvalidJSON, ""},
		{"two", `{"type":"x","payload":{}}{}`, InvalidJSON, ""},
		{"array", `[]`, WrongType, ""},
		{"not utf-8", "{\"type\":\"\xff\",\"payload\":{}}", InvalidUTF8, ""},
		{"surrogate", `{"type":"x","payload":{"a":"\ud800"}}`, LoneSurrogate, "payload.a"},
		{"twice", `{"type":"x","type":"y","payload":{}}`, DuplicateKey, "type"},
		{"case", `{"type":"x","Type":"y","payload":{}}`, DuplicateKey, "Type"},
		{"deep in the payload", `{"type":"x","payload":{"a":[{"b":1,"B":2}]}}`, DuplicateKey, "payload.a.B"},
		{"no type", `{"payload":{}}`, MissingField, "type"},
		{"no payload", `{"type":"x"}`, MissingField, "payload"},
		{"another case is another field", `{"Type":"x","payload":{}}`, MissingField, "type"},
		{"type is a number", `{"type":1,"payload":{}}`, WrongType, "type"},
		{"type is null", `{"type":null,"payload":{}}`, WrongType, "type"},
		{"empty type", `{"type":"","payload":{}}`, InvalidValue, "type"},
		{"type of spaces", `{"type":" \t","payload":{}}`, InvalidValue, "type"},
		{"type with NUL", `{"type":"read_file\u0000","payload":{}}`, InvalidValue, "type"},
		{"long type", `{"type":"` + strings.Repeat("x", 257) + `","payload":{}}`, TooLarge, "type"},
		{"payload is a string", `{"type":"x","payload":"{}"}`, WrongType, "payload"},
		{"payload is an array", `{"type":"x","payload":[]}`, WrongType, "payload"},
		{"payload is null", `{"type":"x","payload":null}`, WrongType, "payload"},
		{"id is a number", `{"type":"x","payload":{},"id":1}`, WrongType, "id"},
		{"id is null", `{"type":"x","payload":{},"id":null}`, WrongType, "id"},
		{"long id", `{"type":"x","payload":{},"id":"` + strings.Repeat("x", 1025) + `"}`, TooLarge, "id"},
		{"session is an object", `{"type":"x","payload":{},"session":{}}`, WrongType, "session"},
		{"cwd is relative", `{"type":"x","payload":{},"cwd":"src"}`, InvalidValue, "cwd"},
		{"cwd is a home", `{"type":"x","payload":{},"cwd":"~"}`, InvalidValue, "cwd"},
		{"cwd is empty", `{"type":"x","payload":{},"cwd":""}`, InvalidValue, "cwd"},
		{"cwd is a drive", `{"type":"x","payload":{},"cwd":"C:"}`, InvalidValue, "cwd"},
		{"cwd with NUL", `{"type":"x","payload":{},"cwd":"/a\u0000"}`, InvalidValue, "cwd"},
		{"tier 4", `{"type":"x","payload":{},"min_tier":4}`, InvalidValue, "min_tier"},
		{"tier -1", `{"type":"x","payload":{},"min_tier":-1}`, InvalidValue, "min_tier"},
		{"tier 1.5", `{"type":"x","payload":{},"min_tier":1.5}`, InvalidValue, "min_tier"},
		{"tier 1e400", `{"type":"x","payload":{},"min_tier":1e400}`, InvalidValue, "min_tier"},
		{"tier almost 3", `{"type":"x","payload":{},"min_tier":2.99999999999999999999}`, InvalidValue, "min_tier"},
		{"tier is a string", `{"type":"x","payload":{},"min_tier":"3"}`, WrongType, "min_tier"},
		{"decision", `{"type":"x","payload":{},"decision":"ALLOW"}`, VerdictFieldInAction, "decision"},
		{"seal alone", `{"seal":""}`, VerdictFieldInAction, "seal"},
		{"Seal", `{"type":"x","payload":{},"SeaL":1}`, VerdictFieldInAction, "SeaL"},
		{"long s", `{"type":"x","payload":{},"ſeal":1}`, VerdictFieldInAction, "ſeal"},
		{"escaped decision", `{"type":"x","payload":{},"deci\u0073ion":null}`, VerdictFieldInAction, "decision"},
		{"two names of one field", `{"type":"execute_command","payload":{"command":"ls","cmd":"rm"}}`, FieldAliasCollision, "payload.command"},
		{"two aliases", `{"type":"bash","payload":{"script":"ls","cmd":"rm"}}`, FieldAliasCollision, "payload.command"},
		{"aliases in two styles", `{"type":"Read","payload":{"filePath":"a","file_path":"b"}}`, FieldAliasCollision, "payload.path"},
		{"alias of a type", `{"type":"move_file","payload":{"path":"a","source":"b","destination":"c"}}`, FieldAliasCollision, "payload.source"},
		{"collision with null", `{"type":"execute_command","payload":{"command":null,"cmd":"rm"}}`, FieldAliasCollision, "payload.command"},
		{"no command", `{"type":"execute_command","payload":{}}`, MissingField, "payload.command"},
		{"empty command", `{"type":"execute_command","payload":{"command":""}}`, MissingField, "payload.command"},
		{"blank command", `{"type":"Bash","payload":{"command":" \t\n "}}`, MissingField, "payload.command"},
		{"no words", `{"type":"execute_command","payload":{"command":[]}}`, MissingField, "payload.command"},
		{"blank words", `{"type":"execute_command","payload":{"cmd":[""," "]}}`, MissingField, "payload.command"},
		{"null command", `{"type":"execute_command","payload":{"command":null}}`, MissingField, "payload.command"},
		{"no destination", `{"type":"copy_file","payload":{"source":"a"}}`, MissingField, "payload.destination"},
		{"command is a number", `{"type":"execute_command","payload":{"command":1}}`, WrongType, "payload.command"},
		{"command is an object", `{"type":"execute_command","payload":{"command":{"a":"b"}}}`, WrongType, "payload.command"},
		{"argv with a number", `{"type":"execute_command","payload":{"command":["a",1]}}`, WrongType, "payload.command[1]"},
		{"path is true", `{"type":"read_file","payload":{"path":true}}`, WrongType, "payload.path"},
		{"deep", `{"type":"x","payload":` + strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 65), TooDeep, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, err := Parse([]byte(tt.in))
			var e *Error
			if !errors.As(err, &e) || a != nil {
				t.Fatalf("Parse(%.200s) = %v, %v, want an *Error", tt.in, a, err)
			}
			if e.Code != tt.code || e.Field != tt.field {
				t.Errorf("Parse(%.200s): got %s, %q (%v), want %s, %q", tt.in, e.Code, e.Field, e, tt.code, tt.field)
			}
			if strings.ContainsAny(e.Error(), "\x00\n\x1b") || len(e.Error()) > 400 {
				t.Errorf("not fit to be shown: %q", e.Error())
			}
		})
	}
}

func TestParseAccepts(t *testing.T) {
	for _, in := range []string{
		`{"type":"x","payload":{},"cwd":"C:\\Users\\me","min_tier":3.0}`,
		`{"type":"x","payload":{},"cwd":"d:/src","min_tier":0e9}`,
		`{"type":"x","payload":{},"cwd":"\\\\server\\share","min_tier":30e-1}`,
		`{"type":"x","payload":{"decision":"ALLOW","seal":"s","cmd":"a","command":"b","script":1}}`,
		`{"type":"execute_command","payload":{"command":["bash","-lc","ls"],"workdir":"/a"}}`,
		`{"type":"list_directory","payload":{"path":null}}`,
		`{"type":"x","payload":` + strings.Repeat(`{"a":`, 63) + "1" + strings.Repeat("}", 64),
	} {
		if _, err := Parse([]byte(in)); err != nil {
			t.Errorf("%.200s: %v", in, err)
		}
	}
}

// A tool of a host's name but without that tool's fields is another tool.
func TestAliasedTypeWithoutItsFieldsIsUnknown(t *testing.T) {
	a, err := Parse([]byte(`{"type":"edit","payload":{"text":"x","file":null}}`))
	if err != nil || a.Type != "edit" || a.Text("text") != "x" {
		t.Errorf("got %+v, %v", a, err)
	}
}

func TestLeaves(t *testing.T) {
	a, err := Parse([]byte(`{"type":"x","payload":{"z":"1","a":{"to":["2",["3"],{"b":"4"}],"n":5},"rm -rf /":true,"":"6"}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []PayloadLeaf{
		{Path: "", NearestFieldName: "", Text: "6"},
		{Path: "a.to[0]", NearestFieldName: "to", Text: "2"},
		{Path: "a.to[1][0]", NearestFieldName: "to", Text: "3"},
		{Path: "a.to[2].b", NearestFieldName: "b", Text: "4"},
		{Path: "rm -rf /", NearestFieldName: "rm -rf /", Text: "rm -rf /", IsFieldName: true},
		{Path: "z", NearestFieldName: "z", Text: "1"},
	}
	got, complete := a.Leaves(100)
	if diff := cmp.Diff(want, got); diff != "" || !complete {
		t.Errorf("complete %v, %s", complete, diff)
	}
	if got, complete := a.Leaves(6); len(got) != 6 || !complete {
		t.Errorf("6 of 6: got %d, complete %v", len(got), complete)
	}
	if got, complete := a.Leaves(5); len(got) != 5 || complete {
		t.Errorf("5 of 6: got %d, complete %v", len(got), complete)
	}
	many, err := Parse([]byte(`{"type":"x","payload":{"a":[` + strings.Repeat("1,", 300_000) + `"x"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, complete := many.Leaves(100); complete {
		t.Error("300,000 numbers are looked at for 100 texts")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"type":"Bash","payload":{"cmd":"ls"},"id":"1","cwd":"/","session":"s","min_tier":3}`,
		`{"type":"move_file","payload":{"old_path":"a","to":"b"}}`, `{"type":"x","payload":{"a":[1e400,{"b":null}]}}`, `{"seal":1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		a, err := Parse(in)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Code == "" || a != nil {
				t.Fatalf("got %v, %v, want an *Error with a code", a, err)
			}
			return
		}
		if !jsontext.Value(in).IsValid() {
			t.Fatalf("%q is accepted", in)
		}
		// Another way to write the same record is the same action.
		other := jsontext.Value(strings.Clone(string(in)))
		if err := other.Indent(); err != nil {
			t.Fatal(err)
		}
		b, err := Parse(other)
		if err != nil || a.TypeAndPayloadHash != b.TypeAndPayloadHash || a.Type != b.Type || a.MinAllowTier != b.MinAllowTier {
			t.Fatalf("indented: %v, %v, want %v", b, err, a)
		}
		if _, complete := a.Leaves(len(in)); !complete && len(in) > 64 {
			t.Fatal("more leaves than bytes")
		}
	})
}

func BenchmarkParse(b *testing.B) {
	raw := []byte(`{"type":"execute_command","payload":{"command":"rm -rf build && make -j4 all"},"cwd":"/home/me/app"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(raw); err != nil {
			b.Fatal(err)
		}
	}
}
