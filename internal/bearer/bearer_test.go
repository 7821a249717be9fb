package bearer

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const token = "0123456789abcdef0123456789abcdef"

func file(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestLoad(t *testing.T) {
	t.Parallel()
	other := strings.ToUpper(token)
	for _, one := range []struct {
		text  string
		alone bool
		names int // 0 for an error
	}{
		{"# who\n\na " + token + "\nb " + other + "\n", false, 2},
		{"a " + token, true, 1},
		{token + "\n", true, 1},
		{token, false, 0},
		{token + "\na " + other, true, 0},
		{"a " + other + "\n" + token, true, 0},
		{token + "\n" + other, true, 0},
		{"a " + token + "\nb " + token, true, 0},
		{token[1:], true, 0},
		{"a " + token[1:], true, 0},
		{"a/b " + token, true, 0},
		{"a " + token + " b", true, 0},
		{"# none\n", true, 0},
	} {
		got, err := LoadClientTokens(file(t, one.text, 0o600), one.alone)
		if len(got) != one.names || (err != nil) != (one.names == 0) {
			t.Errorf("%q, %t: %d names, %v", one.text, one.alone, len(got), err)
		}
		if err != nil && strings.Contains(err.Error(), token[1:]) {
			t.Errorf("%q: the error shows the token: %v", one.text, err)
		}
	}
	if _, err := LoadClientTokens(file(t, "a "+token, 0o644), false); err == nil {
		t.Error("a file that others can read is used")
	}
	if _, err := ReadServiceToken(file(t, token, 0o640)); err == nil {
		t.Error("a secret that others can read is used")
	}
	for text, ok := range map[string]bool{token + "\n": true, token[:15]: false, token + " x": false, token + "\x01": false} {
		if got, err := ReadServiceToken(file(t, text, 0o600)); (err == nil) != ok || ok && got != token {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func TestWho(t *testing.T) {
	t.Parallel()
	tokens, err := LoadClientTokens(file(t, "a "+token, 0o600), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		given []string
		ok    bool
	}{
		{[]string{"Bearer " + token}, true},
		{[]string{"bearer " + token}, true},
		{[]string{"Basic " + token}, false},
		{[]string{"Bearer " + token, "Bearer " + token}, false},
		{[]string{"Bearer " + token + " "}, false},
		{[]string{"Bearer"}, false},
		{nil, false},
	} {
		if who, ok := tokens.ClientName(http.Header{"Authorization": one.given}); ok != one.ok || ok && who != "a" {
			t.Errorf("%q: %q, %t", one.given, who, ok)
		}
	}
}
