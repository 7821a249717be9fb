package main

import (
	"bytes"
	"os"
	"testing"
)

// TestTableIsFresh checks that go generate would change nothing.
func TestTableIsFresh(t *testing.T) {
	want, err := generate("../rules")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../speech_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("speech_gen.go is older than its rules; run go generate ./pkg/evaluate")
	}
}

func TestExpandRefuses(t *testing.T) {
	if _, err := expand(map[string]string{"a": "x"}, "{a}{b}"); err == nil {
		t.Error("an unknown macro was accepted")
	}
}
