package gateway

import (
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/canonjson"
)

func TestMisfit(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","additionalProperties":false,"required":["mode"],"properties":{
		"mode":{"enum":["read",1,null]},"deep":{"type":"object","additionalProperties":{"enum":["a"]}},"list":{"type":"array","items":{"required":["x"]}},"any":true,"one":{"const":2}}}`
	for arguments, want := range map[string]string{
		`{"mode":"read"}`:                     "",
		`{"mode":1}`:                          "",
		`{"mode":null,"any":{"a":[1]}}`:       "",
		`{"mode":"write"}`:                    "arguments.mode: the tool's schema does not allow",
		`{"mode":"1"}`:                        "does not allow this value",
		`{"mode":["read"]}`:                   "does not allow this value",
		`{}`:                                  `"mode" is missing`,
		`{"mode":"read","path":"/etc"}`:       `"path" is not an argument`,
		`{"mode":"read","deep":{"k":"b"}}`:    "arguments.deep.k: the tool's schema does not allow",
		`{"mode":"read","deep":{"k":"a"}}`:    "",
		`{"mode":"read","list":[{"x":1},{}]}`: `arguments.list[1]: the required argument "x" is missing`,
		`{"mode":"read","list":[{"x":1}]}`:    "",
		`{"mode":"read","one":2}`:             "",
		`{"mode":"read","one":3}`:             "does not allow this value",
	} {
		got := schemaViolation(readObject(t, schema), readObject(t, arguments))
		if got == "" != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", arguments, got)
		}
	}
	for odd, arguments := range map[string]string{
		`{"enum":"read","required":"mode","properties":["a"],"additionalProperties":1}`: `{"a":1}`,
		`{"$ref":"#","required":[1,{}]}`:                                                `{"a":{"a":{}}}`,
	} {
		if got := schemaViolation(readObject(t, odd), readObject(t, arguments)); got != "" {
			t.Errorf("a schema that says nothing clear, %s: %q", odd, got)
		}
	}
	large := `{"properties":{"a":{"items":{"enum":[` + strings.Repeat(`"`+strings.Repeat("x", 100)+`",`, 2000) + `"y"]}}}}`
	if got := schemaViolation(readObject(t, large), readObject(t, `{"a":[`+strings.Repeat(`"y",`, 5000)+`"y"]}`)); !strings.Contains(got, "too large") {
		t.Errorf("a schema that takes long to compare: %q", got)
	}
}

func readObject(t *testing.T, text string) object {
	t.Helper()
	v, err := canonjson.ParseValue([]byte(text), maxFrameJSONDepth)
	if err != nil {
		t.Fatal(err)
	}
	return v.(object)
}
