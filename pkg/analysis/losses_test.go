package analysis

import "testing"

func TestMadeAgain(t *testing.T) {
	t.Parallel()
	for p, want := range map[string]bool{
		"/w/node_modules": true, "/w/a/node_modules/x": true, "/w/src": false, "/w/a.log": true, "/w/target/debug": true, "/w/main.go": false, "/w": false, "/w/.git": false,
	} {
		if got := IsBuildOutput(p); got != want {
			t.Errorf("%s: %t", p, got)
		}
	}
}

func TestHoldsCredential(t *testing.T) {
	t.Parallel()
	for p, want := range map[string]bool{
		"/w/.env": true, "/w/.env.example": false, "/w/id_rsa": true, "/w/src/main.go": false, "/w/notes.txt": false,
	} {
		if got := IsCredentialFile(p, nil); got != want {
			t.Errorf("%s: %t", p, got)
		}
	}
	if !IsCredentialFile("/w/x", []byte("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzzzz\n")) || IsCredentialFile("/w/x", []byte("some text")) {
		t.Error("by content")
	}
}
